# SPDX-License-Identifier: GPL-2.0
"""tools/mutate: whether the tests notice small faults put into the series, one at a time.

A mutant is a line of net/sctp/multipath/, or one the series adds to another file of net/sctp, with one
fault (mutants.py). One kernel has all that were drawn (schemata.py). For each, the tests that run its line
(reached.py) go on until one fails, the quickest first, as many as take BUDGET_S; if none does, the packet
tests run on a kernel that checks itself. A mutant that survives and whose object file is that of the series
is none. A record in the cache has what came of each mutant, so that a second run goes on where the first was.
A verdict holds for as long as the function with the fault stays what it is, whatever else the series changes,
so the next series has it, too; --again tries those anew that no test had noticed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path

from sctpkernel.bases import find_base
from sctpkernel.coverage import NOT_COUNTED, TESTS
from sctpkernel.errors import FAILED, Parser, Problem, last_line, run_main, warn
from sctpkernel.kernel import BUILD_GB, VARIANTS, Inputs, configure, gather, sibling
from sctpkernel.make import begin_log, make
from sctpkernel.mutants import Mutant, added, mutants
from sctpkernel.page import COVERAGE, grid, put
from sctpkernel.paths import ROOT, cache_root, locked, need_space
from sctpkernel.reached import Reached, load, measure, run, stand_in
from sctpkernel.schemata import BROKEN as BROKEN_LINE
from sctpkernel.schemata import DEFINED, PARAMETER, chosen
from sctpkernel.source import patched_tree, unpacked

UNIT_TESTS = f"{TESTS}/test_kunit.py"
# Of other kernels, virtual machines, the laboratory itself, or slow for what they find.
LEFT_OUT = (
    *NOT_COUNTED,
    *(
        f"test_{name}"
        for name in (
            *("alerts", "cost", "doctor", "exporter", "fuzz", "oracle", "peers", "prediction", "remote"),
            *("replay", "same_kernels", "selftests", "tracepoints"),
        )
    ),
)
KINDS = ("kunit", "uml")  # of the kernels that the tests need
CHECKS = {"uml": "debug"}  # kind -> the one that checks itself
CHECKED = f"{TESTS}/test_packets.py"  # they hold on that, too
BUDGET_S = 60.0  # of the tests of one mutant, measured without a fault
LIMIT_S = 1800.0  # of a mutant in all; a test has its own limits
SAME, BROKEN, SURVIVED = "same object code", "does not build", "survived"
TREE = Path("net/sctp")
OWN = TREE / "multipath"
HOME = "net/sctp/protocol.c"  # of the kernel's parameter
TITLE = "building mutants"


class Builder:
    """A build tree of its own: of the series, for a while with faults."""

    def __init__(self, inputs: Inputs) -> None:
        self.inputs = inputs
        name = f"{inputs.base}-{inputs.flavour}-mutants-{inputs.variant}"
        self.log = cache_root() / "log" / f"{name}.log"
        self.source = unpacked(find_base(inputs.base))
        need_space(cache_root(), BUILD_GB, "a build tree of mutants")
        begin_log(self.log, f"{TITLE} ({inputs.variant})")
        with sibling(inputs) as like:
            patches = [*inputs.testbed, *inputs.series]
            self.tree = patched_tree(self.source, patches, cache_root() / "build" / name, like)
        configure(self.tree, inputs, self.log, TITLE)

    def make(self, target: str) -> None:
        make(self.tree, [target], self.log, TITLE, {"ARCH": VARIANTS[self.inputs.variant].arch})

    def text(self, file: str) -> str:
        return (self.tree / file).read_text(encoding="utf-8")

    @contextmanager
    def instead(self, files: Mapping[str, str]) -> Iterator[None]:
        """Files of the tree, which may be links to the source's, have another text while the block runs."""
        before = {file: self.text(file) for file in files}
        try:
            self.write(files)
            yield
        finally:
            self.write(before)

    def write(self, files: Mapping[str, str]) -> None:
        for file, text in files.items():
            target = self.tree / file
            temporary = target.with_name(f".{target.name}.new")
            temporary.write_text(text, encoding="utf-8")
            temporary.rename(target)

    def build(self, numbered: Mapping[int, Mutant]) -> set[int]:
        """Build the kernel that has them all; the numbers of those without which it does."""
        left, broken = dict(numbered), set[int]()
        while True:
            files = {file: self.text(file) for file in {HOME, *(one.file for one in left.values())}}
            for file in files:
                mine = {number: one for number, one in left.items() if one.file == file}
                if mine:
                    files[file] = chosen(file, files[file], mine)
            files[HOME] += DEFINED
            with self.instead(files):
                try:
                    self.make("linux")
                    return broken
                except Problem:
                    guilty = set(map(int, BROKEN_LINE.findall(self.log.read_text(errors="replace"))))
                    if not guilty & set(left):
                        raise
            broken |= guilty
            left = {number: one for number, one in left.items() if number not in broken}

    def same(self, mutant: Mutant) -> bool:
        """Whether the object file does not change."""
        target = mutant.file.removesuffix(".c") + ".o"
        hashes = []
        for text in (self.text(mutant.file), mutant.put(self.text(mutant.file))):
            with self.instead({mutant.file: text}):
                self.make(target)
                hashes.append(hashlib.sha256((self.tree / target).read_bytes()).digest())
        return hashes[0] == hashes[1]


