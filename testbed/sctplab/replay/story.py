# SPDX-License-Identifier: GPL-2.0
"""Second reading of the files: all packets of one association by time, and all that they tell."""

from __future__ import annotations

import heapq
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from sctplab.replay.container import frames
from sctplab.replay.messages import Messages
from sctplab.replay.packet import Chunk, Packet, packet_of
from sctplab.replay.sender import Sender
from sctplab.replay.survey import Association, Survey
from sctplab.replay.way import WAIT_NS, Ask, Least, Way

DISORDER = 2000  # packets of a file that may come too early
TWICE_NS = 500_000  # the same packet on two interfaces of a host, such as a bond and its card
MOST_RECENT = 1000
MOST_BEATS = 10_000
MOST_SENT_AGAIN = 50
OTHER = {"host1": "host2", "host2": "host1"}
WAY = {"host1": "forward", "host2": "reverse"}  # of what a host sends
ASKING = ("HEARTBEAT", "INIT", "INIT_ACK", "COOKIE_ECHO")
ANSWERING = {
    "HEARTBEAT_ACK": "HEARTBEAT",
    "INIT_ACK": "INIT",
    "COOKIE_ECHO": "INIT_ACK",
    "COOKIE_ACK": "COOKIE_ECHO",
}
FAR_NS = 250_000  # an answer sooner than this is the host's own


@dataclass
class Beats:
    """HEARTBEATs that a host sent over one path: LAST, and the times between those without data between."""

    last_ns: int = 0
    between_ns: list[int] = field(default_factory=list)
    open: bool = False  # no answer yet


@dataclass(frozen=True)
class Switch:
    """At the receiver alone: data came over another path, SINCE_NS after the last over the one before."""

    time_ns: int
    path: int
    target: int
    since_ns: int


