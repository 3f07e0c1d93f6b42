# SPDX-License-Identifier: GPL-2.0
"""testbed/lab evidence: makes missing runs, writes their summaries, README and Documentation."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sctplab.errors import LabError, RunError
from sctplab.evidence import data, pages, table
from sctplab.evidence.data import Data, Row
from sctplab.evidence.manifest import Manifest, RunSet, settings
from sctplab.evidence.pages import Summaries
from sctplab.files import write_text
from sctplab.measure.judge import judge_run
from sctplab.measure.records import read_json
from sctplab.run import runner
from sctplab.run.progress import progress
from sctplab.spec.model import RunSpec
from sctplab.spec.schema import nearest

QUICK = "quick"
COMPLAINTS = "complaints"


@dataclass(frozen=True)
class Work:
    """A set of runs with its records in FOLDER."""

    name: str
    runs: RunSet
    specs: tuple[RunSpec, ...]
    folder: Path

    def jobs(self) -> list[runner.Job]:
        return [runner.job_in(self.folder, spec) for spec in self.specs]


def chosen(manifest: Manifest, only: Sequence[str]) -> dict[str, RunSet]:
    """The sets of runs called ONLY, or all."""
    for name in only:
        if name not in manifest.runs:
            raise LabError(f"--only: got {name!r}, expected one of {', '.join(manifest.runs)}")
    return {name: runs for name, runs in manifest.runs.items() if not only or name in only}


def current(name: str, specs: Sequence[RunSpec], metrics: set[str]) -> bool:
    """Whether the summary is of these runs, with these metrics, on the series of patches/."""
    if not data.path_of(name).is_file():
        return False
    found = data.read(data.path_of(name))
    keys = {Row(settings(spec), spec.seed, {}).key for spec in specs}
    has = {metric for row in found.rows for metric in row.metrics}
    return (
        found.source["series"] in (data.series_id(), "none")
        and {row.key for row in found.rows} == keys
        and metrics <= has
    )


def make(manifest: Manifest, only: Sequence[str], out: Path, workers: int | None) -> int:
    """Runs, summaries, pages. Sets whose summary is current are left out unless they are named in ONLY."""
    metrics = pages.metrics(manifest)
    work = [
        Work(name, runs, tuple(specs), out / name)
        for name, runs in chosen(manifest, only).items()
        if (specs := runs.specs()) and (only or not (runs.older or current(name, specs, metrics[name])))
    ]
    if not work:
        print("all summaries are current; pages written")
    for one in carried_out(work, workers):
        _summarise(one, metrics[one.name])
    return write(manifest)


def write(manifest: Manifest) -> int:
    """Plots and pages from the summaries that there are; a page that cannot be is named and left alone."""
    known = Summaries(manifest)
    bad = 0
    for page in pages.pages():
        try:
            _replace(page, pages.written(page, page.read_text(encoding="utf-8"), known))
        except LabError as error:
            print(error)
            bad += 1
    for file, content in pages.drawings(known):
        _replace(file, content)
    return 1 if bad else 0


def _replace(file: Path, content: str) -> None:
    """FILE with this content; told where that is a change."""
    if not file.is_file() or file.read_text(encoding="utf-8") != content:
        write_text(file, content)
        print(f"{file}: written")


def carried_out(work: Sequence[Work], workers: int | None) -> Iterator[Work]:
    """WORK, each as soon as all its runs are there; one progress for all. Raises RunError for runs not ok."""
    specs = [spec for one in work for spec in one.specs]
    if not specs:
        return
    runner.refuse(specs, workers)
    with runner.bench_for(specs) as bench:
        todo = {one.name: runner.unfinished(one.jobs(), bench) for one in work}
        left = sum(map(len, todo.values()))
        with progress(left, len(specs) - left) as shown:
            for one in work:
                bad = shown.bad
                at_once = workers or runner.default_workers(list(one.specs))
                runner.perform_all(todo[one.name], bench, at_once, shown.ended)
                if shown.bad > bad:
                    raise RunError(f"{one.name}: {shown.bad - bad} runs not ok, see {one.folder}/records")
                yield one


def _records(one: Work) -> list[dict[str, Any]]:
    return [read_json(job.record) for job in one.jobs()]


def _rows(one: Work, records: Sequence[dict[str, Any]], metrics: set[str]) -> list[Row]:
    """The summary's lines; "complaints" is what 'lab judge' says of a run by itself."""
    rows = [data.row(record, metrics) for record in records]
    if COMPLAINTS in metrics:
        for row, job in zip(rows, one.jobs(), strict=True):
            row.metrics[COMPLAINTS] = len(judge_run(job.record).complaints)
    return rows


def _summarise(one: Work, metrics: set[str]) -> None:
    records = _records(one)
    made = Data(data.source(records), tuple(_rows(one, records, metrics)))
    data.FOLDER.mkdir(exist_ok=True)
    path = data.path_of(one.name)
    write_text(path, data.text(made, one.runs))
    print(f"{path}: {len(records)} runs")


