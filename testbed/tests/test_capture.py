# SPDX-License-Identifier: GPL-2.0
"""Captures read chunk by chunk, and when data returned to a path."""

import struct
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from sctplab.errors import LabError
from sctplab.measure import capture, collect
from sctplab.measure.capture import NANOSECONDS, Chunk
from sctplab.spec.model import Event, Topology
from tests.lab_run import small_spec

START = 1_700_000_000
THERE, BACK = (40000, 5000), (5000, 40000)
INIT = struct.pack(">IIHHI", 7, 100000, 1, 1, 2**32 - 1)  # the first TSN: the last number before 0
INIT_ACK = struct.pack(">IIHHI", 8, 100000, 1, 1, 5000)


def chunk(kind: int, value: bytes, flags: int = 0) -> bytes:
    return struct.pack(">BBH", kind, flags, 4 + len(value)) + value + bytes(-len(value) % 4)


def data(tsn: int, size: int = 5) -> bytes:
    return chunk(0, struct.pack(">IHHI", tsn, 0, 0, 0) + bytes(size))


def sack(cum: int, *gaps: tuple[int, int]) -> bytes:
    blocks = b"".join(struct.pack(">HH", *gap) for gap in gaps)
    return chunk(3, struct.pack(">IIHH", cum, 0, len(gaps), 0) + blocks, flags=0x80)


def frame(source: str, target: str, ports: tuple[int, int], *chunks: bytes, protocol: int = 132) -> bytes:
    """An Ethernet frame with an IPv4 or IPv6 packet with these chunks."""
    ends = ip_address(source).packed, ip_address(target).packed
    sctp = struct.pack(">HHII", *ports, 1, 0) + b"".join(chunks)
    if len(ends[0]) == 16:
        header = struct.pack(">IHBB", 6 << 28, len(sctp), protocol, 64)
        return bytes(12) + b"\x86\xdd" + header + b"".join(ends) + sctp
    header = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(sctp), 0, 0x4000, 64, protocol, 0)
    return bytes(12) + b"\x08\x00" + header + b"".join(ends) + sctp


def write(folder: Path, interface: str, *rows: tuple[float, bytes]) -> None:
    """A capture at host1 with frames at so many seconds after the start."""
    content = NANOSECONDS + struct.pack("<HHIIII", 2, 4, 0, 0, 262144, 1)
    for seconds, one in rows:
        content += (
            struct.pack("<4I", START + int(seconds), round(seconds % 1 * 10**9), len(one), len(one)) + one
        )
    (folder / f"host1.{interface}.pcap").write_bytes(content)


def topology() -> Topology:
    """path1 with IPv4, path2 with IPv6."""
    first, second = small_spec().topology.paths
    return Topology((first, replace(second, family="ipv6")))


def read(folder: Path) -> list[Chunk]:
    return list(capture.chunks(folder, topology(), "host1"))


PATH1, PATH1_BACK = ("10.1.1.1", "10.1.2.1", THERE), ("10.1.2.1", "10.1.1.1", BACK)
PATH2 = ("fd00:2:1::1", "fd00:2:2::1", THERE)


def handshake() -> list[tuple[float, bytes]]:
    return [(0, frame(*PATH1, chunk(1, INIT))), (0.1, frame(*PATH1_BACK, chunk(2, INIT_ACK)))]


def test_both_paths_are_one_story(tmp_path: Path) -> None:
    write(tmp_path, "path1", *handshake(), (0.2, frame(*PATH1, data(2**32 - 1), data(0, 8))),
          (0.5, frame(*PATH1_BACK, sack(0, (2, 2), (4, 6)), chunk(4, b"beats"), chunk(14, b""))))  # fmt: skip
    write(tmp_path, "path2", (0.3, frame(*PATH2, data(1))))
    found = read(tmp_path)
    last = ["SACK", "HEARTBEAT", "SHUTDOWN_COMPLETE"]
    assert [one.kind for one in found] == ["INIT", "INIT_ACK", "DATA", "DATA", "DATA", *last]
    assert [one.packet for one in found] == [1, 2, 3, 3, 4, 5, 5, 5]
    assert [one.tsn for one in found if one.kind == "DATA"] == [1, 2, 3]
    assert [one.path for one in found] == ["path1"] * 4 + ["path2"] + ["path1"] * 3
    assert [one.direction for one in found] == ["forward", "reverse", *["forward"] * 3, *["reverse"] * 3]
    assert (found[5].cum_tsn, found[5].gaps) == (2, ((4, 4), (6, 8)))
    assert [one.flags for one in found] == [0, 0, 0, 0, 0, 0x80, 0, 0]
    assert found[4].time_ns == START * 10**9 + 300_000_000 and found[4].ports == THERE


def test_other_protocols_are_none_of_it(tmp_path: Path) -> None:
    write(
        tmp_path, "path1", (0, frame(*PATH1, data(1), protocol=17)), (1, bytes(12) + b"\x08\x06" + bytes(28))
    )
    write(tmp_path, "path2", (0, frame(*PATH2, data(1), protocol=6)))
    assert read(tmp_path) == []


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (None, "host1.path2.pcap: cannot be read: No such file"),
        (
            [(0.2, frame(*PATH2, data(1)))],
            "host1.path2.pcap: DATA before INIT; the capture has to begin before",
        ),
    ],
)
def test_what_cannot_be_read_is_named(
    rows: list[tuple[float, bytes]] | None, words: str, tmp_path: Path
) -> None:
    write(tmp_path, "path1")
    if rows is not None:
        write(tmp_path, "path2", *rows)
    with pytest.raises(LabError, match=words):
        read(tmp_path)


def returned(*sent: tuple[float, str, int], events: tuple[Event, ...] = ()) -> float | None:
    """return_s when DATA chunks leave at these times, on these paths, with these TSNs."""
    base: dict[str, Any] = {"direction": "forward", "packet": 0, "ports": THERE, "kind": "DATA"}
    chunks = [Chunk(round((START + t) * 1e9), path, tsn=tsn, **base) for t, path, tsn in sent]
    heal = events or (Event(2, "heal", "path1"), Event(1, "carrier-up", "path2"))
    return collect.returned(replace(small_spec(), events=heal), START, chunks).get("return_s")


def test_data_return_with_a_chunk_never_sent_before() -> None:
    before = [(1.5, "path1", 1), (1.9, "path2", 2)]
    assert returned(*before, (2.1, "path2", 3), (2.2, "path1", 3), (2.5, "path1", 4)) == pytest.approx(0.5)
    assert returned(*before, (2.1, "path2", 3), (2.2, "path1", 1)) is None


def test_the_last_paths_to_be_healed_count() -> None:
    both = tuple(Event(2, "address-add", path) for path in ("path1", "path2"))
    assert returned((2.1, "path2", 1), (2.2, "path1", 2), events=both) == pytest.approx(0.1)
    assert returned((2.1, "path2", 1)) is None
