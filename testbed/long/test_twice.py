# SPDX-License-Identifier: GPL-2.0
"""Messages over two random paths at once, two hundred pairs: one in a hundred may be behind one path."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sctplab.random import twice
from sctplab.run import runner
from sctplab.spec.scenario import Choice
from tests.twice_run import share

pytestmark = pytest.mark.kernel
SEEDS = range(1, 201)


@pytest.fixture(scope="module")
def bench() -> Iterator[runner.Bench]:
    with runner.bench_for([twice.spec(1, "patched", Choice())]) as made:
        yield made


def test_two_paths_are_not_behind_one(bench: runner.Bench, tmp_path: Path) -> None:
    shares = {seed: share(seed, bench, tmp_path) for seed in SEEDS}
    behind = {seed: found for seed, found in shares.items() if found < twice.TOLERANCE}
    assert len(behind) <= len(SEEDS) // 100, behind
