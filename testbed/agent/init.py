# SPDX-License-Identifier: GPL-2.0
"""First process of a laboratory kernel: carry out one plan and power off. Standard library only.

    init=/usr/bin/python3 -- -S -E -B .../init.py FOLDER WORK

FOLDER holds plan.json and receives result.json. WORK is the Python file whose carry_out(plan) makes the
result of the plan: run.py for a run. /tmp is left as it is, since FOLDER may be below it.
"""

import ctypes
import errno
import json
import os
import runpy
import sys
from typing import Any

LIBC = ctypes.CDLL(None, use_errno=True)
POWER_OFF = 0x4321FEDC
MOUNTS = (("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", "/run"))
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def mount(kind: str, target: str) -> None:
    """Mount a file system; EBUSY means that the kernel has done it by itself (devtmpfs)."""
    failed = LIBC.mount(kind.encode(), target.encode(), kind.encode(), 0, None)
    if failed and ctypes.get_errno() != errno.EBUSY:
        raise OSError(ctypes.get_errno(), f"mount {kind} on {target}")


def prepare() -> None:
    for kind, target in MOUNTS:
        mount(kind, target)
    os.environ.update(TMPDIR="/run", LC_ALL="C")


def store(folder: str, result: dict[str, Any]) -> None:
    """Write result.json and make sure that it is on the host's disk before the power goes."""
    with open(os.path.join(folder, "result.json"), "w", encoding="utf-8") as out:
        json.dump(result, out)
        out.flush()
        os.fsync(out.fileno())


def main() -> None:
    folder, work = sys.argv[1:3]  # the kernel appends words of its own
    result: dict[str, Any] = {"status": "failed", "reason": "the agent did not start"}
    try:
        prepare()
        os.chdir(folder)
        from counters import kernel_log, open_kernel_log, warnings_in

        sys.path.append(os.path.dirname(work))
        carry_out = runpy.run_path(work)["carry_out"]
        with open("plan.json", encoding="utf-8") as source:
            plan = json.load(source)
        os.environ["PATH"] = f"{plan['path']}:{PATH}"
        result = carry_out(plan)
        log = kernel_log(open_kernel_log())
        result["warnings"] = warnings_in(log)
        if result["warnings"]:
            result["kernel_log"] = log
    except Exception as error:  # whatever it is has to reach the record
        result = {"status": "failed", "reason": f"agent: {type(error).__name__}: {error}"}
    try:
        store(folder, result)
    except OSError as error:
        print(f"agent: {folder}/result.json: {error}", flush=True)
    os.sync()
    LIBC.reboot(POWER_OFF)


main()
