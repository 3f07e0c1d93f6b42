# SPDX-License-Identifier: GPL-2.0
"""One load of testbed/cost on the kernel of the laboratory. Standard library only."""

import json
import subprocess
from typing import Any

LIMIT_S = 3600  # in virtual time


def carry_out(plan: dict[str, Any]) -> dict[str, Any]:
    argv = [plan["program"], *plan["words"][:4], "load.json", *plan["words"][4:]]
    done = subprocess.run(argv, timeout=LIMIT_S, stderr=subprocess.PIPE, text=True, errors="replace")
    if done.returncode:
        return {"status": "failed", "reason": f"exit {done.returncode}: {done.stderr.strip()[-300:]}"}
    with open("load.json", encoding="utf-8") as source:
        return {"status": "ok", "load": json.load(source)}
