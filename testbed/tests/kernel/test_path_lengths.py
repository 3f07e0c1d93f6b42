# SPDX-License-Identifier: GPL-2.0
"""CMT with a small receive window after one of two paths has got another length for good.

Two hundred of them: testbed/long/test_path_lengths.py
"""

from collections.abc import Iterator

import pytest
from sctplab.run import runner
from tests.lengths_run import check, open_bench

pytestmark = pytest.mark.kernel
# Longer with the default scheduler, with round-robin and with a smaller window; then shorter.
SEEDS = (3, 6, 4, 2)


@pytest.fixture(scope="module")
def bench() -> Iterator[runner.Bench]:
    with open_bench() as made:
        yield made


@pytest.mark.parametrize("seed", SEEDS)
def test_it_carries_what_the_paths_carry_now(seed: int, bench: runner.Bench) -> None:
    check(seed, bench)