def quick(manifest: Manifest, only: Sequence[str], out: Path, workers: int | None) -> int:
    """A part of the runs again; each has to come out as the summary has it."""
    metrics = pages.metrics(manifest)
    work = [
        Work(name, runs, tuple(specs), out / QUICK / name)
        for name, runs in chosen(manifest, only).items()
        if (specs := runs.quick_specs())
    ]
    bad = total = 0
    for one in carried_out(work, workers):
        for line in different(one.name, _rows(one, _records(one), metrics[one.name])):
            print(line)
            bad += 1
        total += len(one.specs)
    print(f"{total} runs repeated, {bad} figures differ from Documentation/tables")
    return 1 if bad else 0


def different(name: str, rows: Sequence[Row]) -> Iterator[str]:
    """A line for each metric of ROWS that the summary has otherwise."""
    known = {row.key: row for row in data.read(data.path_of(name)).rows}
    for row in rows:
        old = known.get(row.key)
        where = ", ".join(f"{key}={value}" for key, value in row.settings.items())
        for metric, value in row.metrics.items():
            had = old.metrics.get(metric) if old else None
            if had != value:
                yield f"{name}: {where}, seed {row.seed}: {metric} is {value:.10g}, the summary has {had}"


def check(manifest: Manifest) -> int:
    """Pages against summaries and summaries against patches/; needs no kernel."""
    found = list(pages.faults(Summaries(manifest), data.series_id()))
    for line in found:
        print(line)
    return 1 if found else 0


def accept(manifest: Manifest) -> int:
    """All numbers that pages have from no record are given from now on."""
    write_text(data.FOLDER / pages.GIVEN, "".join(f"{line}\n" for line in pages.given_lines(manifest)))
    return 0


def trace(manifest: Manifest, name: str, out: Path) -> int:
    """For each cell of a table its text, and the records that it comes from."""
    if name not in manifest.tables:
        known = list(manifest.tables)
        raise LabError(f"--trace: got {name!r}, expected a table of {manifest.file}; {nearest(name, known)}")
    described = table.read(name, manifest.tables[name], str(manifest.file))
    absent = set()
    for one in table.cells_of(name, described, Summaries(manifest).load):
        print(f"{one.where}: {one.text}")
        for path in _paths(manifest.runs[one.runs], out / one.runs, one.rows):
            print(f"  {path}{'' if path.is_file() else ' (not here)'}")
            absent |= set() if path.is_file() else {one.runs}
    if absent:
        print(f"Make those that are not here: testbed/lab evidence --only {' '.join(sorted(absent))}")
    return 0


def _paths(runs: RunSet, folder: Path, rows: Sequence[Row]) -> Iterator[Path]:
    """The record of each row."""
    jobs = {Row(settings(spec), spec.seed, {}).key: runner.job_in(folder, spec) for spec in runs.specs()}
    yield from (jobs[row.key].record for row in rows)


def pack(manifest: Manifest, out: Path, archive: Path) -> int:
    """All records behind the summaries as one .tar.xz, or nothing: a set without its records is named."""
    sets = [Work(name, runs, tuple(runs.specs()), out / name) for name, runs in manifest.runs.items()]
    absent = " ".join(one.name for one in sets if not verified(one.name, _there(one)))
    if absent:
        raise RunError(f"{out}: not the records of all summaries; run evidence --only {absent}")
    with tarfile.open(archive, "w:xz") as tar:
        for one in sets:
            for job in one.jobs():
                tar.add(job.record, f"{one.name}/{job.record.name}")
    print(archive)
    return 0


def _there(one: Work) -> list[dict[str, Any]]:
    return [read_json(job.record) for job in one.jobs() if job.record.is_file()]


def verified(name: str, records: list[dict[str, Any]]) -> bool:
    return data.read(data.path_of(name)).source["records"] == data.record_hash(records)


def verify(manifest: Manifest, archive: Path) -> int:
    """Whether an archive has the records that the summaries name."""
    found: dict[str, list[dict[str, Any]]] = {}
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                content = tar.extractfile(member)
                if content:
                    found.setdefault(member.name.split("/")[0], []).append(json.load(content))
    except (OSError, tarfile.TarError, ValueError) as error:
        why = str(error).splitlines()[0].rstrip(":")  # tarfile has a line for each kind of compression
        raise LabError(
            f"{archive}: cannot be read: {why}; expected a file written by evidence --pack"
        ) from error
    bad = [name for name in manifest.runs if not verified(name, found.get(name, []))]
    for name in bad:
        print(f"{archive}: {name}: not the records of Documentation/tables/{name}.csv")
    print(f"{len(manifest.runs) - len(bad)} sets verified, {len(bad)} not")
    return 1 if bad else 0
