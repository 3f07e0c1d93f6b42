# SPDX-License-Identifier: GPL-2.0
"""A virtual machine that restarts again and again while the host has other work."""

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen

import pytest
from sctpkernel import module
from sctplab.spec.model import USUAL_BASE
from sctplab.vm.machine import Machine, Nic, image
from sctplab.vm.running import running

pytestmark = pytest.mark.kernel

RESTARTS = 20


@contextmanager
def load() -> Iterator[None]:
    """A program for each processor that never waits."""
    programs = [Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            program.wait()


def test_a_machine_restarts_under_load(tmp_path: Path) -> None:
    nics = (Nic("virtio", "cable"), Nic("virtio", "cable"))
    machine = Machine("one", image(module.usual(USUAL_BASE)), nics=nics)
    with load(), running([machine], tmp_path) as vms:
        for _ in range(RESTARTS):
            vms["one"].restart()
        for why in vms["one"].failed_starts:
            warnings.warn(f"{why}; it was started again", stacklevel=1)
