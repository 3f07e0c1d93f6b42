# SPDX-License-Identifier: GPL-2.0
"""tools/patch/without: a copy of patches/ in which functions of the series return at once.

One more patch at the end of the series puts "return VALUE;" before all that each function does. So a rule, or
several together, can be measured: build a kernel with the series and one without them, and compare the two.
"""

from __future__ import annotations

import difflib
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from sctpkernel.bases import find_base, reference_base
from sctpkernel.errors import FAILED, Parser, Problem, run_main
from sctpkernel.hooks import definitions
from sctpkernel.series import PATCHES, Patch, load_series
from sctpkernel.source import apply_patch, copy_touched, touched_files, unpacked

NAME = "9999-sctp-leave-out-rules.patch"
_RULE = re.compile(r"([^\s:]+):(\w+)(?:=(.*))?")


def returning(text: str, function: str, value: str) -> str:
    """The text of a C file in which FUNCTION's first definition returns VALUE; unchanged without any."""
    body = next((found for name, found in definitions(text) if name == function), "")
    first, brace, rest = body.partition("\n{\n")
    answer = f"return {value};" if value else "return;"
    return text.replace(body, f"{first}{brace}\t{answer}\n\n{rest}", 1) if brace else text


def patch_text(changed: Mapping[str, tuple[str, str]], base: str) -> str:
    """A patch of the stored form; CHANGED: file -> its text before and after."""
    diffs = [
        f"diff --git a/{file} b/{file}\n"
        + "".join(difflib.unified_diff(old.splitlines(True), new.splitlines(True), f"a/{file}", f"b/{file}"))
        for file, (old, new) in changed.items()
    ]
    return (
        "From: sctp-multipath developers <sctp-multipath@example.org>\n"
        "Date: Thu, 1 Jan 1970 00:00:00 +0000\n"
        "Subject: sctp: leave out rules\n\n"
        f"Forwarded: not-needed\nBases: {base}\n---\n{''.join(diffs)}"
    )


def tips(base: str, files: Sequence[str]) -> dict[str, str]:
    """Files with the whole series of a base: name -> text."""
    patches: Sequence[Patch] = load_series(base)
    touched = touched_files(patches)
    for file in files:
        if file not in touched:
            raise Problem(
                f"{file}: no patch of series-{base} touches it; expected a file of net/sctp or include"
            )
    source = unpacked(find_base(base))
    with tempfile.TemporaryDirectory(prefix="without-") as scratch:
        copy_touched(source, patches, Path(scratch))
        for patch in patches:
            apply_patch(Path(scratch), patch, source.name)
        return {file: Path(scratch, file).read_text(encoding="utf-8") for file in files}


def parts(rule: str) -> tuple[str, str, str]:
    """(file, function, value) of FILE:FUNCTION[=VALUE]."""
    match = _RULE.fullmatch(rule)
    if not match:
        raise Problem(
            f"{rule}: expected FILE:FUNCTION[=VALUE], such as net/sctp/multipath/ahead.c:sctp_mp_ahead=false"
        )
    return match[1], match[2], match[3] or ""


def write(base: str, rules: Sequence[str], out: Path) -> None:
    """Make OUT a copy of patches/ whose series of this base lacks the rules, each FILE:FUNCTION[=VALUE]."""
    wanted = [parts(rule) for rule in rules]
    before = tips(base, [file for file, _, _ in wanted])
    after = dict(before)
    for file, function, value in wanted:
        new = returning(after[file], function, value)
        if new == after[file]:
            raise Problem(f"{file}:{function}: no such function; look it up in the tree of the series")
        after[file] = new
    if out.exists():
        if not (out / f"series-{base}").is_file():
            raise Problem(f"{out}: exists and is no copy of patches/; name another folder", FAILED)
        shutil.rmtree(out)
    shutil.copytree(PATCHES, out)
    text = patch_text({file: (before[file], after[file]) for file in before}, base)
    (out / "common" / NAME).write_text(text, encoding="utf-8")
    with (out / f"series-{base}").open("a", encoding="utf-8") as series:
        series.write(f"{NAME}\n")


def main() -> int:
    """Command line."""
    parser = Parser(prog="tools/patch/without", description=__doc__)
    rules = parser.add_argument("rules", metavar="FILE:FUNCTION[=VALUE]", nargs="+")
    rules.help = "VALUE: what the function returns; none for a void one"
    parser.add_argument("--base", help="see patches/bases.toml (default: the reference)")
    parser.add_argument("--out", type=Path, required=True, help="the copy; an earlier one is replaced")
    options = parser.parse_args()
    base = options.base or reference_base()
    find_base(base)
    write(base, options.rules, options.out)
    print(options.out)
    return 0


if __name__ == "__main__":
    run_main("tools/patch/without", main)
