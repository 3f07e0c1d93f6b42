# SPDX-License-Identifier: GPL-2.0
"""The kernel's time: jiffies, and a timer wheel whose timers fire up to an eighth late."""

from __future__ import annotations

import math
from dataclasses import dataclass

SLOTS = 63  # timeouts shorter than this many jiffies are exact to one
STEP_BITS = 3  # each level of the wheel is eight times coarser than the one before


@dataclass(frozen=True)
class Clock:
    """HZ ticks per second; PHASE: how far into a tick time 0 is, 0 to 1; TICKS: jiffies at time 0."""

    hz: int
    phase: float = 0.0
    ticks: int = 0

    def jiffies(self, t: float) -> int:
        """The counter at time T in seconds."""
        # A packet that arrives with a tick must not fall before it by an error of rounding.
        return self.ticks + math.floor(t * self.hz + self.phase + 1e-9)

    def moment(self, jiffies: int) -> float:
        """When the counter becomes JIFFIES, in seconds."""
        return (jiffies - self.ticks - self.phase) / self.hz

    def from_ms(self, ms: int) -> int:
        """A setting in jiffies, rounded up as msecs_to_jiffies() does."""
        return -(-ms * self.hz // 1000)

    def ms(self, jiffies: int) -> float:
        return jiffies * 1000 / self.hz

    def level(self, jiffies: int) -> int:
        """The level of the wheel that takes a timer of that many jiffies."""
        level = 0
        while jiffies >= SLOTS << (STEP_BITS * level):
            level += 1
        return level

    def fires(self, t: float, jiffies: int) -> float:
        """When a timer fires that is armed at T for JIFFIES from then (kernel/time/timer.c, calc_index)."""
        shift = STEP_BITS * self.level(jiffies)
        expires = self.jiffies(t) + jiffies
        return self.moment((expires >> shift) + 1 << shift)
