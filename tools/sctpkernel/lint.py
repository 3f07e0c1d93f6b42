# SPDX-License-Identifier: GPL-2.0
"""tools/build/lint: what gcc (W=1) and sparse say about net/sctp with the series, and did not say without it.

Only net/sctp is built, against a prepared tree, in the forms the series can be built in. For every patch in
turn only what it changes is built again: what it does not reach says what it said before. Before the last one
sparse looks at one form only, and nothing is built for 32 bits: that takes two thirds of the time.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sctpkernel.bases import Base, find_base
from sctpkernel.errors import FAILED, Parser, Problem, run_main, warn
from sctpkernel.fragment import Option, load_fragments, options_added, parse_config
from sctpkernel.kernel import compiler_version
from sctpkernel.make import begin_log, make
from sctpkernel.paths import ROOT, cache_root, locked, need_space
from sctpkernel.series import Patch, load_series, short_id
from sctpkernel.source import patched_tree, unpacked

LINT_GB = 3.0  # trees and objects of all forms
# A file of the tree, with or without the tree in front; not what kconfig says of the .config.
_WARNING = re.compile(r"(?:\S*/)?((?:net|include)/\S+?):(\d+(?::\d+)?): (?:warning|error): (.*)")
# 64-bit division is a call that 32-bit kernels do not have; only linking would show it.
_DIVISION = re.compile(r"U (__u?(?:div|mod)di3)$", re.MULTILINE)


@dataclass(frozen=True)
class Form:
    """One way to build net/sctp: architecture, the protocol y or m, the options the series adds y or n."""

    name: str
    arch: str
    protocol: str
    series: str
    sparse: bool = True


BUILT_IN = Form("built-in", "x86_64", "y", "y")
MODULE = Form("module", "x86_64", "m", "y")
OFF = Form("off", "x86_64", "m", "n")
FORMS = (BUILT_IN, MODULE, OFF, Form("32-bit", "i386", "y", "y"))
FORMS_BETWEEN = (BUILT_IN, replace(MODULE, sparse=False), replace(OFF, sparse=False))


def warnings(text: str) -> Counter[str]:
    """Warnings and errors in compiler output, without the line numbers: file and what it says.

    One place counts once, however many files include the header that it is in.
    """
    places = {found.groups() for found in map(_WARNING.match, text.splitlines()) if found}
    return Counter(f"{file}: {said}" for file, _, said in places)


def wanted(form: Form, added: frozenset[str]) -> dict[str, str]:
    """Options of a form when the series adds those in `added`; its tests need KUnit as the protocol is."""
    return {"IP_SCTP": form.protocol, "KUNIT": form.protocol} | dict.fromkeys(sorted(added), form.series)


def make_settings(form: Form, out: Path) -> dict[str, str]:
    """Variables for make to build a form in `out`; CC without ccache, which knows no new code."""
    return {"ARCH": form.arch, "O": str(out), "CC": "gcc"}


def configure(
    tree: Path,
    out: Path,
    form: Form,
    options: Sequence[Option],
    added: Mapping[str, str],
    log: Path,
    title: str,
) -> None:
    """Give the output folder `out` a configuration, and what compiling single files needs.

    options  those of the fragment, `added` those of the series, whose values are checked
    """
    settings = make_settings(form, out)
    lines = [option.line for option in options]
    lines += [Option(name, value, out).line for name, value in added.items()]
    stamp, wanted_stamp = out / "configured", "\n".join([*lines, (tree / "net/sctp/Kconfig").read_text()])
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted_stamp:
        return
    stamp.unlink(missing_ok=True)
    make(tree, ["defconfig"], log, title, settings)
    with (out / ".config").open("a", encoding="utf-8") as handle:
        handle.writelines(f"{line}\n" for line in lines)
    make(tree, ["olddefconfig"], log, title, settings)
    have = parse_config((out / ".config").read_text(encoding="utf-8"))
    for name, value in added.items():
        if have.get(name, "n") != value:
            raise Problem(
                f"{title}: CONFIG_{name} is {have.get(name, 'n')} instead of {value}: see {log}", FAILED
            )
    make(tree, ["modules_prepare"], log, title, settings)
    stamp.write_text(wanted_stamp, encoding="utf-8")


@dataclass(frozen=True)
class Subject:
    """A tree to look at, `place` to build it in, `options` of the fragment, those `added` by the series."""

    tree: Path
    place: Path
    options: tuple[Option, ...]
    added: frozenset[str]


def examine(subject: Subject, form: Form, title: str, fresh: bool) -> Counter[str]:
    """Build net/sctp in one form; what compiler and sparse said.

    fresh  all of it again, otherwise what changed since the last time
    """
    tree, place = subject.tree, subject.place
    out, log = place / form.name, cache_root() / "log" / f"lint-{place.name}-{form.name}.log"
    out.mkdir(parents=True, exist_ok=True)
    title = f"{title}, {form.name}"
    begin_log(log, title)
    configure(tree, out, form, subject.options, wanted(form, subject.added), log, title)
    if fresh:
        shutil.rmtree(out / "net" / "sctp", ignore_errors=True)  # what is up to date says nothing
    before = log.stat().st_size
    make(tree, ["W=1", f"C={int(form.sparse)}", "net/sctp/"], log, title, make_settings(form, out))
    with log.open(encoding="utf-8", errors="replace") as handle:
        handle.seek(before)
        said = warnings(handle.read())
    if form.arch == "i386":
        said += divisions(out / "net" / "sctp")
    return said


def divisions(folder: Path) -> Counter[str]:
    """Object files below `folder` that call for a 64-bit division."""
    said: Counter[str] = Counter()
    for path in sorted(folder.glob("*.o")):
        symbols = subprocess.run(["nm", "-u", str(path)], capture_output=True, text=True, check=True).stdout
        said.update(f"net/sctp/{path.stem}.c: calls {name}" for name in _DIVISION.findall(symbols))
    return said


def stock_warnings(base: Base, forms: Sequence[Form]) -> dict[str, Counter[str]]:
    """Form name -> what is said about the untouched source."""
    place = cache_root() / "build" / f"{base.name}-stock-lint"
    subject = Subject(unpacked(base), place, fragment(base), frozenset())
    return {form.name: examine(subject, form, f"stock {base.name}", True) for form in forms}


def fragment(base: Base) -> tuple[Option, ...]:
    """The options of Kconfig.fragment for a base."""
    return tuple(load_fragments([ROOT / "Kconfig.fragment"], base.name))


def new_warnings(
    base: Base,
    patches: Sequence[Patch],
    forms: Sequence[Form],
    stock: Mapping[str, Counter[str]],
    title: str,
    fresh: bool,
) -> list[str]:
    """Warnings about the source with `patches` that the untouched one does not give: "FORM: warning"."""
    place = cache_root() / "build" / f"{base.name}-patched-lint"
    tree = patched_tree(unpacked(base), patches, place)
    added = frozenset(options_added(patch.text for patch in patches))
    subject = Subject(tree, place, fragment(base), added)
    found = []
    for form in forms:
        said = examine(subject, form, title, fresh) - stock[form.name]
        found += [f"{form.name}: {line}" for line in sorted(said)]
    return found


def good(base: Base, patches: Sequence[Patch], forms: Sequence[Form]) -> Path:
    """The file that is there once this compiler said nothing new about `patches` on the base in `forms`."""
    options = [option.line for option in fragment(base)]
    inputs = [unpacked(base).name, short_id(patches, "stock"), options, repr(forms), compiler_version()]
    key = hashlib.sha256(json.dumps(inputs).encode()).hexdigest()[:12]
    return cache_root() / "lint" / f"{base.name}-{key}"


def check_series(base: Base, each: bool) -> list[str]:
    """Warnings of compiler and sparse about the series of a base only, or about any patch of it in turn.

    Patches that were found good before are not built again: after an interruption it goes on where it was.
    """
    series = load_series(base.name)
    if not series:
        raise Problem(f"base {base.name} has no series yet: run tools/patch/bump {base.name}")
    need_space(cache_root(), LINT_GB, "lint")
    last = len(series)
    forms = dict.fromkeys(range(1, last), FORMS_BETWEEN) | {last: FORMS}
    counts = range(1 if each else last, last + 1)
    todo = [count for count in counts if not good(base, series[:count], forms[count]).exists()]
    found: list[str] = []
    with locked(cache_root() / "lock" / f"lint-{base.name}.lock"):
        stock = stock_warnings(base, FORMS) if todo else {}
        for count in todo:
            title = f"patch {count} of {last}" if each else "with the series"
            fresh = count - 1 not in todo or forms[count] != forms[count - 1]
            said = new_warnings(base, series[:count], forms[count], stock, title, fresh)
            found += [f"{series[count - 1].name}: {line}" if each else line for line in said]
            if not found:  # else what is not built again may still be bad
                stamp = good(base, series[:count], forms[count])
                stamp.parent.mkdir(exist_ok=True)
                stamp.touch()
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: prints each new warning; exit code 0 for none."""
    parser = Parser(
        prog="tools/build/lint",
        description="Build net/sctp with W=1 and sparse, stock and with the series: built in, as a module, "
        "with the option off, and for 32 bits. Fail on warnings about the series only.",
    )
    parser.add_argument("base", nargs="?", default="6.12", help="kernel version (default: %(default)s)")
    base = find_base(parser.parse_args(arguments).base)
    found = check_series(base, each=False)
    for line in found:
        print(line)
    if found:
        raise Problem(f"{len(found)} warnings that the stock source does not give", FAILED)
    warn("no new warnings")
    return 0


if __name__ == "__main__":
    run_main("tools/build/lint", main)
