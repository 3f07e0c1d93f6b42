# SPDX-License-Identifier: GPL-2.0
"""sctp-multipath exporter and top: the cases of work/exporter.py, and what a stock kernel's scrape has."""

import sysconfig

import pytest
from tests.kernel.work.exporter import CASES
from tests.kernel_run import holds, linux, run_cases, run_work

pytestmark = pytest.mark.kernel
WALL_S = 200
LIBRARY = sysconfig.get_path("purelib")  # of the environment that the tests run in


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("cases")
    return run_cases("exporter", linux("patched"), folder, WALL_S, what="cases", library=LIBRARY)


@pytest.mark.parametrize("case", [case.__name__ for case in CASES])
def test_exporter(outcomes: dict[str, str], case: str) -> None:
    holds(outcomes, case)


def test_a_stock_kernel_s_scrape(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("stock")
    found = run_work("exporter", linux("stock"), folder, WALL_S, what="stock", library=LIBRARY)
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
