# SPDX-License-Identifier: GPL-2.0
"""Did two runs send the same? Captures are compared packet by packet with their times.

This is how "off is stock" is tested: everything is compared, nothing is averaged, and the answer is the first
difference in words. Records are compared by compare.differences().
"""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from sctplab.measure.capture import Packet, packets
from sctplab.run import runner
from sctplab.spec.model import RunSpec


def captures_differ(a: Path, b: Path) -> str:
    """The first difference between two folders of captures, "" when there is none.

    Of several interfaces that differ, the one whose first differing packet is the earliest is told.
    """
    names = sorted(path.name for path in a.glob("*.pcap"))
    others = sorted(path.name for path in b.glob("*.pcap"))
    if names != others or not names:
        return f"captures of {', '.join(names) or 'nothing'} against {', '.join(others) or 'nothing'}"
    found = [difference for name in names if (difference := capture_differs(a / name, b / name))]
    return min(found)[1] if found else ""


def capture_differs(a: Path, b: Path) -> tuple[int, str] | None:
    """(time, words) of the first packet that differs between two files."""
    for number, (one, other) in enumerate(zip_longest(packets(a), packets(b)), 1):
        if one != other:
            earliest = min(packet.time_ns for packet in (one, other) if packet)
            return earliest, f"{a.stem}: packet {number}: {packet_difference(one, other)}"
    return None


def packet_difference(one: Packet | None, other: Packet | None) -> str:
    """The first difference of two packets, as text: presence, length, a byte, or the time."""
    if one is None or other is None:
        return "only in the " + ("second" if one is None else "first")
    if one.length != other.length:
        return f"{one.length} bytes against {other.length}"
    if one.data != other.data:
        byte = next(i for i, (x, y) in enumerate(zip(one.data, other.data, strict=True)) if x != y)
        return f"byte {byte} is 0x{one.data[byte]:02x} against 0x{other.data[byte]:02x}"
    return f"sent at {seconds(one.time_ns)} against {seconds(other.time_ns)}"


def seconds(time_ns: int) -> str:
    return f"{time_ns // 10**9}.{time_ns % 10**9:09d}"


def run_captured(spec: RunSpec, kernel: str, bench: runner.Bench, out: Path) -> tuple[dict[str, Any], Path]:
    """Run SPEC with captures on a kernel flavour; (record, folder of captures)."""
    spec = replace(spec, kernel=kernel, pcap=True)
    job = runner.Job(spec, out / f"{spec.run_id}.json", out / spec.run_id)
    return runner.perform(job, bench), job.captures


def kernels_differ(spec: RunSpec, one: str, other: str, bench: runner.Bench, out: Path) -> str:
    """The first packet that two kernel flavours send differently in the run SPEC, "" when they do not.

    OUT receives records and captures; the two runs must not share one.
    """
    records, captures = zip(
        *(run_captured(spec, kernel, bench, out / f"{i}-{kernel}") for i, kernel in enumerate((one, other))),
        strict=True,
    )
    for record in records:
        if record["status"] != "ok":
            return f"{record['spec']['kernel']}: {record['status']}: {record['reason']}"
    return captures_differ(*captures)