@dataclass
class Story:
    """WAYS: of (path, direction). TRIPS: least times there and back, as seen at a host. SENDERS: of (whose
    DATA it is, where it was seen).
    """

    survey: Survey
    paths: list[tuple[str, str]]
    of_pair: dict[tuple[str, str], int]
    ways: dict[tuple[int, str], Way] = field(default_factory=lambda: defaultdict(Way))
    trips: dict[tuple[str, int], Least] = field(default_factory=lambda: defaultdict(Least))
    senders: dict[tuple[str, str], Sender] = field(default_factory=dict)
    messages: dict[str, Messages] = field(default_factory=lambda: defaultdict(Messages))
    beats: dict[tuple[str, int], Beats] = field(default_factory=lambda: defaultdict(Beats))
    asked: dict[tuple[str, int, str], tuple[int, Ask | None]] = field(default_factory=dict)
    sent: dict[bytes, deque[Ask]] = field(default_factory=dict)
    recent: OrderedDict[tuple[str, bytes, int], int] = field(default_factory=OrderedDict)
    start_ns: int = 0
    init_ns: int = 0
    end_ns: int = 0
    forgot_ns: int = 0
    packets: int = 0
    in_udp: bool = False
    switches: list[Switch] = field(default_factory=list)
    first_path: int = -1
    data_path: int = -1
    data_ns: int = 0

    @property
    def both(self) -> bool:
        return self.survey.at("host1") and self.survey.at("host2")

    def add(self, host: str, packet: Packet) -> None:
        """PACKET as it left or reached HOST."""
        way = direction(self.survey.association, packet)
        if way is None or self.seen_twice(host, packet):
            return
        pair = (packet.source, packet.target) if way == "forward" else (packet.target, packet.source)
        path = self.of_pair.get(pair)
        if path is None:
            return
        self.start_ns = self.start_ns or packet.time_ns
        self.end_ns = packet.time_ns
        self.packets += 1
        self.in_udp |= packet.in_udp
        if WAY[host] == way:
            self.left(host, path, way, packet)
        else:
            self.came(host, path, way, packet)

    def seen_twice(self, host: str, packet: Packet) -> bool:
        key = (host, packet.identity, packet.checksum)
        before = self.recent.get(key)
        self.recent[key] = packet.time_ns
        self.recent.move_to_end(key)
        if len(self.recent) > MOST_RECENT:
            self.recent.popitem(last=False)
        return before is not None and 0 <= packet.time_ns - before < TWICE_NS

    def left(self, host: str, path: int, way: str, packet: Packet) -> None:
        one = self.ways[path, way]
        one.packets += 1
        if host == "host1" and self.first_path < 0 and has_data(packet):
            self.first_path = path
        ask = self.ask_of(host, one, packet)
        sender = self.sender(host, host)
        answers = self.senders.get((OTHER[host], host))
        length = packet.length
        for chunk in packet.chunks:
            if chunk.kind == "DATA":
                self.beats[host, path].last_ns = 0
                wire, length = length, 0  # of several chunks the first stands for the packet
                if sender.sent(packet.time_ns, path, chunk, ask, wire):
                    self.messages[host].add(packet.time_ns, chunk, sender.sack_ns, packet.length)
            elif chunk.kind == "SACK" and answers:
                answers.sack(packet.time_ns, path, chunk)
            elif chunk.kind in ASKING:
                self.request(host, path, packet, chunk, ask)
            if chunk.kind == "COOKIE_ECHO" and self.survey.association.back is None:
                self.replied(host, path, packet, "INIT")  # which was answered, although nobody saw that

    def ask_of(self, host: str, way: Way, packet: Packet) -> Ask | None:
        """The ask that PACKET is: any, if the other end can tell of it; else one that has to be answered."""
        cover = self.survey.cover.get(OTHER[host])
        if cover:
            if not cover[0] - WAIT_NS // 100 <= packet.time_ns <= cover[1]:
                return None
            ask = way.ask(packet.time_ns, packet.length)
            waiting = self.sent.setdefault(packet.identity, deque(maxlen=MOST_SENT_AGAIN))
            waiting.append(ask)
            if packet.time_ns > self.forgot_ns + WAIT_NS:
                self.forget(packet.time_ns)
            return ask
        kinds = {chunk.kind for chunk in packet.chunks}
        answered = self.survey.association.back is not None
        return way.ask(packet.time_ns, packet.length) if answered and kinds & {"DATA", *ASKING} else None

    def forget(self, now: int) -> None:
        """Drop packets that were sent more than WAIT_NS ago: they no longer arrive."""
        self.forgot_ns = now
        self.sent = {key: asks for key, asks in self.sent.items() if asks[-1].sent_ns > now - WAIT_NS}

    def request(self, host: str, path: int, packet: Packet, chunk: Chunk, ask: Ask | None) -> None:
        if chunk.kind == "INIT":
            self.init_ns = self.init_ns or packet.time_ns
        if chunk.kind == "HEARTBEAT":
            beats = self.beats[host, path]
            before = self.asked.get((host, path, chunk.kind))
            if before and before[1] and beats.open and not self.both:
                before[1].passed = False
            if beats.last_ns and not beats.open and len(beats.between_ns) < MOST_BEATS:
                beats.between_ns.append(packet.time_ns - beats.last_ns)
            beats.last_ns, beats.open = packet.time_ns, True
        self.asked[host, path, chunk.kind] = (packet.time_ns, ask)

    def came(self, host: str, path: int, way: str, packet: Packet) -> None:
        one = self.ways[path, way]
        ask = self.match(packet, one)
        delay = None
        if ask is not None:
            ask.passed, ask.arrived_ns = True, packet.time_ns
            delay = packet.time_ns - ask.sent_ns
            one.settle(packet.time_ns)
        one.arrived(packet.time_ns, packet.length, delay)
        if host == "host2" and self.first_path < 0 and has_data(packet):
            self.first_path = path
        if not self.both:
            one.packets += 1
            if way == "forward":
                one.ask(packet.time_ns, packet.length, True)
        for chunk in packet.chunks:
            if chunk.kind == "SACK":
                self.answered(host, path, packet, chunk)
            elif chunk.kind == "DATA":
                self.data_came(host, path, packet, chunk)
            elif chunk.kind in ANSWERING:
                self.replied(host, path, packet, ANSWERING[chunk.kind])
            elif chunk.kind == "INIT" and not self.both:
                self.init_ns = self.init_ns or packet.time_ns

    def match(self, packet: Packet, way: Way) -> Ask | None:
        """When PACKET left the other end: of several that look like it the last that could be here by now."""
        waiting = self.sent.get(packet.identity)
        if not waiting:
            return None
        least = way.delay.time_ns or 0
        late = [ask for ask in waiting if ask.passed is None and packet.time_ns - ask.sent_ns >= least]
        open_ = late or [ask for ask in waiting if ask.passed is None and ask.sent_ns <= packet.time_ns]
        if not open_:
            return None
        found = open_[-1]
        waiting.remove(found)
        if not waiting:
            del self.sent[packet.identity]
        return found

    def answered(self, host: str, path: int, packet: Packet, chunk: Chunk) -> None:
        """A SACK reached the sender of DATA."""
        sender = self.senders.get((host, host))
        if sender is None:
            return
        for one in sender.sack(packet.time_ns, path, chunk):
            if host == "host1" and not self.both:
                trip = packet.time_ns - one.sent_ns if one.times == 1 and one.path == path else None
                self.ways[one.path, "forward"].meter.add(
                    packet.time_ns, one.length, self.extra(host, path, trip)
                )

    def extra(self, host: str, path: int, trip: int | None) -> int | None:
        """How much longer than the least a round trip was."""
        sender = self.senders[host, host]
        least = sender.trips.get(path)
        return None if trip is None or least is None or least.time_ns is None else trip - least.time_ns

    def data_came(self, host: str, path: int, packet: Packet, chunk: Chunk) -> None:
        other = OTHER[host]
        far = self.sender(other, host)
        if self.both:
            source = self.senders.get((other, other))
            if source and source.watched:
                source.delivered(source.numbers.whole(chunk.number), packet.time_ns)
            far.sent(packet.time_ns, path, chunk, None, 0)
            return
        if other == "host1":
            self.changed_path(path, packet.time_ns)
        if far.sent(packet.time_ns, path, chunk, None, 0):
            self.messages[other].add(packet.time_ns, chunk, 0, packet.length)

    def changed_path(self, path: int, now: int) -> None:
        """At the receiver alone: data that comes another way after a silence tells that a path failed."""
        before, since = self.data_path, now - self.data_ns
        usual = self.ways[before, "forward"].spacing_ns if before >= 0 else 0.0
        if before not in (-1, path) and since > max(10 * usual, 100_000_000):
            self.switches.append(Switch(now, before, path, since))
            failed = self.ways[before, "forward"]
            first = self.data_ns + round(usual)
            for time_ns in (first, (first + now) // 2, now):
                failed.ask(time_ns, 0, False)
        self.data_path, self.data_ns = path, now

    def replied(self, host: str, path: int, packet: Packet, kind: str) -> None:
        """PACKET answers a request of KIND that left HOST."""
        found = self.asked.pop((host, path, kind), None)
        if found is None:
            return
        sent_ns, ask = found
        if ask is not None and not self.both:
            ask.passed = True
        if kind == "HEARTBEAT":
            self.beats[host, path].open = False
        self.trips[host, path].add(packet.time_ns - sent_ns, packet.length)

    def sender(self, whose: str, at: str) -> Sender:
        if (whose, at) not in self.senders:
            own = whose == at and not self.both
            self.senders[whose, at] = Sender(settle if own else ignore)
        return self.senders[whose, at]

    def close(self) -> None:
        for (_, way), one in self.ways.items():
            source = "host1" if way == "forward" else "host2"
            cover = self.survey.cover.get(OTHER[source])
            least = one.delay.time_ns or 0
            end = cover[1] - max(4 * least, 10**9) if cover else self.end_ns - WAIT_NS
            one.close(end)


def has_data(packet: Packet) -> bool:
    return any(chunk.kind == "DATA" for chunk in packet.chunks)


def settle(ask: Ask, passed: bool) -> None:
    if ask.passed is None:
        ask.passed = passed


def ignore(ask: Ask, passed: bool) -> None:
    """Where both ends were captured, the other one tells."""


def direction(association: Association, packet: Packet) -> str | None:
    """None for a packet of another association."""
    there, back = association.there, association.back
    tag = (packet.ports, packet.tag)
    if tag == there.tag:
        return "forward"
    if back and tag == back.tag:
        return "reverse"
    init = next((chunk for chunk in packet.chunks if chunk.kind == "INIT"), None)
    if packet.tag or init is None:
        return None
    tag = (packet.ports[::-1], init.number)
    if tag == there.tag:
        return "reverse"
    opening = tag == back.tag if back else packet.ports == there.tag[0]
    return "forward" if opening else None


def paths_of(association: Association) -> tuple[list[tuple[str, str]], dict[tuple[str, str], int]]:
    """Pairs of addresses (host1's, host2's) that make paths, and the path of each pair that was seen.

    The pairs with most packets come first; one whose two addresses are both on paths already goes with the
    path of the address at host2.
    """
    counts: dict[tuple[str, str], int] = dict(association.there.pairs)
    for (source, target), count in (association.back.pairs if association.back else {}).items():
        counts[target, source] = counts.get((target, source), 0) + count
    paths: list[tuple[str, str]] = []
    of_pair: dict[tuple[str, str], int] = {}
    order = list(counts)
    for pair in sorted(counts, key=lambda one: -counts[one]):
        known = [i for i, path in enumerate(paths) if path[1] == pair[1]]
        if known and any(path[0] == pair[0] for path in paths):
            of_pair[pair] = known[0]
        else:
            of_pair[pair] = len(paths)
            paths.append(pair)
    ranked = sorted(range(len(paths)), key=lambda i: order.index(paths[i]))
    place = {old: new for new, old in enumerate(ranked)}
    return [paths[i] for i in ranked], {pair: place[i] for pair, i in of_pair.items()}


def ordered(path: Path) -> Iterator[Packet]:
    """The packets of a file by time, though its interfaces may have been written in turns."""
    held: list[tuple[int, int, Packet]] = []
    for number, frame in enumerate(frames(path)):
        packet = packet_of(frame)
        if packet is None:
            continue
        heapq.heappush(held, (packet.time_ns, number, packet))
        if len(held) > DISORDER:
            yield heapq.heappop(held)[2]
    while held:
        yield heapq.heappop(held)[2]


def shifted(path: Path, host: str, shift_ns: int) -> Iterator[tuple[int, str, Packet]]:
    for packet in ordered(path):
        if shift_ns:
            packet = moved(packet, shift_ns)
        yield packet.time_ns, host, packet


def moved(packet: Packet, shift_ns: int) -> Packet:
    return Packet(
        packet.time_ns + shift_ns,
        packet.source,
        packet.target,
        packet.ports,
        packet.tag,
        packet.length,
        packet.chunks,
        packet.identity,
        packet.checksum,
        packet.in_udp,
    )


def tell(survey: Survey) -> Story:
    paths, of_pair = paths_of(survey.association)
    story = Story(survey, paths, of_pair)
    streams = [
        shifted(path, host, survey.shift_ns if host == "host2" else 0) for path, host in survey.files.items()
    ]
    for _, host, packet in heapq.merge(*streams, key=lambda one: one[0]):
        story.add(host, packet)
    story.close()
    return story
