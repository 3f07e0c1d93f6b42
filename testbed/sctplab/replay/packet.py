# SPDX-License-Identifier: GPL-2.0
"""From a frame to an SCTP packet: link type, VLAN tags, IPv4, IPv6, and as many chunks as were captured."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address

from sctplab.measure.capture import KINDS
from sctplab.replay.container import Frame

IPV4, IPV6 = 0x0800, 0x86DD
TAGS = (0x8100, 0x88A8, 0x9100)
SCTP, UDP, FRAGMENT = 132, 17, 44
UDP_PORT, UDP_HEADER = 9899, 8  # of SCTP in UDP
EXTENSIONS = (0, 43, 60, 135)  # hop by hop, routing, destination options, mobility: (length + 1) * 8 bytes
MOST_HEADERS = 8  # tags of a frame, extension headers of a packet
ETHERNET_B = 14  # of a frame beside its IP packet, whatever was captured: the laboratory's rates count it
SCTP_HEADER, DATA_HEADER = 12, 16
I_DATA = "0x40"  # RFC 8260: a header of 4 bytes more, the same numbers at the same places
SIGNED = 28  # bytes of a packet that tell it from others: the header and the first chunk's own numbers
FIRST_FRAGMENT, LAST_FRAGMENT, UNORDERED = 2, 1, 4  # flags of DATA


@dataclass(frozen=True, slots=True)
class Chunk:
    """Members that a kind does not have, or that were not captured, are 0 or empty.

    LENGTH: as the chunk states it; of DATA, bytes of the message. NUMBER: TSN, cumulative TSN, or initiate
    tag. WINDOW: of a SACK, the receiver's. BODY: of a HEARTBEAT and its ACK, what was captured.
    """

    kind: str
    flags: int = 0
    length: int = 0
    number: int = 0
    stream: int = 0
    window: int = 0
    gaps: tuple[tuple[int, int], ...] = ()
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Packet:
    """LENGTH: as on Ethernet. IDENTITY: equal in two captures of the same packet, and of one sent again."""

    time_ns: int
    source: str
    target: str
    ports: tuple[int, int]
    tag: int
    length: int
    chunks: tuple[Chunk, ...]
    identity: bytes
    checksum: int
    in_udp: bool = False


Link = Callable[[bytes], tuple[int, int] | None]  # protocol of a frame and where it starts


def ethernet(data: bytes) -> tuple[int, int] | None:
    return tagged(data, 12)


def tagged(data: bytes, at: int) -> tuple[int, int] | None:
    """The protocol behind any VLAN tags."""
    for _ in range(MOST_HEADERS):
        kind = int.from_bytes(data[at : at + 2])
        at += 2
        if kind not in TAGS:
            return kind, at
        at += 2
    return None


def raw_ip(data: bytes) -> tuple[int, int] | None:
    return {4: (IPV4, 0), 6: (IPV6, 0)}.get(data[0] >> 4) if data else None


def cooked(data: bytes) -> tuple[int, int] | None:
    return tagged(data, 14)


def cooked2(data: bytes) -> tuple[int, int] | None:
    kind = int.from_bytes(data[0:2])
    return (tagged(data, 18) if kind in TAGS else (kind, 20)) if len(data) >= 20 else None


def loopback(data: bytes) -> tuple[int, int] | None:
    """BSD's null and loop: an address family in one byte order or the other, which differs by system."""
    found = raw_ip(data[4:])
    return (found[0], 4) if found else None


def unknown(data: bytes) -> tuple[int, int] | None:
    return None


LINKS: dict[int, Link] = {
    0: loopback,
    1: ethernet,
    12: raw_ip,
    14: raw_ip,
    101: raw_ip,
    108: loopback,
    113: cooked,
    228: raw_ip,
    229: raw_ip,
    276: cooked2,
}


def packet_of(frame: Frame) -> Packet | None:
    """None for another protocol, a fragment behind the first, and what is too short to say whose it is."""
    found = LINKS.get(frame.link, unknown)(frame.data)
    if found is None:
        return None
    kind, at = found
    read = {IPV4: ipv4, IPV6: ipv6}.get(kind)
    inside = read(frame.data, at) if read else None
    if inside is None or len(inside.payload) < SCTP_HEADER:
        return None
    source_port, target_port, tag, checksum = struct.unpack_from(">HHII", inside.payload)
    return Packet(
        frame.time_ns,
        written(inside.source),
        written(inside.target),
        (source_port, target_port),
        tag,
        ETHERNET_B + inside.length,
        tuple(chunks(inside.payload)),
        inside.payload[:8] + inside.source + inside.target + inside.payload[SCTP_HEADER:SIGNED],
        checksum,
        inside.in_udp,
    )


