# SPDX-License-Identifier: GPL-2.0
"""tools/patch/check: are the stored patches in order, and do they survive the way into a tree and back?"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from sctpkernel import hooks, questions
from sctpkernel.bases import Base, find_base, load_bases, reference_base, release_warning
from sctpkernel.callees import undefined
from sctpkernel.errors import FAILED, Parser, Problem, run_main, warn
from sctpkernel.git import series_commits
from sctpkernel.numbering import number
from sctpkernel.origin import origin
from sctpkernel.patchfile import Stored, faults, from_commit, parse
from sctpkernel.series import PATCHES, Patch, load_series, load_testbed
from sctpkernel.source import unpacked
from sctpkernel.tree import small_tree

# Whoever submits a patch signs it; net/sctp is in MAINTAINERS as a folder, so that new files are, too; and
# the history that Fixes: refers to is not part of a kernel's source.
CHECKPATCH_IGNORES = ("MISSING_SIGN_OFF", "FILE_PATH_CHANGES", "UNKNOWN_COMMIT_ID")
# Tracepoints are written as they are everywhere in the kernel, which checkpatch does not know; a macro that
# sets a member cannot put its name in parentheses; and removed lines may look like the end of a diff to it.
_KNOWN = re.compile(
    r"include/trace/\S+ (CHECK|WARNING|ERROR):(PARENTHESIS_ALIGNMENT|OPEN_ENDED_LINE|COMPLEX_MACRO|"
    r"MACRO_ARG_REUSE|MACRO_ARG_UNUSED|TRAILING_SEMICOLON|MULTISTATEMENT_MACRO_USE_DO_WHILE): "
    r"|net/sctp/multipath/test/test\.h:\d+: CHECK:MACRO_ARG_(REUSE|PRECEDENCE): "
)
_LOG = re.compile(r":(\d+): WARNING:COMMIT_LOG_LONG_LINE: ")


def check_forms(patches: Path, bases: Sequence[str]) -> list[str]:
    """Faults in the form of any stored patch."""
    paths = sorted(patches.rglob("*.patch"))
    return [fault for path in paths for fault in faults(path.read_text(encoding="utf-8"), path, list(bases))]


def check_variants(patches: Path, bases: Iterable[str]) -> list[str]:
    """Patches of one base that say the same as the common one, or were adapted from another text of it."""
    found = []
    for path in sorted(path for base in bases for path in (patches / base).glob("*.patch")):
        common = patches / "common" / path.name
        if not common.is_file():
            continue
        one, other = _read(path), _read(common)
        if one.meaning == other.meaning:
            found.append(f"{path}: differs from {common} in line numbers only: remove it")
        elif one.field("Replaces") != other.fingerprint:
            found.append(
                f"{path}: was adapted from another text of {common}: run tools/patch/bump {path.parent.name}"
            )
    return found


def _read(path: Path) -> Stored:
    return parse(path.read_text(encoding="utf-8"), path)


def check_lists(patches: Path, bases: Sequence[Base]) -> list[str]:
    """Faults in what the series files name, in which order, and for which bases the patches say they are."""
    found: list[str] = []
    listed: set[Path] = set()
    for base in bases:
        path = patches / f"series-{base.name}"
        if not path.is_file():
            if base.state == "supported":
                found.append(f"{path}: not found: base {base.name} is supported")
            continue
        series = load_series(base.name, patches)
        numbers = [number(patch.name) for patch in series]
        if numbers != sorted(set(numbers)):
            found.append(
                f"{path}: the numbers of the patches do not rise: tools/patch/export {base.name} renames them"
            )
        for patch in series:
            listed.add(patch.path)
            if base.name not in parse(patch.text, patch.path).field("Bases").split():
                found.append(f"{patch.path}: field Bases: lacks {base.name}, whose series names the patch")
    names = {path.name for path in listed}
    unlisted = [path for path in patches.glob("common/*") if path.name not in names]
    unlisted += [path for base in bases for path in patches.glob(f"{base.name}/*") if path not in listed]
    return found + [f"{path}: no series names it: remove it or list it" for path in sorted(unlisted)]


def round_trip(source: Path, patches: Sequence[Patch], exact: bool) -> list[str]:
    """Apply `patches` to `source` as commits and export them again: faults where a text does not come back.

    Only files that a patch touches are committed. `exact`: line numbers count, too.
    """
    with tempfile.TemporaryDirectory(prefix="round-trip-") as folder:
        tree = small_tree(source, patches, Path(folder))
        found = []
        for patch, commit in zip(patches, series_commits(tree), strict=True):
            back = from_commit(tree, commit)
            same = back.render() == patch.text
            if not same and (exact or back.meaning != parse(patch.text, patch.path).meaning):
                found.append(f"{patch.path}: comes back changed: run tools/patch/tree and export")
    return found


def checkpatch(source: Path, patches: Sequence[Patch]) -> list[str]:
    """The complaints of the kernel's own style checker with --strict, one line each."""
    found = []
    ignored = f"--ignore={','.join(CHECKPATCH_IGNORES)}"
    command = [str(source / "scripts/checkpatch.pl"), f"--root={source}", ignored]
    command += ["--strict", "--terse", "--no-summary", "--show-types", "--showfile"]
    for patch in patches:
        with tempfile.TemporaryDirectory(prefix="checkpatch-") as folder:  # it leaves files where it runs
            done = subprocess.run(
                [*command, str(patch.path)], cwd=folder, capture_output=True, text=True, check=False
            )
        lines = done.stdout.splitlines()
        log = patch.text.partition("\n---\n")[0].count("\n") + 1
        found += [
            f"{patch.path}: {line}"
            for line in lines
            if not _KNOWN.match(line) and not ((at := _LOG.match(line)) and int(at[1]) > log)
        ]
        if done.returncode and not lines:
            found.append(f"{patch.path}: checkpatch failed: {done.stderr.strip()}")
    return found


