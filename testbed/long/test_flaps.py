# SPDX-License-Identifier: GPL-2.0
"""A thousand schedules of outages with all of failover on: no byte lost or doubled, no association lost."""

from collections.abc import Iterator

import pytest
from sctplab.run import runner
from tests.flaps_run import check, open_bench, with_failover

pytestmark = pytest.mark.kernel


@pytest.fixture(scope="module")
def bench() -> Iterator[runner.Bench]:
    with open_bench() as made:
        yield made


@pytest.mark.parametrize("seed", range(1, 1001))
def test_everything_arrives(seed: int, bench: runner.Bench) -> None:
    check(with_failover(seed), bench)
