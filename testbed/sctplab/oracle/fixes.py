# SPDX-License-Identifier: GPL-2.0
"""Kernels of stock and the first fixes of the series, and the fix with which something begins.

The fixes are the patches of the postings "fixes" and "races", which change stock on purpose. A kernel is
built when one is asked for, and kept in the cache as all are.
"""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from sctpkernel.kernel import gather
from sctpkernel.paths import cache_root

from sctplab.paths import ROOT
from sctplab.place import uml
from sctplab.place.base import Kernel

PATCHES = ROOT / "patches"
POSTINGS = ("fixes", "races")
SUBJECT = re.compile(r"^Subject: (.*(?:\n[ \t].*)*)", re.MULTILINE)


def named(series: str, postings: tuple[str, ...] = POSTINGS) -> list[str]:
    """File names of the patches of these postings in the text of a series file, in order."""
    found, posting = [], ""
    for line in series.splitlines():
        if line.startswith("## "):
            posting = line[3:].partition(":")[0]
        elif line and not line.startswith("#") and posting in postings:
            found.append(line)
    return found


def first_that(count: int, shows: Callable[[int], bool], built: Collection[int] = ()) -> int:
    """The number K of 1 to COUNT so that K fixes show it and K - 1 do not; 0 do not, COUNT do.

    Those that are BUILT are asked first: a kernel takes minutes, a run a second.
    """
    low, high = 0, count
    while high - low > 1:
        near = [number for number in sorted(built) if low < number < high]
        middle = near[len(near) // 2] if near else (low + high) // 2
        low, high = (low, middle) if shows(middle) else (middle, high)
    return high


@dataclass(frozen=True)
class Fixes:
    """The fixes of a base. PLACE: a folder for copies of patches/."""

    base: str
    place: Path
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def names(self) -> list[str]:
        return named((PATCHES / f"series-{self.base}").read_text(encoding="utf-8"))

    def subject(self, number: int) -> str:
        """Of fix NUMBER, from 1."""
        file = self.file(self.names[number - 1])
        match = SUBJECT.search(file.read_text(encoding="utf-8"))
        return " ".join(match[1].split()) if match else file.name

    def file(self, name: str) -> Path:
        own = PATCHES / self.base / name
        return own if own.is_file() else PATCHES / "common" / name

    def kernel(self, count: int) -> Kernel:
        """Stock with the first COUNT fixes."""
        with self.lock:
            made = uml.built(self.base, "patched", "uml", self.copy(count))
            self.cached.add(count)
            return made

    @cached_property
    def cached(self) -> set[int]:
        """How many fixes the kernels have that need not be built."""
        folder = cache_root() / "kernel"
        keys = ((n, gather(self.base, "patched", "uml", self.copy(n)).key) for n in range(1, len(self.names)))
        return {number for number, key in keys if (folder / key).is_dir()}

    def copy(self, count: int) -> Path:
        """A folder laid out like patches/ with the first COUNT fixes as its series."""
        folder = self.place / f"{self.base}-{count}"
        for name in self.names[:count]:
            source = self.file(name)
            target = folder / source.parent.name / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
        (folder / f"series-{self.base}").write_text("".join(f"{name}\n" for name in self.names[:count]))
        return folder
