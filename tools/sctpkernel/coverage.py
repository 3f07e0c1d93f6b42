# SPDX-License-Identifier: GPL-2.0
"""tools/coverage: which lines and branches of net/sctp the tests run, counted by gcov in User Mode Linux.

While SCTPMP_COUNTING is set, tools/build/kernel builds the counting kind of each patched UML kernel. UML is a
program of the host, which adds its counters to the files below GCOV_PREFIX when it ends; one that is killed
adds none.

A line counts as run when it has run in any build. Branches of a line belong together when it has as many of
them in another build or, for functions of headers, in another object file; else those of the one with most
branches taken count.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from textwrap import fill
from typing import Any

from sctpkernel.errors import FAILED, Parser, Problem, last_line, run_main, warn
from sctpkernel.kernel import COUNTING, cached, gather
from sctpkernel.page import COVERAGE, grid, put
from sctpkernel.paths import ROOT, cache_root

FLAVOUR = "patched"
BUILDS = ("uml", "kunit", "debug")  # the debug kernel has checks of its own between the lines
TESTS = "testbed/tests/kernel"
# On virtual machines or no kernel at all, on the stock kernel, or on one with connection tracking.
NOT_COUNTED = ("test_doctor", "test_doctor_healthy", "test_install", "test_module", "test_runs")
OWN = "multipath/*.c"
OURS = "*/multipath/test/*"  # the unit tests themselves
ROWS = (OWN, "multipath*.h", "outqueue.c", "output.c", "transport.c", "associola.c")
HOOKS = ROWS[2:]
WIDTH = 120
GOALS = {"lines of " + OWN: 95.0, "branches of " + OWN: 90.0, "lines of " + ", ".join(HOOKS): 75.0}


@dataclass
class Line:
    """COUNT: how often it ran. BRANCHES: (function, number of branches) -> how often each was taken."""

    count: int = 0
    branches: dict[tuple[str, int], list[int]] = field(default_factory=dict)

    def add(self, found: Mapping[str, Any]) -> None:
        """FOUND: a line as gcov has it."""
        self.count += found["count"]
        taken = [branch["count"] for branch in found["branches"]]
        if taken:
            key = (found.get("function_name", ""), len(taken))
            self.branches[key] = [
                a + b for a, b in zip(self.branches.get(key, [0] * len(taken)), taken, strict=True)
            ]

    def taken(self) -> tuple[int, int]:
        """(branches taken, branches)."""
        best: dict[str, tuple[int, int]] = {}
        for (function, number), counts in self.branches.items():
            have = (sum(map(bool, counts)), number)
            best[function] = max(best.get(function, have), have, key=lambda one: one[0] / one[1])
        return sum(one[0] for one in best.values()), sum(one[1] for one in best.values())


Source = dict[int, Line]  # number -> line
Table = dict[str, Source]  # name in the tree -> its lines


@dataclass(frozen=True)
class Share:
    """HAD of ALL."""

    had: int
    all: int

    @property
    def percent(self) -> float:
        return 100 * self.had / self.all if self.all else 0.0

    def __str__(self) -> str:
        return f"{self.percent:.1f} % of {self.all}" if self.all else "none"


def read(counters: Path, kernel: Path) -> Iterator[dict[str, Any]]:
    """The output of gcov for the counters of one build: each source file with its lines, per object file."""
    with tempfile.TemporaryDirectory(prefix="gcov-") as name:
        for gcda in sorted(counters.rglob("*.gcda")):
            gcno = kernel / "net/sctp" / gcda.relative_to(counters).with_suffix(".gcno")
            if not gcno.is_file():
                raise Problem(
                    f"{gcno}: not found; {counters.name} is another build: start with a new --counters"
                )
            shutil.copy(gcda, name)
            shutil.copy(gcno, name)
            words = ["gcov", "--json-format", "--stdout", "--branch-probabilities", gcda.name]
            done = subprocess.run(words, cwd=name, capture_output=True, text=True, check=False)
            if done.returncode or "stamp mismatch" in done.stderr:
                raise Problem(f"gcov: {gcda.name}: {last_line(done.stderr)}", FAILED)
            for text in done.stdout.splitlines():
                yield from json.loads(text)["files"]


def collect(table: Table, files: Iterable[Mapping[str, Any]], known_only: bool) -> None:
    """Add what gcov read to TABLE. KNOWN_ONLY: to lines that it has, whose branches stay as they are."""
    for one in files:
        name = os.path.normpath(one["file"])
        if not wanted(name):
            continue
        source = table.setdefault(name, {})
        for found in one["lines"]:
            number = found["line_number"]
            if not known_only:
                source.setdefault(number, Line()).add(found)
            elif number in source:
                source[number].count += found["count"]


def wanted(name: str) -> bool:
    """Whether a file is in a row of the table."""
    return "net/sctp/" in name and not fnmatch(name, OURS) and any(fnmatch(name, f"*/{row}") for row in ROWS)


def files_of(table: Table, row: str) -> list[str]:
    return sorted(name for name in table if fnmatch(name, f"*/{row}"))


def shares(table: Table, names: Sequence[str]) -> tuple[Share, Share]:
    """(lines, branches) of files together."""
    lines = [line for name in names for line in table[name].values()]
    taken = [line.taken() for line in lines]
    had = sum(line.count > 0 for line in lines)
    return Share(had, len(lines)), Share(sum(one[0] for one in taken), sum(one[1] for one in taken))


def rows(table: Table) -> list[tuple[str, str, str]]:
    """Of the page: each row, and the files of a row that has several."""
    made = []
    for row in ROWS:
        names = files_of(table, row)
        for title, group in [
            (row, names),
            *([(f"  {name}", [name]) for name in names] if len(names) > 1 else []),
        ]:
            lines, branches = shares(table, group)
            made.append((title, str(lines), str(branches)))
    return made


def goals(table: Table) -> list[str]:
    """Each goal with the share that was reached, one line of text each."""
    own = shares(table, files_of(table, OWN))
    hooks = shares(table, [name for row in HOOKS for name in files_of(table, row)])
    had = (*own, hooks[0])
    return [
        f"{goal:g} % of the {what}: {share.percent:.1f} %"
        for (what, goal), share in zip(GOALS.items(), had, strict=True)
    ]


def spans(numbers: Sequence[int]) -> str:
    """Numbers in order as text: 3, 5-7."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in found)


