# SPDX-License-Identifier: GPL-2.0
"""Paths as sock_diag shows them: the cases of work/paths.py, and what a stock kernel answers."""

from pathlib import Path

import pytest
from tests.kernel.work import cycles
from tests.kernel.work.paths import CASES
from tests.kernel_run import holds, linux, run_cases, run_work

pytestmark = pytest.mark.kernel
WALL_S = 200
SOCKETS, DUMP_S = 100, 0.1  # that are 10,000 associations


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("paths")
    return run_cases("paths", linux("patched"), folder, WALL_S, what="cases")


@pytest.mark.parametrize("case", [case.__name__ for case in CASES])
def test_shown(outcomes: dict[str, str], case: str) -> None:
    holds(outcomes, case)


def test_who_does_not_ask_gets_the_answers_of_stock(tmp_path_factory: pytest.TempPathFactory) -> None:
    stock, patched = (
        run_work("paths", linux(flavour), tmp_path_factory.mktemp(flavour), WALL_S, what="answers")["answers"]
        for flavour in ("stock", "patched")
    )
    assert (stock[-1], patched[-1]) == ("the loaded SCTP is without the multipath patches", "")
    assert stock[:-1] == patched[:-1]
    assert stock[-2] == "[('10.1.0.2', 'active'), ('10.2.0.2', 'active')]"


def test_ten_thousand_associations_are_dumped_in_a_tenth_of_a_second(tmp_path: Path) -> None:
    """The kernel's part, and the copy to a program that reads as ss does; the best of ten."""
    found = run_work("many", linux("patched"), tmp_path, WALL_S, sockets=SOCKETS)
    assert (found["associations"], found["active_paths"]) == (SOCKETS**2, 2 * SOCKETS**2)
    took_s = found["cycles"] / cycles.per_second()
    print(f"{SOCKETS**2} associations, {found['bytes']} bytes: {took_s * 1000:.0f} ms")
    assert took_s <= DUMP_S
