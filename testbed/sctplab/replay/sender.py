# SPDX-License-Identifier: GPL-2.0
"""One end's DATA and what answers it, in one capture: round trips, timeouts, SACK delays, what was lost.

At the sender's end times are its own. At the receiver's, DATA is noted as it arrives: a SACK then tells the
SACK delay without the round trip.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sctplab.measure.capture import ALL_TSNS
from sctplab.replay.packet import Chunk
from sctplab.replay.way import Ask, Least

MOST_OUTSTANDING = 200_000
MOST_SAMPLES = 10_000
AT_ONCE_NS = 2_000_000  # a retransmission so soon after a SACK with gaps is one by it
TIMER_NS = 5_000_000  # a SACK so long after the last chunk is one by the timer
NO_SACKS_NS = 200_000_000  # without any SACKs in the capture: a chunk sent again later than this timed out


@dataclass(slots=True)
class Out:
    """A DATA chunk that is not acknowledged. MARKED: its path timed out after it was sent."""

    sent_ns: int
    path: int
    length: int
    ask: Ask | None
    times: int = 1
    marked: bool = False


@dataclass
class Timeout:
    """A T3-rtx expiry: when, on which path, after how long, and where the chunk went.

    LOST_NS: when the first chunk that timed out had been sent. TSN: of that chunk. NUMBER: of the timeouts
    in a row. DELIVERED_NS: when the chunk was, or 0.
    """

    time_ns: int
    path: int
    rto_ns: int
    target: int
    lost_ns: int
    tsn: int
    number: int = 1
    delivered_ns: int = 0


class Numbers:
    """TSNs that go on beyond 2^32, near the last one."""

    def __init__(self) -> None:
        self.last: int | None = None

    def whole(self, tsn: int) -> int:
        if self.last is None:
            self.last = tsn
        ahead = (tsn - self.last) % ALL_TSNS
        found = self.last + (ahead - ALL_TSNS if ahead >= ALL_TSNS // 2 else ahead)
        self.last = max(self.last, found)
        return found


@dataclass
class Sender:
    """FATE: called with a chunk's ask once it is known whether it passed."""

    fate: Callable[[Ask, bool], None]
    numbers: Numbers = field(default_factory=Numbers)
    out: dict[int, Out] = field(default_factory=dict)
    newest: int | None = None
    cum: int | None = None
    trips: dict[int, Least] = field(default_factory=dict)
    timer_ns: dict[int, int] = field(default_factory=dict)
    streak: dict[int, int] = field(default_factory=dict)
    highest_gap: int = 0
    gap_ns: int = 0
    sack_ns: int = 0
    sacks: int = 0
    blocks: dict[int, int] = field(default_factory=dict)
    timeouts: list[Timeout] = field(default_factory=list)
    watched: list[Timeout] = field(default_factory=list)
    chunks: int = 0
    again: int = 0
    fast: int = 0
    alone_ns: list[int] = field(default_factory=list)  # SACKs of one chunk alone: after how long
    timed_ns: list[int] = field(
        default_factory=list
    )  # at the receiver, SACKs that no chunk set off: after how long
    acked: int = 0
    in_flight: int = 0  # small chunks that left while others were under way
    small: int = 0
    moved: list[tuple[int, int]] = field(
        default_factory=list
    )  # when new data left a path, after how many timeouts
    last_path: int | None = None

    def sent(self, now: int, path: int, chunk: Chunk, ask: Ask | None, wire_b: int) -> bool:
        """A DATA chunk leaves as WIRE_B on Ethernet; True for one that was never sent before."""
        tsn = self.numbers.whole(chunk.number)
        self.chunks += 1
        new = self.newest is None or tsn > self.newest
        if not new:
            self.repeated(now, path, tsn, ask)
            return False
        self.newest = tsn
        if chunk.length < 1000:
            self.small += 1
            self.in_flight += bool(self.out)
        if self.last_path not in (None, path) and (times := self.streak.get(self.last_path or 0, 0)):
            self.moved.append((now, times))
            self.streak[self.last_path or 0] = 0
        self.last_path = path
        if not any_on(self.out, path):
            self.timer_ns[path] = now
        self.out[tsn] = Out(now, path, wire_b, ask)
        if len(self.out) > MOST_OUTSTANDING:
            del self.out[next(iter(self.out))]
        return True

    def repeated(self, now: int, path: int, tsn: int, ask: Ask | None) -> None:
        self.again += 1
        one = self.out.get(tsn)
        if one is None:
            return
        if one.ask is not None:
            self.fate(one.ask, False)
        if not one.marked:
            if self.by_sack(now, tsn, one):
                self.fast += 1
            else:
                self.timed_out(now, one.path, path, tsn)
        if not any_on(self.out, path):
            self.timer_ns[path] = now
        one.sent_ns, one.path, one.ask, one.marked = now, path, ask, False
        one.times += 1

    def by_sack(self, now: int, tsn: int, one: Out) -> bool:
        if not self.sacks:
            return now - one.sent_ns < NO_SACKS_NS
        trip = self.trips.get(one.path)
        if trip and now - self.timer_ns.get(one.path, one.sent_ns) < (trip.time_ns or 0):
            return True  # no RTO is below the round trip
        return tsn < self.highest_gap and now - self.gap_ns <= AT_ONCE_NS

    def timed_out(self, now: int, path: int, target: int, tsn: int) -> None:
        """All that is under way on PATH is marked: what is sent again of it is the same timeout's work."""
        lost = {key: out for key, out in self.out.items() if out.path == path and not out.marked}
        self.streak[path] = self.streak.get(path, 0) + 1
        rto = now - self.timer_ns.get(path, lost[tsn].sent_ns)
        first = min((key for key, out in lost.items() if not (out.ask and out.ask.passed)), default=tsn)
        one = Timeout(now, path, rto, target, lost[first].sent_ns, first, self.streak[path])
        if len(self.timeouts) < MOST_SAMPLES:
            self.timeouts.append(one)
            self.watched.append(one)
        for out in lost.values():
            out.marked = True
        self.timer_ns[path] = now

    def sack(self, now: int, path: int, chunk: Chunk) -> list[Out]:
        """The chunks that a SACK newly acknowledges."""
        if self.numbers.last is None:
            return []
        cum = self.numbers.whole(chunk.number)
        found = self.up_to(cum)
        self.timer_ns |= dict.fromkeys((one.path for one in found), now)  # RFC 9260, 6.3.2, R3
        blocks = {cum + start: cum + end for start, end in chunk.gaps if start <= end}
        for start, end in blocks.items():
            fresh = max(start, self.blocks.get(start, start - 1) + 1)
            found += [self.out.pop(tsn) for tsn in range(fresh, end + 1) if tsn in self.out]
        if blocks:
            self.highest_gap, self.gap_ns = max(self.highest_gap, *blocks.values()), now
        self.blocks = blocks
        self.sacks += 1
        self.sack_ns = now
        for one in found:
            self.passed(now, path, one)
        self.sack_delay(now, chunk, found)
        for tsn in [one.tsn for one in self.watched if one.tsn not in self.out]:
            self.delivered(tsn, now)
        return found

    def up_to(self, cum: int) -> list[Out]:
        first = cum - len(self.out) if self.cum is None or cum - self.cum > len(self.out) else self.cum + 1
        self.cum = max(cum, self.cum or cum)
        if first > cum - len(self.out):
            return [self.out.pop(tsn) for tsn in range(first, cum + 1) if tsn in self.out]
        return [self.out.pop(tsn) for tsn in [key for key in self.out if key <= cum]]

    def passed(self, now: int, path: int, one: Out) -> None:
        self.acked += 1
        if one.ask is not None:
            self.fate(one.ask, True)
        if one.times == 1:
            self.streak[one.path] = 0
            if one.path == path:
                self.trips.setdefault(path, Least()).add(now - one.sent_ns, one.length)

    def sack_delay(self, now: int, chunk: Chunk, found: list[Out]) -> None:
        clean = [one for one in found if one.times == 1]
        if not clean or len(clean) < len(found) or chunk.gaps or self.out:
            return
        least = self.trips.get(clean[0].path)
        trip = (least.time_ns if least else None) or 0
        oldest, newest = min(one.sent_ns for one in clean), max(one.sent_ns for one in clean)
        if len(clean) == 1 and len(self.alone_ns) < MOST_SAMPLES:
            self.alone_ns.append(now - oldest - trip)
        if now - newest > TIMER_NS and len(self.timed_ns) < MOST_SAMPLES:
            self.timed_ns.append(now - oldest)

    def delivered(self, tsn: int, now: int) -> None:
        """Note the end of the waits that a timeout ended."""
        for one in [one for one in self.watched if one.tsn == tsn]:
            one.delivered_ns = now
            self.watched.remove(one)


def any_on(out: dict[int, Out], path: int) -> bool:
    return any(one.path == path and not one.marked for one in out.values())