def quick(patches: Path = PATCHES) -> list[str]:
    """All that can be told without a kernel source."""
    bases = load_bases(patches / "bases.toml")
    found = check_forms(patches, list(bases))
    if found:
        return found
    found = check_variants(patches, bases) + check_lists(patches, list(bases.values()))
    if found:
        return found
    series = [load_series(base, patches) for base in bases]
    return [fault for one in series for fault in (*undefined(one), *questions.faults(one))]


def full(base: Base) -> list[str]:
    """Apply, export again and checkpatch one base."""
    source = unpacked(base)
    warning = release_warning(base, origin(base).version)
    if warning:
        warn(warning)
    exact = base.name == reference_base() and not warning
    found = []
    for patches in (load_series(base.name), load_testbed(base.name)):
        if patches:
            found += round_trip(source, patches, exact) + checkpatch(source, _written_on(base, patches))
    return found + hooks.faults(base, hooks.load())


def _written_on(base: Base, patches: Sequence[Patch]) -> list[Patch]:
    """Those of `patches` whose style is looked at with this base: its variants, or all of the reference."""
    own = PATCHES / base.name
    return [patch for patch in patches if base.name == reference_base() or patch.path.parent == own]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: one line per fault, nothing and exit code 0 for none."""
    parser = Parser(
        prog="tools/patch/check",
        description="Check the stored patches: format, series files, application without fuzz, "
        "unchanged export, checkpatch --strict.",
    )
    parser.add_argument("base", nargs="?", help="kernel version (default: all supported ones)")
    parser.add_argument("--quick", action="store_true", help="only checks that need no kernel source")
    given = parser.parse_args(arguments)
    bases = (
        [find_base(given.base)]
        if given.base
        else [base for base in load_bases().values() if base.state == "supported"]
    )
    found = quick()
    if not found and not given.quick:
        found = [fault for base in bases for fault in full(base)]
    for fault in found:
        print(fault)
    if found:
        raise Problem(f"{len(found)} faults", FAILED)
    return 0


if __name__ == "__main__":
    run_main("tools/patch/check", main)