def candidates(builder: Builder) -> list[Mutant]:
    """All mutants, in the order of files and lines."""
    found = []
    for path in sorted((builder.tree / TREE).rglob("*.c")):
        file, text = str(path.relative_to(builder.tree)), path.read_text(encoding="utf-8")
        stock = builder.source / file
        if path.is_relative_to(builder.tree / OWN):
            found += [] if path.is_relative_to(builder.tree / OWN / "test") else mutants(file, text)
        elif stock.is_file() and (old := stock.read_text(encoding="utf-8")) != text:
            found += mutants(file, text, added(old, text))
    return found


def within(budget_s: float, tests: Sequence[str], reached: Reached) -> list[str]:
    """The first of the tests, as many as take so long; one at least."""
    first: list[str] = []
    left = budget_s
    for name in tests:
        left -= reached.tests[name].seconds
        if first and left < 0:
            break
        first.append(name)
    return first


def judge(kernels: Sequence[tuple[Inputs, Builder]], number: int, tests: Sequence[str]) -> str:
    """Run tests with one fault: SURVIVED, or the one that failed. KERNELS: (asked for, taken)."""
    if not tests:
        return SURVIVED
    with tempfile.TemporaryDirectory(prefix="mutant-") as name:
        for inputs, builder in kernels:
            linux, config = builder.tree / "linux", builder.tree / ".config"
            stand_in(Path(name), inputs, linux, config, words=f"{PARAMETER}={number}")
        try:
            status, output = run(Path(name), kernels[0][0].base, ["-x", "-p", "no:xdist", *tests], LIMIT_S)
        except subprocess.TimeoutExpired:
            return f"{tests[0]}: no end"
    if not status:
        return SURVIVED
    failed = [line for line in output.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    if not failed:
        raise Problem(f"pytest: {last_line(output)}", FAILED)
    return failed[0].split()[1]


def tests() -> list[str]:
    """The files with the tests that are tried."""
    every = sorted((ROOT / TESTS).glob("test_*.py"))
    return [str(path.relative_to(ROOT)) for path in every if path.stem not in LEFT_OUT]


def known_tests(inputs: Sequence[Inputs], jobs: int) -> Reached:
    """Which tests run which lines of this series."""
    text = json.dumps([tests(), [one.key for one in inputs]])
    path = cache_root() / "mutants" / f"tests-{hashlib.sha256(text.encode()).hexdigest()[:12]}.json"
    if not path.is_file():
        measure(inputs[0].base, KINDS, tests(), jobs).save(path)
    return load(path)


def record_of(base: str) -> Path:
    """The file with what came of mutants on a base."""
    return cache_root() / "mutants" / f"{base}.jsonl"


def verdicts(path: Path) -> dict[str, str]:
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
    """The part of Documentation/coverage.rst on a run: COMMAND, NUMBER of all mutants, table, survivors."""
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
    made = Parser(
        prog="tools/mutate",
        description="Put small faults into the series, one at a time, and run the kernel tests that execute "
        "the line with the fault. Report the faults that no test detects. Known results are not repeated.",
    )
    made.add_argument("--base", default="6.12", help="kernel version (default: %(default)s)")
    made.add_argument("--count", type=int, default=20, metavar="N", help="mutants (default: %(default)s)")
    made.add_argument("--seed", type=int, default=1, metavar="S", help="random seed (default: %(default)s)")
    made.add_argument("--minutes", type=float, metavar="M", help="start no further mutant after this time")
    made.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="mutants at a time (default: %(default)s)"
    )
    made.add_argument(
        "--again", action="store_true", help="repeat surviving mutants, after the tests have changed"
    )
    made.add_argument("--write", action="store_true", help="put the table into Documentation/coverage.rst")
    return made


