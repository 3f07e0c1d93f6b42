# SPDX-License-Identifier: GPL-2.0
"""Runs in which paths come and go at random under random settings: every byte has to arrive all the same.

A run is a function of its seed. What is drawn has a source of its own, made from the seed and its name, so
that a setting more or less leaves all others as they are. A run is good when its record is "ok": content and
order as sent, the association alive, no warning of the kernel.

No run gives the sender a reason to give up. Most leave one path up at every moment, and then
Association.Max.Retrans is stock's, if the settings have the sender look for that path. Otherwise even stock
may exceed it on a path that is down, when it takes all for inactive and tries no other, and the limit is more
than all timers together can count.
"""

from __future__ import annotations

import math
import random
from typing import Any

from sctplab import outages
from sctplab.model import (
    SPEC_FORMAT,
    Direction,
    Flow,
    HostSettings,
    Limits,
    Measure,
    Path,
    RunSpec,
    Topology,
    derive_seed,
)
from sctplab.outages import Outage, scattered
from sctplab.scenario import Choice

NAME = "flaps"
QUESTION = "Does everything arrive when paths come and go at random? (drawn from the seed, not a file)"
REPEAT = 24
ALL_DOWN_SHARE = 0.25  # of the seeds: moments without any path
SCHEDULE_S = (10.0, 60.0)
STOCK_MAX_RETRANS = 10
PATIENCE_S = 3600.0  # virtual time; a transfer that stands still costs nothing until then
FAMILIES = (("ipv4",) * 3, ("ipv4",) * 3, ("ipv6",) * 3, ("ipv4", "ipv6", "ipv4"))
# What stock kernels know, then what the series adds; in this order, since some bound each other.
STOCK_SETTINGS: dict[str, tuple[Any, ...]] = {
    "rto_max": (2000, 10000, 60000),
    "rto_min": (100, 200, 500, 1000),
    "rto_initial": (1000, 3000),
    "path_max_retrans": (1, 2, 3, 4, 5),
    "pf_enable": (0, 1),
    "pf_retrans": (0, 1, 2),
    "hb_interval": (1000, 5000, 30000),
    "max_burst": (4, 4, 0),
}
PATCHED_SETTINGS: dict[str, tuple[Any, ...]] = {
    "path_max_retrans": (0, 0, 1, 2, 3, 4, 5),
    "failover_heartbeat": (0, 1),
    "dormant_policy": ("kernel", "hop", "primary", "last"),
    "rtx_policy": ("kernel", "same", "alternate", "fr-same-rto-alt"),
    "multiple_fast_rtx": (0, 1),
}


