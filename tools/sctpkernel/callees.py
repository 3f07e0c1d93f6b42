# SPDX-License-Identifier: GPL-2.0
"""Does each patch call only what it, or one before it, defines? Told from the patches' text, in a second.

No substitute for tools/build/each, which compiles every patch and takes hours: a fold that moves a call to a
patch before the one that defines its function is found here at once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from sctpkernel.series import Patch

_COMMENT = re.compile(r"/\*.*?(?:\*/|$)")
_CALLED = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
_MACRO = re.compile(r"#\s*define\s+(\w+)")
# A function's own line has no indentation, also where its type is on the line above.
# One in capitals without a type is a macro at work.
_FUNCTION = re.compile(r"(?:[A-Za-z_][^(=]*[ *]|(?![A-Z_]+\())([A-Za-z_]\w*)\(")


def _changed(patch: Patch) -> Iterator[tuple[int, str]]:
    """+1 for a line of C that the patch adds, -1 for one that it removes; with it, comments left out."""
    source, text = False, patch.text[max(patch.text.find("\ndiff --git "), 0) :]
    for line in text.splitlines():
        if line.startswith("diff --git "):
            source = line.endswith((".c", ".h"))
        elif source and line[:1] in "+-" and not line.startswith(("+++ ", "--- ")):
            code = _COMMENT.sub("", line[1:])
            if code.strip() and not code.lstrip().startswith("*"):
                yield (1 if line[0] == "+" else -1), code


def _said(code: str) -> tuple[str, set[str]]:
    """The name that a line defines or declares, "" for none, and those that it calls."""
    found = _MACRO.match(code) or _FUNCTION.match(code)
    own = found[1] if found else ""
    return own, set(_CALLED.findall(code)) - {own}


def _brought(definitions: Iterable[tuple[int, str]]) -> set[str]:
    """The names that only the series defines: of a name of stock a definition goes before one comes."""
    count: Counter[str] = Counter()
    stock, brought = set[str](), set[str]()
    for way, name in definitions:
        count[name] += way
        if count[name] < 0:
            stock.add(name)
        elif way > 0:
            brought.add(name)
    return brought - stock


def undefined(series: Sequence[Patch]) -> list[str]:
    """One line for each patch from which on a function or macro of the series is called and not defined."""
    changes = [[(way, *_said(code)) for way, code in _changed(patch)] for patch in series]
    ours = _brought([(way, own) for lines in changes for way, own, _ in lines if own])
    defined: Counter[str] = Counter()
    called: Counter[str] = Counter()
    found, before = [], set[str]()
    for patch, lines in zip(series, changes, strict=True):
        for way, own, names in lines:
            defined[own] += way
            called.update(dict.fromkeys(names & ours, way))
        missing = {name for name, count in called.items() if count > 0 and defined[name] <= 0}
        if missing - before:
            told = ", ".join(sorted(missing - before))
            found.append(f"{patch.path}: {told}: called, but not defined up to this patch: move either")
        before = missing
    return found
