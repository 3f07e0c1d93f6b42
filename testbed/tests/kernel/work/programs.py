# SPDX-License-Identifier: GPL-2.0
"""Runs programs one after the other, each in a process group of its own. Standard library only.

The plan: setup (commands as for a run), programs (paths), limit_s (virtual time of each).
"""

import os
import signal
import subprocess
import time
from typing import Any

from commands import remember_home, run_all
from counters import sctp_sysctls
from links import await_links

PAUSE_S = 1  # lets associations end; as long as the package's own loop waits


def run(program: str, limit_s: float) -> dict[str, Any]:
    """Exit code (negative: signal, None: over the limit) and output of a program."""
    print(program, flush=True)  # should the kernel die: where it was
    process = subprocess.Popen(
        [program], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, process_group=0
    )
    try:
        output = process.communicate(timeout=limit_s)[0]
        code: int | None = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, code = process.communicate()[0], None
    time.sleep(PAUSE_S)
    return {"exit": code, "output": output.decode(errors="replace")}


def carry_out(plan: dict[str, Any]) -> dict[str, Any]:
    remember_home()
    run_all(plan["setup"])
    await_links(plan["setup"])
    programs = {os.path.basename(path): run(path, plan["limit_s"]) for path in plan["programs"]}
    return {"status": "ok", "programs": programs, "sysctls": sctp_sysctls("")}
