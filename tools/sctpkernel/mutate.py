# SPDX-License-Identifier: GPL-2.0
"""tools/mutate: whether the tests notice small faults put into the series, one at a time.

A mutant is a line of net/sctp/multipath*.c, or one the series adds to another file of net/sctp, with one
fault (mutants.py). A mutant whose object files are those of the series is none. The unit tests run first, on
their kernel, then a short list of kernel tests on the laboratory's, until one fails. Without a fault all of
them have to pass. A record in the cache has what came of each mutant, so that a second run goes on where the
first was. A verdict holds for as long as the function with the fault stays what it is, whatever else the
series changes, so the next series has it, too; --again tries those anew that no test had noticed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path

from sctpkernel.bases import find_base
from sctpkernel.errors import FAILED, Problem, last_line, run_main, warn
from sctpkernel.kernel import BUILD_GB, KERNELS, VARIANTS, Inputs, configure, gather, sibling
from sctpkernel.make import begin_log, make
from sctpkernel.mutants import Mutant, added, mutants
from sctpkernel.page import COVERAGE, grid, put
from sctpkernel.paths import ROOT, cache_root, locked, need_space
from sctpkernel.source import patched_tree, unpacked

UNIT_TESTS = "testbed/tests/kernel/test_kunit.py"
# Few and quick ones of each topic; the fastest first.
TESTS = tuple(
    f"testbed/tests/kernel/test_{name}.py"
    for name in (
        "policies",
        "path_mtu",
        "silent_paths",
        "failover",
        "cmt_receiver",
        "cmt_sender",
        "cmt_association",
    )
)
STEPS = {"kunit": (UNIT_TESTS,), "uml": TESTS}  # variant of the kernel -> what runs on it
TEST_S = 1800.0  # of one step; a test has its own limits
SAME, BROKEN, SURVIVED = "same object code", "does not build", "survived"
TREE = Path("net/sctp")
TITLE = "building a mutant"


class Builder:
    """A build tree of its own, in which one file at a time differs from the series."""

    def __init__(self, inputs: Inputs) -> None:
        self.inputs = inputs
        name = f"{inputs.base}-{inputs.flavour}-mutants-{inputs.variant}"
        self.log = cache_root() / "log" / f"{name}.log"
        self.source = unpacked(find_base(inputs.base))
        need_space(cache_root(), BUILD_GB, "a build tree of mutants")
        begin_log(self.log, f"building the series without a fault ({inputs.variant})")
        with sibling(inputs) as like:
            patches = [*inputs.testbed, *inputs.series]
            self.tree = patched_tree(self.source, patches, cache_root() / "build" / name, like)
        configure(self.tree, inputs, self.log, TITLE)
        self.make("linux")
        self.objects = self.hashes()

    def make(self, target: str) -> None:
        make(self.tree, [target], self.log, TITLE, {"ARCH": VARIANTS[self.inputs.variant].arch})

    def hashes(self) -> dict[str, str]:
        return {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in (self.tree / TREE).glob("*.o")
        }

    def write(self, file: str, text: str) -> None:
        """Replace a file of the tree, which may be a link to the source's."""
        target = self.tree / file
        temporary = target.with_name(f".{target.name}.new")
        temporary.write_text(text, encoding="utf-8")
        temporary.rename(target)

    def first_failure(self, python: str) -> str:
        """The test of this variant that fails first on the kernel that is built, "" for none."""
        inputs = self.inputs
        with tempfile.TemporaryDirectory(prefix="mutant-") as name:
            folder = Path(name, f"{inputs.base}-{inputs.flavour}-{inputs.variant}")
            folder.mkdir()
            shutil.copy(self.tree / "linux", folder)
            shutil.copy(self.tree / ".config", folder / "config")
            (folder / "info.json").write_text(json.dumps(inputs.info()))
            return first_failure(python, name, inputs.base, STEPS[inputs.variant])

    @contextmanager
    def fault(self, mutant: Mutant) -> Iterator[None]:
        """The tree has it while the block runs."""
        text = (self.tree / mutant.file).read_text(encoding="utf-8")
        self.write(mutant.file, mutant.put(text))
        try:
            yield
        finally:
            self.write(mutant.file, text)


