# SPDX-License-Identifier: GPL-2.0
"""Two thousand random runs off: as stock, or otherwise by a fix that has a name and costs nothing."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sctplab.oracle.differential import OFF, Runs, compare
from sctplab.oracle.fixes import Fixes
from sctplab.random import differential
from sctplab.run import runner
from sctplab.spec.model import FLAVOURS, USUAL_BASE
from sctplab.spec.scenario import Choice

pytestmark = pytest.mark.kernel


@pytest.fixture(scope="module")
def bench() -> Iterator[runner.Bench]:
    spec = differential.spec(1, "stock", Choice())
    with runner.bench_for([replace(spec, kernel=kernel) for kernel in FLAVOURS]) as made:
        yield made


@pytest.fixture(scope="module")
def fixes(tmp_path_factory: pytest.TempPathFactory) -> Fixes:
    return Fixes(USUAL_BASE, tmp_path_factory.mktemp("patches"))


@pytest.mark.parametrize("seed", range(1, 2001))
def test_off_is_stock_or_a_fix(seed: int, bench: runner.Bench, fixes: Fixes, tmp_path: Path) -> None:
    found = compare(Runs(differential.spec(seed, "stock", Choice()), bench, fixes, tmp_path), OFF)
    assert not found.fault, found.line()
