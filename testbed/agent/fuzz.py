# SPDX-License-Identifier: GPL-2.0
"""Seeds of a fuzzer, one after the other, on the kernel of the laboratory. Standard library only.

Each seed's record is on the disk before the next one starts: after a panic the one that is missing is guilty.
"""

import json
import os
import subprocess
from typing import Any

from counters import kernel_log, open_kernel_log, warnings_in

LIMIT_S = 900  # of a seed, in virtual time
SPLATS = ("UBSAN", "ODEBUG", "INFO: possible", "INFO: task", "suspicious RCU")


def one(program: str, seed: int) -> dict[str, Any]:
    """The fuzzer's own record with what it and the kernel complained of."""
    log = open_kernel_log(new_only=True)
    argv = [program, str(seed), "out.json"]
    found: dict[str, Any] = {"seed": seed, "outcome": "broken", "failure": ""}
    try:
        done = subprocess.run(argv, timeout=LIMIT_S, stderr=subprocess.PIPE, text=True, errors="replace")
    except subprocess.TimeoutExpired:
        found["failure"] = f"no end after {LIMIT_S} s"
    else:
        if done.returncode in (0, 1):
            with open("out.json", encoding="utf-8") as source:
                found = json.load(source)
        else:
            found["failure"] = f"exit {done.returncode}: {done.stderr.strip()[-300:]}"
    said = kernel_log(log)
    splats = warnings_in(said) + [line for line in said if any(mark in line for mark in SPLATS)]
    return {**found, "splats": splats, "log": said if splats else []}


def carry_out(plan: dict[str, Any]) -> dict[str, Any]:
    with open("records.jsonl", "a", encoding="utf-8") as out:
        for seed in plan["seeds"]:
            print(json.dumps(one(plan["program"], seed)), file=out, flush=True)
            os.fsync(out.fileno())
    return {"status": "ok"}
