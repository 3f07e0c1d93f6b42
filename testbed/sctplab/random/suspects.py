# SPDX-License-Identifier: GPL-2.0
"""Paths that answer late, or answer HEARTBEATs and lose data: is failover_suspect ever worse than nothing?

longer: the first path takes longer from some moment on, for good, and nothing is lost. late: only its way
back does, as behind a long queue, and the other path is longer: data is in time, the answers are not. hole:
it loses every packet with data, and brings HEARTBEATs. Each run is done without the setting as well. Pure.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from sctplab.random.choice import Draw, Generated, run_spec
from sctplab.spec.model import Direction, Event, Flow, Path, RunSpec, Topology
from sctplab.spec.scenario import Choice

LONGER, LATE, HOLE = "suspect-longer", "suspect-late", "suspect-hole"
QUESTION = "Does failover_suspect harm a path that is what it is? (drawn from the seed, not a file)"
OFF, ON = "off", "suspect"
CHANGE_S = (6.0, 7.0)
AFTER_S = 14.0
SETTLED_S = 1.0  # after a change; what is measured comes later
HEARTBEAT_B = 130  # of the longest IP packet that a hole lets pass
ROUND_TRIPS = 10  # until copies are few again
MOST_COPIES, MOST_WORSE = 0.02, 1.02
TICK_S = 0.001
PERCENTILE = 99


def runs(seed: int, kernel: str, choice: Choice, _: dict[str, Any], name: str) -> list[RunSpec]:
    """Without the setting, and with it."""
    whole = spec(seed, kernel, choice, name)
    return [with_setting(whole, OFF, 0), with_setting(whole, ON, 1)]


def with_setting(whole: RunSpec, variant: str, value: int) -> RunSpec:
    both = {**whole.sysctl.host1, "net.sctp.failover_suspect": str(value)}
    return replace(whole, variant=variant, sysctl=replace(whole.sysctl, host1=both, host2=both))


def spec(seed: int, kernel: str, choice: Choice, name: str) -> RunSpec:
    draw = Draw(name, seed)
    first_ms = draw.between("first", 2, 60)
    second_ms = first_ms * draw.between("second", 1.5 if name == LATE else 0.3, 6)
    topology = Topology((path(draw, 1, first_ms), path(draw, 2, second_ms)))
    at_s = draw.between("at", *CHANGE_S)
    event = Event(at_s, "change", "path1", **change(draw, name, first_ms))
    interval_ms = draw.between("interval", 5, 60)
    flow = Flow(
        "main",
        duration_s=at_s + AFTER_S,
        message_b=draw.one("message", (200, 500, 1200)),
        interval_ms=interval_ms,
        nodelay=True,
        message_log=True,
    )
    settings = draw.one("settings", SETTINGS) if name == HOLE else {}
    return run_spec(draw, QUESTION, kernel, choice, topology, [flow], (event,), settings)


SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {"failover_useless": 1},
    {"redundant_bytes": 65535},
    {"redundant_bytes": 65535, "failover_useless": 1},
    {"cmt": 1, "cmt_scheduler": "round-robin"},
)


def path(draw: Draw, number: int, delay_ms: float) -> Path:
    one = Direction(draw.between(f"rate {number}", 5, 20), delay_ms)
    return Path(f"path{number}", one, one)


def change(draw: Draw, name: str, first_ms: float) -> dict[str, Any]:
    """Keys of the event."""
    if name == HOLE:
        return {"direction": "forward", "values": {"hole_b": HEARTBEAT_B}}
    if name == LATE:
        return {"direction": "reverse", "values": {"delay_ms": first_ms + draw.between("queue", 20, 300)}}
    direction = draw.one("direction", ("both", "both", "forward", "reverse"))
    return {"direction": direction, "values": {"delay_ms": first_ms * draw.between("times", 1.2, 8)}}


def complaints(off: dict[str, Any], on: dict[str, Any], whole: RunSpec) -> list[str]:
    """Faults of the record ON of a run, beside that without the setting; [] if there are none."""
    own = left(off, on) if whole.scenario == HOLE else copied(on, whole)
    return [*worse(off, on, whole.events[0].at_s + SETTLED_S), *own]


def worse(off: dict[str, Any], on: dict[str, Any], since_s: float) -> list[str]:
    """The mean and the tail of delays, of what was sent since then."""
    found = []
    for name, of in (("mean", mean), (f"p{PERCENTILE}", tail)):
        before, now = (of(delays(record, since_s)) for record in (off, on))
        if now > MOST_WORSE * before + TICK_S:
            found.append(f"{name} delay: got {now:.4f} s, expected at most that without, {before:.4f} s")
    return found


def delays(record: dict[str, Any], since_s: float) -> list[float]:
    return [delay for at_s, delay in record["series"]["message_delay"] if at_s >= since_s]


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def tail(values: list[float]) -> float:
    return sorted(values)[len(values) * PERCENTILE // 100]


def copied(on: dict[str, Any], whole: RunSpec) -> list[str]:
    """Few messages go twice, but for those of some round trips after the change."""
    (event,), first = whole.events, whole.topology.path("path1")
    there, back = (
        (event.values or {})["delay_ms"] if event.direction in ("both", way) else getattr(first, way).delay_ms
        for way in ("forward", "reverse")
    )
    interval_ms = whole.flows[0].interval_ms
    sent = len(on["series"]["message_delay"])
    most = MOST_COPIES * sent + ROUND_TRIPS * (there + back) / interval_ms
    copies = counter(on, "SctpMpCopies")
    return [f"copies: got {copies}, expected at most {most:.0f} of {sent} messages"] if copies > most else []


def left(off: dict[str, Any], on: dict[str, Any]) -> list[str]:
    """The path is left, though HEARTBEATs are answered, if it carries data.

    Without the setting a timeout shows that. With it a scheduler may send nothing there, as it knows more of
    the other path's round trips: then nothing is overdue.
    """
    used = counter(off, "SctpT3RtxExpireds") > 0
    overdue = counter(on, "SctpMpSuspects") + counter(on, "SctpT3RtxExpireds") > 0
    never = used and overdue and not counter(on, "SctpMpSuspectsMoved")
    return ["the path with the hole was never left"] if never else []


def counter(record: dict[str, Any], name: str) -> int:
    return int(record["counters"]["host1"].get(name, 0))


SCENARIOS = tuple(
    Generated(name, QUESTION, repeat=10, runs=partial(runs, name=name), one_file=False)
    for name in (LONGER, LATE, HOLE)
)
