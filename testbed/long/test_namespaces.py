# SPDX-License-Identifier: GPL-2.0
"""failover_link in a namespace while many others have events: work/namespaces.py."""

from pathlib import Path

import pytest
from tests.kernel_run import linux, run_work

pytestmark = pytest.mark.kernel
WALL_S = 300
NAMESPACES, SOCKETS, LEFT_S = 200, 40, 0.1  # that are 1600 associations


def test_events_of_other_namespaces_delay_no_failover(tmp_path: Path) -> None:
    """The machine's own time counts here: a path is left long before T3-rtx, whatever others do."""
    found = run_work(
        "namespaces", linux("patched"), tmp_path, WALL_S, steady=False, namespaces=NAMESPACES, sockets=SOCKETS
    )
    left_s = found["left_s"]
    print(
        f"{NAMESPACES} namespaces with events, {SOCKETS**2} associations: left after {left_s * 1000:.0f} ms"
    )
    assert left_s <= LEFT_S
