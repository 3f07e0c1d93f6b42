# SPDX-License-Identifier: GPL-2.0
"""Programs that people run, with the lines of Documentation/programs.rst, while each path is cut in turn."""

from pathlib import Path

import pytest
from sctplab.spec.program import known
from tests.programs_run import judge

pytestmark = pytest.mark.kernel


@pytest.mark.parametrize("program", known())
def test_a_cut_path_is_left_and_nothing_is_lost(program: str, tmp_path: Path) -> None:
    judge(program, [], tmp_path)
