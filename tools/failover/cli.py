# SPDX-License-Identifier: GPL-2.0
"""tools/failover-time: how long a failover takes with given settings, before anything is cut."""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path
from typing import Any

from sctpkernel.errors import Parser, run_main

from failover import live
from failover.advice import advice, all_at_once, spurious
from failover.kinds import Kind, kinds
from failover.predict import Prediction, predict
from failover.programs import NODELAY
from failover.settings import LONGEST_MS, Settings, assignment, changed, from_host, from_profile
from failover.situation import Situation

RTT_MS, INTERVAL_MS, SIZE_B = 40.0, 20.0, 100
DESCRIPTION = """\
Predicts, step by step, what an SCTP sender with two paths does when its primary path is cut silently: each
timeout, the failover, messages that leave and arrive over the alternate path, HEARTBEATs. The settings
are the kernel's defaults, changed in turn by --from-sysctl, --profile and --set; they apply to both ends.
The sender sends a message at fixed intervals, with SCTP_NODELAY unless --nagle or --program says
otherwise, and receives nothing but SACKs. --assoc takes all of that from a live association. Figures
are the typical one of 31 trials and the extremes. The trials differ in unknown quantities (the time of
the cut relative to messages and ticks, the jitter of HEARTBEATs). A second table has other kinds of
failure, each with the rule that decides. rtx_policy plays no part, and of cmt a warning tells."""


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
        if not word.isdecimal() or not low <= int(word) <= high:
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
    option("--rtt", type=ms, metavar="MS", help="RTT of the primary path (40)")
    option("--alternate-rtt", type=ms, metavar="MS", help="RTT of the alternate path (as the primary)")
    option("--interval", type=ms, metavar="MS", help="time between messages (20)")
    option("--size", type=count(1, 1400), metavar="BYTES", help="size of a message (100)")
    option("--nagle", action="store_true", help="the application does not set SCTP_NODELAY")
    option("--program", choices=sorted(NODELAY), metavar="NAME", help=f"one of {', '.join(sorted(NODELAY))}")
    option("--assoc", type=count(1, 2**31 - 1), metavar="N", help="association N of this host, as it is now")
    option("--port", type=count(1, 65535), metavar="PORT", help="the same, the only one with this port")
    option("--watch", type=ms, default=3.0, metavar="S", help="look at its traffic for S seconds (3)")
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
        rtt_ms=options.rtt or RTT_MS,
        alternate_rtt_ms=options.alternate_rtt or options.rtt or RTT_MS,
        interval_ms=options.interval or INTERVAL_MS,
        sack_delay_ms=settings.sack_timeout if options.sack_delay is None else options.sack_delay,
        sack_freq=options.sack_freq,
        size_b=options.size or SIZE_B,
        heal_s=options.heal,
        lasted_s=options.lasted,
        hz=options.hz,
        heartbeats=not options.no_heartbeats,
        both=options.both,
        jitter_ms=options.jitter,
        i_bit=not options.no_i_bit,
        nodelay=not options.nagle and NODELAY.get(options.program, True),
    )


def of_association(options: argparse.Namespace) -> tuple[Settings, Situation, list[str]]:
    """The same of a live association, with what it is, in lines; the command line overrides."""
    found = live.look(options.assoc, options.port, 0 if options.interval else options.watch)
    host = from_profile(options.profile, from_host()) if options.profile else from_host()
    sets = dict(assignment(one, "--set") for one in options.set)
    settings = changed(live.settings_of(found, host), sets, "--set", strict=True)
    situation = live.situation_of(found, settings, situation_of(options, settings))
    said = {"rtt_ms": options.rtt, "alternate_rtt_ms": options.alternate_rtt, "size_b": options.size}
    said |= {"sack_delay_ms": options.sack_delay, "interval_ms": options.interval}
    situation = dataclasses.replace(situation, **{key: one for key, one in said.items() if one is not None})
    return settings, situation, live.told(found, situation)


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
    lines: list[str] = []
    if options.assoc is not None or options.port is not None:
        settings, situation, lines = of_association(options)
    else:
        settings = settings_of(options)
        situation = situation_of(options, settings)
    found = predict(settings, situation)
    others = [] if situation.both else kinds(settings, situation, found)
    warnings = advice(settings, situation, options.peer_rto_min or settings.rto_min)
    warnings += spurious(found.early_timeouts, situation.thinned().lasted_s) + all_at_once(settings)
    if options.json:
        print(as_json(settings, situation, found, others, warnings))
    else:
        from failover.show import show

        print(*lines, sep="\n", end="\n" if lines else "")
        show(found, situation, others, warnings)
    return 0


def entry() -> None:
    run_main("failover-time", main)
