# SPDX-License-Identifier: GPL-2.0
"""tools/build/lint: what gcc (W=1) and sparse say about net/sctp with the series, and did not say without it.

Only net/sctp is built, against a prepared tree, in the forms the series can be built in.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sctpkernel.bases import Base, find_base
from sctpkernel.errors import FAILED, Problem, run_main, warn
from sctpkernel.fragment import Option, load_fragments, options_added, parse_config
from sctpkernel.make import begin_log, make
from sctpkernel.paths import ROOT, cache_root, locked, need_space
from sctpkernel.series import Patch, load_series
from sctpkernel.source import patched_tree, unpacked

LINT_GB = 3.0  # trees and objects of all forms
# A file of the tree, with or without the tree in front; not what kconfig says of the .config.
_WARNING = re.compile(r"(?:\S*/)?((?:net|include)/\S+?):\d+(?::\d+)?: (?:warning|error): (.*)")
# 64-bit division is a call that 32-bit kernels do not have; only linking would show it.
_DIVISION = re.compile(r"U (__u?(?:div|mod)di3)$", re.MULTILINE)


@dataclass(frozen=True)
class Form:
    """One way to build net/sctp: architecture, the protocol y or m, the options the series adds y or n."""

    name: str
    arch: str
    protocol: str
    series: str


FORMS = (
    Form("built-in", "x86_64", "y", "y"),
    Form("module", "x86_64", "m", "y"),
    Form("off", "x86_64", "m", "n"),
    Form("32-bit", "i386", "y", "y"),
)


def warnings(text: str) -> Counter[str]:
    """Warnings and errors in compiler output, without the line numbers: file and what it says."""
    return Counter(f"{found[1]}: {found[2]}" for found in map(_WARNING.match, text.splitlines()) if found)


def wanted(form: Form, added: set[str]) -> dict[str, str]:
    """Options of a form when the series adds those in `added`; its tests need KUnit as the protocol is."""
    return {"IP_SCTP": form.protocol, "KUNIT": form.protocol} | dict.fromkeys(sorted(added), form.series)


def configure(tree: Path, out: Path, form: Form, options: Mapping[str, str], log: Path, title: str) -> None:
    """Give the output folder `out` a configuration, and what compiling single files needs."""
    settings = {"ARCH": form.arch, "O": str(out)}
    make(tree, ["defconfig"], log, title, settings)
    with (out / ".config").open("a", encoding="utf-8") as handle:
        handle.writelines(f"{option.line}\n" for option in load_fragments([ROOT / "Kconfig.fragment"]))
        handle.writelines(f"{Option(name, value, out).line}\n" for name, value in options.items())
    make(tree, ["olddefconfig"], log, title, settings)
    have = parse_config((out / ".config").read_text(encoding="utf-8"))
    for name, value in options.items():
        if have.get(name, "n") != value:
            raise Problem(
                f"{title}: CONFIG_{name} is {have.get(name, 'n')} instead of {value}: see {log}", FAILED
            )
    make(tree, ["modules_prepare"], log, title, settings)


def examine(tree: Path, place: Path, form: Form, added: set[str], title: str) -> Counter[str]:
    """Build net/sctp of `tree` afresh in one form below `place`; what compiler and sparse said."""
    out, log = place / form.name, cache_root() / "log" / f"lint-{place.name}-{form.name}.log"
    out.mkdir(parents=True, exist_ok=True)
    title = f"{title}, {form.name}"
    begin_log(log, title)
    configure(tree, out, form, wanted(form, added), log, title)
    shutil.rmtree(out / "net" / "sctp", ignore_errors=True)  # what is up to date says nothing
    before = log.stat().st_size
    make(tree, ["W=1", "C=2", "net/sctp/"], log, title, {"ARCH": form.arch, "O": str(out)})
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
    source, place = unpacked(base), cache_root() / "build" / f"{base.name}-stock-lint"
    return {form.name: examine(source, place, form, set(), f"stock {base.name}") for form in forms}


def new_warnings(
    base: Base,
    patches: Sequence[Patch],
    forms: Sequence[Form],
    stock: Mapping[str, Counter[str]],
    title: str,
) -> list[str]:
    """What is said about the source with `patches` and not about the untouched one, form first."""
    place = cache_root() / "build" / f"{base.name}-patched-lint"
    tree = patched_tree(unpacked(base), patches, place)
    added = options_added(patch.text for patch in patches)
    found = []
    for form in forms:
        said = examine(tree, place, form, added, title) - stock[form.name]
        found += [f"{form.name}: {line}" for line in sorted(said)]
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: prints each new warning; exit code 0 for none."""
    parser = argparse.ArgumentParser(
        prog="tools/build/lint",
        description="Build net/sctp with W=1 and sparse, stock and with the series: built in, as a module, "
        "with the option off, and for 32 bits. Fail on what is said about the series only.",
    )
    parser.add_argument("base", nargs="?", default="6.12", help="kernel version (default: %(default)s)")
    parser.add_argument(
        "--each", action="store_true", help="every patch of the series in turn, not only the last"
    )
    given = parser.parse_args(arguments)
    base = find_base(given.base)
    series = load_series(base.name)
    need_space(cache_root(), LINT_GB, "lint")
    with locked(cache_root() / "lock" / f"lint-{base.name}.lock"):
        stock = stock_warnings(base, FORMS)
        failed = 0
        for count in range(1 if given.each else len(series), len(series) + 1):
            title = f"patch {count} of {len(series)}" if given.each else "with the series"
            found = new_warnings(base, series[:count], FORMS, stock, title)
            failed += len(found)
            for line in found:
                print(f"{series[count - 1].name}: {line}" if given.each else line)
    if failed:
        raise Problem(f"{failed} warnings that the stock source does not give", FAILED)
    warn(f"no new warnings in {len(FORMS)} forms")
    return 0


if __name__ == "__main__":
    run_main("tools/build/lint", main)
