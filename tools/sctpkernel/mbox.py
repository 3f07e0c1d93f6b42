# SPDX-License-Identifier: GPL-2.0
"""tools/build/series: the series of each base as mail: an mbox for git am, and a cover letter beside it.

All patches in one mbox, and in postings, which are what a maintainer takes: at most MOST patches each, one
after the other. In a series file a posting begins with the line "## NAME: what it does"; patches/cover has
the text of the whole and, below "## NAME", that of each posting.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sctpkernel.bases import Base, load_bases, point_release
from sctpkernel.errors import Parser, Problem, run_main
from sctpkernel.origin import origin
from sctpkernel.patchfile import FIELDS, Stored, parse
from sctpkernel.paths import ROOT, new_folder
from sctpkernel.series import PATCHES, Patch, load_series, series_names

OUT = ROOT / "build" / "series"
MOST = 15  # patches of a posting; see the kernel's Documentation/process/maintainer-netdev.rst
# The first line of git format-patch: mail programs and git find the start of a mail by it.
_START = "From {hash:0>40} Mon Sep 17 00:00:00 2001\n"
_MIME = "MIME-Version: 1.0\nContent-Type: text/plain; charset=UTF-8\nContent-Transfer-Encoding: 8bit\n"
_FIELD = re.compile(rf"^(?:{'|'.join(FIELDS)}): .*\n?", re.MULTILINE)
# Of a posting or of a part of it, but not the file's first line.
_HEADING = re.compile(r"#(?:# [a-z0-9-]+:)? (?!The series)(.+)")
# A line that a reader of an mbox would take for the start of the next mail.
_TAKEN_FOR_START = re.compile(r"^From .*\d{4}$", re.MULTILINE)


@dataclass(frozen=True)
class Posting:
    """Patches that are sent together. LISTED: their part of the series file."""

    name: str
    title: str
    listed: str

    @property
    def names(self) -> list[str]:
        return series_names(self.listed)


def postings(series: str) -> list[Posting]:
    """Those of a series file, in order; refused where one is too long, or a patch is in none."""
    before, *parts = re.split(r"^## ([a-z0-9-]+): (.+)\n", series, flags=re.MULTILINE)
    found = [Posting(*parts[at : at + 3]) for at in range(0, len(parts), 3)]
    if stray := series_names(before):
        raise Problem(
            f"{stray[0]}: in no posting: expected a line '## NAME: title' above it in the series file"
        )
    for one in found:
        if not 1 <= len(one.names) <= MOST:
            raise Problem(f"posting {one.name}: has {len(one.names)} patches, expected 1 to {MOST}: split it")
    return found


def texts(cover_file: str) -> dict[str, str]:
    """Posting -> its text in patches/cover; "" -> that of the whole series."""
    whole, *parts = re.split(r"^## ([a-z0-9-]+)\n", cover_file, flags=re.MULTILINE)
    return {"": whole, **dict(zip(parts[::2], parts[1::2], strict=True))}


def diffstat(diff: str) -> str:
    """Which files a diff changes and how much, as git shows it."""
    command = ["git", "apply", "--stat", "-"]
    return subprocess.run(command, input=diff, capture_output=True, text=True, check=True).stdout


def message(patch: Stored, number: int, count: int, base: str) -> str:
    """One patch as a mail; the fields that are for this project only are left out."""
    if _TAKEN_FOR_START.search(patch.message):
        raise Problem(f"{patch.subject}: a line of the message begins with 'From ': reword it")
    width = len(str(count))
    text = _FIELD.sub("", patch.message + "\n").strip("\n")
    return (
        f"{_START.format(hash=number)}From: {patch.author}\nDate: {patch.date}\n"
        f"Subject: [PATCH {base} {number:0{width}}/{count}] {patch.subject}\n{_MIME}\n"
        f"{text}\n---\n{diffstat(patch.diff)}\n{patch.diff}-- \n{base}\n\n"
    )


def contents(series: str, subjects: dict[str, str]) -> str:
    """The subjects in order, below the headings of a series file; `subjects` by name of the patch."""
    lines = []
    for line in series.splitlines():
        names = series_names(line)
        if match := _HEADING.fullmatch(line):
            lines += ["", f"{match[1]}:"]
        lines += [f"  {subjects[name]}" for name in names]
    return "\n".join(lines).strip("\n")


def cover(blurb: str, patches: Sequence[Stored], listed: str, about: str) -> str:
    """The cover letter; `blurb` is a subject, an empty line and text, `about` names the kernel it is for."""
    subject, _, text = blurb.partition("\n\n")
    paragraphs = [textwrap.fill(part, 72, break_on_hyphens=False) for part in text.strip().split("\n\n")]
    body = "\n\n".join([*paragraphs, f"For {about}.", listed])
    return (
        f"{_START.format(hash=0)}From: {patches[0].author}\nDate: {patches[-1].date}\n"
        f"Subject: [PATCH 0/{len(patches)}] {subject}\n{_MIME}\n{body}\n"
    )


def mails(patches: Sequence[Patch], listed: str, base: Base, blurb: str, about: str) -> tuple[str, str]:
    """(mbox, cover letter) of patches that are sent together."""
    stored = [parse(patch.text, patch.path) for patch in patches]
    box = [message(patch, number, len(stored), base.name) for number, patch in enumerate(stored, 1)]
    subjects = {patch.name: one.subject for patch, one in zip(patches, stored, strict=True)}
    return "".join(box), cover(blurb, stored, contents(listed, subjects), about)


def write(base: Base, patches: Sequence[Patch], about: str, folder: Path) -> None:
    """Write mbox and cover letter of a base into `folder`, and those of its postings into a folder in it."""
    series = (PATCHES / f"series-{base.name}").read_text(encoding="utf-8")
    known = texts((PATCHES / "cover").read_text(encoding="utf-8"))
    put(folder / f"sctp-multipath-{base.name}", *mails(patches, series, base, known[""], about))
    by_name = {patch.name: patch for patch in patches}
    (folder / base.name).mkdir()
    found = postings(series)
    for number, one in enumerate(found):
        if one.name not in known:
            raise Problem(f"{PATCHES}/cover: nothing of posting {one.name}: add '## {one.name}' and a text")
        blurb = f"sctp: {one.title}\n\n{known[one.name].strip()}\n"
        chosen = [by_name[name] for name in one.names]
        place = folder / base.name / f"{number:0{len(str(len(found)))}}-{one.name}"  # in order when sorted
        put(place, *mails(chosen, one.listed, base, blurb, about))


def put(place: Path, box: str, letter: str) -> None:
    place.with_name(f"{place.name}.mbox").write_text(box, encoding="utf-8")
    place.with_name(f"{place.name}.cover").write_text(letter, encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: prints each mbox."""
    parser = Parser(
        prog="tools/build/series",
        description="Write the series of each base as mail: sctp-multipath-BASE.mbox, for git am, "
        "and its cover letter sctp-multipath-BASE.cover; in BASE/ the same in postings.",
    )
    parser.add_argument(
        "folder", nargs="?", type=Path, default=OUT, help="a new folder (default: build/series)"
    )
    given = parser.parse_args(arguments)
    target = given.folder.absolute()
    if target == OUT:
        shutil.rmtree(OUT, ignore_errors=True)
    elif target.exists():
        raise Problem(f"{target}: exists already: name a folder that does not")
    bases = [base for base in load_bases().values() if base.state == "supported" and load_series(base.name)]
    with new_folder(target) as folder:
        for base in bases:
            about = f"Linux {point_release(origin(base).version)}"
            write(base, load_series(base.name), about, folder)
    for base in bases:
        print(target / f"sctp-multipath-{base.name}.mbox")
    return 0


if __name__ == "__main__":
    run_main("tools/build/series", main)
