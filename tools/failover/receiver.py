# SPDX-License-Identifier: GPL-2.0
"""The peer: takes packets, delivers messages in order, and decides when to acknowledge (sctp_gen_sack)."""

from __future__ import annotations

from dataclasses import dataclass, field

from failover.path import Path, Timer


@dataclass
class Receiver:
    """NEEDED: the next packet is acknowledged at once, as the first of an association is."""

    frequency: int
    delayed: bool
    highest: int  # all messages up to this one have arrived
    beyond: set[int] = field(default_factory=set)
    needed: bool = True
    waiting: int = 0
    timer: Timer = field(default_factory=Timer)
    path: Path | None = None  # the last data came over it: the SACK goes that way
    twice: set[int] = field(default_factory=set)  # arrived again since the last SACK

    def take(self, path: Path, messages: list[int], asked: bool) -> tuple[list[int], bool]:
        """A packet: (messages that can be delivered now, whether a SACK must go at once, as ASKED by the I
        bit).
        """
        self.path = path
        self.twice.update(one for one in messages if self.has(one))
        again = asked or messages[-1] <= self.highest or messages[-1] in self.beyond
        self.beyond.update(one for one in messages if one > self.highest)
        delivered = []
        while self.highest + 1 in self.beyond:
            self.highest += 1
            self.beyond.remove(self.highest)
            delivered.append(self.highest)
        return delivered, self._at_once(again)

    def _at_once(self, again: bool) -> bool:
        if self.needed or again or self.beyond or not self.delayed:
            return True
        self.waiting += 1
        self.needed = self.waiting >= self.frequency - 1
        return False

    def acknowledged(self) -> None:
        """A SACK has been sent."""
        self.needed, self.waiting = False, 0
        self.twice = set()

    def has(self, message: int) -> bool:
        return message <= self.highest or message in self.beyond
