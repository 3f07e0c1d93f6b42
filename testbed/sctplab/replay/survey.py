# SPDX-License-Identifier: GPL-2.0
"""First reading of the files: which associations they hold, at which end each was captured, what clocks say.

An association is told by its verification tags, so that its addresses need not be known and it may have begun
before the capture did. A file belongs to the end that answers at once: a request that reaches the captured
host is answered within microseconds, one that leaves it a round trip later.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from pathlib import Path

from sctplab.errors import LabError
from sctplab.measure.capture import ALL_TSNS
from sctplab.replay.container import frames
from sctplab.replay.packet import Chunk, Packet, missing, packet_of

MOST_TAGS = 10_000  # directions of associations in one set of files
SAMPLED = 20_000  # packets of one file that are kept to find them in the others
ANSWERS = {"INIT_ACK": "INIT", "HEARTBEAT_ACK": "HEARTBEAT", "SACK": "DATA", "COOKIE_ACK": "COOKIE_ECHO"}
MOST_ASKED = 4096  # requests of one file that wait for their answer
TOKEN = 48  # bytes of a HEARTBEAT
Pair = tuple[str, str]  # addresses: of the source, of the target
Tag = tuple[tuple[int, int], int]  # ports and verification tag of one direction

Asked = tuple[tuple[int, int], str, bytes | int]  # ports, kind and token of a request


def token(chunk: Chunk) -> bytes | int:
    """Alike in a request and in its answer: the newest TSN of DATA and of a SACK, what a HEARTBEAT holds."""
    if chunk.kind == "SACK":
        return (chunk.number + max((end for _, end in chunk.gaps), default=0)) % ALL_TSNS
    if chunk.kind == "DATA":
        return chunk.number
    return chunk.body[:TOKEN]


@dataclass
class OneWay:
    """The packets of one direction, under one verification tag."""

    tag: Tag
    first_ns: int
    pairs: dict[Pair, int] = field(default_factory=dict)
    packets: int = 0
    data_b: int = 0


@dataclass(frozen=True)
class Association:
    """THERE: the direction in which most data went, host1 to host2; BACK: the other one, if it was seen."""

    there: OneWay
    back: OneWay | None

    @property
    def ports(self) -> tuple[int, int]:
        return self.there.tag[0]

    @property
    def name(self) -> str:
        return f"{self.ports[0]}-{self.ports[1]}/{self.there.tag[1]:08x}"

    def __str__(self) -> str:
        source, target = next(iter(self.there.pairs))
        packets = self.there.packets + (self.back.packets if self.back else 0)
        return f"{self.name} ({source} to {target}, {packets} packets)"


@dataclass
class Sample:
    """Some packets of a file by identity, always the same ones: time of the first, 0 where it came twice."""

    kept: dict[bytes, int] = field(default_factory=dict)
    every: int = 1

    def add(self, packet: Packet) -> None:
        identity = packet.identity
        if zlib.crc32(identity) % self.every:
            return
        self.kept[identity] = 0 if identity in self.kept else packet.time_ns
        if len(self.kept) > SAMPLED:
            self.every *= 2
            self.kept = {key: t for key, t in self.kept.items() if not zlib.crc32(key) % self.every}


@dataclass
class Source:
    """One file: when its packets are from, and how fast each direction's requests are answered here."""

    path: Path
    first_ns: int = 0
    last_ns: int = 0
    sample: Sample = field(default_factory=Sample)
    asked: dict[Asked, int] = field(default_factory=dict)
    answered_ns: dict[Tag, int] = field(default_factory=dict)  # tag that the request bore -> least time
    seen: dict[Tag, int] = field(default_factory=dict)
    sctp: int = 0

    def add(self, packet: Packet) -> None:
        self.sctp += 1
        self.first_ns = min(self.first_ns or packet.time_ns, packet.time_ns)
        self.last_ns = max(self.last_ns, packet.time_ns)
        self.sample.add(packet)
        tag = (packet.ports, packet.tag)
        self.seen[tag] = self.seen.get(tag, 0) + 1
        for chunk in packet.chunks:
            if chunk.kind in ANSWERS:
                asked = self.asked.pop((packet.ports[::-1], ANSWERS[chunk.kind], token(chunk)), 0)
                if asked:
                    self.fastest(packet, packet.time_ns - asked)
            elif chunk.kind in ANSWERS.values():
                self.ask((packet.ports, chunk.kind, token(chunk)), packet.time_ns)

    def ask(self, key: Asked, time_ns: int) -> None:
        """The time of a request, 0 once it is sent again: its answer may then be to either."""
        self.asked[key] = 0 if key in self.asked else time_ns
        if len(self.asked) > MOST_ASKED:
            del self.asked[next(iter(self.asked))]

    def fastest(self, answer: Packet, time_ns: int) -> None:
        """A request that ANSWER's target sent was answered after so long."""
        tag = (answer.ports, answer.tag)
        self.answered_ns[tag] = min(self.answered_ns.get(tag, time_ns), time_ns)


