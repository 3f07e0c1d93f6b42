# SPDX-License-Identifier: GPL-2.0
"""The comparison itself: it must see every kind of difference."""

import struct
from pathlib import Path

import pytest
from sctplab.errors import LabError
from sctplab.measure.capture import NANOSECONDS
from sctplab.run.identical import captures_differ

Row = tuple[int, bytes]


def capture(folder: Path, name: str, rows: list[Row]) -> None:
    folder.mkdir(exist_ok=True)
    header = NANOSECONDS + struct.pack("<HHIIII", 2, 4, 0, 0, 262144, 1)
    body = b"".join(
        struct.pack("<4I", t // 10**9, t % 10**9, len(data), len(data)) + data for t, data in rows
    )
    (folder / f"{name}.pcap").write_bytes(header + body)


ROWS = [(10**18 + 5, b"abc"), (10**18 + 9, b"defg")]


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (ROWS, ""),
        (ROWS[:1], "x.eth: packet 2: only in the first"),
        ([*ROWS, (10**18 + 11, b"h")], "x.eth: packet 3: only in the second"),
        (
            [ROWS[0], (10**18 + 9, b"deXg")],
            "x.eth: packet 2: byte 2 is 0x66 against 0x58",
        ),
        ([ROWS[0], (10**18 + 9, b"def")], "x.eth: packet 2: 4 bytes against 3"),
        (
            [(10**18 + 6, b"abc"), ROWS[1]],
            "x.eth: packet 1: sent at 1000000000.000000005 against 1000000000.000000006",
        ),
    ],
)
def test_first_difference_of_captures(tmp_path: Path, other: list[Row], words: str) -> None:
    capture(tmp_path / "a", "x.eth", ROWS)
    capture(tmp_path / "b", "x.eth", other)
    assert captures_differ(tmp_path / "a", tmp_path / "b") == words


def test_the_earliest_of_several_interfaces_is_told(tmp_path: Path) -> None:
    for name, late in (("early", 1), ("late", 0)):
        capture(tmp_path / "a", name, ROWS)
        capture(tmp_path / "b", name, [ROWS[0], (ROWS[1][0] + 2 - late, b"defg")])
    capture(tmp_path / "b", "early", [(ROWS[0][0] + 1, b"abc"), ROWS[1]])
    assert captures_differ(tmp_path / "a", tmp_path / "b").startswith("early: packet 1")


def test_missing_captures_are_a_difference(tmp_path: Path) -> None:
    capture(tmp_path / "a", "x", ROWS)
    (tmp_path / "b").mkdir()
    assert captures_differ(tmp_path / "a", tmp_path / "b") == "captures of x.pcap against nothing"
    assert captures_differ(tmp_path / "b", tmp_path / "b") != ""


def test_a_damaged_capture_is_refused(tmp_path: Path) -> None:
    capture(tmp_path / "a", "x", ROWS)
    whole = (tmp_path / "a" / "x.pcap").read_bytes()
    (tmp_path / "a" / "x.pcap").write_bytes(whole[:-1])
    with pytest.raises(LabError, match="cut off in a packet"):
        captures_differ(tmp_path / "a", tmp_path / "a")
