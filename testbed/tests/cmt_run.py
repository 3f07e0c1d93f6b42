# SPDX-License-Identifier: GPL-2.0
"""Small runs with concurrent multipath transfer, and what their captures say about every TSN."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from pathlib import Path as File
from typing import Any

import pytest
from sctplab.measure import capture
from sctplab.measure.capture import Chunk
from sctplab.plan import run_plan
from sctplab.plan.link_commands import address
from sctplab.run import runner
from sctplab.run.identical import captures_differ, run_captured
from sctplab.spec import scenario
from sctplab.spec.model import HOSTS, Direction, Flow, HostSettings, Path, RunSpec, Topology
from tests.failover_run import good
from tests.kernel_run import linux, run_work
from tests.lab_run import small_spec

MESSAGE_B = 1400
MAX_BURST, MTU = 4, 1500
RTO_S = 1.0
TRANSFER_WALL_S = 120  # a second on an idle machine
ON = {"net.sctp.cmt": "1"}
COUNT_BITS = 0xC0  # of a SACK's flags: how many packets it answers, by FreeBSD's convention


def path(number: int, delay_ms: float, rate_mbit: float = 10, **keys: Any) -> Path:
    """KEYS: of both directions; queues hold all that these runs send."""
    both = Direction(rate_mbit, delay_ms, **{"queue_pkts": 10000, **keys})
    return Path(f"path{number}", both, both)


def paths(*delays_ms: float, **keys: Any) -> Topology:
    """Paths that differ in their delays."""
    return Topology(tuple(path(number, delay, **keys) for number, delay in enumerate(delays_ms, 1)))


def bulk(size_mb: float, **keys: Any) -> Flow:
    return Flow("main", size_mb=size_mb, message_b=MESSAGE_B, **keys)


def steady(messages: int, interval_ms: float, **keys: Any) -> Flow:
    """Less than a path carries."""
    return Flow("main", messages=messages, interval_ms=interval_ms, message_b=MESSAGE_B, nodelay=True, **keys)


def spec(topology: Topology, flow: Flow, *settings: dict[str, str], **keys: Any) -> RunSpec:
    """A run with SETTINGS (net.sctp.NAME without the prefix) beside cmt at both hosts."""
    chosen = ON | {f"net.sctp.{name}": value for one in settings for name, value in one.items()}
    return small_spec(
        kernel="patched",
        topology=topology,
        flows=(flow,),
        sysctl=HostSettings(chosen, chosen),
        **keys,
    )


def transfer(case: str, one: RunSpec, folder: File) -> tuple[dict[str, Any], tuple[Chunk, ...]]:
    """A case of work/transfer.py, which checks every message, with what ONE sets up; the chunks at host1."""
    made = run_plan.as_json(run_plan.make(one, "mpflow"))
    addresses = [[address(one.topology, host, found.name) for found in one.topology.paths] for host in HOSTS]
    kernel = linux("patched")
    result = run_work("transfer", kernel, folder, TRANSFER_WALL_S, **made, case=case, addresses=addresses)
    if result["said"]:
        pytest.fail(result["said"], pytrace=False)
    assert result["left_behind"] == {}
    return result, tuple(capture.chunks(folder, one.topology, "host1"))


def with_settings(one: RunSpec, **settings: str) -> RunSpec:
    """The run with these net.sctp.NAME at both hosts and no others."""
    chosen = {f"net.sctp.{name}": value for name, value in settings.items()}
    return replace(one, sysctl=HostSettings(chosen, chosen))


def cell(name: str, variant: str, **factors: Any) -> RunSpec:
    """The run of a scenario file with these values of its factors; the others have their first."""
    loaded = scenario.load(scenario.find(name))
    chosen = {key: values[:1] for key, values in loaded.factors.items()}
    chosen |= {key: (value,) for key, value in factors.items()}
    specs = scenario.expand(loaded, chosen, scenario.Choice(kernels=("patched",), repeat=1))
    return next(one for one in specs if one.variant == variant)


def metrics_of(bench: runner.Bench, one: RunSpec) -> dict[str, Any]:
    """Of a run that has to be good."""
    found: dict[str, Any] = good(bench, one)["metrics"]
    return found


@dataclass(frozen=True)
class Seen:
    """A good run: its record and all chunks at each host."""

    record: dict[str, Any]
    at: dict[str, tuple[Chunk, ...]]

    @property
    def sent(self) -> list[Chunk]:
        """DATA that left the sender, every time it did."""
        return [one for one in self.at["host1"] if (one.kind, one.direction) == ("DATA", "forward")]

    @property
    def new(self) -> list[Chunk]:
        """DATA that left the sender for the first time."""
        return list({one.tsn: one for one in reversed(self.sent)}.values())[::-1]

    @property
    def again(self) -> list[Chunk]:
        """DATA that left the sender and had left it before."""
        new = {id(one) for one in self.new}
        return [one for one in self.sent if id(one) not in new]

    @property
    def sent_again(self) -> int:
        """How many chunks left more than once."""
        return sum(times > 1 for times in Counter(one.tsn for one in self.sent).values())

    @property
    def arrived_twice(self) -> int:
        """How many chunks the receiver got more than once."""
        found = Counter(one.tsn for one in self.answers() if one.kind == "DATA")
        return sum(times > 1 for times in found.values())

    def share(self, where: str, since_s: float = 0.0, until_s: float = 1e9) -> float:
        """Of the new data in that time, how much went over this path."""
        found = [one.path for one in self.new if since_s <= self.seconds(one) < until_s]
        return found.count(where) / len(found)

    def seconds(self, one: Chunk) -> float:
        """When it crossed, after the start of the flow."""
        return (one.time_ns - self.at["host1"][0].time_ns) / 1e9

    def counter(self, name: str, host: str = "host1") -> int:
        return int(self.record["counters"][host].get(name, 0))

    def answers(self) -> list[Chunk]:
        """DATA that the receiver got and SACKs that it sent, in the order of time."""
        return [one for one in self.at["host2"] if one.kind in ("DATA", "SACK")]

    def sacks(self) -> list[Chunk]:
        return [one for one in self.answers() if one.kind == "SACK"]


class Lab:
    """Runs specs; what was run once is not run again, however many tests ask."""

    def __init__(self, bench: runner.Bench, folder: Callable[[], File]) -> None:
        self.bench, self.folder = bench, folder
        self.known: dict[str, tuple[dict[str, Any], File]] = {}

    def captured(self, one: RunSpec) -> tuple[dict[str, Any], File]:
        """Record and folder of captures of a run that has to be good."""
        if one.digest not in self.known:
            self.known[one.digest] = run_captured(one, one.kernel, self.bench, self.folder())
        record, captures = self.known[one.digest]
        assert record["status"] == "ok", record["reason"]
        return record, captures

    def see(self, one: RunSpec) -> Seen:
        record, captures = self.captured(one)
        return Seen(record, {host: tuple(capture.chunks(captures, one.topology, host)) for host in HOSTS})

    def differ(self, one: RunSpec, other: RunSpec) -> str:
        """The first packet that differs between two runs, "" when there is none."""
        return captures_differ(self.captured(one)[1], self.captured(other)[1])


@contextmanager
def open_lab(factory: pytest.TempPathFactory, *specs: RunSpec) -> Iterator[Lab]:
    """With both kernels, and the programs that SPECS need."""
    with runner.bench_for([small_spec(kernel="patched", pcap=True), small_spec(pcap=True), *specs]) as bench:
        yield Lab(bench, lambda: factory.mktemp("run"))


def bursts(chunks: list[Chunk]) -> Iterator[tuple[int, list[Chunk]]]:
    """(time in ns, chunks) of what left in one moment."""
    return ((time_ns, list(group)) for time_ns, group in groupby(chunks, key=lambda one: one.time_ns))


def longest_pause_s(chunks: list[Chunk]) -> float:
    return max(later.time_ns - one.time_ns for one, later in pairwise(chunks)) / 1e9


def most_at_once(chunks: list[Chunk], where: str) -> int:
    """The largest number of packets that left over this path in one moment."""
    return max(len({one.packet for one in group if one.path == where}) for _, group in bursts(chunks))
