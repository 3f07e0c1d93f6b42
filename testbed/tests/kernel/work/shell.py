# SPDX-License-Identifier: GPL-2.0
"""Runs shell scripts one after the other and gives back how each ended. Standard library only."""

import os
import subprocess
from typing import Any


def carry_out(plan: dict[str, Any]) -> dict[str, Any]:
    """PLAN: "scripts", "environment" added to ours."""
    environment = {**os.environ, **plan["environment"]}
    ended = []
    for script in plan["scripts"]:
        done = subprocess.run(
            ["sh", "-c", script], stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment
        )
        ended.append({"exit": done.returncode, "output": done.stdout, "errors": done.stderr})
    return {"status": "ok", "ended": ended}
