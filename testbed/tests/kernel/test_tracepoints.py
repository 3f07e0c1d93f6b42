# SPDX-License-Identifier: GPL-2.0
"""Events of the multipath sender's tracepoints: the cases of work/tracepoints.py, one boot for all."""

import pytest
from tests.kernel.work.tracepoints import CASES
from tests.kernel_run import holds, linux, run_cases

pytestmark = pytest.mark.kernel

WALL_S = 240  # some seconds on an idle machine


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    kernel = linux("patched", "trace")
    return run_cases("tracepoints", kernel, tmp_path_factory.mktemp("tracepoints"), WALL_S)


@pytest.mark.parametrize("case", [case.__name__ for case in CASES])
def test_trace(said: dict[str, str], case: str) -> None:
    holds(said, case)
