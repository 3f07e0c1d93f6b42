# SPDX-License-Identifier: GPL-2.0
"""Bulk transfers over two paths, one of which becomes longer or shorter for good, with a receive buffer that
is small for both.

Each is run once more over paths that have been so from the start, and over each of these alone. From SETTLE
round trips after the change on, all of them carry the same, if what the sender knows of a path is of now.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean
from typing import Any

from sctplab.random.choice import Draw, Generated, names, run_spec
from sctplab.spec.model import Direction, Event, Flow, Measure, Path, RunSpec, Topology
from sctplab.spec.scenario import Choice

NAME = "path-lengths"
QUESTION = "Does CMT carry what its paths can again once one has another length? (drawn from the seed)"
CHANGED, FROM_START = "changed", "from-start"  # variants; the others bear the name of their path
SETTLE = 20  # round trips of the longer of both lengths
CHANGE_S = (4.0, 8.0)
LOOK_S = 15.0  # at least, after that
SAMPLE_MS = 500
SHORT_MS, LONG_MS = (5.0, 50.0), (60.0, 300.0)  # one way
RATE_MBIT = (5.0, 30.0)
# 25-cmt.conf, and cmt alone.
SETTINGS: tuple[dict[str, Any], ...] = (
    {"cmt": 1, "cmt_scheduler": "round-robin", "cmt_sack": "per-path", "failover_heartbeat": 1},
    {"cmt": 1},
)


def runs(seed: int, kernel: str, choice: Choice, _: dict[str, Any]) -> list[RunSpec]:
    """The run with a change, and those that it stands beside."""
    draw = Draw(NAME, seed)
    changed = draw.one("path", (0, 1))
    lengths = [draw.between("short", *SHORT_MS), draw.between("long", *LONG_MS)]
    if draw.one("shorter", (False, False, True)):
        lengths.reverse()
    at_s = draw.between("change", *CHANGE_S)
    flow = Flow(
        "main",
        duration_s=round(settled_s(at_s, max(lengths)) + LOOK_S, 3),
        message_b=draw.one("message", (1200, 1400)),
        rcvbuf_kb=draw.one("rcvbuf", (192, 256, 320, 512, 1024)),
    )
    event = Event(at_s, "change", f"path{changed + 1}", values={"delay_ms": lengths[1]})
    before, after = (topology(draw, changed, length) for length in lengths)
    settings = draw.one("settings", SETTINGS)
    made = run_spec(draw, QUESTION, kernel, choice, before, [flow], (event,), settings, CHANGED)
    made = replace(made, measure=Measure(SAMPLE_MS))
    start = replace(made, topology=after, events=(), variant=FROM_START)
    alone = (replace(start, variant=name, flows=(replace(flow, paths=(name,)),)) for name in names(after))
    return [made, start, *alone]


def topology(draw: Draw, changed: int, delay_ms: float) -> Topology:
    """Two paths; that with the number CHANGED takes DELAY_MS each way."""
    delays = [draw.between(f"delay {number}", *SHORT_MS) for number in range(2)]
    delays[changed] = delay_ms
    ways = (
        Direction(
            draw.between(f"rate {number}", *RATE_MBIT),
            delay,
            queue_pkts=draw.one(f"queue {number}", (100, 300, 700)),
        )
        for number, delay in enumerate(delays)
    )
    return Topology(tuple(Path(f"path{number}", way, way) for number, way in enumerate(ways, 1)))


def settled_s(at_s: float, delay_ms: float) -> float:
    """The time from which a run that changed AT_S is judged."""
    return at_s + SETTLE * 2 * delay_ms / 1000


def judged_from_s(seed: int) -> float:
    """That of a seed, seconds after the start."""
    draw = Draw(NAME, seed)
    return settled_s(draw.between("change", *CHANGE_S), draw.between("long", *LONG_MS))


def goodput_mbit(record: dict[str, Any]) -> float:
    """Of a record, from then to its last whole sample."""
    begin = judged_from_s(record["spec"]["seed"])
    start = record["series"]["goodput"][0][0]
    return fmean(mbit for t, mbit in record["series"]["goodput"][:-1] if t - start >= begin)


SCENARIO = Generated(NAME, QUESTION, repeat=10, runs=runs, one_file=False)
