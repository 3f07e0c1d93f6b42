# SPDX-License-Identifier: GPL-2.0
"""Runs in which paths come and go at random under random settings: every byte has to arrive all the same.

A run is good when its record is "ok": content and order as sent, the association alive, no warning of the
kernel.

No run gives the sender a reason to give up. Most leave one path up at every moment, and then
Association.Max.Retrans is stock's, if the settings have the sender look for that path. Otherwise even stock
may exceed it on a path that is down, when it takes all for inactive and tries no other, and the limit is more
than all timers together can count.
"""

from __future__ import annotations

from typing import Any

from sctplab.random.choice import Draw, Generated, end_s, most_timeouts, names, run_spec
from sctplab.spec import outages
from sctplab.spec.model import Direction, Flow, Path, RunSpec, Topology
from sctplab.spec.outages import Outage
from sctplab.spec.scenario import Choice

NAME = "flaps"
QUESTION = "Does everything arrive when paths come and go at random? (drawn from the seed, not a file)"
ALL_DOWN_SHARE = 0.25  # of the seeds: moments without any path
SCHEDULE_S = (10.0, 60.0)
STOCK_MAX_RETRANS = 10
FAMILIES = (("ipv4",) * 3, ("ipv4",) * 3, ("ipv6",) * 3, ("ipv4", "ipv6", "ipv4"))
# Settings of stock kernels, then those that the series adds; in this order, since some bound each other.
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


def spec(seed: int, kernel: str, choice: Choice) -> RunSpec:
    """The run with SEED; kernels differ in the settings they know and in nothing else."""
    draw = Draw(NAME, seed)
    topology = Topology(tuple(path(draw, i) for i in range(draw.one("paths", (2, 2, 3)))))
    drawn = schedule(draw, topology)
    flows = [flow(draw, drawn, f"flow{i}") for i in range(1, draw.one("flows", (1, 1, 2)) + 1)]
    settings = choose(draw, topology, drawn, kernel)
    return run_spec(draw, QUESTION, kernel, choice, topology, flows, outages.events(drawn), settings)


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


def choose(draw: Draw, topology: Topology, drawn: list[Outage], kernel: str) -> dict[str, Any]:
    """net.sctp settings of both hosts."""
    known = STOCK_SETTINGS if kernel == "stock" else {**STOCK_SETTINGS, **PATCHED_SETTINGS}
    chosen = draw.each(known)
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


SCENARIO = Generated(
    NAME, QUESTION, repeat=24, runs=lambda seed, kernel, choice, _: [spec(seed, kernel, choice)]
)
