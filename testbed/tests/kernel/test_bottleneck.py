# SPDX-License-Identifier: GPL-2.0
"""Paths through one bottleneck: what they carry together, and that each is still its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from sctplab.run import runner
from sctplab.spec.model import Bottleneck, Direction, Event, Flow, HostSettings, Measure, RunSpec
from tests import cmt_run
from tests.failover_run import perform
from tests.lab_run import small_spec

pytestmark = pytest.mark.kernel
PATH_MBIT, RATE_MBIT, SAMPLE_S = 8, 10, 0.1
PACKET_MBIT = 1514 * 8e-6 / SAMPLE_S  # one more or less in a sample
NARROW = Direction(rate_mbit=RATE_MBIT, queue_pkts=40)
SHARED = (Bottleneck("shared", ("path1", "path2"), NARROW, NARROW),)


def transfer(shared: bool, **keys: Any) -> RunSpec:
    """CMT over two paths, which have more than RATE_MBIT together."""
    paths = cmt_run.paths(10, 20, rate_mbit=PATH_MBIT)
    made = cmt_run.spec(paths, cmt_run.bulk(10, **keys), measure=Measure(round(SAMPLE_S * 1000)))
    return replace(made, topology=replace(paths, bottlenecks=SHARED)) if shared else made


@pytest.fixture(scope="module")
def bench() -> Iterator[runner.Bench]:
    with runner.bench_for([transfer(True), small_spec()]) as made:
        yield made


def together(made: dict[str, Any]) -> list[float]:
    """Mbit/s that reached the receiver over both paths, sample by sample."""
    columns = [made["series"][f"wire_mbit.path{i}"] for i in (1, 2)]
    return [sum(value for _, value in row) for row in zip(*columns, strict=True)]


@pytest.mark.parametrize("reverse", [False, True])
def test_two_paths_through_one_bottleneck_never_carry_more_than_it(
    bench: runner.Bench, reverse: bool
) -> None:
    """Towards host1 the paths' own delays come behind it, so that samples there mix its moments."""
    made = perform(bench, transfer(True, reverse=reverse))
    if not reverse:
        assert RATE_MBIT * 0.98 < max(together(made)) < RATE_MBIT + PACKET_MBIT
    assert RATE_MBIT * 0.9 < made["metrics"]["wire_mbit.shared"] <= RATE_MBIT
    assert 0.85 < made["metrics"]["capacity_share"] < 1
    assert made["bottlenecks"][0]["reverse" if reverse else "forward"]["drops"] > 0


def test_the_same_paths_without_a_bottleneck_carry_more(bench: runner.Bench) -> None:
    made = perform(bench, transfer(False))
    assert max(together(made)) > 2 * PATH_MBIT * 0.95
    assert made["metrics"]["goodput_mbit"] > RATE_MBIT
    assert "bottlenecks" not in made


@pytest.mark.parametrize(("path", "delay_ms"), [("path1", 10), ("path2", 30)])
def test_each_path_keeps_its_delay(bench: runner.Bench, path: str, delay_ms: float) -> None:
    topology = replace(cmt_run.paths(10, 30, rate_mbit=100), bottlenecks=SHARED)
    flow = cmt_run.steady(20, 100, paths=(path,))
    made = perform(bench, small_spec(topology=topology, flows=(flow,)))
    packets_s = (1462 * 8e-6 / 100) + (1462 * 8e-6 / RATE_MBIT)
    assert made["metrics"]["max_message_delay_s"] == pytest.approx(delay_ms / 1000 + packets_s, abs=2e-4)


@pytest.mark.parametrize(
    ("broken", "mended", "host"),
    [
        ("cut", "heal", "host1"),
        ("carrier-down", "carrier-up", "host1"),
        ("carrier-down", "carrier-up", "host2"),
        ("address-del", "address-add", "host2"),
    ],
)
def test_one_path_breaks_and_comes_back_beside_the_other(
    bench: runner.Bench, broken: str, mended: str, host: str
) -> None:
    """Path 1 first, then path 2 for good: the bottleneck is that of both all the while."""
    topology = replace(cmt_run.paths(10, 20, rate_mbit=100), bottlenecks=SHARED)
    flow = Flow("main", duration_s=8, message_b=100, interval_ms=20, nodelay=True, message_log=True)
    settings = {"net.sctp.rto_min": "200", "net.sctp.rto_initial": "200"}
    events = (Event(1, broken, "path1", host=host), Event(3, mended, "path1", host=host),
              Event(6, broken, "path2", host=host))  # fmt: skip
    made = perform(bench, small_spec(topology=topology, flows=(flow,), events=events,
                                     sysctl=HostSettings(settings, settings)))  # fmt: skip
    assert made["flows"][0]["receiver"]["messages"] == 400
    assert 0.2 < made["metrics"]["failover_s"] < 2
    assert "return_s" in made["metrics"]
