# SPDX-License-Identifier: GPL-2.0
"""A state of the series by name, a folder or a revision of this checkout, and the kernel with it."""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from sctplab.errors import LabError
from sctplab.paths import ROOT
from sctplab.place import uml
from sctplab.place.base import Kernel
from sctplab.spec.model import USUAL_BASE


@dataclass(frozen=True)
class Series:
    """WORD: as it was asked for."""

    word: str
    kernel: Kernel

    @property
    def id(self) -> str:
        """The same for the same patches in the same order, wherever they are."""
        return str(self.kernel.info["series_id"])

    @property
    def name(self) -> str:
        return f"{self.word} (series {self.id})"


def series(word: str, out: Path) -> Series:
    """The kernel with the patches that WORD names; a revision's are put into OUT/patches/COMMIT."""
    return Series(word, uml.built(USUAL_BASE, "patched", uml.VARIANTS["plain"], patches(word, out)))


def patches(word: str, out: Path, checkout: Path = ROOT) -> Path:
    """A folder laid out like patches/; raises LabError where WORD is neither a folder nor a revision."""
    if Path(word).is_dir():
        return Path(word).resolve()
    found = git(checkout, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{word}^{{commit}}")
    if found.returncode:
        raise LabError(
            f"{word}: neither a folder nor a revision of {checkout}; expected a folder that is laid out"
            " like patches/, or a commit that has one"
        )
    return extracted(found.stdout.decode().strip(), word, out / "patches", checkout)


def extracted(commit: str, word: str, target: Path, checkout: Path) -> Path:
    """The folder patches/ of a commit, in TARGET/COMMIT; one that is there already is kept."""
    place = target.resolve() / commit[:12]
    if place.is_dir():
        return place
    archive = git(checkout, "archive", "--format=tar", commit, "patches")
    if archive.returncode:
        raise LabError(f"{word}: has no folder patches/; expected a commit of this project")
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target, prefix=".") as temporary:
        subprocess.run(["tar", "-x", "-C", temporary], input=archive.stdout, check=True)
        Path(temporary, "patches").rename(place)
    return place


def git(checkout: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    """The folder may belong to somebody else than the one who runs this, as root often does."""
    argv = ["git", "-C", str(checkout), "-c", "safe.directory=*", *words]
    return subprocess.run(argv, capture_output=True, check=False)
