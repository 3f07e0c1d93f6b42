# SPDX-License-Identifier: GPL-2.0
"""Two hundred programs with changing habits over each of these pairs of paths, at one end or both."""

from pathlib import Path

import pytest
from tests.habits_run import BOTH, Ways, check

pytestmark = pytest.mark.kernel
SEEDS = range(1, 201)
PAIRS = [
    Ways((10, 10)),
    Ways((10, 12)),
    Ways((10, 40)),
    Ways((40, 10)),
    Ways((10, 30), (20, 5)),
    Ways((30, 10), (5, 20)),
    Ways((10, 14), (50, 50)),
    Ways((2, 2), (100, 100)),
]


@pytest.mark.parametrize("hosts", [BOTH, BOTH[:1], BOTH[1:]], ids=" and ".join)
@pytest.mark.parametrize("ways", PAIRS, ids=str)
def test_profiles_are_no_slower(ways: Ways, hosts: tuple[str, ...], tmp_path: Path) -> None:
    check(ways, SEEDS, tmp_path, hosts)
