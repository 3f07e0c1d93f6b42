# SPDX-License-Identifier: GPL-2.0
"""tools/patch/without: a copy of patches/ in which one function of the series returns at once.

One more patch at the end of the series puts "return VALUE;" before all that the function does. So a rule can
be measured: build a kernel with the series and one without the rule, and compare them.
"""

from __future__ import annotations

import argparse
import difflib
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from sctpkernel.bases import find_base, reference_base
from sctpkernel.errors import FAILED, Problem, run_main
from sctpkernel.hooks import definitions
from sctpkernel.series import PATCHES, Patch, load_series
from sctpkernel.source import apply_patch, copy_touched, touched_files, unpacked

NAME = "9999-sctp-leave-out-a-rule.patch"
_RULE = re.compile(r"([^\s:]+):(\w+)")


def returning(text: str, function: str, value: str) -> str:
    """The text of a C file in which FUNCTION's first definition returns VALUE; unchanged without any."""
    body = next((found for name, found in definitions(text) if name == function), "")
    first, brace, rest = body.partition("\n{\n")
    answer = f"return {value};" if value else "return;"
    return text.replace(body, f"{first}{brace}\t{answer}\n\n{rest}", 1) if brace else text


def patch_text(file: str, old: str, new: str, base: str) -> str:
    """A patch of the stored form that makes OLD into NEW."""
    lines = difflib.unified_diff(old.splitlines(True), new.splitlines(True), f"a/{file}", f"b/{file}")
    return (
        "From: sctp-multipath developers <sctp-multipath@example.org>\n"
        "Date: Thu, 1 Jan 1970 00:00:00 +0000\n"
        "Subject: sctp: leave out a rule\n\n"
        f"Forwarded: not-needed\nBases: {base}\n---\ndiff --git a/{file} b/{file}\n{''.join(lines)}"
    )


def tip(base: str, file: str) -> str:
    """A file with the whole series of a base."""
    patches: Sequence[Patch] = load_series(base)
    if file not in touched_files(patches):
        raise Problem(f"{file}: no patch of series-{base} touches it; expected a file of net/sctp or include")
    source = unpacked(find_base(base))
    with tempfile.TemporaryDirectory(prefix="without-") as scratch:
        copy_touched(source, patches, Path(scratch))
        for patch in patches:
            apply_patch(Path(scratch), patch, source.name)
        return Path(scratch, file).read_text(encoding="utf-8")


def write(base: str, rule: str, value: str, out: Path) -> None:
    """Make OUT a copy of patches/ whose series of this base lacks a rule, FILE:FUNCTION."""
    match = _RULE.fullmatch(rule)
    if not match:
        raise Problem(f"{rule}: expected FILE:FUNCTION, such as net/sctp/multipath/sched.c:sctp_mp_gathers")
    file, function = match.groups()
    old = tip(base, file)
    new = returning(old, function, value)
    if new == old:
        raise Problem(f"{rule}: {file} has no function {function}; look it up in the tree of the series")
    if out.exists():
        if not (out / f"series-{base}").is_file():
            raise Problem(f"{out}: exists and is no copy of patches/; name another folder", FAILED)
        shutil.rmtree(out)
    shutil.copytree(PATCHES, out)
    (out / "common" / NAME).write_text(patch_text(file, old, new, base), encoding="utf-8")
    with (out / f"series-{base}").open("a", encoding="utf-8") as series:
        series.write(f"{NAME}\n")


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(prog="tools/patch/without", description=__doc__)
    parser.add_argument("rule", metavar="FILE:FUNCTION")
    parser.add_argument("value", nargs="?", default="", help="what it returns; none for a void function")
    parser.add_argument("--base", help="see patches/bases.toml (default: the reference)")
    parser.add_argument("--out", type=Path, required=True, help="the copy; an earlier one is replaced")
    options = parser.parse_args()
    base = options.base or reference_base()
    find_base(base)
    write(base, options.rule, options.value, options.out)
    print(options.out)
    return 0


if __name__ == "__main__":
    run_main("tools/patch/without", main)
