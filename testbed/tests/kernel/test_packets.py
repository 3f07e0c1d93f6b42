# SPDX-License-Identifier: GPL-2.0
"""Changes that single patches make on the wire: the cases of work/packets.py, one boot for all.

Those that Documentation/fixes.rst says to fail on the stock kernel, too, are tried there.
"""

import re

import pytest
from sctplab.paths import ROOT
from tests.kernel.work.packets import CASES
from tests.kernel_run import holds, linux, run_cases

pytestmark = pytest.mark.kernel

WALL_S = 240  # some seconds on an idle machine
FIXES = ROOT / "Documentation" / "fixes.rst"
TESTS = slice(55, 102)  # columns of its table


def faults_of_stock(page: str) -> list[str]:
    """Cases with "(stock)" behind them in the table of fixes; a name may go on in the next line."""
    cells = "".join(line[TESTS].strip() for line in page.splitlines())
    return re.findall(r"(?:packets|control|buffers)::(\w+?) ?\(stock\)", cells)


STOCK = faults_of_stock(FIXES.read_text())


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return run_cases("packets", linux("patched"), tmp_path_factory.mktemp("packets"), WALL_S)


@pytest.fixture(scope="module")
def said_by_stock(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return run_cases("packets", linux("stock"), tmp_path_factory.mktemp("stock"), WALL_S, cases=STOCK)


@pytest.mark.parametrize("case", [case.__name__ for case in CASES])
def test_packets(said: dict[str, str], case: str) -> None:
    holds(said, case)


@pytest.mark.parametrize("case", STOCK)
def test_stock_has_the_fault(said_by_stock: dict[str, str], case: str) -> None:
    assert said_by_stock[case], "the case holds on the stock kernel"
