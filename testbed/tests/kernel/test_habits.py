# SPDX-License-Identifier: GPL-2.0
"""Bulk, bursts, requests and pauses, one after the other: no profile makes a program wait longer."""

from pathlib import Path

import pytest
from tests.habits_run import Ways, check

pytestmark = pytest.mark.kernel
SEEDS = range(1, 21)


@pytest.mark.parametrize("ways", [Ways((10, 10)), Ways((10, 40))], ids=str)
def test_profiles_are_no_slower(ways: Ways, tmp_path: Path) -> None:
    check(ways, SEEDS, tmp_path)


def test_profiles_of_one_end_are_no_slower(tmp_path: Path) -> None:
    """The peer's answers wait for SACKs: it has Nagle's algorithm and no setting."""
    check(Ways((10, 10)), SEEDS, tmp_path, hosts=("host1",))
