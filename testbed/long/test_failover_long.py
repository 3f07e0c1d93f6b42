# SPDX-License-Identifier: GPL-2.0
"""What failover promises, at phases of the failure drawn at random, on a thousand cuts and over an hour.

Links take 20 ms each way where nothing else is said, RTO.Min is 1 s.
"""

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from sctplab.run import runner
from sctplab.spec.model import RunSpec
from tests.cmt_run import cell
from tests.failover_run import good, shortened, with_links, with_more_settings

pytestmark = pytest.mark.kernel
ONE_WAY_S, INTERVAL_S = 0.02, 0.02
SUSPECT = {"failover_suspect": "1"}
DRAWN = random.Random(20)
PHASES_MS = sorted(DRAWN.uniform(0, 20) for _ in range(20))
RARE_PHASES_MS = sorted(DRAWN.uniform(0, 2000) for _ in range(20))
CUTS = [(DRAWN.choice(("path1", "path2")), DRAWN.uniform(2, 8)) for _ in range(1000)]
HOUR_S = 3600


@pytest.fixture(scope="module")
def bench() -> Iterator[runner.Bench]:
    """Tools and the patched kernel."""
    with runner.bench_for([cell("redundant", "redundant")]) as made:
        yield made


def longest(bench: runner.Bench, spec: RunSpec) -> float:
    return float(good(bench, spec)["metrics"]["max_message_delay_s"])


def later(spec: RunSpec, phase_ms: float) -> RunSpec:
    """With all events PHASE_MS later, and flows that end 5 s after the first."""
    events = tuple(replace(one, at_s=one.at_s + phase_ms / 1000) for one in spec.events)
    return shortened(replace(spec, events=events), events[0].at_s + 5)


@pytest.mark.parametrize("phase_ms", PHASES_MS)
@pytest.mark.parametrize(("link_ms", "limit_s"), [(5, 0.025), (20, 0.075), (50, 0.18), (100, 0.355)])
def test_a_silent_cut(link_ms: int, limit_s: float, phase_ms: float, bench: runner.Bench) -> None:
    spec = cell("failover-suspect", "suspect", link_delay_ms=link_ms, interval_ms=20, cut_s=10)
    assert longest(bench, later(spec, phase_ms)) <= limit_s


@pytest.mark.parametrize("phase_ms", RARE_PHASES_MS)
@pytest.mark.parametrize("link_ms", [5, 20, 50, 100])
def test_a_silent_cut_under_rare_messages(link_ms: int, phase_ms: float, bench: runner.Bench) -> None:
    spec = cell("failover-suspect", "suspect", link_delay_ms=link_ms, interval_ms=2000, cut_s=10)
    assert longest(bench, later(spec, phase_ms)) <= 2.5 * 2 * link_ms / 1000 + 0.02


SIDES = ("from-host1", "from-host2")
KINDS = [
    *(("failover-one-way", side, {"direction": way}) for side in SIDES for way in ("forward", "reverse")),
    *(("failover-carrier", side, {"host": host}) for side in SIDES for host in ("host1", "host2")),
    *(("failover-address", side, {"host": host}) for side in SIDES for host in ("host1", "host2")),
]


@pytest.mark.parametrize("phase_ms", PHASES_MS)
@pytest.mark.parametrize(("name", "side", "factors"), KINDS)
def test_any_failure(
    name: str, side: str, factors: dict[str, Any], phase_ms: float, bench: runner.Bench
) -> None:
    spec = with_more_settings(cell(name, side, **factors), SUSPECT)
    assert longest(bench, later(spec, phase_ms)) <= 2.5 * 2 * ONE_WAY_S + 0.02


@pytest.mark.parametrize("phase_ms", PHASES_MS)
@pytest.mark.parametrize("action", ["carrier-down", "address-del"])
def test_a_local_failure(action: str, phase_ms: float, bench: runner.Bench) -> None:
    spec = cell("failover-link", "failover-link", action=action)
    assert longest(bench, later(spec, phase_ms)) <= ONE_WAY_S + 0.01


@pytest.mark.parametrize("phase_ms", PHASES_MS)
def test_a_bulk_transfer_over_two_paths(phase_ms: float, bench: runner.Bench) -> None:
    """Queues of 20 packets of 1500 bytes, 24 ms at 10 Mbit/s, are a part of the round trip."""
    spec = later(cell("failover-suspect", "suspect", link_delay_ms=20, cut_s=10), phase_ms)
    flows = tuple(replace(flow, message_b=1400, interval_ms=0) for flow in spec.flows)
    spec = replace(spec, flows=flows, topology=with_links(spec.topology, {"queue_pkts": 20}))
    made = good(bench, with_more_settings(spec, {"cmt": "1"}))
    assert made["metrics"]["max_gap_s"] <= 4 * (2 * ONE_WAY_S + 0.024) + 0.02


@pytest.mark.parametrize(("path", "at_s"), CUTS)
def test_redundant_data_does_not_see_a_cut(path: str, at_s: float, bench: runner.Bench) -> None:
    spec = cell("redundant", "redundant", link_delay_ms=20, cut_path=path, cut_s=at_s)
    assert longest(bench, shortened(spec, 10)) <= ONE_WAY_S + 0.002


@pytest.mark.parametrize("jitter_ms", [10, 19])
def test_an_hour_of_jitter_moves_nothing(jitter_ms: float, bench: runner.Bench) -> None:
    spec = shortened(cell("failover-suspect", "suspect", link_delay_ms=20, cut_s=2 * HOUR_S), HOUR_S)
    spec = replace(spec, topology=with_links(spec.topology, {"jitter_ms": jitter_ms}))
    made = good(bench, replace(spec, limits=replace(spec.limits, virtual_s=HOUR_S + 100, wall_s=3000)))
    counters = made["counters"]["host1"]
    assert counters.get("SctpMpSuspectsMoved", 0) == 0
    assert counters.get("SctpMpCopies", 0) <= 0.02 * HOUR_S / INTERVAL_S
    assert made["metrics"]["t3_timeouts"] == 0
