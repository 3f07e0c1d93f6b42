# SPDX-License-Identifier: GPL-2.0
"""Does a question of the series change nothing? A function that returns bool takes pointers to const.

Told from the headers that the series brings, as its patches' texts make them: no kernel source is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from sctpkernel.series import Patch

_FILE = re.compile(r"^diff --git a/(\S+) b/\S+\n", re.MULTILINE)
_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@.*\n", re.MULTILINE)
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_QUESTION = re.compile(r"^(?:static inline )?bool\s+(\w+)\s*\(([^)]*)\)", re.MULTILINE)
_OURS = re.compile(r"(?:include/)?net/sctp/(?!multipath/test/).*multipath.*\.h")


def applied(old: list[str], diff: str) -> list[str]:
    """Lines of a file after the hunks of its diff, which is exact."""
    new: list[str] = []
    at = 0
    for body, start, count in _hunks(diff):
        begin = start - 1 if count else start
        new += old[at:begin]
        new += [line[1:] for line in body if line[:1] in "+ "]
        at = begin + count
    return new + old[at:]


def _hunks(diff: str) -> Iterable[tuple[list[str], int, int]]:
    """(lines, first old line, number of old lines) of each hunk."""
    found = list(_HUNK.finditer(diff))
    for this, following in zip(found, [*found[1:], None], strict=True):
        body = diff[this.end() : following.start() if following else len(diff)]
        lines = [line for line in body.splitlines() if line[:1] in ("+", "-", " ")]
        yield lines, int(this[1]), int(this[2] or 1)


def brought(series: Sequence[Patch], wanted: re.Pattern[str]) -> dict[str, str]:
    """Path -> text of each file that the series brings and whose path is WANTED, with all of it applied."""
    texts: dict[str, list[str]] = {}
    for patch in series:
        parts = _FILE.split(patch.text)
        for path, diff in zip(parts[1::2], parts[2::2], strict=True):
            if wanted.fullmatch(path) and (path in texts or "\n--- /dev/null\n" in f"\n{diff}"):
                texts[path] = applied(texts.get(path, []), diff)
    return {path: "\n".join(lines) + "\n" for path, lines in texts.items() if lines}


def faults(series: Sequence[Patch]) -> list[str]:
    """One line for each question that takes a pointer through which it may write."""
    return [
        f"{path}: {name}: returns bool and takes a pointer that is not to const: make it so, or return void"
        for path, text in sorted(brought(series, _OURS).items())
        for name, words in _QUESTION.findall(_COMMENT.sub("", text))
        if any("*" in word and not re.search(r"\bconst\b", word) for word in words.split(","))
    ]
