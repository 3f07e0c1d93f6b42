# SPDX-License-Identifier: GPL-2.0
"""testbed/lab explain: why deliveries of a run waited, from its captures at both ends and its record.

A wait is a time between two deliveries in order that is longer than two round trips of the path over which
the second came. It ends with one chunk, and what happened to that chunk fills it:

program           it was sent when nothing held it back: the program had written nothing sooner
window            it was sent as soon as a SACK made room in the congestion window
receive buffer    likewise in the receiver's window
cut               it was lost in an outage of its path, until it was sent again
T3                it was lost, until the T3-rtx timer expired; or it left after what that sent again,
                  before any SACK
fast rtx          it was lost, until SACKs told that
head-of-line      it was on its way, and others that were sent later had arrived over another path
path              it was on its way, or in a queue there

The cause of a wait is the one that took most of it. A chunk that leaves while others are sent again, and not
with a SACK, has an unknown cause: the program and the window after a timeout look alike.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from sctplab.errors import LabError
from sctplab.measure.records import read_json
from sctplab.plan.link_commands import address
from sctplab.plan.run_plan import file_name
from sctplab.plan.traffic import PORT
from sctplab.replay.packet import Chunk, Packet
from sctplab.replay.sender import Numbers, Sender
from sctplab.replay.story import ignore, ordered
from sctplab.run.record import read_spec
from sctplab.spec.model import BREAKING, HEALING, RunSpec

AT_ONCE_NS = 1_000_000
ROUND_TRIPS = 2
SMALL_WINDOW_B = 3000  # a receiver's window that holds a sender back
SACK_B = 62
SHOWN = 20
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Sending:
    """A chunk leaves. WHY: of the first time what it had waited for, of others what made it go again."""

    time_ns: int
    path: str
    why: str


@dataclass(frozen=True)
class Wait:
    """From one delivery to the next; PARTS: cause -> nanoseconds."""

    start_ns: int
    end_ns: int
    path: str
    parts: dict[str, int]
    times: int

    @property
    def cause(self) -> str:
        return max(self.parts, key=lambda cause: self.parts[cause], default=UNKNOWN)

    @property
    def lasted_s(self) -> float:
        return (self.end_ns - self.start_ns) / 1e9

    @property
    def known_s(self) -> float:
        return sum(self.parts.values()) / 1e9


@dataclass
class Trace:
    """All chunks of one flow by TSN; deliveries in order: (time, TSN, path).

    OUTSTANDING: path -> (time, bytes of DATA chunks that were last sent over it and are not acknowledged).
    """

    spec: RunSpec
    sendings: dict[int, list[Sending]] = field(default_factory=lambda: defaultdict(list))
    outstanding: dict[str, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    deliveries: list[tuple[int, int, str]] = field(default_factory=list)
    arrivals: list[tuple[int, int]] = field(default_factory=list)
    sender: Sender = field(default_factory=lambda: Sender(ignore))
    here: Numbers = field(default_factory=Numbers)
    waiting: set[int] = field(default_factory=set)
    next: int | None = None
    again_ns: int = 0
    window_b: int = 1 << 30
    before_b: int = 1 << 30

    def sent(self, now: int, path: str, chunk: Chunk) -> None:
        one = self.sender
        tsn = one.numbers.whole(chunk.number)
        marked, timeouts = tsn in one.out and one.out[tsn].marked, len(one.timeouts)
        held = self.held(now)
        if tsn in one.out:
            self.counted(now, one.out[tsn].path, -one.out[tsn].length)
        new = one.sent(now, self.number(path), chunk, None, chunk.length)
        again = "T3" if marked or len(one.timeouts) > timeouts else "fast rtx"
        if tsn in one.out:
            self.counted(now, one.out[tsn].path, one.out[tsn].length)
        self.again_ns = self.again_ns if new else now
        self.sendings[tsn].append(Sending(now, path, held if new else again))

    def held(self, now: int) -> str:
        """The reason why a new chunk that leaves now did not leave earlier; "program": app-limited."""
        out = self.sender.out.values()
        if now - self.sender.sack_ns > AT_ONCE_NS or not out:
            repairing = any(one.marked or one.times > 1 for one in out)
            if repairing:
                return "T3" if self.again_ns >= self.sender.sack_ns else UNKNOWN
            return "program"
        return "receive buffer" if min(self.window_b, self.before_b) < SMALL_WINDOW_B else "window"

    def number(self, path: str) -> int:
        return self.spec.topology.number(path)

    def acknowledged(self, now: int, path: str, chunk: Chunk) -> None:
        self.before_b, self.window_b = self.window_b, chunk.window
        for one in self.sender.sack(now, self.number(path), chunk):
            self.counted(now, one.path, -one.length)

    def counted(self, now: int, number: int, more_b: int) -> None:
        rows = self.outstanding[self.spec.topology.paths[number - 1].name]
        rows.append((now, (rows[-1][1] if rows else 0) + more_b))

    def arrived(self, now: int, path: str, chunk: Chunk) -> None:
        tsn = self.here.whole(chunk.number)
        if self.next is None:
            self.next = min(self.sendings, default=tsn)
        if tsn < self.next or tsn in self.waiting:
            return
        self.arrivals.append((now, tsn))
        self.waiting.add(tsn)
        if tsn == self.next:
            self.deliveries.append((now, tsn, path))
        while self.next in self.waiting:
            self.waiting.remove(self.next)
            self.next += 1


@dataclass(frozen=True, slots=True)
class Told:
    """A run, from its captures; times count from START_NS."""

    trace: Trace
    waits: list[Wait]
    start_ns: int


def captures_of(record: Path) -> Path:
    """The folder in which a run with --pcap leaves them."""
    return record.parent.parent / "pcap" / record.stem


def tell(record: Path, captures: Path | None) -> Told:
    """RECORD of a run with --pcap; CAPTURES: their folder, None for where the run left them."""
    spec = read_spec(record)
    start_t = read_json(record).get("start_t")
    flow = spec.measured_flow
    if flow.kind != "sctp":
        raise LabError(f"{record}: a flow of kind {flow.kind}; expected sctp")
    if not isinstance(start_t, float):
        raise LabError(f"{record}: the run did not start; expected one that is ok")
    folder = captures or captures_of(record)
    trace, start_ns = read(spec, folder), round(start_t * 1e9)
    return Told(trace, waits(trace, start_ns), start_ns)


def explain(told: Told) -> str:
    return "\n".join(shown(told.trace.spec, told.waits, told.start_ns))


def read(spec: RunSpec, folder: Path) -> Trace:
    trace = Trace(spec)
    flow = spec.measured_flow
    port = PORT + spec.flows.index(flow)
    near = {address(spec.topology, flow.hosts[0], path.name) for path in spec.topology.paths}
    streams = [
        crossed(folder / file_name(host, path.name), host, path.name)
        for host in flow.hosts
        for path in spec.topology.paths
    ]
    for time_ns, host, path, packet in heapq.merge(*streams, key=lambda one: one[0]):
        if port not in packet.ports:
            continue
        outward = packet.source in near
        for chunk in packet.chunks:
            if chunk.kind == "DATA" and outward:
                (trace.sent if host == flow.hosts[0] else trace.arrived)(time_ns, path, chunk)
            elif chunk.kind == "SACK" and not outward and host == flow.hosts[0]:
                trace.acknowledged(time_ns, path, chunk)
    if not trace.deliveries:
        raise LabError(f"{folder}: nothing was delivered in these captures; run again with --pcap")
    return trace


def crossed(file: Path, host: str, path: str) -> Iterator[tuple[int, str, str, Packet]]:
    for packet in ordered(file):
        yield packet.time_ns, host, path, packet


def trip_ns(spec: RunSpec, path: str) -> int:
    """Of a full packet and a small one, when queues are empty."""
    one = spec.topology.path(path)
    packet_ms = 8 * (one.mtu / one.forward.rate_mbit + SACK_B / one.reverse.rate_mbit) / 1000
    return round((one.forward.delay_ms + one.reverse.delay_ms + packet_ms) * 1e6)


def waits(trace: Trace, start_ns: int) -> list[Wait]:
    found = []
    for (before, _, _), (now, tsn, path) in pairwise(trace.deliveries):
        if now - before > ROUND_TRIPS * trip_ns(trace.spec, path):
            found.append(wait(trace, start_ns, before, now, tsn, path))
    return found


def wait(trace: Trace, start_ns: int, before: int, now: int, tsn: int, path: str) -> Wait:
    """The wait from BEFORE to NOW by causes: until the chunk was sent, then until each retransmission."""
    way = "reverse" if trace.spec.measured_flow.reverse else "forward"
    delay = round(0.9e6 * getattr(trace.spec.topology.path(path), way).delay_ms)
    every = [one for one in trace.sendings.get(tsn, []) if one.time_ns <= now]
    came = [i for i, one in enumerate(every) if one.path == path and one.time_ns + delay <= now]
    every = every[: came[-1] + 1] if came else every
    parts: dict[str, int] = defaultdict(int)

    def add(cause: str, start: int, end: int) -> None:
        took = min(end, now) - max(start, before)
        if took > 0 and cause != UNKNOWN:
            parts[cause] += took

    if every:
        add(every[0].why, before, every[0].time_ns)
        for one, again in pairwise(every):
            cut = in_outage(trace.spec, one.path, way, one.time_ns - start_ns)
            add("cut" if cut else again.why, one.time_ns, again.time_ns)
        add(on_the_way(trace, every[-1].time_ns, before, now), every[-1].time_ns, now)
    return Wait(before, now, path, dict(parts), len(every))


def on_the_way(trace: Trace, sent_ns: int, before: int, now: int) -> str:
    """Whether chunks that left later had to wait for the one that left at SENT_NS."""
    first, last = (bisect_left(trace.arrivals, (t, 0)) for t in (before, now))
    others = (trace.sendings.get(tsn) for _, tsn in trace.arrivals[first:last])
    ahead = any(other and other[0].time_ns > sent_ns for other in others)
    return "head-of-line" if ahead else "path"


def in_outage(spec: RunSpec, path: str, way: str, at_ns: int) -> bool:
    """Whether the scenario's events had PATH down that way."""
    down = False
    for event in sorted(spec.events, key=lambda one: one.at_s):
        if event.path == path and event.direction in ("both", way) and event.at_s * 1e9 <= at_ns + AT_ONCE_NS:
            down = event.action in BREAKING or (down and event.action not in (*HEALING, "change"))
    return down