@dataclass(frozen=True)
class Survey:
    """FILES: file -> host. SHIFT_NS: to add to times of host2's files. CLOCKS: a word on them."""

    association: Association
    files: dict[Path, str]
    shift_ns: int
    clocks: str
    cover: dict[str, tuple[int, int]]

    def at(self, host: str) -> bool:
        return host in self.files.values()


def survey(paths: Sequence[Path], wanted: str | None) -> Survey:
    sources, ways = read(paths)
    association = chosen(associations(ways), wanted)
    relevant = [one for one in sources if any(tag in one.seen for tag in tags(association))]
    hosts = ends(association, relevant)
    refuse_twins(relevant, hosts)
    shift, clocks = clock(association, relevant, hosts)
    cover = {host: span([one for one in relevant if hosts[one.path] == host]) for host in set(hosts.values())}
    if "host2" in cover:
        cover["host2"] = (cover["host2"][0] + shift, cover["host2"][1] + shift)
    return Survey(association, hosts, shift, clocks, cover)


def span(sources: Sequence[Source]) -> tuple[int, int]:
    return min(one.first_ns for one in sources), max(one.last_ns for one in sources)


def read(paths: Sequence[Path]) -> tuple[list[Source], dict[Tag, OneWay]]:
    sources, ways = [], dict[Tag, OneWay]()
    for path in paths:
        one, unknown = Source(path), set[int]()
        for frame in frames(path):
            packet = packet_of(frame)
            if packet is not None:
                one.add(packet)
                note(path, packet, ways)
            elif missing(frame.link):
                unknown.add(frame.link)
        if unknown and not one.sctp:
            text = ", ".join(map(str, sorted(unknown)))
            raise LabError(f"{path}: link type {text}; expected Ethernet, raw IP, Linux cooked or loopback")
        sources.append(one)
    if not any(one.sctp for one in sources):
        raise LabError(f"{', '.join(map(str, paths))}: no SCTP; capture with: tcpdump -i any -w FILE sctp")
    return sources, ways


def note(path: Path, packet: Packet, ways: dict[Tag, OneWay]) -> None:
    """A packet by the direction it went; INIT, which bears no tag yet, is of none."""
    if not packet.tag:
        return
    way = way_of(path, (packet.ports, packet.tag), packet, ways)
    way.packets += 1
    pair = (packet.source, packet.target)
    way.pairs[pair] = way.pairs.get(pair, 0) + 1
    way.data_b += sum(chunk.length for chunk in packet.chunks if chunk.kind == "DATA")


def way_of(path: Path, tag: Tag, packet: Packet, ways: dict[Tag, OneWay]) -> OneWay:
    if tag not in ways and len(ways) >= MOST_TAGS:
        raise LabError(
            f"{path}: more than {MOST_TAGS // 2} associations; take one out: tcpdump -r ... -w ... port PORT"
        )
    return ways.setdefault(tag, OneWay(tag, packet.time_ns))


def associations(ways: dict[Tag, OneWay]) -> list[Association]:
    """Each direction with the one that goes back between the same addresses at the same time."""
    left = sorted((one for one in ways.values() if one.packets), key=lambda one: one.first_ns)
    found = []
    while left:
        one = left.pop(0)
        other = next((two for two in left if mirrored(one, two)), None)
        if other is not None:
            left.remove(other)
            one, other = sorted((one, other), key=lambda way: -way.data_b)
        found.append(Association(one, other))
    return found


def mirrored(one: OneWay, two: OneWay) -> bool:
    (ports, _), (others, _) = one.tag, two.tag
    return ports == others[::-1] and any((b, a) in two.pairs for a, b in one.pairs)


