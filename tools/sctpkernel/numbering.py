# SPDX-License-Identifier: GPL-2.0
"""File names of a series: numbers in steps of ten, so that a patch put between two others renames neither."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from sctpkernel.errors import Problem

STEP = 10
LAST = 9999
NAME = re.compile(r"(\d{4})-[\w.+-]+\.patch")
_LONGEST = 60


def number(name: str) -> int:
    """The number at the start of a patch name."""
    match = NAME.fullmatch(name)
    if not match:
        raise Problem(f"{name}: expected four digits, a hyphen, words joined by hyphens, and .patch")
    return int(match[1])


def slug(subject: str) -> str:
    """A subject as part of a file name: as many whole words as fit."""
    words = re.sub(r"[^\w.+]+", "-", subject, flags=re.ASCII).strip("-.")
    return words if len(words) <= _LONGEST else words[: _LONGEST + 1].rpartition("-")[0].rstrip("-.")


def _rising(numbers: Sequence[int | None]) -> set[int]:
    """Positions of a longest subsequence whose numbers rise; those patches can keep their names."""
    chains: list[list[int]] = []  # the longest one that ends with each position
    for position, value in enumerate(numbers):
        before: list[int] = []
        for chain in chains:
            if value is not None and (numbers[chain[-1]] or 0) < value and len(chain) > len(before):
                before = chain
        if value is not None:
            chains.append([*before, position])
    chains.sort(key=len)
    return set(chains[-1]) if chains else set()


def _between(low: int, high: int | None, count: int) -> list[int]:
    """`count` new numbers above `low` and below `high`, in steps of ten where there is room."""
    top = LAST + 1 if high is None else high
    start = low - low % STEP
    tens = [start + STEP * step for step in range(1, count + 1)]
    if tens[-1] < top:
        return tens
    if top - low - 1 < count:
        raise Problem(
            f"no {count} free numbers between {low:04} and {top:04}: rename the patches around by hand"
        )
    return [low + (top - low) * step // (count + 1) for step in range(1, count + 1)]


def assign(subjects: Sequence[str], known: Mapping[str, str]) -> list[str]:
    """File names for a series with these subjects, in order.

    known  subject -> present file name; kept wherever the order allows
    """
    for subject in subjects:
        if subjects.count(subject) > 1:
            raise Problem(
                f"two commits have the subject {subject!r}: a patch is identified by its subject, change one"
            )
    numbers = [number(known[subject]) if subject in known else None for subject in subjects]
    kept = _rising(numbers)
    names: list[str] = []
    low, position = 0, 0
    while position < len(subjects):
        if position in kept:
            names.append(known[subjects[position]])
            low = number(names[-1])
            position += 1
            continue
        end = position
        while end < len(subjects) and end not in kept:
            end += 1
        high = number(known[subjects[end]]) if end < len(subjects) else None
        fresh = _between(low, high, end - position)
        names += [
            f"{value:04}-{slug(text)}.patch"
            for value, text in zip(fresh, subjects[position:end], strict=True)
        ]
        position = end
    return names
