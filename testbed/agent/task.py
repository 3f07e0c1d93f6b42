# SPDX-License-Identifier: GPL-2.0
"""One plan from its folder to its result, whatever happens in between. Standard library only."""

import json
import os
import runpy
import sys
from collections.abc import Callable
from typing import Any

from counters import kernel_log, warnings_in

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def perform(folder: str, work: str, prepare: Callable[[], int]) -> None:
    """FOLDER holds plan.json and receives result.json, the result of carry_out(plan) of the Python file WORK.

    PREPARE makes the surroundings and returns the file in which the kernel's messages of the run are found.
    """
    try:
        log = prepare()
        os.chdir(folder)
        result = carried_out(work, log)
    except Exception as error:  # whatever it is has to reach the record
        result = {"status": "failed", "reason": f"agent: {type(error).__name__}: {error}"}
    try:
        store(folder, result)
    except OSError as error:
        print(f"agent: {folder}/result.json: {error}", flush=True)


def carried_out(work: str, log: int) -> dict[str, Any]:
    sys.path.append(os.path.dirname(work))
    carry_out = runpy.run_path(work)["carry_out"]
    with open("plan.json", encoding="utf-8") as source:
        plan = json.load(source)
    os.environ["PATH"] = f"{plan['path']}:{PATH}"
    result: dict[str, Any] = carry_out(plan)
    said = kernel_log(log)
    result["warnings"] = warnings_in(said)
    if result["warnings"]:
        result["kernel_log"] = said
    return result


def store(folder: str, result: dict[str, Any]) -> None:
    """Write result.json and make sure that it is on the disk before the power goes."""
    with open(os.path.join(folder, "result.json"), "w", encoding="utf-8") as out:
        json.dump(result, out)
        out.flush()
        os.fsync(out.fileno())
