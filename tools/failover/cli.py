# SPDX-License-Identifier: GPL-2.0
"""tools/failover-time: how long a failover takes with given settings, before anything is cut."""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path
from typing import Any

from sctpkernel.errors import USAGE, run_main

from failover.advice import advice, spurious
from failover.kinds import Kind, kinds
from failover.predict import Prediction, predict
from failover.settings import LONGEST_MS, Settings, assignment, changed, from_host, from_profile
from failover.situation import Situation

DESCRIPTION = """\
Predicts, step by step, what an SCTP sender with two paths does when its primary path is cut silently: each
timeout, the failover, messages that leave and arrive over the alternate path, HEARTBEATs. The settings
are the kernel's defaults, changed in turn by --from-sysctl, --profile and --set; they apply to both ends.
The sender sends a message at fixed intervals, with SCTP_NODELAY, and receives nothing but SACKs. Figures
are the typical one of 31 trials and the extremes. The trials differ in unknown quantities (the time of
the cut relative to messages and ticks, the jitter of HEARTBEATs). A second table has other kinds of
failure, each with the rule that decides. cmt and rtx_policy play no part."""


class Parser(argparse.ArgumentParser):
    """argparse with errors of one line."""

    def error(self, message: str) -> Any:
        self.exit(USAGE, f"failover-time: {message}; see failover-time --help\n")


def positive(low: float, high: float) -> Any:
    """An argparse type: a number above LOW, up to HIGH."""

    def read(word: str) -> float:
        try:
            value = float(word)
        except ValueError:
            value = float("nan")
        if not low < value <= high:
            raise argparse.ArgumentTypeError(f"got {word!r}, expected a number above {low:g} up to {high:g}")
        return value

    return read


def count(low: int, high: int) -> Any:
    """An argparse type: a whole number from LOW to HIGH."""

    def read(word: str) -> int:
        if not word.isdigit() or not low <= int(word) <= high:
            raise argparse.ArgumentTypeError(f"got {word!r}, expected a whole number from {low} to {high}")
        return int(word)

    return read


def parser() -> argparse.ArgumentParser:
    form = argparse.RawTextHelpFormatter
    made = Parser(prog="failover-time", description=DESCRIPTION, formatter_class=form)
    option = made.add_argument
    ms = positive(0, 60000)
    option("--from-sysctl", action="store_true", help="start from this host's /proc/sys/net/sctp")
    option("--profile", type=Path, metavar="FILE", help="settings from a file in the format of sysctl.d(5)")
    option("--set", action="append", default=[], metavar="KEY=VALUE", help="one setting; may be repeated")
    option("--rtt", type=ms, default=40.0, metavar="MS", help="RTT of the primary path (40)")
    option("--alternate-rtt", type=ms, metavar="MS", help="RTT of the alternate path (as the primary)")
    option("--interval", type=ms, default=20.0, metavar="MS", help="time between messages (20)")
    option("--size", type=count(1, 1400), default=100, metavar="BYTES", help="size of a message (100)")
    option(
        "--sack-delay",
        type=count(0, 500),
        metavar="MS",
        help="SACK delay of the peer, 0: none (sack_timeout)",
    )
    option("--sack-freq", type=count(2, 100), default=2, metavar="N", help="packets per SACK of the peer (2)")
    option(
        "--peer-rto-min",
        type=count(1, LONGEST_MS),
        metavar="MS",
        help="RTO.Min of the peer, for warnings (rto_min)",
    )
    option("--jitter", type=ms, default=0.0, metavar="MS", help="a packet takes up to MS more or less (0)")
    option("--no-i-bit", action="store_true", help="the peer delays a SACK it is asked for (RFC 7053)")
    option("--no-heartbeats", action="store_true", help="the application turns them off (SPP_HB_DISABLE)")
    option("--both", action="store_true", help="the alternate path is cut as well")
    option("--heal", type=positive(0, 86400), metavar="S", help="the path works again after S seconds")
    option("--lasted", type=positive(0, 3600), default=60.0, metavar="S", help="traffic before the cut (60)")
    option("--hz", type=count(24, 1000), default=250, help="ticks per second of the kernel, CONFIG_HZ (250)")
    option("--json", action="store_true", help="everything as one JSON object")
    return made


def settings_of(options: argparse.Namespace) -> Settings:
    found = from_host() if options.from_sysctl else Settings()
    if options.profile:
        found = from_profile(options.profile, found)
    return changed(found, dict(assignment(one, "--set") for one in options.set), "--set", strict=True)


def situation_of(options: argparse.Namespace, settings: Settings) -> Situation:
    return Situation(
        rtt_ms=options.rtt,
        alternate_rtt_ms=options.alternate_rtt or options.rtt,
        interval_ms=options.interval,
        sack_delay_ms=settings.sack_timeout if options.sack_delay is None else options.sack_delay,
        sack_freq=options.sack_freq,
        size_b=options.size,
        heal_s=options.heal,
        lasted_s=options.lasted,
        hz=options.hz,
        heartbeats=not options.no_heartbeats,
        both=options.both,
        jitter_ms=options.jitter,
        i_bit=not options.no_i_bit,
    )


def as_json(
    settings: Settings, situation: Situation, found: Prediction, others: list[Kind], warnings: list[str]
) -> str:
    return json.dumps(
        {
            "settings": dataclasses.asdict(settings),
            "situation": dataclasses.asdict(situation),
            "prediction": dataclasses.asdict(found),
            "kinds": [dataclasses.asdict(one) for one in others],
            "warnings": warnings,
        },
        indent=1,
    )


def main(argv: list[str] | None = None) -> int:
    options = parser().parse_args(argv)
    settings = settings_of(options)
    situation = situation_of(options, settings)
    found = predict(settings, situation)
    others = [] if situation.both else kinds(settings, situation, found)
    warnings = advice(settings, situation, options.peer_rto_min or settings.rto_min)
    warnings += spurious(found.early_timeouts, situation.lasted_s)
    if options.json:
        print(as_json(settings, situation, found, others, warnings))
    else:
        from failover.show import show

        show(found, situation, others, warnings)
    return 0


def entry() -> None:
    run_main("failover-time", main)
