# SPDX-License-Identifier: GPL-2.0
"""The processor's clock, which counts while virtual time stands still. Standard library only, x86-64."""

import ctypes
import mmap
import time

RDTSC = bytes.fromhex("0f31 48c1e220 4809d0 c3")  # rdtsc; shl $32,%rdx; or %rdx,%rax; ret

_code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
_code.write(RDTSC)
cycles = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(ctypes.c_char.from_buffer(_code)))


def per_second() -> float:
    """Of this clock, by that of the host: not in virtual time."""
    began, cycles_then = time.perf_counter(), cycles()
    time.sleep(0.1)
    return float(cycles() - cycles_then) / (time.perf_counter() - began)
