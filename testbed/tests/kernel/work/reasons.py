# SPDX-License-Identifier: GPL-2.0
"""Why the paths of an association are in their states, as sock_diag shows it. Standard library only."""

from __future__ import annotations

import sys
from pathlib import Path as File

sys.path.insert(0, str(File(__file__).parents[4] / "tools"))
from pathview import selection


def reasons(peer_port: int) -> list[str | None]:
    """By path, of the association with this port of the peer in this network namespace."""
    found, missing = selection.look()
    assert not missing, missing
    (one,) = (one for one in found if one.peer_port == peer_port)
    return [path.reason for path in one.paths]