def tags(association: Association) -> list[Tag]:
    return [way.tag for way in (association.there, association.back) if way]


def chosen(found: Sequence[Association], wanted: str | None) -> Association:
    matching = [one for one in found if wanted in (None, *names(one))]
    if len(matching) == 1:
        return matching[0]
    listed = "; ".join(map(str, (matching or found)[:10])) + ("; ..." if len(matching or found) > 10 else "")
    if not matching:
        raise LabError(f"--assoc: got {wanted!r}, expected one of {listed}")
    raise LabError(f"{len(matching)} associations; choose one with --assoc NAME: {listed}")


def names(one: Association) -> tuple[str, ...]:
    a, b = one.ports
    return one.name, f"{a}-{b}", f"{b}-{a}"


def ends(association: Association, sources: Sequence[Source]) -> dict[Path, str]:
    """The host of each file: by its own answers, by files of the other end, as all others, or the sender."""
    hosts = {one.path: host for one in sources if (host := by_answers(association, one))}
    while len(hosts) < len(sources):
        unknown = [one for one in sources if one.path not in hosts]
        told = next(((one, host) for one in unknown if (host := by_others(one, sources, hosts))), None)
        only = set(hosts.values())
        one, host = told or (unknown[0], only.pop() if len(only) == 1 else "host1")
        hosts[one.path] = host
    return hosts


def by_answers(association: Association, one: Source) -> str | None:
    if association.back is None:
        return None
    # Packets with back's tag go to host1: the answers to host1's requests.
    far = one.answered_ns.get(association.back.tag)
    near = one.answered_ns.get(association.there.tag)
    if near is None or far is None:
        known = near if far is None else far
        if known is None:
            return None
        there = (known > 1_000_000) == (near is None)
        return "host1" if there else "host2"
    return "host1" if near < far else "host2"


def by_others(one: Source, sources: Sequence[Source], hosts: dict[Path, str]) -> str | None:
    for other in sources:
        if other.path in hosts and shared(one, other):
            return "host2" if hosts[other.path] == "host1" else "host1"
    return None


def shared(one: Source, other: Source) -> list[tuple[int, int]]:
    """Times of the same packets in both, of those that are in each of them once."""
    kept = other.sample.kept
    return [(t, kept[key]) for key, t in one.sample.kept.items() if t and kept.get(key)]


def refuse_twins(sources: Sequence[Source], hosts: dict[Path, str]) -> None:
    for one, other in combinations(sources, 2):
        same = len(shared(one, other))
        if hosts[one.path] == hosts[other.path] and same > 10:
            raise LabError(
                f"{one.path}, {other.path}: the same packets at the same end;"
                " give one capture per end and interface"
            )


def clock(association: Association, sources: Sequence[Source], hosts: dict[Path, str]) -> tuple[int, str]:
    """(what to add to host2's times, a word on it) from the least times each way between the ends."""
    least: dict[str, int] = {}
    for one, other in product(sources, sources):
        if (hosts[one.path], hosts[other.path]) == ("host1", "host2"):
            for way, time_ns in crossings(association, one, other):
                least[way] = min(least.get(way, time_ns), time_ns)
    if not least:
        return 0, ""
    if all(value >= 0 for value in least.values()):
        return 0, "both ends' clocks are taken to agree"
    there, back = least.get("forward", 0), least.get("reverse", 0)
    if len(least) == 1:
        return -there if "forward" in least else back, "the clocks differ: the least delay is taken as 0"
    shift = (back - there) // 2
    return (
        shift,
        f"host2's clock is {-shift / 1e6:.3f} ms ahead if both ways of the shortest path are as long",
    )


def crossings(association: Association, near: Source, far: Source) -> Iterator[tuple[str, int]]:
    """Direction and time of each packet that both ends' samples have."""
    for key, here in near.sample.kept.items():
        there, tag = far.sample.kept.get(key, 0), sent_with(key)
        if not here or not there:
            continue
        if tag == association.there.tag:
            yield "forward", there - here
        elif association.back and tag == association.back.tag:
            yield "reverse", here - there


def sent_with(identity: bytes) -> Tag:
    """Ports and verification tag, with which an identity begins."""
    source, target, tag = struct.unpack_from(">HHI", identity)
    return (source, target), tag