def judge_all(
    builders: Mapping[str, Builder],
    open_ones: Mapping[int, Mutant],
    reached: Reached,
    jobs: int,
    until: float,
) -> Iterator[tuple[int, str]]:
    """(number, what came of it) for those begun until then, by time.monotonic(). BUILDERS: by kind."""
    plain = [(builders[kind].inputs, builders[kind]) for kind in KINDS]
    checking = [(builders[kind].inputs, builders[CHECKS.get(kind, kind)]) for kind in KINDS]

    def look(number: int) -> tuple[int, str]:
        if time.monotonic() > until:
            return number, ""
        one = open_ones[number]
        tests = within(BUDGET_S, reached.runs(one.file, one.number), reached)
        verdict = judge(plain, number, tests)
        if verdict == SURVIVED and any(name.startswith(CHECKED) for name in tests):
            verdict = judge(checking, number, [CHECKED])
        return number, verdict

    broken = set[int]().union(*(builder.build(open_ones) for builder in builders.values()))
    yield from ((number, BROKEN) for number in sorted(broken))
    if (failed := judge(checking, 0, [CHECKED])) != SURVIVED:
        raise Problem(
            f"{failed} fails on the kernel with runtime checks without a fault: fix that first", FAILED
        )
    pool = ThreadPoolExecutor(jobs)
    try:
        for done in as_completed([pool.submit(look, number) for number in sorted(set(open_ones) - broken)]):
            number, verdict = done.result()
            if verdict == SURVIVED and all(builder.same(open_ones[number]) for _, builder in plain):
                verdict = SAME
            if verdict:
                yield number, verdict
    finally:
        pool.shutdown(cancel_futures=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    options = parser().parse_args(arguments)
    for name in ("count", "jobs"):
        if getattr(options, name) < 1:
            raise Problem(f"--{name}: got {getattr(options, name)}, expected 1 or more")
    until = time.monotonic() + 60 * options.minutes if options.minutes else float("inf")
    inputs = {kind: gather(options.base, "patched", kind) for kind in (*KINDS, *CHECKS.values())}
    with locked(cache_root() / "lock" / f"mutants-{options.base}.lock"):
        record = record_of(options.base)
        record.parent.mkdir(exist_ok=True)
        builders = {kind: Builder(one) for kind, one in inputs.items()}
        every = candidates(builders[KINDS[0]])
        drawn = draw(every, options.count, options.seed)
        known = verdicts(record)
        open_ones = {
            number: one
            for number, one in enumerate(drawn, 1)
            if one.key not in known or (options.again and known[one.key] == SURVIVED)
        }
        judged: Iterable[tuple[int, str]] = ()
        if open_ones:
            reached = known_tests([inputs[kind] for kind in KINDS], options.jobs)
            judged = judge_all(builders, open_ones, reached, options.jobs, until)
        for number, verdict in judged:
            mutant = open_ones[number]
            known[mutant.key] = verdict
            note(record, mutant.key, verdict, mutant.diff)
            warn(f"{number} of {len(drawn)}: {mutant.file}:{mutant.number} {mutant.kind}: {verdict}")
    results = [(mutant, known[mutant.key]) for mutant in drawn if mutant.key in known]
    print("\n".join([*grid(table(results)), "", *survivors(results)]))
    if options.write:
        command = f"tools/mutate --count {options.count} --seed {options.seed}"
        put(COVERAGE, "tools/mutate", page(results, command, len(every)))
    return 0


if __name__ == "__main__":
    run_main("tools/mutate", main)