def never_run(table: Table, row: str) -> list[str]:
    """The lines of the files of a row that have not run, a file each."""
    made = []
    for name in files_of(table, row):
        if missing := [number for number, line in sorted(table[name].items()) if not line.count]:
            made.append(f"{name}: {spans(missing)}")
    return made


def page(table: Table, command: str, said: str) -> str:
    """The page's part on a measurement: COMMAND, the last line SAID by the tests, the table, the goals."""
    marked = [
        (f"``{title.strip()}``" if not title.startswith(" ") else f"- ``{title.strip()}``", lines, branches)
        for title, lines, branches in rows(table)
    ]
    words = [
        *("::", "", f"    {command}", ""),
        f'The tests ended with "{said}".',
        "",
        *grid([("files", "lines", "branches"), *marked]),
        "",
        "Goals and results:",
        "",
        *[f"- {line}" for line in goals(table)],
        "",
        f"Lines of ``{OWN}`` that no test executed:",
        "",
        *[fill(f"- {line}", WIDTH, subsequent_indent="  ") for line in never_run(table, OWN) or ["none"]],
    ]
    return "\n".join(words) + "\n"


def pytest() -> list[str]:
    """The command that runs tests of ROOT from there."""
    python = subprocess.run([ROOT / "tools/setup", "--python"], capture_output=True, text=True, check=True)
    return [python.stdout.strip(), "-m", "pytest", "-c", "tools/pyproject.toml", "--rootdir", ".", "-q"]


def test(base: str, counters: Path, jobs: int, chosen: Sequence[str]) -> str:
    """Run the tests on kernels that count; their last line."""
    tests = chosen or sorted(
        str(path.relative_to(ROOT))
        for path in (ROOT / TESTS).glob("test_*.py")
        if path.stem not in NOT_COUNTED
    )
    environment = {**os.environ, COUNTING: "1", "GCOV_PREFIX": str(counters), "SCTPMP_BASE": base}
    said = ""
    with subprocess.Popen(
        [*pytest(), "-n", str(jobs), *tests], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        for line in process.stdout:
            sys.stderr.write(line)
            said = line.strip() or said
    return said


def counted(base: str, counters: Path) -> Table:
    """All counters in a folder."""
    table: Table = {}
    for build in BUILDS:
        variant = f"{build}-gcov"
        for found in counters.rglob(f"{base}-{FLAVOUR}-{variant}/tree/net/sctp"):
            kernel = cached(gather(base, FLAVOUR, variant))
            collect(table, read(found, kernel), known_only=build == "debug")
    if not table:
        raise Problem(f"{counters}: no counters: run the tests first", FAILED)
    return table


def parser() -> argparse.ArgumentParser:
    made = Parser(
        prog="tools/coverage",
        description="Run the kernel tests on kernels that count how often each line of net/sctp runs (gcov). "
        "Print the share of lines and branches of the series' files and of those it hooks into, and the "
        f"lines of {OWN} that no test executed.",
    )
    made.add_argument("--base", default="6.12", help="kernel version (default: %(default)s)")
    made.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="parallel tests (default: %(default)s)"
    )
    made.add_argument(
        "--counters",
        type=Path,
        metavar="DIR",
        help="folder of the counters; earlier counters count, too (default: in the cache, emptied first)",
    )
    made.add_argument("--no-tests", action="store_true", help="only add up the counters in --counters")
    made.add_argument("--write", action="store_true", help="put the table into Documentation/coverage.rst")
    made.add_argument(
        "tests",
        nargs="*",
        metavar="TEST",
        help=f"arguments of pytest (default: {TESTS} except tests that need no patched UML)",
    )
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    options = parser().parse_args(arguments)
    if options.no_tests and not options.counters:
        raise Problem("--no-tests: got no --counters, expected the folder of an earlier run")
    counters = options.counters or cache_root() / "counters"
    if not options.counters:
        shutil.rmtree(counters, ignore_errors=True)
    counters = counters.absolute()
    counters.mkdir(parents=True, exist_ok=True)
    said = "not run" if options.no_tests else test(options.base, counters, options.jobs, options.tests)
    table = counted(options.base, counters)
    print("\n".join(grid([("files", "lines", "branches"), *rows(table)])))
    print("\n".join([*goals(table), *never_run(table, OWN)]))
    warn(f"tests: {said}")
    if options.write:
        words = " ".join(sys.argv[1:] if arguments is None else arguments)
        put(COVERAGE, "tools/coverage", page(table, f"tools/coverage {words}", said))
    return 0


if __name__ == "__main__":
    run_main("tools/coverage", main)
