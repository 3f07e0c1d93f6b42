# SPDX-License-Identifier: GPL-2.0
"""One direction of a path: which of the packets that were to cross it did, how long they took, how fast.

An ask is a packet that was to cross. Asks are settled in the order in which they were sent, so that losses
one after the other make runs, of which the long ones are outages.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, field

WAIT_NS = 10 * 10**9  # no packet that passes takes longer, and no answer
MOST_PENDING = 200_000
MOST_RUNS = 10_000
MOST_TIMES = 1000
SILENCE_NS = 100 * 10**6  # a shorter time without an arrival is a sender's, not an outage's
WINDOW_NS, WINDOW_PACKETS = 20 * 10**6, 16  # the least that a rate is measured over
QUEUED_PACKETS = 3  # behind so many packets at least, a packet waits in a queue that never ran empty
QUEUED_LONG = 100  # packets in such a queue, for a path that was full
OVERFLOW = 0.8
BUSY_NS = 10**9  # without delays: as many bytes in so long a time as in the fastest window are a full path
BUSY = 0.95


@dataclass(slots=True)
class Ask:
    """PASSED: None as long as it is not known."""

    sent_ns: int
    length: int
    passed: bool | None = None
    arrived_ns: int = 0  # where the other end was captured


@dataclass(slots=True)
class Run:
    """Packets lost one after the other, between the last that passed before and the first after; 0: none."""

    before_ns: int
    first_ns: int
    last_ns: int
    lost: int = 1
    after_ns: int = 0
    times_ns: list[int] = field(default_factory=list)  # of the first MOST_TIMES


@dataclass
class Least:
    """The least of the times seen, and the bytes that took it."""

    time_ns: int | None = None
    length: int = 0

    def add(self, time_ns: int, length: int) -> None:
        if self.time_ns is None or time_ns < self.time_ns:
            self.time_ns, self.length = time_ns, length


@dataclass
class Meter:
    """The fastest that packets came over at least WINDOW; FULL: packets then waited in a queue."""

    recent: deque[tuple[int, int, int | None]] = field(default_factory=deque)
    held: int = 0
    waited_ns: int = 0
    mbit: float = 0.0
    fastest_mbit: float = 0.0
    queued: int = 0
    packets: int = 0
    largest_b: int = 0
    second: int = 0
    second_b: int = 0
    best_second_b: int = 0

    def add(self, time_ns: int, length: int, wait_ns: int | None) -> None:
        """A packet of LENGTH came after WAIT more than the least delay, None where that is not known."""
        self.packets += 1
        self.largest_b = max(self.largest_b, length)
        self.recent.append((time_ns, length, wait_ns))
        self.held += length
        self.waited_ns += wait_ns or 0
        while len(self.recent) > WINDOW_PACKETS + 1 and time_ns - self.recent[1][0] >= WINDOW_NS:
            _, size, waited = self.recent.popleft()
            self.held -= size
            self.waited_ns -= waited or 0
        self.measure(time_ns)
        self.count(time_ns, length)

    def measure(self, time_ns: int) -> None:
        start_ns, first_b, _ = self.recent[0]
        took_ns, count = time_ns - start_ns, len(self.recent) - 1
        if count < WINDOW_PACKETS or took_ns < WINDOW_NS:
            return
        mbit = (self.held - first_b) * 8000 / took_ns
        self.mbit = max(self.mbit, mbit)
        per_packet_ns = took_ns / count
        if self.waited_ns / (count + 1) > QUEUED_PACKETS * per_packet_ns:
            self.queued += 1
            self.fastest_mbit = max(self.fastest_mbit, mbit)

    def count(self, time_ns: int, length: int) -> None:
        second = time_ns // BUSY_NS
        if second != self.second:
            self.second, self.second_b = second, 0
        self.second_b += length
        self.best_second_b = max(self.best_second_b, self.second_b)

    @property
    def queue_mbit(self) -> float:
        """The fastest while packets waited in a queue; 0 for a path where that was not so for long."""
        return self.fastest_mbit if self.queued >= QUEUED_LONG else 0.0

    @property
    def steady(self) -> bool:
        """Whether a whole second was as fast as the fastest window."""
        return self.packets > 200 and self.best_second_b * 8e-6 * 1e9 / BUSY_NS > BUSY * self.mbit > 1


@dataclass
class Way:
    """DELAY: one way, where both ends were captured. SETTLED: asks whose fate is known."""

    pending: deque[Ask] = field(default_factory=deque)
    settled: int = 0
    lost: int = 0
    runs: list[Run] = field(default_factory=list)
    delay: Least = field(default_factory=Least)
    longest_ns: int = 0
    latest_ns: int = 0
    overtook: int = 0
    last_delay_ns: int = 0
    delay_before_loss: list[int] = field(default_factory=list)
    meter: Meter = field(default_factory=Meter)
    now: Run | None = None
    passed_ns: int = 0
    packets: int = 0
    came_ns: int = 0
    spacing_ns: float = 0.0
    silences: list[tuple[int, int]] = field(default_factory=list)

    def ask(self, time_ns: int, length: int, passed: bool | None = None) -> Ask:
        one = Ask(time_ns, length, passed)
        self.pending.append(one)
        self.settle(time_ns)
        return one

    def settle(self, now_ns: int) -> None:
        """Judge pending packets in order; without an answer for WAIT_NS, a packet counts as lost."""
        while self.pending and (
            self.pending[0].passed is not None
            or self.pending[0].sent_ns < now_ns - WAIT_NS
            or len(self.pending) > MOST_PENDING
        ):
            self.judge(self.pending.popleft())

    def judge(self, ask: Ask) -> None:
        self.settled += 1
        if ask.passed:
            self.note_delay(ask)
            self.passed_ns = ask.sent_ns
            if self.now:
                self.now.after_ns = ask.sent_ns
                self.keep()
            return
        self.lost += 1
        if len(self.delay_before_loss) < MOST_RUNS:
            self.delay_before_loss.append(self.last_delay_ns)
        if self.now:
            self.now.last_ns = ask.sent_ns
            self.now.lost += 1
        else:
            self.now = Run(self.passed_ns, ask.sent_ns, ask.sent_ns)
        if len(self.now.times_ns) < MOST_TIMES:
            self.now.times_ns.append(ask.sent_ns)

    def note_delay(self, ask: Ask) -> None:
        """Packets that overtook others tell nothing of the path that the others had."""
        if ask.arrived_ns:
            self.last_delay_ns = ask.arrived_ns - ask.sent_ns
        if ask.arrived_ns and ask.arrived_ns < self.latest_ns:
            self.overtook += 1
        elif ask.arrived_ns:
            self.latest_ns = ask.arrived_ns
            self.delay.add(ask.arrived_ns - ask.sent_ns, ask.length)

    def keep(self) -> None:
        if self.now:
            self.runs.append(self.now)
        self.now = None
        if len(self.runs) > MOST_RUNS:
            self.runs = heapq.nlargest(MOST_RUNS // 2, self.runs, key=lambda run: run.last_ns - run.first_ns)

    @property
    def dropped(self) -> int:
        """Packets lost right after one that had found the queue of a full path nearly as long as ever."""
        if not self.meter.queue_mbit or self.delay.time_ns is None:
            return 0
        long_ns = self.delay.time_ns + OVERFLOW * (self.longest_ns - self.delay.time_ns)
        return sum(delay_ns >= long_ns for delay_ns in self.delay_before_loss)

    def close(self, end_ns: int) -> None:
        """At the end of the capture; of what was sent too late to be answered nothing is known."""
        while self.pending:
            ask = self.pending.popleft()
            if ask.passed is not None or ask.sent_ns < end_ns:
                self.judge(ask)
        self.keep()
        self.runs.sort(key=lambda run: run.first_ns)

    def arrived(self, time_ns: int, length: int, delay_ns: int | None) -> None:
        """DELAY_NS: one way, or there and back."""
        self.note_silence(time_ns)
        wait = None
        if delay_ns is not None:
            self.longest_ns = max(self.longest_ns, delay_ns)
            wait = max(delay_ns - (delay_ns if self.delay.time_ns is None else self.delay.time_ns), 0)
        self.meter.add(time_ns, length, wait)

    def note_silence(self, time_ns: int) -> None:
        gap, last = time_ns - self.came_ns, self.came_ns
        self.came_ns = time_ns
        if last and gap < SILENCE_NS:
            self.spacing_ns += (gap - self.spacing_ns) / 16
        elif last:
            self.silences.append((last, time_ns))
        if len(self.silences) > MOST_RUNS:
            self.silences = heapq.nlargest(MOST_RUNS // 2, self.silences, key=lambda one: one[1] - one[0])

    def silence(self, start_ns: int, end_ns: int) -> tuple[int, int] | None:
        """The longest time without an arrival that overlaps this one; it ends at 0 if nothing came again."""
        every = [*self.silences, (self.came_ns, 0)] if self.came_ns else self.silences
        near = [one for one in every if one[0] < end_ns and (not one[1] or one[1] > start_ns)]
        return max(near, key=lambda one: (one[1] or end_ns) - one[0], default=None)
