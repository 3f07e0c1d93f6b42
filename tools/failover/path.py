# SPDX-License-Identifier: GPL-2.0
"""One path as the sender sees it: state, errors, window, what is in flight."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from random import Random

from failover.answers import Answers
from failover.estimate import Estimate


class State(Enum):
    """How usable a path is, best first."""

    ACTIVE = "ACTIVE"
    PF = "PF"
    INACTIVE = "INACTIVE"


@dataclass
class Timer:
    """A timer that can be moved or stopped: only its last arming counts."""

    arming: int = 0
    pending: bool = False


@dataclass
class Path:
    """SIZE_B of every message, windows in bytes; CUT: from when to when packets are lost.

    MEASURED: a message whose round trip is measured, and the jiffies when it was sent.
    """

    name: str
    one_way_s: float
    cut: tuple[float, float]
    estimate: Estimate
    size_b: int
    mtu: int
    cwnd: int
    ssthresh: int = 2**31
    partial: int = 0
    state: State = State.ACTIVE
    errors: int = 0
    flight: set[int] = field(default_factory=set)  # messages
    measured: tuple[int, int] | None = None
    t3: Timer = field(default_factory=Timer)
    heartbeat: Timer = field(default_factory=Timer)
    heartbeat_out: bool = False
    last_sent: int = 0  # jiffies, data
    probe_counted: float = 0.0
    last_heard: float = 0.0
    jitter_s: float = 0.0  # a packet takes up to so much more or less, and overtakes none
    newest: dict[str, float] = field(default_factory=dict)  # arrival of the last packet, there and back
    answers: Answers = field(default_factory=Answers)
    hb_due: int = 0  # in jiffies: the HEARTBEAT by the clock, beside the probes of failover_return
    asked: int = 0  # such probes since it failed

    @property
    def in_flight(self) -> int:
        return len(self.flight) * self.size_b

    def loses(self, t: float) -> bool:
        """Whether a packet that leaves at T is lost."""
        return self.cut[0] <= t < self.cut[1]

    def arrival(self, t: float, way: str, random: Random) -> float:
        """When a packet arrives that leaves at T."""
        if not self.jitter_s:
            return t + self.one_way_s
        found = t + max(0.0, self.one_way_s + random.uniform(-self.jitter_s, self.jitter_s))
        self.newest[way] = max(found, self.newest.get(way, found))
        return self.newest[way]

    def raise_window(self, acked: int, before: int) -> None:
        """ACKED bytes newly acknowledged, BEFORE in flight until then (sctp_transport_raise_cwnd)."""
        full = before >= self.cwnd
        if self.cwnd <= self.ssthresh:
            self.cwnd += min(acked, self.mtu) if full else 0
            return
        self.partial += acked
        if self.partial >= self.cwnd:
            self.partial -= self.cwnd if full else self.partial - self.cwnd
            self.cwnd += self.mtu if full else 0

    def timed_out(self) -> None:
        """The window after a T3 timeout."""
        self.ssthresh = max(self.cwnd // 2, 4 * self.mtu)
        self.cwnd, self.partial = self.mtu, 0

    def idle(self, raising: bool) -> None:
        """The window when a heartbeat is sent; failover_heartbeat has nothing raised."""
        rested = max(self.cwnd // 2, 4 * self.mtu)
        self.ssthresh = rested if raising else max(self.ssthresh, self.cwnd)
        self.cwnd = rested if raising else min(self.cwnd, rested)
        self.partial = 0


def usable_first(path: Path) -> tuple[int, int, float]:
    """Sort key of sctp_trans_elect_best: state, errors, heard most recently."""
    return (list(State).index(path.state), path.errors, -path.last_heard)


@dataclass
class Choice:
    """Which of two paths new data takes, ACTIVE, and which retransmissions take, RETRAN."""

    primary: Path
    other: Path
    dormant_policy: str
    active: Path = field(init=False)
    retran: Path = field(init=False)

    def __post_init__(self) -> None:
        self.active, self.retran = self.primary, self.other

    @property
    def dormant(self) -> bool:
        """Whether all paths have failed, and a policy says what to do then."""
        failed = self.primary.state is State.INACTIVE and self.other.state is State.INACTIVE
        return failed and self.dormant_policy != "kernel"

    def state_changed(self) -> None:
        """sctp_select_active_and_retran_path."""
        primary, other = self.primary, self.other
        if primary.state is State.ACTIVE:
            self.active, self.retran = primary, other if other.state is State.ACTIVE else primary
        elif other.state is State.ACTIVE:
            self.active = self.retran = other
        elif self.dormant and self.dormant_policy == "primary":
            self.active = self.retran = primary
        else:
            half = [path for path in (primary, other) if path.state is State.PF]
            self.active = self.retran = min([self.active, *half], key=usable_first)

    def retran_timed_out(self) -> None:
        """sctp_assoc_update_retran_path."""
        after = self.other if self.retran is self.primary else self.primary
        if self.dormant:
            if self.dormant_policy == "hop":
                self.active = after
            self.retran = self.active
        elif self.active is self.retran and self.active.state is State.ACTIVE:
            return  # also when it is the one that timed out
        elif after.state is State.ACTIVE:
            self.retran = after
        else:
            self.retran = min([after, self.retran], key=usable_first)
