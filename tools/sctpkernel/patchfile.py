# SPDX-License-Identifier: GPL-2.0
"""The form in which a patch is stored: the same commit always gives the same bytes, none of them volatile.

    From: Name <address>
    Date: when it was written
    Subject: subsystem: what it does

    why, in words

    Forwarded: no | not-needed | address of the posting
    Bases: the bases of patches/bases.toml it is for
    Replaces: fingerprint of the common patch it was adapted from; only in one of patches/BASE/
    ---
    diff, without index lines

`git am` takes such a file. The fields are the last lines of the message, with other trailers before them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sctpkernel.errors import Problem
from sctpkernel.git import git

FIELDS = ("Forwarded", "Bases", "Replaces")
_BOOKKEEPING = re.compile(r"^(?:Bases|Replaces): .*\n?", re.MULTILINE)
_FINGERPRINT = re.compile(r"[0-9a-f]{10}|")
_FORWARDED = re.compile(r"no|not-needed|https?://\S+")
_DIFF = (
    "diff-tree", "-p", "-U3", "--no-commit-id", "--no-color", "--no-ext-diff", "--no-textconv",
    "--no-renames", "--diff-algorithm=histogram", "--indent-heuristic", "--src-prefix=a/", "--dst-prefix=b/",
    "--binary",
)  # fmt: skip


@dataclass(frozen=True)
class Stored:
    """A patch file taken apart. `message` ends with its fields; `diff` starts with "diff --git"."""

    author: str
    date: str
    subject: str
    message: str
    diff: str

    def field(self, name: str) -> str:
        """The value of a field such as "Bases", "" when it is not there."""
        match = re.search(rf"^{name}: *(.*)$", self.message, re.MULTILINE)
        return match[1].strip() if match else ""

    def render(self) -> str:
        """The file's text."""
        head = f"From: {self.author}\nDate: {self.date}\nSubject: {self.subject}\n"
        return f"{head}\n{self.message}\n---\n{self.diff}"

    def with_fields(self, values: Mapping[str, str]) -> Stored:
        """The same with those of `values` added at the end of the message that it lacks."""
        lines = [f"{name}: {values[name]}" for name in FIELDS if name in values and not self.field(name)]
        if not lines:
            return self
        # trailers are a paragraph of their own, and one only
        last = self.message.rpartition("\n\n")[2].splitlines()
        joined = bool(last) and all(re.match(r"[A-Z][\w-]*: ", line) for line in last)
        message = f"{self.message}\n{'' if joined or not self.message else chr(10)}" + "\n".join(lines)
        return Stored(self.author, self.date, self.subject, message.lstrip("\n"), self.diff)

    def with_bases(self, bases: Sequence[str]) -> Stored:
        """The same for other bases; the field is there already."""
        message = re.sub(r"^Bases: *.*$", f"Bases: {' '.join(bases)}", self.message, flags=re.MULTILINE)
        return Stored(self.author, self.date, self.subject, message, self.diff)

    @property
    def meaning(self) -> tuple[str, str, str]:
        """The identity of a patch: author, message, changes; not their place, nor the bases that use it."""
        message = _BOOKKEEPING.sub("", self.message).strip("\n")
        return self.author, f"{self.subject}\n{message}", essence(self.diff)

    @property
    def fingerprint(self) -> str:
        """Ten hex digits that change with the meaning; twelve look like a commit to checkpatch."""
        return hashlib.sha256("\0".join(self.meaning).encode()).hexdigest()[:10]


def parse(text: str, path: Path) -> Stored:
    """Take a stored patch apart; anything that is not in the stored form is refused with file and line."""
    match = re.match(r"From: (.+)\nDate: (.+)\nSubject: (.+)\n\n", text)
    if not match:
        raise Problem(
            f"{path}:1: expected the lines From:, Date:, Subject: and an empty line (tools/patch/export)"
        )
    message, separator, diff = text[match.end() :].partition("\n---\n")
    if not separator or not diff.startswith("diff --git "):
        raise Problem(f"{path}: expected a line --- after the message and the diff right below it")
    return Stored(match[1], match[2], match[3], message, diff)


def faults(text: str, path: Path, bases: list[str]) -> list[str]:
    """Faults in the form of a stored patch, one line each; `bases` are the known ones."""
    try:
        patch = parse(text, path)
    except Problem as problem:
        return [str(problem)]
    found = []
    if not _FORWARDED.fullmatch(patch.field("Forwarded")):
        found.append(
            f"{path}: field Forwarded: is {patch.field('Forwarded')!r}: expected no, not-needed or an address"
        )
    if not _FINGERPRINT.fullmatch(patch.field("Replaces")):
        found.append(f"{path}: field Replaces: is {patch.field('Replaces')!r}: tools/patch/bump sets it")
    named = patch.field("Bases").split()
    if not named:
        found.append(f"{path}: field Bases: is missing: name the bases it is for, such as {' '.join(bases)}")
    found += [
        f"{path}: field Bases: names {name!r}: known are {', '.join(bases)}"
        for name in named
        if name not in bases
    ]
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("index ") or line == "-- ":
            found.append(
                f"{path}:{number}: {line!r} must not be in a stored patch (tools/patch/export leaves it out)"
            )
        if line.startswith("GIT binary patch"):
            found.append(f"{path}:{number}: binary content: a patch of the series is text")
    if not text.endswith("\n") or "\r" in text:
        found.append(f"{path}: expected Unix line ends, also on the last line")
    return found


def essence(diff: str) -> str:
    """A diff without what says only where: index lines, line numbers, the function named beside them."""
    kept = (line for line in diff.splitlines() if not line.startswith("index "))
    return "\n".join("@@" if line.startswith("@@ ") else line for line in kept)


def from_commit(repository: Path, commit: str) -> Stored:
    """The stored form of a commit; fields are those its message has."""
    shown = git(repository, "show", "-s", "--format=%an <%ae>%n%aD%n%s%n%b", commit)
    author, date, subject, body = shown.split("\n", 3)
    diff = git(repository, *_DIFF, commit)
    if not diff:
        raise Problem(f"{repository}: commit {commit[:12]} ({subject}) changes nothing: drop it")
    lines = [line for line in diff.splitlines(keepends=True) if not line.startswith("index ")]
    return Stored(author, date, subject, body.strip("\n"), "".join(lines))
