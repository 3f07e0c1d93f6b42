# SPDX-License-Identifier: GPL-2.0
"""sctp-multipath exporter and top: the cases of work/exporter.py, and what a stock kernel's scrape has."""

import sysconfig
from typing import Any

import pytest
from tests.kernel.work.exporter import CASES
from tests.kernel_run import linux, run_work

pytestmark = pytest.mark.kernel
WALL_S = 200


def run(flavour: str, what: str, factory: pytest.TempPathFactory) -> dict[str, Any]:
    library = sysconfig.get_path("purelib")  # of the environment that the tests run in
    return run_work("exporter", linux(flavour), factory.mktemp(what), WALL_S, what=what, library=library)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    cases: dict[str, str] = run("patched", "cases", tmp_path_factory)["cases"]
    return cases


@pytest.mark.parametrize("case", [case.__name__ for case in CASES])
def test_exporter(outcomes: dict[str, str], case: str) -> None:
    if said := outcomes.get(case, "did not run"):
        pytest.fail(said, pytrace=False)


def test_a_stock_kernel_s_scrape(tmp_path_factory: pytest.TempPathFactory) -> None:
    found = run("stock", "stock", tmp_path_factory)
    assert found["active"] == [1, 1]
    assert found["names"] == [
        "sctp_association_paths",
        "sctp_associations",
        "sctp_associations_left_out",
        "sctp_fast_retransmits_total",
        "sctp_multipath",
        "sctp_path_primary",
        "sctp_path_state",
        "sctp_paths",
        "sctp_t3_rtx_expireds_total",
    ]
