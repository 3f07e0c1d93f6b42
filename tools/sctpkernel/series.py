# SPDX-License-Identifier: GPL-2.0
"""Which patches make up a base: patches/series-BASE and the folders the names are looked up in."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sctpkernel.errors import Problem
from sctpkernel.paths import ROOT

PATCHES = ROOT / "patches"
_BASES = re.compile(r"^Bases: (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Patch:
    """One patch file as it is stored."""

    path: Path
    text: str

    @property
    def name(self) -> str:
        return self.path.name


def series_names(text: str) -> list[str]:
    """Patch names of a series file, in order; a line is a name, a comment or empty."""
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return [line for line in lines if line]


def load_patch(path: Path) -> Patch:
    return Patch(path, path.read_text(encoding="utf-8"))


def _head(text: str) -> tuple[list[str], list[str]]:
    """The lines of a series file up to the first empty one, when they name no patch, and the rest."""
    lines = text.splitlines()
    end = lines.index("") + 1 if "" in lines else 0
    return ([], lines) if series_names("\n".join(lines[:end])) else (lines[:end], lines[end:])


def update_series(text: str, names: Sequence[str]) -> str:
    """The text of a series file that lists `names` in order; comments stay above their patch."""
    above: dict[str, list[str]] = {}
    own_line: dict[str, str] = {}
    waiting: list[str] = []
    head, body = _head(text)
    for line in body:
        listed = series_names(line)
        waiting.append(line)
        if listed and listed[0] in names:
            above[listed[0]], own_line[listed[0]] = waiting[:-1], line
            waiting = []
        elif listed:  # dropped: its comments are the heading of what follows, too
            waiting.pop()
    lines = [line for name in names for line in [*above.get(name, []), own_line.get(name, name)]]
    return "".join(f"{line}\n" for line in [*head, *lines, *waiting])


def load_series(base: str, patches: Path = PATCHES) -> list[Patch]:
    """The patches of a base in order; one in patches/BASE/ replaces its namesake in common/."""
    path = patches / f"series-{base}"
    if not path.exists():
        return []
    found: list[Patch] = []
    for name in series_names(path.read_text(encoding="utf-8")):
        places = [patches / base / name, patches / "common" / name]
        existing = [place for place in places if place.is_file()]
        if not existing:
            raise Problem(f"{path}: {name} is neither in patches/{base}/ nor in patches/common/")
        if name in {patch.name for patch in found}:
            raise Problem(f"{path}: {name} is listed twice")
        found.append(load_patch(existing[0]))
    return found


def applies_to(text: str) -> list[str]:
    """The bases a patch names in its field "Bases:"."""
    match = _BASES.search(text)
    return match[1].split() if match else []


def load_testbed(base: str, patches: Path = PATCHES) -> list[Patch]:
    """The laboratory's own patches for a base, in the order of their names."""
    found = [load_patch(path) for path in sorted((patches / "testbed").glob("*.patch"))]
    return [patch for patch in found if base in applies_to(patch.text)]


def short_id(patches: Sequence[Patch], none: str) -> str:
    """Twelve hex digits that change with a diff or the order, not with a message; `none` for no patch."""
    if not patches:
        return none
    digest = hashlib.sha256()
    for patch in patches:
        diff = patch.text[max(patch.text.find("\ndiff --git "), 0) :]
        digest.update(hashlib.sha256(diff.encode()).digest())
    return digest.hexdigest()[:12]
