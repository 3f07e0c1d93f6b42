# SPDX-License-Identifier: GPL-2.0
"""Three programs that people run, as Documentation/programs.rst has them, while each path is cut in turn.

testbed/long/test_programs.py has all of them.
"""

from pathlib import Path

import pytest
from tests.programs_run import FEW, judge

pytestmark = pytest.mark.kernel


@pytest.mark.parametrize("program", ["socat", "erlang", "kamailio"])
def test_a_cut_path_is_left_and_nothing_is_lost(program: str, tmp_path: Path) -> None:
    judge(program, FEW, tmp_path)
