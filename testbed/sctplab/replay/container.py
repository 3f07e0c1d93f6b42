# SPDX-License-Identifier: GPL-2.0
"""Frames of a capture file, one at a time: pcap and pcapng, either byte order, as they are or gzipped.

dpkt's readers know one interface per pcapng file and read a block of any length that a damaged file states; a
capture of a multihomed host has several interfaces. So the two formats are read here, in as many bytes as one
frame has.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from sctplab.errors import LabError

PCAP = {
    b"\xd4\xc3\xb2\xa1": ("<", 1000),  # byte order, nanoseconds of the unit of time
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
    b"\xa1\xb2\x3c\x4d": (">", 1),
}
PCAPNG, GZIP = b"\x0a\x0d\x0d\x0a", b"\x1f\x8b"
ORDERS = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
SECTION, INTERFACE, SIMPLE, ENHANCED = 0x0A0D0D0A, 1, 3, 6
LARGEST = 1 << 20  # bytes of a frame or block: what is larger is no capture of packets
END_OF_OPTIONS, RESOLUTION, OFFSET = 0, 9, 14


@dataclass(frozen=True, slots=True)
class Frame:
    """Time in ns since the epoch, the interface's link type (DLT), captured bytes."""

    time_ns: int
    link: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Interface:
    link: int
    per_second: int
    offset_s: int


class Cut(Exception):
    """The file ends in the middle of something: what was read before it counts."""


def frames(path: Path) -> Iterator[Frame]:
    """All frames in the file's order; one that ends in the middle of a frame is read up to there."""
    try:
        with path.open("rb") as raw:
            file = cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if raw.peek(2)[:2] == GZIP else raw
            yield from read(path, file)
    except (EOFError, Cut):
        return
    except (OSError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise LabError(f"{path}: cannot be read: {reason}; expected a pcap or pcapng file") from error


def read(path: Path, file: BinaryIO) -> Iterator[Frame]:
    magic = file.read(4)
    if not magic:
        raise LabError(f"{path}: empty; expected a pcap or pcapng file")
    if magic in PCAP:
        return pcap(path, file, *PCAP[magic])
    if magic == PCAPNG:
        return pcapng(path, file)
    raise LabError(f"{path}: not a capture; expected a pcap or pcapng file, as it is or gzipped")


def exactly(file: BinaryIO, size: int) -> bytes:
    data = file.read(size)
    if len(data) < size:
        raise Cut
    return data


def bounded(path: Path, size: int) -> int:
    if size > LARGEST:
        raise LabError(f"{path}: damaged: {size} bytes for one packet; capture again, or cut the file before")
    return size


def pcap(path: Path, file: BinaryIO, order: str, unit_ns: int) -> Iterator[Frame]:
    header = exactly(file, 20)
    link = struct.unpack(f"{order}I", header[16:])[0] & 0xFFFF  # above: length of the frame check sequence
    record = struct.Struct(f"{order}4I")
    while True:
        seconds, part, captured, _ = record.unpack(exactly(file, record.size))
        yield Frame(seconds * 10**9 + part * unit_ns, link, exactly(file, bounded(path, captured)))


def pcapng(path: Path, file: BinaryIO) -> Iterator[Frame]:
    """Sections, whose byte order may differ, one after the other."""
    kind, order, interfaces = SECTION, "<", list[Interface]()
    while True:
        if kind == SECTION:
            order, interfaces = section(path, file), []
        else:
            size = bounded(path, struct.unpack(f"{order}I", exactly(file, 4))[0])
            if size < 12 or size % 4:
                raise LabError(f"{path}: damaged: a block of {size} bytes; expected a multiple of 4 from 12")
            body = exactly(file, size - 8)[:-4]
            if kind == INTERFACE:
                interfaces.append(interface(body, order))
            elif kind == ENHANCED:
                yield enhanced(path, body, order, interfaces)
            elif kind == SIMPLE:
                raise LabError(
                    f"{path}: packets without times (simple packet blocks), which no replay can use"
                )
        first = exactly(file, 4)
        kind = SECTION if first == PCAPNG else struct.unpack(f"{order}I", first)[0]


def section(path: Path, file: BinaryIO) -> str:
    """Byte order of the section whose header is next."""
    size, magic = exactly(file, 4), exactly(file, 4)
    if magic not in ORDERS:
        raise LabError(f"{path}: damaged: a section without a byte order")
    order = ORDERS[magic]
    exactly(file, max(0, bounded(path, struct.unpack(f"{order}I", size)[0]) - 12))
    return order


def interface(body: bytes, order: str) -> Interface:
    link = struct.unpack_from(f"{order}H", body)[0]
    per_second, offset_s, at = 10**6, 0, 8
    while at + 4 <= len(body):
        code, size = struct.unpack_from(f"{order}HH", body, at)
        value = body[at + 4 : at + 4 + size]
        if code == END_OF_OPTIONS:
            break
        if code == RESOLUTION and value:
            base = 2 if value[0] & 0x80 else 10
            per_second = base ** min(value[0] & 0x7F, 63)
        if code == OFFSET and len(value) == 8:
            offset_s = struct.unpack(f"{order}q", value)[0]
        at += 4 + size + -size % 4
    return Interface(link, per_second, offset_s)


def enhanced(path: Path, body: bytes, order: str, interfaces: list[Interface]) -> Frame:
    number, high, low, captured, _ = struct.unpack_from(f"{order}5I", body) if len(body) >= 20 else (0,) * 5
    if number >= len(interfaces):
        raise LabError(f"{path}: damaged: a packet of an interface that the file does not describe")
    at = interfaces[number]
    time_ns = (high << 32 | low) * 10**9 // at.per_second + at.offset_s * 10**9
    return Frame(time_ns, at.link, body[20 : 20 + captured])
