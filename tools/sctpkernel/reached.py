# SPDX-License-Identifier: GPL-2.0
"""Which lines of net/sctp each test runs, by the counters of gcov that a kernel leaves when it ends.

A kernel is named to the tests by a script, which puts the counters into a folder of the test that runs
(PYTEST_CURRENT_TEST). Code that ran while a shared fixture was set up counts for all tests of the file.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import xml.etree.ElementTree as ElementTree
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from sctpkernel.coverage import pytest, read
from sctpkernel.errors import FAILED, Problem, last_line, warn
from sctpkernel.kernel import KERNELS, Inputs, cached, gather
from sctpkernel.paths import ROOT

PART = "net/sctp/"
TESTS_FAILED = 1  # pytest's status if it ran all tests
OF_TEST = """\
export GCOV_PREFIX={counters}/$(printf %s "$PYTEST_CURRENT_TEST" | md5sum | cut -c-32)
mkdir -p "$GCOV_PREFIX"
printf %s "$PYTEST_CURRENT_TEST" >"$GCOV_PREFIX/test"
"""
Lines = dict[str, set[int]]  # file -> lines


@dataclass
class Run:
    """How long it takes on its own, and what it runs."""

    seconds: float
    lines: Lines


@dataclass
class Reached:
    """TESTS by their names; LINES: all that have code."""

    tests: dict[str, Run]
    lines: Lines

    def runs(self, file: str, number: int) -> list[str]:
        """The tests that run a line, the quickest first.

        A line without code of its own counts as the last before it that has some and runs: it is amid a
        statement, or a return that the compiler has put elsewhere.
        """
        every = sorted(self.lines.get(file, ()))
        before = every[: bisect_right(every, number)]
        own = before[-1:] == [number]
        for line in reversed(before):
            found = [name for name, test in self.tests.items() if line in test.lines.get(file, ())]
            if found or own:
                return sorted(found, key=lambda name: (self.tests[name].seconds, name))
        return []

    def save(self, path: Path) -> None:
        def plain(lines: Lines) -> dict[str, list[int]]:
            return {file: sorted(numbers) for file, numbers in lines.items()}

        tests = {name: [test.seconds, plain(test.lines)] for name, test in self.tests.items()}
        path.write_text(json.dumps({"tests": tests, "lines": plain(self.lines)}), encoding="utf-8")


def load(path: Path) -> Reached:
    """As saved."""

    def sets(lines: Mapping[str, Iterable[int]]) -> Lines:
        return {file: set(numbers) for file, numbers in lines.items()}

    found = json.loads(path.read_text(encoding="utf-8"))
    tests = {name: Run(seconds, sets(lines)) for name, (seconds, lines) in found["tests"].items()}
    return Reached(tests, sets(found["lines"]))


def stand_in(
    folder: Path, inputs: Inputs, linux: Path, config: Path, before: str = "", words: str = ""
) -> None:
    """A kernel in FOLDER that is a script: BEFORE, then LINUX with more WORDS on its command line."""
    place = folder / f"{inputs.base}-{inputs.flavour}-{inputs.variant}"
    place.mkdir(parents=True)
    shutil.copy(config, place / "config")
    (place / "info.json").write_text(json.dumps(inputs.info()))
    script = place / "linux"
    script.write_text(f'#!/bin/sh\n{before}exec {linux} {words} "$@"\n')
    script.chmod(0o755)


def run(kernels: Path, base: str, words: Sequence[str], limit_s: float | None = None) -> tuple[int, str]:
    """pytest on the kernels of a folder: its status and output. An end by the limit is TimeoutExpired."""
    environment = {**os.environ, KERNELS: str(kernels), "SCTPMP_BASE": base}
    with subprocess.Popen(
        [*pytest(), "-p", "no:cacheprovider", f"--basetemp={kernels}/tests", *words],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            output = process.communicate(timeout=limit_s)[0]
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)  # pytest ends what it has started
            raise
    return process.returncode, output


def seconds_of(report: Path) -> tuple[dict[str, float], list[str]]:
    """(tests that passed and how long each took, the others), from what pytest writes for --junitxml."""
    passed: dict[str, float] = {}
    others = []
    for one in ElementTree.parse(report).iter("testcase"):
        name = f"{one.attrib['file']}::{one.attrib['name']}"
        if any(child.tag in ("failure", "error", "skipped") for child in one):
            others.append(name)
        else:
            passed[name] = float(one.attrib["time"])
    return passed, others


def lines_of(folder: Path, kernels: Mapping[str, Path]) -> tuple[Lines, Lines]:
    """(lines that ran, all lines) by the counters in a folder; KERNELS: variant -> where it was built."""
    ran: Lines = {}
    every: Lines = {}
    for variant, kernel in kernels.items():
        for found in folder.rglob(f"*-{variant}/tree/{PART.rstrip('/')}"):
            for one in read(found, kernel):
                name = os.path.normpath(one["file"])
                if name.startswith(PART) and name.endswith(".c"):
                    numbers = {line["line_number"]: line["count"] for line in one["lines"]}
                    every.setdefault(name, set()).update(numbers)
                    ran.setdefault(name, set()).update(n for n, count in numbers.items() if count)
    return ran, every


def add(into: Lines, lines: Lines) -> None:
    for file, numbers in lines.items():
        into.setdefault(file, set()).update(numbers)


def measure(base: str, variants: Sequence[str], tests: Sequence[str], jobs: int) -> Reached:
    """Run the tests on kernels that count. One that does not pass is named and left out: it tells nothing."""
    counting = {f"{variant}-gcov": cached(gather(base, "patched", f"{variant}-gcov")) for variant in variants}
    with tempfile.TemporaryDirectory(prefix="reached-") as name:
        folder = Path(name)
        counters = folder / "counters"
        for variant in variants:
            before = OF_TEST.format(counters=counters)
            kernel = counting[f"{variant}-gcov"]
            inputs = gather(base, "patched", variant)
            stand_in(folder / "kernels", inputs, kernel / "linux", kernel / "config", before)
        report = [f"--junitxml={folder}/report.xml", "-o", "junit_family=xunit1"]
        status, output = run(folder / "kernels", base, [*report, "-n", str(jobs), *tests])
        if status not in (0, TESTS_FAILED):
            raise Problem(f"the tests did not run: {last_line(output)}", FAILED)
        seconds, others = seconds_of(folder / "report.xml")
        for name in others:
            warn(f"{name} does not pass without a fault and is left out")
        found = Reached({name: Run(s, {}) for name, s in seconds.items()}, {})
        places = [path.parent for path in sorted(counters.glob("*/test"))]
        with ThreadPoolExecutor(jobs) as pool:
            for place, (ran, every) in zip(
                places, pool.map(lambda place: lines_of(place, counting), places), strict=True
            ):
                test, _, phase = (place / "test").read_text().rpartition(" ")
                add(found.lines, every)
                for name, one in found.tests.items():
                    if name == test or (phase == "(setup)" and name.split("::")[0] == test.split("::")[0]):
                        add(one.lines, ran)
    return found
