# SPDX-License-Identifier: GPL-2.0
"""One set of runs on the kernels of two series: records, ratios, processor time."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from sctplab.errors import LabError, RunError
from sctplab.evidence import manifest
from sctplab.files import write_text
from sctplab.measure.records import Run, load_runs
from sctplab.oracle.series import Series, series
from sctplab.paths import ROOT
from sctplab.random.scenarios import specs_named
from sctplab.report.compare import compare_runs
from sctplab.report.naming import ratio_text
from sctplab.report.stats import paired
from sctplab.run import runner
from sctplab.run.progress import progress
from sctplab.spec.model import RunSpec
from sctplab.spec.scenario import Choice
from sctplab.stress.cost import cpu_s

PATCHED = ("patched",)
PAIRS = 5
CPU = "cmt-cpu"  # a scenario of two sizes: what the large one takes more is the transfer's alone
Specs = dict[str, list[RunSpec]]  # name of a set of runs -> the runs


@dataclass(frozen=True)
class Asked:
    """MANIFEST: 'bench', or the path of another file. SEEDS: a cell, at least. PAIRS: of measurements of the
    processor time.
    """

    manifest: str
    a: str
    b: str
    out: Path
    jobs: int | None = None
    pairs: int = PAIRS
    seeds: int = 1


def specs_of(name: str, seeds: int = 1) -> Specs:
    """The runs of a manifest, SEEDS a cell at least; LabError where one is not of a plain patched kernel."""
    file = Path(name) if name.endswith(".toml") else ROOT / "testbed" / f"{name}.toml"
    if not file.is_file():
        raise LabError(f"--set {name}: no file {file}; expected 'bench' or the path of a .toml file")
    sets = manifest.read(file).runs
    if not sets:
        raise LabError(f"{file}: no [runs.NAME], expected at least one")
    for key, one in sets.items():
        if one.kernels != PATCHED or one.build != "plain":
            got = f"kernels = {list(one.kernels)}, build = {one.build}"
            raise LabError(
                f'{file}: runs.{key}: got {got}, expected kernels = ["patched"] and the plain build'
            )
    if seeds > 1:
        sets = {key: replace(one, repeat=max(one.repeat or 1, seeds)) for key, one in sets.items()}
    return {key: one.specs() for key, one in sets.items()}


def compare_series(asked: Asked, say: Callable[[str], None]) -> None:
    """Build, run, compare; SAY gets the parts of the result. Good records in OUT are kept."""
    specs = specs_of(asked.manifest, asked.seeds)
    sides = [series(word, asked.out) for word in (asked.a, asked.b)]
    runs = [run_set(one, specs, asked) for one in sides]
    found = compare_runs((sides[0].name, runs[0]), (sides[1].name, runs[1]))
    whole = asked.out / f"{sides[0].id}-{sides[1].id}.txt"
    write_text(whole, f"{found.whole}\n")
    say(f"{found.brief}\nEvery cell: {whole}")
    if asked.pairs:
        say(processor_time(sides, asked.pairs))


@contextmanager
def bench_of(one: Series, specs: list[RunSpec]) -> Iterator[runner.Bench]:
    """Runs on the kernel of a series."""
    with runner.bench_for(specs, {runner.kernel_key(spec): one.kernel for spec in specs}) as made:
        yield made


def run_set(one: Series, specs: Specs, asked: Asked) -> tuple[Run, ...]:
    """All runs of the set, in OUT/ID/NAME/records; what was finished on this kernel stays."""
    jobs = [runner.job_in(asked.out / one.id / name, spec) for name, found in specs.items() for spec in found]
    every = [spec for found in specs.values() for spec in found]
    with bench_of(one, every) as shared:
        todo = runner.unfinished(jobs, shared)
        with progress(len(todo), len(jobs) - len(todo)) as shown:
            runner.perform_all(todo, shared, asked.jobs or runner.default_workers(every), shown.ended)
    return tuple(run for job in jobs for run in load_runs(job.record))


def processor_time(sides: Sequence[Series], pairs: int) -> str:
    """User and system time of what a long transfer takes more than a short one, of all variants in turns."""
    specs = cpu_specs()
    every = [spec for sizes in specs.values() for spec in sizes]
    short, long = (spec.flows[0].size_mb or 0 for spec in every[:2])
    with bench_of(sides[0], every) as a, bench_of(sides[1], every) as b:
        measures = {
            (variant, side): partial(seconds, sizes, made)
            for variant, sizes in specs.items()
            for side, made in (("A", a), ("B", b))
        }
        spent = in_turns(pairs, measures)
    title = f"Processor time (user and system) of {long - short:g} MB, {CPU}, {pairs} pairs:"
    return "\n".join([title, *cpu_lines(spent)])


def cpu_specs() -> Specs:
    """Variant -> a short transfer and a long one."""
    found: Specs = {}
    for spec in specs_named(CPU, [], Choice(PATCHED, repeat=1)):
        found.setdefault(spec.variant, []).append(spec)
    return {
        variant: sorted(sizes, key=lambda spec: spec.flows[0].size_mb or 0)
        for variant, sizes in found.items()
    }


def in_turns(
    pairs: int, measures: Mapping[tuple[str, str], Callable[[], float]]
) -> dict[tuple[str, str], dict[int, float]]:
    """Key -> pair -> seconds; every other pair is measured backwards, since machines drift."""
    spent: dict[tuple[str, str], dict[int, float]] = {key: {} for key in measures}
    for pair in range(1, pairs + 1):
        for key in list(measures)[:: 1 if pair % 2 else -1]:
            spent[key][pair] = measures[key]()
    return spent


def cpu_lines(spent: Mapping[tuple[str, str], dict[int, float]]) -> list[str]:
    """A line for each variant, B to A; then each but the first to the first, of both sides."""
    first, *others = dict.fromkeys(variant for variant, _ in spent)
    lines = [cpu_line(variant, spent[variant, "A"], spent[variant, "B"]) for variant in (first, *others)]
    for other in others:
        each = (f"{side} {cpu_ratio(spent[first, side], spent[other, side])}" for side in "AB")
        lines.append(f"  {other} to {first}: {', '.join(each)}")
    return lines


def cpu_line(variant: str, a: dict[int, float], b: dict[int, float]) -> str:
    """'  cmt: A 4.21 s, B 4.30 s, × 1.021 [1.010, 1.032]'."""
    mean_a, mean_b = (sum(one.values()) / len(one) for one in (a, b))
    return f"  {variant}: A {mean_a:.2f} s, B {mean_b:.2f} s, {cpu_ratio(a, b)}"


def cpu_ratio(a: dict[int, float], b: dict[int, float]) -> str:
    pair = paired(a, b)
    return ratio_text(pair.ratio) if pair and pair.ratio else "no ratio, the runs are too short"


def seconds(sizes: Sequence[RunSpec], bench: runner.Bench) -> float:
    """CPU seconds that the second of two transfers takes beyond the first; raises RunError if one fails."""
    spent = []
    with tempfile.TemporaryDirectory(prefix="sctplab-cpu-") as name:
        for spec in sizes:
            before = cpu_s()
            made = runner.perform(runner.Job(spec, Path(name, "record.json"), Path(name)), bench)
            spent.append(cpu_s() - before)
            if made["status"] != "ok":
                raise RunError(f"{spec.run_id}: {made['status']}: {made['reason']}")
    return spent[1] - spent[0]
