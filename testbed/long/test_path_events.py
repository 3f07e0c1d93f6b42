# SPDX-License-Identifier: GPL-2.0
"""A path that fails and returns a thousand times: each change is an event, in order, and no other."""

from pathlib import Path

import pytest
from tests.kernel_run import linux, run_work

pytestmark = pytest.mark.kernel
FLAPS, WALL_S = 1000, 3600


def test_no_event_is_lost(tmp_path: Path) -> None:
    said = run_work("paths", linux("patched"), tmp_path, WALL_S, what="flaps", flaps=FLAPS)["outcome"]
    assert not said
