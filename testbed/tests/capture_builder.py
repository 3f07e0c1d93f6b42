# SPDX-License-Identifier: GPL-2.0
"""Small captures of an association over two paths, as either end has them, in any format."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

START_S = 1_700_000_000
PORTS = (40000, 5000)
TAGS = (0x11111111, 0x22222222)  # of host1's packets, of host2's
FIRST_TSN = 2**32 - 20  # so that TSNs wrap
MESSAGE_B = 100
DELAY_S = {1: (0.015, 0.025), 2: (0.040, 0.030)}  # path -> forward, reverse
ADDRESSES = {"ipv4": ("10.{}.1.1", "10.{}.2.1"), "ipv6": ("fd00:{}:1::1", "fd00:{}:2::1")}


@dataclass(frozen=True)
class Seen:
    """A packet as it left (SENT_S) and arrived (ARRIVED_S, None: it did not)."""

    sent_s: float
    arrived_s: float | None
    forward: bool
    path: int
    sctp: bytes


def chunk(kind: int, value: bytes, flags: int = 0) -> bytes:
    return struct.pack(">BBH", kind, flags, 4 + len(value)) + value + bytes(-len(value) % 4)


def data(number: int, size: int = MESSAGE_B) -> bytes:
    head = struct.pack(">IHHI", (FIRST_TSN + number) % 2**32, 0, number % 2**16, 0)
    return chunk(0, head + bytes(size), 3)


def sack(number: int, window: int = 100000) -> bytes:
    return chunk(3, struct.pack(">IIHH", (FIRST_TSN + number) % 2**32, window, 0, 0))


def init(tag: int, kind: int = 1) -> bytes:
    return chunk(kind, struct.pack(">IIHHI", tag, 100000, 1, 1, FIRST_TSN))


def heartbeat(number: int, kind: int = 4) -> bytes:
    return chunk(kind, struct.pack(">HH", 1, 12) + number.to_bytes(8))


def packet(forward: bool, *chunks: bytes, tag: int | None = None, ports: tuple[int, int] = PORTS) -> bytes:
    own = TAGS[0] if forward else TAGS[1]
    head = struct.pack(">HHI", *(ports if forward else ports[::-1]), own if tag is None else tag)
    body = b"".join(chunks)
    return head + sum(body).to_bytes(4) + body


class Association:
    """Messages at an interval over path 1; from CUT_S until HEAL_S that path carries nothing."""

    def __init__(self, cut_s: float | None = None, heal_s: float | None = None) -> None:
        self.cut_s, self.heal_s = cut_s, heal_s
        self.seen: list[Seen] = []

    def send(self, time_s: float, forward: bool, path: int, sctp: bytes) -> float | None:
        """When it arrives."""
        down = path == 1 and self.cut_s is not None and self.cut_s <= time_s < (self.heal_s or 1e9)
        arrived = None if down else time_s + DELAY_S[path][0 if forward else 1]
        self.seen.append(Seen(time_s, arrived, forward, path, sctp))
        return arrived

    def ask(self, time_s: float, forward: bool, path: int, request: bytes, answer: bytes) -> float | None:
        """A request and its answer, at once; when that arrives."""
        there = self.send(time_s, forward, path, request)
        return None if there is None else self.send(there, not forward, path, answer)

    def set_up(self) -> None:
        answer = packet(False, init(TAGS[0], 2))
        up = self.ask(0.0, True, 1, packet(True, init(TAGS[1]), tag=0), answer) or 0.0
        self.ask(up, True, 1, packet(True, chunk(10, b"cookie")), packet(False, chunk(11, b"")))

    def messages(self, start_s: float, count: int, every_s: float, times: Iterable[float] = ()) -> None:
        """A SACK for every second one. Lost messages are retransmitted over path 2 after 1 s."""
        path, lost, timer = 1, list[int](), 0.0
        for number, time_s in enumerate(list(times) or [start_s + i * every_s for i in range(count)]):
            if lost and time_s >= timer + 1 and path == 1:
                path = 2
                self.send(timer + 1, True, 2, packet(True, *map(data, lost[:10])))
                for again in lost[10:]:
                    self.send(timer + 1.0001, True, 2, packet(True, data(again)))
            there = self.send(time_s, True, path, packet(True, data(number)))
            if there is None:
                lost.append(number)
            elif number % 2:
                timer = self.send(there, False, path, packet(False, sack(number))) or timer

    def at(self, host: int) -> list[tuple[float, Seen]]:
        """(time, packet) as a capture at the host has them, in order."""
        found = []
        for one in self.seen:
            time_s = one.sent_s if one.forward == (host == 1) else one.arrived_s
            if time_s is not None:
                found.append((time_s, one))
        return sorted(found, key=lambda item: item[0])


def usual(cut_s: float | None = 4.0, heal_s: float | None = None) -> Association:
    made = Association(cut_s, heal_s)
    made.set_up()
    made.messages(0.2, 500, 0.02)
    for number in range(3):
        for path in (1, 2):
            body = number * 10 + path
            made.ask(
                1.0 + number, True, path, packet(True, heartbeat(body)), packet(False, heartbeat(body, 5))
            )
            body += 100
            made.ask(
                1.1 + number, False, path, packet(False, heartbeat(body)), packet(True, heartbeat(body, 5))
            )
    return made


def ip(seen: Seen, family: str = "ipv4", extension: bool = False) -> bytes:
    there, back = (name.format(seen.path) for name in ADDRESSES[family])
    ends = (there, back) if seen.forward else (back, there)
    source, target = (ip_address(end).packed for end in ends)
    if family == "ipv6":
        body = (bytes((132, 0, 1, 4, 0, 0, 0, 0)) if extension else b"") + seen.sctp
        kind = 60 if extension else 132
        return struct.pack(">IHBB", 6 << 28, len(body), kind, 64) + source + target + body
    size = 20 + len(seen.sctp)
    return struct.pack(">BBHHHBBH", 0x45, 0, size, 0, 0x4000, 64, 132, 0) + source + target + seen.sctp


def ethertype(packed: bytes) -> bytes:
    return b"\x08\x00" if packed[0] >> 4 == 4 else b"\x86\xdd"


LINKS: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "ethernet": (1, lambda p: bytes(12) + ethertype(p) + p),
    "vlan": (1, lambda p: bytes(12) + b"\x81\x00\x00\x07" + ethertype(p) + p),
    "two-vlans": (1, lambda p: bytes(12) + b"\x88\xa8\x00\x07\x81\x00\x00\x08" + ethertype(p) + p),
    "raw": (101, lambda p: p),
    "raw-12": (12, lambda p: p),
    "cooked": (113, lambda p: bytes(14) + ethertype(p) + p),
    "cooked-vlan": (113, lambda p: bytes(14) + b"\x81\x00\x00\x07" + ethertype(p) + p),
    "cooked2": (276, lambda p: ethertype(p) + bytes(18) + p),
    "null": (0, lambda p: b"\x02\x00\x00\x00" + p),
    "loop": (108, lambda p: b"\x00\x00\x00\x02" + p),
}
Frames = list[tuple[float, bytes]]


def frames(
    rows: list[tuple[float, Seen]], link: str = "ethernet", family: str = "ipv4", extension: bool = False
) -> Frames:
    return [(time_s, LINKS[link][1](ip(one, family, extension))) for time_s, one in rows]


def pcap(rows: Frames, link: int = 1, order: str = "<", nano: bool = True, snap: int = 65535) -> bytes:
    magic, unit = (0xA1B23C4D, 10**9) if nano else (0xA1B2C3D4, 10**6)
    content = bytearray(struct.pack(f"{order}IHHIIII", magic, 2, 4, 0, 0, snap, link))
    for time_s, one in rows:
        ticks = round(time_s * unit)
        head = (START_S + ticks // unit, ticks % unit, min(len(one), snap), len(one))
        content += struct.pack(f"{order}4I", *head) + one[:snap]
    return bytes(content)


def block(kind: int, body: bytes, order: str) -> bytes:
    body += bytes(-len(body) % 4)
    size = 12 + len(body)
    return struct.pack(f"{order}II", kind, size) + body + struct.pack(f"{order}I", size)


def pcapng(interfaces: list[tuple[int, Frames]], order: str = "<") -> bytes:
    """One section; the first interface counts nanoseconds, the others the usual microseconds."""
    content = bytearray(block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1), order))
    for number, (link, _) in enumerate(interfaces):
        options = struct.pack(f"{order}HHB3xHH", 9, 1, 9, 0, 0) if not number else b""
        content += block(1, struct.pack(f"{order}HHI", link, 0, 0) + options, order)
    rows = [(time_s, number, one) for number, (_, each) in enumerate(interfaces) for time_s, one in each]
    for time_s, number, one in sorted(rows, key=lambda row: row[0]):
        unit = 10**6 if number else 10**9
        ticks = START_S * unit + round(time_s * unit)
        head = struct.pack(f"{order}5I", number, ticks >> 32, ticks & 0xFFFFFFFF, len(one), len(one))
        content += block(6, head + one, order)
    return bytes(content)


def written(folder: Path, name: str, content: bytes, zipped: bool = False) -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(content) if zipped else content)
    return path
