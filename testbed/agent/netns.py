# SPDX-License-Identifier: GPL-2.0
"""First process of a run in namespaces of this host: carry out one plan. Standard library only.

    unshare --mount --net --pid --fork --mount-proc python3 -S -E -B netns.py FOLDER WORK

The namespaces that the plan makes have their names in a /run of its own: nobody else sees them, and they are
gone with the last process in here, whoever ended it.
"""

import ctypes
import os
import sys

from counters import open_kernel_log
from task import perform

LIBC = ctypes.CDLL(None, use_errno=True)


def prepare() -> int:
    if LIBC.mount(b"tmpfs", b"/run", b"tmpfs", 0, None):
        raise OSError(ctypes.get_errno(), "mount tmpfs on /run")
    os.environ.update(TMPDIR="/run", LC_ALL="C")
    return open_kernel_log(new_only=True)


os.chdir(sys.argv[1])  # which may be below /run
perform(".", sys.argv[2], prepare)
