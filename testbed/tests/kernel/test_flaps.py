# SPDX-License-Identifier: GPL-2.0
"""Paths that come and go at random, under random settings: everything arrives, the kernel has no complaint.

The same on a kernel that checks itself: testbed/lab run flaps --kernel patched --build debug --repeat 1000
"""

from collections.abc import Iterator

import pytest
from sctplab.random import flaps
from sctplab.run import runner
from tests.flaps_run import check, drawn, open_bench, with_failover

pytestmark = pytest.mark.kernel
SEEDS = range(1, flaps.SCENARIO.repeat + 1)


@pytest.fixture(scope="module")
def bench() -> Iterator[runner.Bench]:
    with open_bench() as made:
        yield made


@pytest.mark.parametrize("seed", SEEDS)
def test_everything_arrives(seed: int, bench: runner.Bench) -> None:
    check(drawn(seed), bench)


@pytest.mark.parametrize("seed", SEEDS)
def test_it_does_with_all_of_failover_on(seed: int, bench: runner.Bench) -> None:
    check(with_failover(seed), bench)
