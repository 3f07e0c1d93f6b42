# SPDX-License-Identifier: GPL-2.0
"""First process of a laboratory kernel: carry out one plan and power off. Standard library only.

    init=/usr/bin/python3 -- -S -E -B .../init.py FOLDER WORK

FOLDER holds plan.json and receives result.json. WORK is the Python file whose carry_out(plan) makes the
result of the plan: run.py for a run. /tmp is left as it is, since FOLDER may be below it.
"""

import ctypes
import errno
import os
import sys

from counters import open_kernel_log
from task import PATH, perform

LIBC = ctypes.CDLL(None, use_errno=True)
POWER_OFF = 0x4321FEDC
MOUNTS = (("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", "/run"))


def mount(kind: str, target: str) -> None:
    """Mount a file system; EBUSY means that the kernel has done it by itself (devtmpfs)."""
    failed = LIBC.mount(kind.encode(), target.encode(), kind.encode(), 0, None)
    if failed and ctypes.get_errno() != errno.EBUSY:
        raise OSError(ctypes.get_errno(), f"mount {kind} on {target}")


def prepare() -> int:
    for kind, target in MOUNTS:
        mount(kind, target)
    os.environ.update(TMPDIR="/run", LC_ALL="C", PATH=PATH)
    return open_kernel_log()


perform(sys.argv[1], sys.argv[2], prepare)  # the kernel appends words of its own
os.sync()
LIBC.reboot(POWER_OFF)
