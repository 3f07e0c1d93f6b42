# SPDX-License-Identifier: GPL-2.0
"""Two hundred paths that have got another length: the sender knows it within twenty round trips."""

from collections.abc import Iterator

import pytest
from sctplab.run import runner
from tests.lengths_run import check, open_bench

pytestmark = pytest.mark.kernel


@pytest.fixture(scope="module")
def bench() -> Iterator[runner.Bench]:
    with open_bench() as made:
        yield made


@pytest.mark.parametrize("seed", range(1, 201))
def test_it_carries_what_the_paths_carry_now(seed: int, bench: runner.Bench) -> None:
    check(seed, bench)