def candidates(builder: Builder) -> list[Mutant]:
    """All mutants, in the order of files and lines."""
    found = []
    for path in sorted((builder.tree / TREE).glob("*.c")):
        file, text = str(path.relative_to(builder.tree)), path.read_text(encoding="utf-8")
        if fnmatch(path.name, "multipath_test*"):
            continue
        stock = builder.source / file
        if not stock.is_file():
            found += mutants(file, text)
        elif (old := stock.read_text(encoding="utf-8")) != text:
            found += mutants(file, text, added(old, text))
    return found


def judge(builders: Sequence[Builder], mutant: Mutant, python: str) -> str:
    """Build one mutant and run the tests on it; SAME, BROKEN, SURVIVED, or the test that failed."""
    same = True
    for builder in builders:
        with builder.fault(mutant):
            try:
                builder.make("net/sctp/")
                if builder.hashes() == builder.objects:
                    continue
                same = False
                builder.make("linux")
            except Problem:
                return BROKEN
            if failed := builder.first_failure(python):
                return failed
    return SAME if same else SURVIVED


def first_failure(python: str, kernels: str, base: str, tests: Sequence[str]) -> str:
    """The first of TESTS that fails with the kernels in a folder in place of others, "" for none."""
    environment = {**os.environ, KERNELS: kernels, "SCTPMP_BASE": base}
    words = [python, "-m", "pytest", "-c", "tools/pyproject.toml", "--rootdir", ".", "-q", "-x", "-n", "1"]
    with subprocess.Popen(
        [*words, *tests],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            output = process.communicate(timeout=TEST_S)[0]
        except subprocess.TimeoutExpired:
            process.terminate()
            return f"{tests[0]}: no end"
    if not process.returncode:
        return ""
    failed = [line for line in output.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    if not failed:
        raise Problem(f"pytest: {last_line(output)}", FAILED)
    return failed[0].split()[1]


def record_of(base: str) -> Path:
    """The file with what came of mutants on a base under these tests."""
    text = json.dumps([base, STEPS])
    return cache_root() / "mutants" / f"{hashlib.sha256(text.encode()).hexdigest()[:12]}.jsonl"


def load(path: Path) -> dict[str, str]:
    """Key of a mutant -> what came of it."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return {one["key"]: one["verdict"] for one in map(json.loads, lines)}


def note(path: Path, key: str, verdict: str, diff: Sequence[str] = ()) -> None:
    """Add a line to the record; DIFF is for who reads it."""
    with path.open("a", encoding="utf-8") as out:
        out.write(json.dumps({"key": key, "verdict": verdict, "diff": [*diff]}) + "\n")


def draw(every: Iterable[Mutant], number: int, seed: int) -> list[Mutant]:
    """So many at random, of which a change to one function replaces few."""
    return sorted(every, key=lambda one: hashlib.sha256(f"{seed} {one.key}".encode()).digest())[:number]


def table(results: Iterable[tuple[Mutant, str]]) -> list[tuple[str, ...]]:
    """The rows of the table: files, and how many mutants ended how."""
    by_file: dict[str, Counter[str]] = {}
    for mutant, verdict in results:
        if verdict in (SAME, BROKEN):
            continue
        how = verdict if verdict == SURVIVED else "unit tests" if UNIT_TESTS in verdict else "kernel tests"
        for row in (mutant.file, "all"):
            by_file.setdefault(row, Counter())[how] += 1
    rows: list[tuple[str, ...]] = [("file", "mutants", "by unit tests", "by kernel tests", "survived")]
    for file in sorted(by_file, key=lambda name: (name == "all", name)):
        count = by_file[file]
        each = (count.total(), count["unit tests"], count["kernel tests"], count[SURVIVED])
        rows.append((file, *map(str, each)))
    return rows


def survivors(results: Iterable[tuple[Mutant, str]]) -> list[str]:
    """Their differences from the series."""
    alive = [mutant for mutant, verdict in results if verdict == SURVIVED]
    return [
        line
        for mutant in sorted(alive, key=lambda one: (one.file, one.number))
        for line in [*mutant.diff, ""]
    ]


def page(results: Sequence[tuple[Mutant, str]], command: str, number: int) -> str:
    """What Documentation/coverage.rst has of it."""
    none = Counter(verdict for _, verdict in results if verdict in (SAME, BROKEN))
    words = [
        *("::", "", f"    {command}", ""),
        f"Of {number} mutants {len(results)} were drawn; {none[SAME]} of these have the object code of the "
        f"series, {none[BROKEN]} do not build.",
        "",
        *grid(table(results)),
        "",
        "Survivors::" if survivors(results) else "No survivors.",
        "",
        *(f"    {line}".rstrip().expandtabs(4) for line in survivors(results)),
    ]
    return "\n".join(words).rstrip() + "\n"


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="tools/mutate",
        description="Put small faults into the series, one at a time, build it and run the unit tests and a "
        "short list of kernel tests. Report the faults that no test detects. Known results are not repeated.",
    )
    made.add_argument("--base", default="6.12", help="kernel version (default: %(default)s)")
    made.add_argument("--count", type=int, default=20, metavar="N", help="mutants (default: %(default)s)")
    made.add_argument("--seed", type=int, default=1, metavar="S", help="random seed (default: %(default)s)")
    made.add_argument("--minutes", type=float, metavar="M", help="start no further mutant after this time")
    made.add_argument(
        "--again", action="store_true", help="repeat surviving mutants, after the tests have changed"
    )
    made.add_argument("--write", action="store_true", help="put the table into Documentation/coverage.rst")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    options = parser().parse_args(arguments)
    if options.count < 1:
        raise Problem(f"--count: got {options.count}, expected 1 or more")
    every_step = [gather(options.base, "patched", variant) for variant in STEPS]
    setup = subprocess.run([ROOT / "tools/setup", "--python"], capture_output=True, text=True, check=True)
    python = setup.stdout.strip()
    started = time.monotonic()
    with locked(cache_root() / "lock" / f"mutants-{options.base}.lock"):
        record = record_of(options.base)
        builders = [Builder(inputs) for inputs in every_step]
        record.parent.mkdir(exist_ok=True)
        known = load(record)
        series = " ".join(inputs.key for inputs in every_step)
        if series not in known:
            for builder in builders:
                if failed := builder.first_failure(python):
                    raise Problem(f"{failed} fails without a fault: fix that first", FAILED)
            note(record, series, "passes")
        every = candidates(builders[0])
        drawn = draw(every, options.count, options.seed)
        for number, mutant in enumerate(drawn, 1):
            if options.minutes and time.monotonic() - started > 60 * options.minutes:
                break
            if mutant.key not in known or (options.again and known[mutant.key] == SURVIVED):
                known[mutant.key] = judge(builders, mutant, python)
                note(record, mutant.key, known[mutant.key], mutant.diff)
            warn(
                f"{number} of {len(drawn)}: {mutant.file}:{mutant.number} {mutant.kind}: {known[mutant.key]}"
            )
    results = [(mutant, known[mutant.key]) for mutant in drawn if mutant.key in known]
    print("\n".join([*grid(table(results)), "", *survivors(results)]))
    if options.write:
        command = f"tools/mutate --count {options.count} --seed {options.seed}"
        put(COVERAGE, "tools/mutate", page(results, command, len(every)))
    return 0


if __name__ == "__main__":
    run_main("tools/mutate", main)
