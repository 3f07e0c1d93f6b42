# SPDX-License-Identifier: GPL-2.0
"""Runs shell scripts on the hosts of a topology, one after the other. Standard library only."""

import os
import subprocess
from typing import Any

from commands import remember_home, run_all
from links import await_links


def carry_out(plan: dict[str, Any]) -> dict[str, Any]:
    """PLAN: "setup", "scripts" by name, "environment" added to ours."""
    remember_home()
    run_all(plan["setup"])
    await_links(plan["setup"])
    environment = {**os.environ, **plan["environment"]}
    ended = {}
    for name, script in plan["scripts"].items():
        print(name, flush=True)  # should the kernel die: where it was
        done = subprocess.run(
            ["bash", "-c", script], stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment
        )
        ended[name] = {"exit": done.returncode, "output": done.stdout, "errors": done.stderr}
    return {"status": "ok", "ended": ended}