def shown(spec: RunSpec, found: Sequence[Wait], start_ns: int) -> Iterator[str]:
    total, known = sum(one.lasted_s for one in found), sum(one.known_s for one in found)
    yield f"{spec.run_id}: {len(found)} waits of more than two round trips, {total:.3f} s in all"
    if not found:
        return
    yield ""
    yield f"{'at (s)':>10} {'wait (s)':>10}  {'cause':<15} {'over':<11} parts"
    longest = sorted(found, key=lambda one: -one.lasted_s)[:SHOWN]
    for one in sorted(longest, key=lambda one: one.start_ns):
        parts = ", ".join(f"{cause} {took / 1e9:.3f}" for cause, took in one.parts.items())
        at = (one.start_ns - start_ns) / 1e9
        yield f"{at:10.3f} {one.lasted_s:10.3f}  {one.cause:<15} {one.path:<11} {parts}"
    if len(found) > SHOWN:
        yield f"... the longest {SHOWN} of {len(found)}"
    yield ""
    yield f"{'cause':<15} {'waits':>6} {'time (s)':>10} {'share':>7}"
    for cause in sorted({one.cause for one in found}):
        of_it = [one.lasted_s for one in found if one.cause == cause]
        yield f"{cause:<15} {len(of_it):6} {sum(of_it):10.3f} {100 * sum(of_it) / total:6.1f}%"
    yield f"accounted for: {100 * known / total:.1f} % of the time"
