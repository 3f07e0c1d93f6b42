# SPDX-License-Identifier: GPL-2.0
"""Limits of virtual machines on this host: late wake-ups, round trips, packet rates; testbed/vm limits."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from sctplab.vm.running import Running

WAKE_UPS = 2000
# Prints by how many microseconds each of so many sleeps of a millisecond was too long.
SLEEPER = f"""
import time
for _ in range({WAKE_UPS}):
    start = time.perf_counter_ns()
    time.sleep(0.001)
    print((time.perf_counter_ns() - start) / 1000 - 1000)
"""
ECHOES = 500
FLOOD_S = 5
PACKET_B = 1400  # of UDP payload
OFF = "tx off tso off gso off gro off"  # one packet on the cable is one packet
HEAD = ("what", "median", "99 %", "worst")


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest of VALUES that SHARE of them do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def row(what: str, values: Sequence[float], unit: str) -> tuple[str, ...]:
    """Median, 99th percentile and worst of VALUES."""
    return (
        what,
        *(f"{one:.0f} {unit}" for one in (quantile(values, 0.5), quantile(values, 0.99), max(values))),
    )


def wake_ups(vm: Running) -> list[float]:
    """Microseconds by which sleeps of a millisecond are too long."""
    return [float(line) for line in vm.need(f"python3 -c '{SLEEPER}'", 120).split()]


def echo_times(text: str) -> list[float]:
    """Round trips in microseconds, from ping's output."""
    return [float(one) * 1000 for one in re.findall(r"time=([\d.]+) ms", text)]


def packets_per_second(text: str) -> tuple[float, float]:
    """(packets sent, packets arrived) per second, from iperf3's JSON."""
    total = json.loads(text)["end"]["sum"]
    sent = total["packets"] / total["seconds"]
    return sent, sent * (1 - total["lost_packets"] / total["packets"])


def connect(first: Running, second: Running, nic: int) -> str:
    """Give both ends of their cable number NIC an address; the second's."""
    for number, vm in enumerate((first, second), 1):
        vm.need(f"ethtool -K data{nic} {OFF} && ip addr add 10.9.{nic}.{number}/24 dev data{nic}")
        vm.need(f"ip link set data{nic} up")
    return f"10.9.{nic}.2"


def measure(first: Running, second: Running) -> list[tuple[str, ...]]:
    """Rows of a table, HEAD first."""
    rows = [HEAD, row("a sleep of 1 ms is too long by", wake_ups(first), "us")]
    for nic, card in enumerate(first.machine.nics, 1):
        there = connect(first, second, nic)
        said = first.need(f"sleep 3; ping -i 0.01 -c {ECHOES} {there}", 60)
        rows.append(row(f"{card.model}: round trip", echo_times(said), "us"))
        second.need("iperf3 -s -1 -D")
        flood = f"iperf3 -c {there} -u -b 0 -l {PACKET_B} -t {FLOOD_S} -J"
        sent, arrived = packets_per_second(first.need(f"sleep 1; {flood}", 60))
        rows.append(
            (f"{card.model}: {PACKET_B} bytes sent, arrived per s", f"{sent:.0f}", f"{arrived:.0f}", "")
        )
    return rows


def table(rows: Sequence[Sequence[str]]) -> str:
    """Columns of equal width."""
    widths = [max(len(one[column]) for one in rows) for column in range(len(rows[0]))]
    lines = ("  ".join(word.ljust(width) for word, width in zip(one, widths, strict=True)) for one in rows)
    return "\n".join(line.rstrip() for line in lines)
