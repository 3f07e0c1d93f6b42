# SPDX-License-Identifier: GPL-2.0
"""Coverage of net/sctp: the basic blocks of a kernel *-kcov, and the edges that its /proc/sctp_edges lists.

A block is known by the offset from _stext of the instruction after its call of COUNTER, an edge by two
of these.
"""

from __future__ import annotations

import itertools
import subprocess
from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

from sctplab.errors import RunError

COUNTER = "__sanitizer_cov_trace_pc"
AFTER = 4  # bytes from where a call has its target to the next instruction
OWN = "multipath/*"
SECTIONS = (".text", ".text.unlikely")  # the others run at the start or the end of the kernel only


@dataclass(frozen=True)
class Place:
    """Of a block."""

    file: str
    function: str


@dataclass
class ObjectFile:
    """Per section: functions, which are (offset, name), and offsets of blocks."""

    functions: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    blocks: dict[str, list[int]] = field(default_factory=dict)


def output(*argv: str) -> list[str]:
    try:
        done = subprocess.run(argv, capture_output=True, text=True)
    except FileNotFoundError:
        raise RunError(f"{argv[0]}: not found; install it with: apt-get install binutils") from None
    if done.returncode:
        raise RunError(f"{' '.join(argv)}: {done.stderr.strip()}")
    return done.stdout.splitlines()


def object_file(lines: Iterable[str]) -> ObjectFile:
    """From the output of objdump --syms --reloc."""
    found = ObjectFile()
    section = ""
    for line in lines:
        words = line.split()
        if line.startswith("RELOCATION RECORDS FOR ["):
            section = line.partition("[")[2].rstrip("]:")
        elif len(words) == 3 and words[2].startswith(COUNTER):
            found.blocks.setdefault(section, []).append(int(words[0], 16) + AFTER)
        elif " F " in line and len(words) == 6:
            found.functions.setdefault(words[3], []).append((int(words[0], 16), words[5]))
    return found


def symbols(lines: Iterable[str]) -> dict[str, int]:
    """From the output of nm: those whose name no other has."""
    rows = [line.split() for line in lines]
    count = Counter(row[-1] for row in rows)
    return {row[2]: int(row[0], 16) for row in rows if len(row) == 3 and count[row[2]] == 1}


def placed(file: str, found: ObjectFile, known: dict[str, int]) -> Iterator[tuple[int, Place]]:
    """The blocks of an object file at the kernel's addresses, without those of its start and end."""
    for section, offsets in found.blocks.items():
        if section not in SECTIONS:
            continue
        functions = sorted(found.functions[section])
        start = next(known[name] - offset for offset, name in functions if name in known)
        for at in offsets:
            _, name = functions[bisect(functions, (at,)) - 1]
            yield start + at - known["_stext"], Place(file, name.partition(".")[0])


def blocks(kernel: Path) -> dict[int, Place]:
    """All of a kernel's net/sctp; KERNEL: its folder, which has the object files too, below net/sctp."""
    known = symbols(output("nm", str(kernel / "linux")))
    found: dict[int, Place] = {}
    tree = kernel / "net/sctp"
    for path in sorted(tree.rglob("*.o")):
        lines = output("objdump", "--syms", "--reloc", str(path))
        found.update(placed(str(path.relative_to(tree).with_suffix("")), object_file(lines), known))
    return found


def is_own(file: str) -> bool:
    """Whether the series brought it."""
    return fnmatch(file, OWN)


@dataclass
class Reached:
    """Edges of several cases. A case's are the bits of a number: edge i of those seen is bit i."""

    number: dict[str, int] = field(default_factory=dict)
    all: int = 0

    def mask(self, words: Iterable[str]) -> int:
        """WORDS: from:to, in hexadecimal digits."""
        bits = {self.number.setdefault(word, len(self.number)) for word in words}
        return sum(1 << bit for bit in bits)

    def add(self, mask: int) -> int:
        """How many of them none before had."""
        new = (mask & ~self.all).bit_count()
        self.all |= mask
        return new

    def blocks(self, mask: int) -> set[int]:
        """The blocks at the ends of a case's edges."""
        bits = (bit == "1" for bit in reversed(f"{mask:b}"))
        return {int(word.partition(":")[2], 16) for word in itertools.compress(self.number, bits)}
