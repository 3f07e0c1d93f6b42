# SPDX-License-Identifier: GPL-2.0
"""failover_suspect: copies of what is overdue, and a path that is left (net/sctp/multipath/overdue.c)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from failover.clock import Clock
from failover.path import Path, State
from failover.settings import Settings
from failover.situation import Situation

MAX_BURST = 4  # packets, RFC 9260 section 15


class Sender(Protocol):
    """The association that is watched."""

    settings: Settings
    situation: Situation
    clock: Clock
    now: float
    paths: tuple[Path, Path]
    sent_again: set[int]

    def at(self, t: float, action: Callable[[], None]) -> None: ...
    def tell(self, path: Path, what: str) -> None: ...
    def flush(self, timeout: bool = False, beside: Path | None = None) -> None: ...
    def carry(self, path: Path, messages: list[int], asked: bool) -> None: ...
    def send_heartbeat(self, path: Path, counted: bool = True) -> None: ...
    def beside(self, path: Path) -> Path: ...
    def leave(self, path: Path) -> None: ...


class Watch:
    """The timer of an association MADE, and what it knows of messages.

    SENT_S: when each was sent; COPIES: those copied since; LAST: of those copied to a path the last one,
    until all of them are acknowledged, and how many they are.
    """

    def __init__(self, made: Sender) -> None:
        self.made = made
        self.due_s: float | None = None
        self.sent_s: dict[int, float] = {}
        self.copies: set[int] = set()
        self.last: dict[str, tuple[int, int]] = {}

    def wait_s(self, path: Path) -> float:
        """How long after it was sent an answer of PATH is overdue."""
        made = self.made
        ticks = path.estimate.srtt or made.clock.from_ms(made.settings.rto_initial)
        return path.answers.wait_s(made.now, ticks / made.clock.hz)

    def other(self, path: Path) -> Path | None:
        """Where messages of PATH are copied to."""
        found = self.made.beside(path)
        return found if found.state is State.ACTIVE and found.answers.suspect_s is None else None

    # --- the timer ---

    def start(self, due_s: float) -> None:
        if self.due_s is None or due_s < self.due_s:
            self.due_s = due_s
            self.made.at(due_s, lambda: self.expired(due_s))

    def expired(self, due_s: float) -> None:
        """sctp_mp_suspect_timer, unless it has been moved."""
        if self.due_s != due_s:
            return
        self.due_s = None
        for path in self.made.paths:
            later = self.again(path) if path.answers.suspect_s is not None else self.first(path)
            if later is not None:
                self.start(later)

    def first(self, path: Path) -> float | None:
        """Is PATH suspect now? When to ask again."""
        now, answers = self.made.now, path.answers
        owes = [one for one in sorted(path.flight) if self.sent_s[one] > answers.alive_s]
        if path.state is not State.ACTIVE or not owes or not self.other(path):
            return None
        wait = self.wait_s(path)
        due = max(self.sent_s[owes[0]] + wait, answers.answered_s + wait / 4)
        if now < due:
            return due
        answers.suspect_s, answers.message, answers.copied = now, owes[0], False
        self.made.tell(path, f"answer overdue after {wait * 1000:.0f} ms: HEARTBEAT, and copies")
        self.made.send_heartbeat(path, counted=False)
        self.made.flush(beside=path)
        return now + wait

    def again(self, path: Path) -> float | None:
        """PATH is suspect: is it left? When to ask again."""
        answers = path.answers
        due = (answers.suspect_s or 0.0) + self.wait_s(path)
        if path.state is not State.ACTIVE or not self.other(path):
            answers.suspect_s = None
        elif self.made.now < due:
            return due
        elif answers.copied:
            answers.suspect_s = None
            self.made.leave(path)
        return None

    # --- messages ---

    def sent(self, messages: list[int]) -> None:
        """A packet, new or sent again, leaves over a path."""
        now = self.made.now
        self.copies.difference_update(messages)
        self.sent_s.update(dict.fromkeys(messages, now))

    def sacked(self, over: Path, found: dict[str, list[int]], highest: int, twice: frozenset[int]) -> None:
        """A SACK OVER a path is for messages FOUND on each, and tells of some that arrived TWICE."""
        now = self.made.now
        for path in self.made.paths:
            for one in found[path.name]:
                self.acknowledged(path, one, over)
            if path.answers.message in twice:
                path.answers.needless(now)
            path.answers.measured()
            if self.last.get(path.name, (highest + 1, 0))[0] <= highest:
                del self.last[path.name]
            if path.answers.suspect_s is not None and path.answers.copied:
                self.start(path.answers.suspect_s + self.wait_s(path))

    def acknowledged(self, path: Path, one: int, over: Path) -> None:
        """sctp_mp_suspect_acked."""
        now, again = self.made.now, one in self.made.sent_again
        if one in self.copies and over is not path:
            for suspect in self.made.paths:
                suspect.answers.copied |= suspect.answers.suspect_s is not None
            return
        if one in self.copies or not again:
            path.answers.alive(self.sent_s[one], now)
        if not again:
            path.answers.slowest_s = max(path.answers.slowest_s, now - self.sent_s[one])

    def copy(self) -> None:
        """Copy what is outstanding on a suspect path (sctp_mp_copies)."""
        for path in self.made.paths:
            to = self.other(path)
            if path.answers.suspect_s is None or not to:
                continue
            chosen = self.chosen(path, to)
            if path.measured and path.measured[0] in chosen:
                path.measured = None
            self.copies.update(chosen)
            per_packet = self.made.situation.per_packet
            for first in range(0, len(chosen), per_packet):
                self.made.carry(to, chosen[first : first + per_packet], asked=True)

    def chosen(self, path: Path, to: Path) -> list[int]:
        """The oldest messages on PATH that there is room for on TO."""
        size, limit = path.size_b, MAX_BURST * path.mtu
        found: list[int] = []
        for one in sorted(path.flight - self.copies):
            copied = self.last.get(to.name, (0, 0))[1] * size
            room = copied + size <= to.mtu or to.in_flight + copied + size <= to.cwnd
            if not room or (len(found) + 1) * size > limit:
                break
            found.append(one)
            self.last[to.name] = (one, self.last.get(to.name, (0, 0))[1] + 1)
        return found