class Draw:
    """Random choices of one run, each by its name."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def source(self, name: str) -> random.Random:
        return random.Random(derive_seed(self.seed, "flaps", name))

    def one(self, name: str, values: tuple[Any, ...]) -> Any:
        return self.source(name).choice(values)

    def between(self, name: str, low: float, high: float) -> float:
        return scattered(low, high, self.source(name))


def expand(choice: Choice) -> list[RunSpec]:
    """One run per seed and kernel; CHOICE.repeat seeds, else REPEAT."""
    seeds = range(choice.first_seed, choice.first_seed + (choice.repeat or REPEAT))
    return [spec(seed, kernel, choice) for seed in seeds for kernel in choice.kernels]


def spec(seed: int, kernel: str, choice: Choice) -> RunSpec:
    """The run with SEED; kernels differ in the settings they know and in nothing else."""
    draw = Draw(seed)
    topology = Topology(tuple(path(draw, i) for i in range(draw.one("paths", (2, 2, 3)))))
    drawn = schedule(draw, topology)
    chosen = choose(draw, topology, drawn, kernel)
    settings = {f"net.sctp.{name}": str(value) for name, value in chosen.items()}
    return RunSpec(
        format=SPEC_FORMAT,
        scenario=NAME,
        question=QUESTION,
        place=choice.place,
        kernel=kernel,
        base=choice.base,
        variant="default",
        factors={},
        seed=seed,
        topology=topology,
        flows=tuple(flow(draw, drawn, f"flow{i}") for i in range(1, draw.one("flows", (1, 1, 2)) + 1)),
        events=outages.events(drawn),
        sysctl=HostSettings(settings, settings),
        limits=Limits(virtual_s=PATIENCE_S, wall_s=600),
        measure=Measure(),
        pcap=choice.pcap,
        build=choice.build,
    )


def path(draw: Draw, index: int) -> Path:
    number = index + 1
    one = Direction(
        rate_mbit=draw.one(f"rate {number}", (0.5, 1.0, 2.0, 5.0)),
        delay_ms=draw.between(f"delay {number}", 1, 150),
        loss_pct=draw.one(f"loss {number}", (0.0, 0.0, 0.1, 1.0, 5.0)),
        queue_pkts=draw.one(f"queue {number}", (50, 200, 1000)),
    )
    return Path(f"path{number}", forward=one, reverse=one, family=draw.one("families", FAMILIES)[index])


def schedule(draw: Draw, topology: Topology) -> list[Outage]:
    until_s = draw.between("until", *SCHEDULE_S)
    one_stays = draw.source("one stays").random() >= ALL_DOWN_SHARE
    return outages.schedule(names(topology), until_s, one_stays, draw.source("outages"))


def names(topology: Topology) -> list[str]:
    return [path.name for path in topology.paths]


def choose(draw: Draw, topology: Topology, drawn: list[Outage], kernel: str) -> dict[str, Any]:
    """net.sctp settings of both hosts."""
    known = STOCK_SETTINGS if kernel == "stock" else {**STOCK_SETTINGS, **PATCHED_SETTINGS}
    chosen = {name: draw.one(name, values) for name, values in known.items()}
    never = most_timeouts(len(topology.paths), end_s(drawn), chosen["rto_min"])
    found = finds_paths(chosen) and not outages.all_down(drawn, names(topology))
    return {
        **chosen,
        "max_init_retransmits": never,
        "association_max_retrans": STOCK_MAX_RETRANS if found else never,
    }


def finds_paths(chosen: dict[str, Any]) -> bool:
    """Whether the sender, all of whose paths seem to be down, tries them in turn or asks them."""
    return chosen.get("dormant_policy") == "hop" or bool(chosen.get("failover_heartbeat"))


def most_timeouts(paths: int, seconds: float, rto_min_ms: int) -> int:
    """More than the timers of all paths can expire in this time."""
    return math.ceil(paths * seconds * 1000 / rto_min_ms) + paths


def end_s(drawn: list[Outage]) -> float:
    """When everything is healed, seconds after the start."""
    return max((outage.end_s for outage in drawn), default=0.0)


def flow(draw: Draw, drawn: list[Outage], name: str) -> Flow:
    """Messages at a steady pace, or as fast as the socket takes them, until everything is healed."""
    size = {"message_b": 1400, "sndbuf_kb": draw.one(f"{name} sndbuf", (64, 1024))}
    if draw.one(f"{name} paced", (False, True, True)):
        size = {
            "message_b": draw.one(f"{name} message", (24, 100, 1400, 5000)),
            "interval_ms": draw.one(f"{name} interval", (20.0, 50.0, 100.0)),
        }
    return Flow(
        name,
        **size,
        duration_s=round(end_s(drawn) + draw.between(f"{name} after", 1, 10), 3),
        reverse=draw.one(f"{name} reverse", (False, True)),
        nodelay=draw.one(f"{name} nodelay", (False, True)),
        streams=draw.one(f"{name} streams", (1, 1, 5)),
        sack_delay_ms=draw.one(f"{name} sack delay", (0, 40, 200, 500)),
        sack_freq=draw.one(f"{name} sack freq", (1, 2, 4)),
        rcvbuf_kb=draw.one(f"{name} rcvbuf", (64, 16384)),
    )
