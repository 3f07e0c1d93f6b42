# SPDX-License-Identifier: GPL-2.0
"""One association over two paths, event by event: the rules of net/sctp that decide when a message arrives.

Left out, because they play no part with messages that leave the windows unfilled: fast retransmit, the peer's
window, Max.Burst. Loss other than the cut is left out, too.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from failover import probes
from failover.clock import Clock
from failover.estimate import Estimate, Limits
from failover.path import Choice, Path, State, Timer
from failover.receiver import Receiver
from failover.settings import Settings
from failover.situation import Moment, Situation
from failover.suspect import Watch

NEVER = float("inf")
LONGEST_S = 3600.0  # that a prediction looks ahead
FEW_PROBES = 3  # shown of a path that stays cut


@dataclass(frozen=True)
class Step:
    """Something that happened at T seconds after the cut."""

    t: float
    path: str
    what: str


@dataclass
class Association:
    """RANDOM: the kernel's jitter. Messages are numbered; 0 is the first after the cut."""

    settings: Settings
    situation: Situation
    clock: Clock
    moment: Moment
    random: Random
    steps: list[Step] = field(default_factory=list)
    arrived: dict[int, float] = field(default_factory=dict)
    leaves_s: float | None = None
    returns_s: float | None = None
    early_timeouts: int = 0  # before the cut, when nothing had been lost
    lost_s: float | None = None  # when the association was given up

    def __post_init__(self) -> None:
        s, given = self.settings, self.situation
        self.limits = Limits(self.clock.from_ms(s.rto_min), self.clock.from_ms(s.rto_max))
        heal = NEVER if given.heal_s is None else given.heal_s
        self.primary = self.new_path("primary", given.rtt_ms, (0.0, heal))
        too = 0.0 if given.both else NEVER
        self.other = self.new_path("alternate", given.alternate_rtt_ms, (too, heal))
        self.paths = (self.primary, self.other)
        self.choice = Choice(self.primary, self.other, s.dormant_policy)
        self.watch = Watch(self) if s.failover_suspect else None
        self.events: list[tuple[float, tuple[int, int], Callable[[], None]]] = []
        self.order = itertools.count()
        self.now = 0.0
        self.errors = 0
        self.probes = 0
        self.ended = False
        self.queue: deque[int] = deque()  # not yet sent
        self.lost: list[int] = []  # to be sent again, in order
        self.sent_again: set[int] = set()
        self.receiver = Receiver(given.sack_freq, given.sack_delay_ms > 0, -self.moment.before - 1)

    def new_path(self, name: str, rtt_ms: float, cut: tuple[float, float]) -> Path:
        """A path as it is when an association begins: no heartbeat has measured it."""
        given = self.situation
        initial = Estimate(self.clock.from_ms(self.settings.rto_initial))
        made = Path(name, rtt_ms / 2000, cut, initial, given.size_b, given.mtu, given.first_window)
        made.jitter_s = given.jitter_ms / 1000
        return made

    # --- time ---

    def due(self, message: int) -> float:
        """When the application sends MESSAGE."""
        return self.moment.next_s + message * self.situation.interval_ms / 1000

    def at(self, t: float, action: Callable[[], None]) -> None:
        heapq.heappush(self.events, (t, (0, next(self.order)), action))

    def arm(self, timer: Timer, jiffies: int, action: Callable[[], None]) -> None:
        """Start TIMER or move it."""
        timer.arming += 1
        timer.pending = True
        arming = timer.arming

        def fire() -> None:
            if timer.pending and timer.arming == arming:
                timer.pending = False
                action()

        # Of timers that fire together those of the wheel's higher levels come first, then the last armed.
        rank = (-1 - self.clock.level(jiffies), -next(self.order))
        heapq.heappush(self.events, (self.clock.fires(self.now, jiffies), rank, fire))

    def run(self) -> None:
        """From the first message until nothing changes any more."""
        first = -self.moment.before
        self.now = self.due(first)
        for path in self.paths:
            self.arm_heartbeat(path)
        if self.watch:  # sctp_mp_confirm_paths
            self.at(self.now, lambda: self.heartbeat_due(self.other))
        self.at(self.now, lambda: self.message(first))
        while self.events and not self.ended and self.now < self.horizon():
            self.now, _, action = heapq.heappop(self.events)
            action()

    def horizon(self) -> float:
        """When every timeout and every heartbeat that can change anything has been, in seconds."""
        s = self.settings
        errors = s.association_max_retrans if self.situation.both else s.path_max_retrans
        waits = (errors + 4) * s.rto_max + 2 * s.hb_interval
        return (self.situation.heal_s or 0) + min(waits / 1000, LONGEST_S)

    def tell(self, path: Path, what: str) -> None:
        if self.now >= 0:
            self.steps.append(Step(self.now, path.name, what))

    # --- the sender ---

    def message(self, number: int) -> None:
        """The application sends, until all there is to see has been seen."""
        self.queue.append(number)
        self.flush()
        if not self.settled():
            self.at(self.due(number + 1), lambda: self.message(number + 1))
        elif self.situation.heal_s is not None:
            self.ended = True

    def settled(self) -> bool:
        """Whether later messages would meet nothing new."""
        if self.now < 0 or self.lost or 0 not in self.arrived or self.falls_behind():
            return False
        left = self.primary.state is not State.ACTIVE
        if self.situation.heal_s is None or (left and not self.heartbeats(self.primary)):
            return left
        return self.returns_s is not None and self.now > self.returns_s + 4 * self.primary.one_way_s

    def falls_behind(self) -> bool:
        """Whether a message waits for more than the answer to one before it (Nagle's algorithm)."""
        answer_s = (self.situation.alternate_rtt_ms + self.situation.sack_delay_ms) / 1000
        return bool(self.queue) and self.now - self.due(self.queue[0]) > answer_s

    def flush(self, timeout: bool = False, beside: Path | None = None) -> None:
        """Send what may be sent: lost messages first, after a timeout one packet (sctp_outq_flush).

        BESIDE: a HEARTBEAT leaves over it, and new messages in the same packet, as with lost ones.
        """
        path = self.choice.retran
        if self.lost:
            self.touch(path)
        while self.lost and path.in_flight < path.cwnd:
            count = self.packet(path, self.lost, again=True)
            self.lost = self.lost[count:]
            beside = path if count < self.situation.per_packet else None
            if timeout:
                break
        path = self.choice.active
        while (
            self.queue
            and not self.lost
            and path.in_flight < path.cwnd
            and (beside is path or self.may_leave())
        ):
            beside = None
            for _ in range(self.packet(path, list(itertools.islice(self.queue, self.situation.per_packet)))):
                self.queue.popleft()
        if self.watch:
            self.watch.copy()

    def may_leave(self) -> bool:
        """Whether new messages need not wait for a SACK or for more of them: Nagle's algorithm."""
        outstanding = any(path.flight for path in self.paths)
        return self.situation.nodelay or not outstanding or self.situation.fills(len(self.queue))

    def packet(self, path: Path, candidates: list[int], again: bool = False) -> int:
        """One packet with as many of these messages as fit it and the window; returns how many."""
        chosen: list[int] = []
        for number in candidates[: self.situation.per_packet]:
            if path.in_flight >= path.cwnd:
                break
            path.flight.add(number)
            chosen.append(number)
        if again:
            self.sent_again.update(chosen)
        else:
            self.first_use(path, chosen[0])
        self.touch(path)
        # With nothing behind it a chunk has the I bit (sctp_mp_suspect_sent).
        behind = len(self.queue) - (0 if again else len(chosen))
        self.carry(path, chosen, asked=self.watch is not None and not behind)
        if self.watch:
            self.watch.sent(chosen)
            self.watch.start(self.now + self.watch.wait_s(path))
        return len(chosen)

    def carry(self, path: Path, messages: list[int], asked: bool) -> None:
        """A packet leaves; ASKED: it has the I bit."""
        if not path.loses(self.now):
            heeded = asked and self.situation.i_bit
            there = path.arrival(self.now, "there", self.random)
            self.at(there, lambda: self.arrive(path, messages, heeded))

    def touch(self, path: Path) -> None:
        """Data is sent over PATH; or the kernel takes it for sent, as it does with retransmissions that find
        the window full. So a path they wait for gets no HEARTBEAT as long as the application goes on writing.
        """
        path.last_sent = self.clock.jiffies(self.now)
        if not path.t3.pending:
            self.arm(path.t3, path.estimate.rto, lambda: self.timeout(path))

    def first_use(self, path: Path, number: int) -> None:
        """New data leaves over PATH, NUMBER its first message."""
        if path.measured is None:
            path.measured = (number, self.clock.jiffies(self.now))
        if path is self.other and self.leaves_s is None and self.now >= 0:
            self.leaves_s = self.now
            self.tell(path, "new messages leave over it")
        if path is self.primary and self.now >= (self.situation.heal_s or NEVER) and self.returns_s is None:
            self.returns_s = self.now
            self.tell(path, "new messages leave over it again")

    def timeout(self, path: Path) -> None:
        """T3-rtx has expired (sctp_sf_do_6_3_3_rtx)."""
        if self.given_up(path):
            return
        self.early_timeouts += self.now < 0
        self.tell(path, f"timeout after RTO {self.clock.ms(path.estimate.rto):g} ms")
        self.errors += 1
        self.strike(path, heartbeat=False)
        path.timed_out()
        if path is self.choice.retran:
            self.choice.retran_timed_out()
        if path.measured and path.measured[0] in path.flight:
            path.measured = None
        self.lost = sorted([*self.lost, *path.flight])
        path.flight.clear()
        self.flush(timeout=True)

    def given_up(self, path: Path) -> bool:
        """Whether the association has met Association.Max.Retrans."""
        if self.errors >= self.settings.association_max_retrans:
            self.tell(path, f"association given up after {self.errors} errors in a row")
            self.lost_s, self.ended = self.now, True
        return self.ended

    def strike(self, path: Path, heartbeat: bool) -> None:
        """One error more: of data, or of a HEARTBEAT (sctp_do_8_2_transport_strike)."""
        s = self.settings
        was = path.state
        path.errors += path.state is not State.INACTIVE
        if s.pf_enable and path.state is State.ACTIVE and s.pf_retrans < path.errors < s.path_max_retrans:
            self.enter(path, State.PF)
            self.arm_heartbeat(path)
        # One lost HEARTBEAT alone fails no path, even at Path.Max.Retrans 0.
        threshold = max(s.path_max_retrans, 1) if heartbeat else s.path_max_retrans
        if path.state is not State.INACTIVE and path.errors > threshold:
            self.enter(path, State.INACTIVE)
        path.estimate = path.estimate.doubled(self.limits)
        if was is State.ACTIVE and path.state is not State.ACTIVE and s.uses_paths:
            self.failed(path, heartbeat)

    def failed(self, path: Path, heartbeat: bool) -> None:
        """PATH has just failed (sctp_mp_struck)."""
        if self.probing(path):
            path.probe_counted = self.now
            if not heartbeat:
                self.ask(path)
                self.arm_heartbeat(path)
        elif self.settings.failover_return:
            self.arm_heartbeat(path)
        other = self.beside(path)
        if other.state is not State.ACTIVE:
            self.ask(other)

    def beside(self, path: Path) -> Path:
        return self.other if path is self.primary else self.primary

    def ask(self, path: Path) -> None:
        """A HEARTBEAT beside those by the clock: that it is not answered is no error (sctp_mp_probe)."""
        if self.heartbeats(path):
            self.send_heartbeat(path, counted=False)

    def enter(self, path: Path, state: State) -> None:
        """A change of state, and with it of the paths in use."""
        path.state = state
        self.choice.state_changed()
        errors = f" with error {path.errors}" if path.errors else ""
        self.tell(path, f"becomes {state.value}{errors}")

    def leave(self, path: Path) -> None:
        """PATH is suspect, and copies of what it carries are acknowledged (sctp_mp_suspect_move)."""
        self.enter(path, State.PF)
        self.arm_heartbeat(path)
        self.give_up(path)

    # --- heartbeats ---

    def heartbeats(self, path: Path) -> bool:
        """Whether PATH is sent any (sctp_hb_enabled)."""
        return self.situation.heartbeats or (self.settings.uses_paths and path.state is not State.ACTIVE)

    def probing(self, path: Path) -> bool:
        """Whether a failed path is asked about once per RTO (sctp_mp_probing)."""
        return bool(self.settings.failover_heartbeat) and path.state is not State.ACTIVE

    def heartbeat_rto(self, path: Path) -> int:
        """sctp_hb_rto, in jiffies."""
        interval = self.clock.from_ms(self.settings.hb_interval)
        limited = self.probing(path) and interval > 0
        return min(path.estimate.rto, interval - interval // 3) if limited else path.estimate.rto

    def heartbeat_wait(self, path: Path) -> int:
        """sctp_transport_timeout, in jiffies."""
        soon = path.state is State.PF or self.probing(path)
        interval = 0 if soon else self.clock.from_ms(self.settings.hb_interval)
        return max((self.heartbeat_rto(path) >> 1) + interval, self.clock.hz // 5)

    def arm_heartbeat(self, path: Path) -> None:
        if not self.heartbeats(path):
            return
        wait = self.heartbeat_wait(path) + self.random.randrange(max(1, self.heartbeat_rto(path)))
        path.hb_due = self.clock.jiffies(self.now) + wait
        if self.returning(path):
            wait = self.until_probe(path, wait)
        else:
            path.asked = 0
        self.arm(path.heartbeat, wait, lambda: self.heartbeat_due(path))

    def returning(self, path: Path) -> bool:
        """Whether PATH is asked between HEARTBEATs (sctp_mp_returning)."""
        return bool(self.settings.failover_return) and path.state is not State.ACTIVE

    def until_probe(self, path: Path, due_in: int) -> int:
        interval = self.clock.from_ms(self.settings.hb_interval)
        return probes.until_next(self.clock.hz, path.asked, interval, due_in, self.random)

    def probe_due(self, path: Path) -> bool:
        """Whether no HEARTBEAT is due, but a probe was (sctp_mp_return_early)."""
        now = self.clock.jiffies(self.now)
        due_in = max(path.hb_due, path.last_sent + self.heartbeat_wait(path)) - now
        if not self.returning(path) or due_in <= 0:
            return False
        path.asked += 1
        self.ask(path)
        self.arm(path.heartbeat, self.until_probe(path, due_in), lambda: self.heartbeat_due(path))
        return True

    def heartbeat_due(self, path: Path) -> None:
        """sctp_generate_heartbeat_event, sctp_sf_sendbeat_8_3: not while data was sent a short while ago."""
        if self.probe_due(path):
            return
        silent = self.clock.jiffies(self.now) - path.last_sent
        wait = self.heartbeat_wait(path)
        if silent < wait:
            self.arm(path.heartbeat, wait - silent, lambda: self.heartbeat_due(path))
            return
        if self.given_up(path):
            return
        unanswered = path.heartbeat_out
        self.send_heartbeat(path)
        if unanswered:
            self.errors += self.counts(path)
            self.strike(path, heartbeat=True)
        path.idle(raising=not self.settings.uses_paths)
        self.arm_heartbeat(path)
        if self.situation.heal_s is None and self.probes >= FEW_PROBES and self.settled():
            self.ended = True

    def counts(self, path: Path) -> bool:
        """Whether an unanswered HEARTBEAT counts for the association: of probes, one per HB.interval."""
        if not self.probing(path):
            return True
        if self.now < path.probe_counted + self.settings.hb_interval / 1000:
            return False
        path.probe_counted = self.now
        return True

    def send_heartbeat(self, path: Path, counted: bool = True) -> None:
        """COUNTED: that it is not answered is an error."""
        path.heartbeat_out |= counted
        if path is self.primary and self.now >= 0:
            self.tell(path, "HEARTBEAT")
            self.probes += 1
        sent = self.now
        if not path.loses(self.now):
            self.at(path.arrival(self.now, "there", self.random), lambda: self.answer(path, sent))

    def answer(self, path: Path, sent: float) -> None:
        """The HEARTBEAT has reached the peer."""
        if not path.loses(self.now):
            self.at(path.arrival(self.now, "back", self.random), lambda: self.answered(path, sent))

    def answered(self, path: Path, sent: float) -> None:
        """HEARTBEAT-ACK (sctp_cmd_transport_on)."""
        path.answers.alive(sent, self.now)
        path.errors, self.errors, path.heartbeat_out = 0, 0, False
        path.last_heard = self.now
        other_failed = self.beside(path).state is not State.ACTIVE
        back = self.settings.uses_paths and path.state is not State.ACTIVE and other_failed
        if path.state is not State.ACTIVE:
            self.enter(path, State.ACTIVE)
        rtt = self.clock.jiffies(self.now) - self.clock.jiffies(sent)
        path.estimate = path.estimate.sampled(rtt, self.limits)
        path.measured = None
        self.arm_heartbeat(path)
        if back:
            self.give_up(self.beside(path))

    def give_up(self, path: Path) -> None:
        """The other one is back: what is outstanding on PATH is sent again (sctp_mp_path_back)."""
        path.t3.pending = False
        self.lost = sorted([*self.lost, *path.flight])
        path.flight.clear()
        self.flush()

    # --- the receiver ---

    def arrive(self, path: Path, messages: list[int], asked: bool) -> None:
        delivered, at_once = self.receiver.take(path, messages, asked)
        self.arrived.update(dict.fromkeys(delivered, self.now))
        if 0 in delivered:
            self.tell(path, "first message sent after the cut arrives")
        if at_once:
            self.sack()
        else:
            delay = self.clock.from_ms(round(self.situation.sack_delay_ms))
            self.arm(self.receiver.timer, delay, self.sack)

    def sack(self) -> None:
        """The SACK takes the path of the last data."""
        twice = frozenset(self.receiver.twice)
        self.receiver.acknowledged()
        self.receiver.timer.pending = False
        path = self.receiver.path
        highest, beyond = self.receiver.highest, frozenset(self.receiver.beyond)
        if path and not path.loses(self.now):
            back = path.arrival(self.now, "back", self.random)
            self.at(back, lambda: self.sacked(path, highest, beyond, twice))

    def sacked(self, over: Path, highest: int, beyond: frozenset[int], twice: frozenset[int]) -> None:
        """A SACK has reached the sender (sctp_outq_sack)."""
        over.last_heard = self.now
        self.lost = [one for one in self.lost if one > highest and one not in beyond]
        news = {
            path.name: [one for one in path.flight if one <= highest or one in beyond] for path in self.paths
        }
        for path in self.paths:
            self.acknowledge(path, news[path.name], highest, over)
        if self.watch:
            self.watch.sacked(over, news, highest, twice)
        self.flush()

    def acknowledge(self, path: Path, messages: list[int], highest: int, over: Path) -> None:
        """Messages in flight on PATH that a SACK OVER a path names (sctp_check_transmitted)."""
        before = path.in_flight
        if path.measured and path.measured[0] in messages:
            rtt = self.clock.jiffies(self.now) - path.measured[1]
            path.estimate = path.estimate.sampled(rtt, self.limits)
            path.measured = None
        for one in messages:
            path.flight.remove(one)
        if messages:
            self.errors = 0
            # Messages sent over two paths may have arrived over the other one.
            if over is path or not self.settings.uses_paths or self.sent_again.isdisjoint(messages):
                path.errors = 0
            if path.answers.suspect_s is None:
                path.raise_window(before - path.in_flight, before)
        if not path.flight:
            path.t3.pending = False
        elif any(one <= highest for one in messages):
            self.arm(path.t3, path.estimate.rto, lambda: self.timeout(path))
