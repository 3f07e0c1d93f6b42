# SPDX-License-Identifier: GPL-2.0
"""The program's messages: when they were first sent, how large they are, how they follow each other."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from sctplab.replay.packet import FIRST_FRAGMENT, LAST_FRAGMENT, UNORDERED, Chunk

MOST_TIMES = 1000  # as many as send_at_s takes
MOST_SIZES = 1000
STEP_NS = 100_000  # times between messages are counted in steps of this
MOST_STEPS = 100_000
CLOCKED_NS = 1_000_000  # a message so soon after a SACK may have waited for it
CLOCKED_SHARE = 0.7
STEADY_SHARE = 0.6
NEAR_NS = 1_000_000  # times between messages that differ less are alike
SHORTEST_NS = 500_000  # of an interval that is the program's, not the path's
SMALLEST_B, LARGEST_B = 24, 1 << 20  # of mpflow's messages


@dataclass
class Messages:
    times_ns: list[int] = field(default_factory=list)
    sizes: Counter[int] = field(default_factory=Counter)
    steps: Counter[int] = field(default_factory=Counter)
    count: int = 0
    total_b: int = 0
    first_ns: int = 0
    last_ns: int = 0
    clocked: int = 0
    unordered: int = 0
    streams: int = 0
    growing_b: int = 0
    fragmented_b: int = 0

    def add(self, time_ns: int, chunk: Chunk, sack_ns: int, packet_b: int) -> None:
        """A DATA chunk that was never sent before; SACK_NS: when the last SACK came."""
        self.total_b += chunk.length
        self.growing_b += chunk.length
        self.streams = max(self.streams, chunk.stream + 1)
        if chunk.flags & FIRST_FRAGMENT:
            self.begin(time_ns, sack_ns)
            self.unordered += bool(chunk.flags & UNORDERED)
        if not chunk.flags & LAST_FRAGMENT:
            self.fragmented_b = max(self.fragmented_b, packet_b)
        else:
            if self.growing_b in self.sizes or len(self.sizes) < MOST_SIZES:
                self.sizes[self.growing_b] += 1
            self.growing_b = 0

    def begin(self, time_ns: int, sack_ns: int) -> None:
        self.count += 1
        if self.count > 1:
            step = round((time_ns - self.last_ns) / STEP_NS)
            if step in self.steps or len(self.steps) < MOST_STEPS:
                self.steps[step] += 1
            self.clocked += time_ns - sack_ns < CLOCKED_NS
        self.first_ns = self.first_ns or time_ns
        self.last_ns = time_ns
        if len(self.times_ns) <= MOST_TIMES:
            self.times_ns.append(time_ns)

    @property
    def size_b(self) -> int:
        """The mean, as mpflow can send it."""
        return min(max(round(self.total_b / max(self.count, 1)), SMALLEST_B), LARGEST_B)

    @property
    def middle_ns(self) -> int:
        """The median time between messages."""
        half, seen = sum(self.steps.values()) / 2, 0
        for step, count in sorted(self.steps.items()):
            seen += count
            if seen >= half:
                return step * STEP_NS
        return 0

    @property
    def usual(self) -> dict[int, int]:
        """Times near the median, and how often each was."""
        near = max(self.middle_ns // 10, NEAR_NS)
        return {step: n for step, n in self.steps.items() if abs(step * STEP_NS - self.middle_ns) <= near}

    @property
    def interval_ns(self) -> int:
        """The mean of those."""
        usual = self.usual
        return round(sum(step * n for step, n in usual.items()) * STEP_NS / max(sum(usual.values()), 1))

    @property
    def steady(self) -> bool:
        share = sum(self.usual.values()) / max(sum(self.steps.values()), 1)
        return self.middle_ns >= SHORTEST_NS and share >= STEADY_SHARE

    @property
    def waits_for_sacks(self) -> bool:
        """Whether the sender could have sent sooner than the association let it: it was never idle."""
        return self.count > 100 and self.clocked >= CLOCKED_SHARE * self.count
