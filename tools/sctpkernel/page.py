# SPDX-License-Identifier: GPL-2.0
"""Tables of reStructuredText, and the parts of a page that a tool writes: between two marks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from sctpkernel.errors import Problem
from sctpkernel.paths import ROOT

COVERAGE = ROOT / "Documentation" / "coverage.rst"


def grid(cells: Sequence[tuple[str, ...]]) -> list[str]:
    """A table; the first row is its head."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    rule = "  ".join("=" * width for width in widths)
    lines = [zip(row, widths, strict=True) for row in cells]
    text = ["  ".join(cell.ljust(width) for cell, width in line).rstrip() for line in lines]
    return [rule, text[0], rule, *text[1:], rule]


def put(path: Path, tool: str, text: str) -> None:
    """Write TEXT, which ends with a line end, between the marks of TOOL on a page."""
    begin, end = (f".. {word} of the output of {tool}" for word in ("begin", "end"))
    old = path.read_text(encoding="utf-8")
    form = rf"(.*^{re.escape(begin)}\n\n).*?(^{re.escape(end)}\n.*)"
    found = re.fullmatch(form, old, re.MULTILINE | re.DOTALL)
    if not found:
        raise Problem(f"{path}: the lines {begin!r} and {end!r} are missing: put them back")
    path.write_text(f"{found[1]}{text}\n{found[2]}", encoding="utf-8")
