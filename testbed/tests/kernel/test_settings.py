# SPDX-License-Identifier: GPL-2.0
"""Sysctls, socket options and counters of the series: the cases of work/cases.py, one boot per kernel."""

import pytest
from tests.kernel.work.cases import CASES
from tests.kernel_run import holds, linux, run_cases

pytestmark = pytest.mark.kernel

WALL_S = 120  # a second on an idle machine
Outcomes = dict[str, str]  # case -> "" or what went wrong


def outcomes(flavour: str, factory: pytest.TempPathFactory) -> Outcomes:
    return run_cases("cases", linux(flavour), factory.mktemp(flavour), WALL_S, flavour=flavour)


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    return outcomes("stock", tmp_path_factory)


@pytest.fixture(scope="module")
def patched(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    return outcomes("patched", tmp_path_factory)


@pytest.mark.parametrize("case", [case.__name__ for case in CASES["stock"]])
def test_stock(stock: Outcomes, case: str) -> None:
    holds(stock, case)


@pytest.mark.parametrize("case", [case.__name__ for case in CASES["patched"]])
def test_patched(patched: Outcomes, case: str) -> None:
    holds(patched, case)
