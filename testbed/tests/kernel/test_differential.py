# SPDX-License-Identifier: GPL-2.0
"""Random runs: off, the series sends what stock with its fixes sends, and is never slower than stock.

The same with the fix that explains each difference from stock: testbed/lab differential --seeds 1-2000
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sctplab.oracle.differential import BOUNDS, OFF, Runs, differ, worse
from sctplab.oracle.fixes import Fixes
from sctplab.random import differential
from sctplab.run import runner
from sctplab.spec.model import FLAVOURS
from sctplab.spec.scenario import Choice

pytestmark = pytest.mark.kernel
SEEDS = range(1, differential.SCENARIO.repeat + 1)
SOME = 14  # a seed with two paths


@pytest.fixture(scope="module")
def bench() -> Iterator[runner.Bench]:
    """Tools and both kernels."""
    spec = differential.spec(1, "stock", Choice())
    with runner.bench_for([replace(spec, kernel=kernel) for kernel in FLAVOURS]) as made:
        yield made


def runs(seed: int, bench: runner.Bench, folder: Path) -> Runs:
    spec = differential.spec(seed, "stock", Choice())
    return Runs(spec, bench, Fixes(spec.base, folder / "patches"), folder)


@pytest.mark.parametrize("seed", SEEDS)
def test_off_is_stock_with_the_fixes(seed: int, bench: runner.Bench, tmp_path: Path) -> None:
    found = runs(seed, bench, tmp_path)
    stock, off, fixed = found.stock(), found.patched(OFF, {}), found.fixed(len(found.fixes.names))
    assert [stock.wrong, off.wrong, fixed.wrong] == ["", "", ""]
    assert differ(fixed, off) == ""
    assert worse(stock.figures, off.figures, BOUNDS[OFF]) == []


def test_a_difference_is_seen(bench: runner.Bench, tmp_path: Path) -> None:
    found = runs(SOME, bench, tmp_path)
    assert differ(found.stock(), found.patched(OFF, {"cmt": "1"})) != ""
