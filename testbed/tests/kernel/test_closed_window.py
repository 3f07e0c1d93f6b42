# SPDX-License-Identifier: GPL-2.0
"""After a program has not read: with everything off the wait is stock's, whenever a path is cut.

More seeds, and the profiles: testbed/lab run closed-window --kernel stock,patched, then lab judge.
"""

from collections.abc import Iterator

import pytest
from sctplab.random import closed
from sctplab.run import runner
from sctplab.spec.scenario import Choice
from tests.failover_run import good

pytestmark = pytest.mark.kernel
SEEDS = (1, 3, 4, 5, 7, 12)  # cuts before and at the wake-up, each for good and for a while


@pytest.fixture(scope="module")
def bench() -> Iterator[runner.Bench]:
    first = [closed.spec(1, kernel, Choice(), closed.OFF) for kernel in ("stock", "patched")]
    with runner.bench_for(first) as made:
        yield made


@pytest.mark.parametrize("seed", SEEDS)
def test_no_wait_is_longer_than_stocks(seed: int, bench: runner.Bench) -> None:
    stock, patched = (
        good(bench, closed.spec(seed, kernel, Choice(), closed.OFF))["metrics"]["max_gap_s"]
        for kernel in ("stock", "patched")
    )
    assert patched == pytest.approx(stock, abs=0.01)
