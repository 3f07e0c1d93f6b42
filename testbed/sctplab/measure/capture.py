# SPDX-License-Identifier: GPL-2.0
"""The chunks that crossed a host's interfaces, read from the captures of a run (pcap with nanoseconds).

Only SCTP is read. Ethernet and IP headers are skipped here rather than by dpkt, which makes reading ten times
as fast; there are no options and no extension headers in the laboratory but IPv4's own length.
"""

from __future__ import annotations

import heapq
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import dpkt  # type: ignore[import-untyped]

from sctplab.errors import LabError
from sctplab.plan.link_commands import address
from sctplab.plan.run_plan import file_name
from sctplab.spec.model import HOSTS, Topology

NANOSECONDS = b"\x4d\x3c\xb2\xa1"  # magic of a little-endian pcap file with nanosecond times
FILE_HEADER, PACKET_HEADER = 24, 16
ETHERNET, IPV6, SCTP_HEADER = 14, 40, 12
KINDS = {number: name for name, number in vars(dpkt.sctp).items() if name.isupper() and name != "SCTP"}
ALL_TSNS = 1 << 32


@dataclass(frozen=True)
class Packet:
    """One captured packet: time in ns since the epoch, length on the wire, captured bytes."""

    time_ns: int
    length: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Chunk:
    """One chunk as it crossed a host's interface.

    TSNs count from 1, the first of their association and direction; SSN: the message's number in its stream.
    PACKET: chunks of one packet share it.
    GAPS: first and last TSN of each gap block. PORTS: of the packet's source and destination.
    FLAGS: the chunk's second byte.
    """

    time_ns: int
    path: str
    direction: str
    packet: int
    ports: tuple[int, int]
    kind: str
    tsn: int | None = None
    cum_tsn: int | None = None
    gaps: tuple[tuple[int, int], ...] = ()
    flags: int = 0
    ssn: int | None = None


def packets(path: Path) -> Iterator[Packet]:
    """The packets of a pcap file as tcpdump writes it here; raises LabError for any other file."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise LabError(f"{path}: cannot be read: {error.strerror}; run with --pcap") from error
    if content[:4] != NANOSECONDS:
        raise LabError(f"{path}: not a capture of the laboratory (pcap with nanoseconds)")
    at = FILE_HEADER
    while at < len(content):
        if at + PACKET_HEADER > len(content):
            raise LabError(f"{path}: cut off in the header of a packet, at byte {at}")
        seconds, nanoseconds, captured, length = struct.unpack_from("<4I", content, at)
        at += PACKET_HEADER
        if at + captured > len(content):
            raise LabError(f"{path}: cut off in a packet, at byte {at}")
        yield Packet(seconds * 10**9 + nanoseconds, length, content[at : at + captured])
        at += captured


def chunks(folder: Path, topology: Topology, host: str) -> Iterator[Chunk]:
    """All SCTP chunks that left or reached HOST, in the order of time.

    Chunks of the same time on two paths come in the order of the paths. Raises LabError for a file that is
    missing or no capture, and for one that begins in the middle of an association.
    """
    own = frozenset(ip_address(address(topology, host, path.name)).packed for path in topology.paths)
    outward, inward = ("forward", "reverse") if host == HOSTS[0] else ("reverse", "forward")
    first: dict[tuple[int, int], int] = {}
    for number, (path, packet) in enumerate(merged(folder, topology, host), 1):
        found = sctp_of(packet.data)
        if found is None:
            continue
        direction = outward if found[0] in own else inward
        ports = (number_at(found[1], 0, 2), number_at(found[1], 2, 2))
        for one in chunks_of(found[1]):
            kind = KINDS.get(one.type, f"0x{one.type:02x}")
            if kind in ("INIT", "INIT_ACK"):
                first[ports] = number_at(one.data, 12)
            try:
                details = DETAILS.get(kind, nothing)(one.data, ports, first)
            except KeyError:
                text = f"{kind} before INIT; the capture has to begin before the association"
                raise LabError(f"{folder / file_name(host, path)}: {text}") from None
            yield Chunk(packet.time_ns, path, direction, number, ports, kind, flags=one.flags, **details)


def merged(folder: Path, topology: Topology, host: str) -> Iterator[tuple[str, Packet]]:
    """(path, packet) of all interfaces of HOST in the order of time."""

    def of(path: str) -> Iterator[tuple[str, Packet]]:
        return ((path, packet) for packet in packets(folder / file_name(host, path)))

    return heapq.merge(*(of(path.name) for path in topology.paths), key=lambda item: item[1].time_ns)


def sctp_of(frame: bytes) -> tuple[bytes, bytes] | None:
    """(IP source address, SCTP packet) of an Ethernet frame, None for another protocol or half a packet."""
    kind = frame[12:ETHERNET]
    if kind == b"\x08\x00" and frame[23] == dpkt.ip.IP_PROTO_SCTP and not number_at(frame, 20, 2) & 0x1FFF:
        return frame[26:30], frame[ETHERNET + 4 * (frame[14] & 15) : ETHERNET + number_at(frame, 16, 2)]
    if kind == b"\x86\xdd" and frame[20] == dpkt.ip.IP_PROTO_SCTP:
        start = ETHERNET + IPV6
        return frame[22:38], frame[start : start + number_at(frame, 18, 2)]
    return None


def chunks_of(packet: bytes) -> Iterator[Any]:
    """The chunks of an SCTP packet, each filled up to a multiple of 4 bytes (dpkt fills up DATA only)."""
    at = SCTP_HEADER
    while at < len(packet):
        yield (one := dpkt.sctp.Chunk(packet[at:]))
        at += max(4, one.len + -one.len % 4)


def number_at(data: bytes, at: int, size: int = 4) -> int:
    return int.from_bytes(data[at : at + size])


Ports = tuple[int, int]
First = dict[Ports, int]  # ports of a direction -> its association's first TSN


def counted(tsn: int, first: int) -> int:
    """1 for the first TSN."""
    return (tsn - first + 1) % ALL_TSNS


def nothing(data: bytes, ports: Ports, first: First) -> dict[str, Any]:
    return {}


def data_details(data: bytes, ports: Ports, first: First) -> dict[str, Any]:
    return {"tsn": counted(number_at(data, 0), first[ports]), "ssn": number_at(data, 6, 2)}


def cum_details(data: bytes, ports: Ports, first: First) -> dict[str, Any]:
    return {"cum_tsn": counted(number_at(data, 0), first[ports[::-1]])}


def sack_details(data: bytes, ports: Ports, first: First) -> dict[str, Any]:
    """Gap blocks are offsets from the cumulative TSN."""
    details = cum_details(data, ports, first)
    cum = details["cum_tsn"]
    ends = [cum + number_at(data, 12 + 2 * i, 2) for i in range(2 * number_at(data, 8, 2))]
    return {**details, "gaps": tuple(zip(ends[::2], ends[1::2], strict=True))}


DETAILS = {"DATA": data_details, "SACK": sack_details, "SHUTDOWN": cum_details}
