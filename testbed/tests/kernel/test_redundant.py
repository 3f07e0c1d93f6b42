# SPDX-License-Identifier: GPL-2.0
"""How long messages take that go out over two paths: scenarios redundant*, limits made from settings."""

import random
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from sctplab.run import runner
from tests.cmt_run import cell
from tests.failover_run import good, shortened

pytestmark = pytest.mark.kernel
ONE_WAY_S, SLACK_S = 0.02, 0.002
CUTS = random.Random(1).sample([(path, at_ms) for path in (1, 2) for at_ms in range(2000, 8000)], 20)


@pytest.fixture(scope="module")
def bench() -> Iterator[runner.Bench]:
    """Tools and the patched kernel."""
    with runner.bench_for([cell("redundant", "redundant")]) as made:
        yield made


@pytest.fixture
def measure(bench: runner.Bench) -> Any:
    """Runs a cell of a scenario for SECONDS and gives its record."""

    def run(name: str, variant: str, seconds: float, **factors: Any) -> dict[str, Any]:
        return good(bench, shortened(cell(name, variant, **factors), seconds))

    return run


def octets(made: dict[str, Any]) -> int:
    """Bytes that host1 sent over all paths, IP headers included."""
    return int(made["counters"]["host1"]["IpExt.OutOctets"])


@pytest.mark.parametrize(("path", "at_ms"), CUTS)
def test_a_cut_of_either_path_delays_nothing(path: int, at_ms: int, measure: Any) -> None:
    for variant in ("redundant", "small"):
        made = measure("redundant", variant, 10, link_delay_ms=20, cut_path=f"path{path}", cut_s=at_ms / 1000)
        assert made["metrics"]["max_message_delay_s"] <= ONE_WAY_S + SLACK_S
        assert made["counters"]["host1"]["SctpMpSuspectsMoved"] == 1
        assert made["metrics"]["t3_timeouts"] == 0


def test_losses_on_both_paths_delay_nothing_but_what_both_lose(measure: Any) -> None:
    made = measure("redundant-loss", "redundant", 40, link_delay_ms=20, loss_pct=1)
    assert made["metrics"]["p99_message_delay_s"] <= ONE_WAY_S + SLACK_S
    assert made["counters"]["host1"]["SctpMpCopies"] >= 0.99 * 40 / 0.02


@pytest.mark.parametrize("loss_pct", [1, 2])
def test_what_both_paths_lose_takes_a_few_round_trips(measure: Any, loss_pct: int) -> None:
    """Of 20,000 both paths lose two at 1 % and eight at 2 %, on average.

    The messages behind one wait for it: late ones next to each other in the series count once.
    """
    made = measure("redundant-loss", "redundant", 400, link_delay_ms=20, loss_pct=loss_pct)
    delays = [delay for _, delay in made["series"]["message_delay"]]
    lost = 20000 * (loss_pct / 100) ** 2
    late = [delay > ONE_WAY_S + SLACK_S for delay in delays]
    begun = sum(now and not before for before, now in pairwise([False, *late]))
    assert 0 < begun <= lost + 3 * lost**0.5
    assert made["metrics"]["t3_timeouts"] == 0
    assert made["metrics"]["max_message_delay_s"] <= 8 * ONE_WAY_S


def test_twice_the_bytes_are_sent(measure: Any) -> None:
    once, twice = (
        measure("redundant-loss", variant, 40, link_delay_ms=20, loss_pct=0)
        for variant in ("kernel", "redundant")
    )
    assert 1.9 < octets(twice) / octets(once) <= 2.05


def test_a_budget_is_kept(measure: Any) -> None:
    made = measure("redundant-loss", "budget", 40, link_delay_ms=20, loss_pct=1)
    kernel = measure("redundant-loss", "kernel", 40, link_delay_ms=20, loss_pct=1)
    assert made["metrics"]["p99_message_delay_s"] < kernel["metrics"]["p99_message_delay_s"]
    assert 0 < made["counters"]["host1"]["SctpMpCopies"] <= 0.05 * 40 / 0.02