@lru_cache(1024)
def written(address: bytes) -> str:
    return str(ip_address(address))


@dataclass(frozen=True, slots=True)
class Inside:
    source: bytes
    target: bytes
    length: int
    payload: bytes
    in_udp: bool = False


def inside_of(kind: int, source: bytes, target: bytes, length: int, payload: bytes) -> Inside | None:
    """SCTP in IP, or in UDP with its port at either end."""
    if kind == SCTP:
        return Inside(source, target, length, payload)
    if kind == UDP and UDP_PORT in struct.unpack(">HH", payload[:4].ljust(4, b"\0")):
        return Inside(source, target, length, payload[UDP_HEADER:], True)
    return None


def ipv4(data: bytes, at: int) -> Inside | None:
    if len(data) < at + 20 or data[at] >> 4 != 4:
        return None
    header, length = 4 * (data[at] & 15), int.from_bytes(data[at + 2 : at + 4])
    if int.from_bytes(data[at + 6 : at + 8]) & 0x1FFF or header < 20:
        return None
    length = length or len(data) - at  # 0: left to segmentation offload
    payload = data[at + header : at + max(length, header)]
    return inside_of(data[at + 9], data[at + 12 : at + 16], data[at + 16 : at + 20], length, payload)


def ipv6(data: bytes, at: int) -> Inside | None:
    if len(data) < at + 40 or data[at] >> 4 != 6:
        return None
    length = 40 + int.from_bytes(data[at + 4 : at + 6])
    kind, start = data[at + 6], at + 40
    for _ in range(MOST_HEADERS):
        if kind in (SCTP, UDP):
            payload = data[start : at + length]
            return inside_of(kind, data[at + 8 : at + 24], data[at + 24 : at + 40], length, payload)
        if len(data) < start + 8 or kind not in (*EXTENSIONS, FRAGMENT):
            return None
        if kind == FRAGMENT and int.from_bytes(data[start + 2 : start + 4]) & 0xFFF8:
            return None
        size = 8 if kind == FRAGMENT else 8 * (data[start + 1] + 1)
        kind, start = data[start], start + size
    return None


def chunks(payload: bytes) -> Iterator[Chunk]:
    """Those of which all that matters was captured."""
    at = SCTP_HEADER
    while at + 4 <= len(payload):
        kind, flags, length = struct.unpack_from(">BBH", payload, at)
        if length < 4:
            return
        yield from chunk(KINDS.get(kind, f"0x{kind:02x}"), flags, length, payload[at + 4 : at + length])
        at += length + -length % 4


def chunk(kind: str, flags: int, length: int, body: bytes) -> Iterator[Chunk]:
    if kind in ("DATA", I_DATA):
        if len(body) >= 12:
            tsn, stream = struct.unpack_from(">IH", body)
            yield Chunk("DATA", flags, length - DATA_HEADER - 4 * (kind == I_DATA), tsn, stream)
    elif kind == "SACK":
        if len(body) >= 12:
            cum, window = struct.unpack_from(">II", body)
            yield Chunk(kind, flags, length, cum, window=window, gaps=gaps(body))
    elif kind in ("INIT", "INIT_ACK"):
        if len(body) >= 4:
            yield Chunk(kind, flags, length, int.from_bytes(body[:4]))
    else:
        kept = body if kind in ("HEARTBEAT", "HEARTBEAT_ACK") else b""
        yield Chunk(kind, flags, length, body=kept)


def gaps(body: bytes) -> tuple[tuple[int, int], ...]:
    """The gap blocks that were captured, as offsets from the cumulative TSN."""
    count = min(int.from_bytes(body[8:10]), (len(body) - 12) // 4)
    ends = struct.unpack_from(f">{2 * count}H", body, 12)
    return tuple(zip(ends[::2], ends[1::2], strict=True))


def missing(link: int) -> bool:
    """Whether frames of this link type cannot be read."""
    return link not in LINKS
