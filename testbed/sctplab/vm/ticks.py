# SPDX-License-Identifier: GPL-2.0
"""How fast the processor's time stamp counter runs, which virtual machines have as their clock.

They would find out by themselves, but wrongly, by a factor even, where they share processors with other work.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import platform
import time
from collections.abc import Callable

RDTSC = bytes.fromhex("0f31 48c1e220 4809d0 c3")  # rdtsc; shl $32, %rdx; or %rdx, %rax; ret
WITHOUT_KHZ = 1_000_000  # QEMU counts nanoseconds where there is no such counter
MEASURED_S = 0.5
TRIES = 20


@functools.cache
def counter_khz() -> int:
    """Ticks per millisecond of CLOCK_MONOTONIC."""
    if platform.machine() != "x86_64":
        return WITHOUT_KHZ
    with mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC) as code:
        code.write(RDTSC)
        address = ctypes.addressof(ctypes.c_char.from_buffer(code))
        read = ctypes.CFUNCTYPE(ctypes.c_uint64)(address)
        first = both(read)
        time.sleep(MEASURED_S)
        second = both(read)
    return round((second[1] - first[1]) * 1e6 / (second[0] - first[0]))


def both(read: Callable[[], int]) -> tuple[int, int]:
    """(nanoseconds, ticks) of one moment: the pair that was read in the shortest time."""
    best = (1 << 62, 0, 0)
    for _ in range(TRIES):
        before = time.monotonic_ns()
        ticks = read()
        after = time.monotonic_ns()
        best = min(best, (after - before, (before + after) // 2, ticks))
    return best[1], best[2]
