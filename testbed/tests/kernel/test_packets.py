# SPDX-License-Identifier: GPL-2.0
"""Changes that single patches make on the wire: the cases of work/packets.py, one boot for all."""

import pytest
from tests.kernel.work.packets import CASES
from tests.kernel_run import holds, linux, run_cases

pytestmark = pytest.mark.kernel

WALL_S = 240  # some seconds on an idle machine


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return run_cases("packets", linux("patched"), tmp_path_factory.mktemp("packets"), WALL_S)


@pytest.mark.parametrize("case", [case.__name__ for case in CASES])
def test_packets(said: dict[str, str], case: str) -> None:
    holds(said, case)
