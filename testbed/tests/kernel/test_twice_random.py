# SPDX-License-Identifier: GPL-2.0
"""Messages over two random paths at once: never behind one path, in goodput and in messages in time.

Two hundred seeds: tools/test-long
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sctplab.random import twice
from sctplab.run import runner
from sctplab.spec.scenario import Choice
from tests.twice_run import share

pytestmark = pytest.mark.kernel
SEEDS = (1, 9, 12, 20)  # behind one path if a copy that is first opens no window


@pytest.fixture(scope="module")
def bench() -> Iterator[runner.Bench]:
    with runner.bench_for([twice.spec(1, "patched", Choice())]) as made:
        yield made


@pytest.mark.parametrize("seed", SEEDS)
def test_two_paths_are_not_behind_one(seed: int, bench: runner.Bench, tmp_path: Path) -> None:
    assert share(seed, bench, tmp_path) >= twice.TOLERANCE
