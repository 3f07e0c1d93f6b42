# SPDX-License-Identifier: GPL-2.0
"""The content of the report's page, as plain data for the template: tables, failures, provenance. Pure."""

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from sctplab.measure.records import Run
from sctplab.report.facets import Figure as PlotFigure
from sctplab.report.naming import (
    Metric,
    decimals,
    difference_text,
    estimate_text,
    factor_axis,
    factor_setting,
    ratio_text,
    value_text,
)
from sctplab.report.reference import Figure, figures_at
from sctplab.report.stats import MIN_FOR_MEDIAN_INTERVAL, paired
from sctplab.report.summary import Line, Point, Section

MAX_LINKS = 3000  # beyond this a section links its folder of records instead of each record


@dataclass(frozen=True, slots=True)
class Cell:
    """One table cell: the number, and what is to be known about the runs behind it."""

    text: str
    note: str = ""
    bad: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows are points, columns lines. head holds the factors' names, then the columns' names."""

    title: str
    caption: str
    factors: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[tuple[str, ...], tuple[Cell, ...]], ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """Runs of one cell that ended the same bad way."""

    cell: str
    status: str
    reason: str
    runs: tuple[Run, ...]

    @property
    def text(self) -> str:
        """'stock: dual-homed, d2 = 50 ms, seeds 1, 2: failed, payload wrong at offset 0'."""
        seeds = ", ".join(str(run.seed) for run in self.runs)
        return f"{self.cell}, seed{'s' if len(self.runs) > 1 else ''} {seeds}: {self.status}, {self.reason}"


def results_table(section: Section, metric: Metric, printed: Sequence[Figure]) -> Table:
    """Estimates of one metric, a column per line and one per source of printed figures."""
    lines = [line for line in section.lines if _has(section, line, metric.name)]
    points = [
        p for p in section.points if any(_runs_expected(section, line, p, metric.name) for line in lines)
    ]
    found = [section.estimate(line, point, metric.name) for line in lines for point in points]
    counts = Counter(estimate.n for estimate in found if estimate)
    usual = max(counts, key=lambda n: (counts[n], n), default=0)
    digits = decimals(estimate.centre for estimate in found if estimate)
    sources = sorted({f.source for p in points for f in figures_at(printed, section, p, metric.name)})
    rows = []
    for point in points:
        cells = [_result_cell(section, line, point, metric, digits, usual) for line in lines]
        cells += [_printed_cell(section, point, metric, printed, source) for source in sources]
        rows.append((settings(section, point), tuple(cells)))
    labels = [section.label(line) for line in lines]
    return Table(
        metric.axis,
        _caption(metric, usual, len(counts) > 1),
        heads(section),
        (*labels, *sources),
        tuple(rows),
    )


def asked_table(section: Section, figure: PlotFigure, printed: Sequence[Figure]) -> Table:
    """The numbers of a figure that the scenario asks for; SECTION is pooled as the figure is."""
    if not figure.steps:
        return results_table(section, figure.metric, printed)
    name = figure.metric.name
    rows = []
    for line, point in section.cells:
        shares = [section.at_most(line, point, name, k) for k in figure.steps]
        cells = tuple(Cell(estimate_text(found, 3) if found else "–") for found in shares)
        rows.append(((section.label(line), *settings(section, point)), cells))
    n = max(len(runs) for runs in section.cells.values())
    return Table(
        f"{figure.metric.title}: share of runs with at most so many",
        f"Share [95 % interval]; n = {n} at most",
        ("", *heads(section)),
        tuple(f"≤ {k}" for k in figure.steps),
        tuple(rows),
    )


def overview_table(section: Section, metrics: Sequence[Metric]) -> Table:
    """For a section of one point: rows are lines, columns metrics and how many runs were completed."""
    point = section.points[0]
    usual = 0
    columns = []
    for shown in metrics:
        found = [e for line in section.lines if (e := section.estimate(line, point, shown.name))]
        digits, usual = decimals(e.centre for e in found), max(e.n for e in found)
        columns.append([_result_cell(section, line, point, shown, digits, usual) for line in section.lines])
    columns.append([_completed(section.cells[line, point]) for line in section.lines])
    rows = zip([(section.label(line),) for line in section.lines], zip(*columns, strict=True), strict=True)
    caption = "± and [ ]: 95 % interval" if usual > 1 else "One run per line, so no interval"
    heads = (*(metric.axis for metric in metrics), "Completed")
    return Table("Results", caption, ("",), heads, tuple(rows))


def paired_tables(section: Section, metric: Metric) -> list[Table]:
    """One table per stock line with this metric: every patched line against it, over their common seeds."""
    lines = [line for line in section.lines if _has(section, line, metric.name)]
    patched = [line for line in lines if line.kernel != "stock"]
    tables = []
    for stock in (line for line in lines if line.kernel == "stock"):
        rows = []
        for point in section.points:
            before = section.by_seed(stock, point, metric.name)
            cells = tuple(
                paired_cell(before, section.by_seed(p, point, metric.name), metric) for p in patched
            )
            if any(cell.text for cell in cells):
                rows.append((settings(section, point), cells))
        if rows:
            labels = tuple(section.label(line) for line in patched)
            title = f"{metric.title} against {section.label(stock)}"
            tables.append(Table(title, "", heads(section), labels, tuple(rows)))
    return tables


def tally(runs: Sequence[Run]) -> str:
    """'120 runs: 118 ok, 1 failed, 1 timeout'."""
    counts = Counter(run.status for run in runs)
    parts = [
        f"{counts[status]} {status}" for status in ("ok", "failed", "timeout", "crashed") if counts[status]
    ]
    return f"{len(runs)} run{'s' if len(runs) != 1 else ''}: {', '.join(parts)}"


def failures(section: Section) -> list[Failure]:
    """The runs that give no numbers, those of one cell with the same fate together."""
    found: dict[tuple[Line, Point, str, str], list[Run]] = {}
    for (line, point), runs in section.cells.items():
        for run in runs:
            if not run.ok:
                found.setdefault((line, point, run.status, run.reason or "no reason recorded"), []).append(
                    run
                )
    return [
        Failure(cell_name(section, line, point), status, reason, tuple(runs))
        for (line, point, status, reason), runs in found.items()
    ]


def cell_name(section: Section, line: Line, point: Point) -> str:
    """'stock: dual-homed, d2 = 50 ms'."""
    settings = zip(section.factors, point, strict=True)
    texts = [factor_setting(name, value) for name, value in settings if name in section.varying]
    return ", ".join([section.label(line), *texts])


def kernels(section: Section) -> list[tuple[str, ...]]:
    """(flavour, base, source version, series, build) of each kernel build in use, sorted."""
    rows: set[tuple[str, ...]] = set()
    for run in section.runs:
        info = run.environment.kernel
        names = ("source_version", "series_id", "key")
        rows.add((run.kernel, run.base, run.place, *(str(info.get(name, "not recorded")) for name in names)))
    return sorted(rows)


def tools(section: Section) -> list[tuple[str, str]]:
    """Each tool with its versions."""
    found: dict[str, set[str]] = {}
    for run in section.runs:
        for name, version in run.environment.tools.items():
            found.setdefault(name, set()).add(str(version))
    return [(name, ", ".join(sorted(versions))) for name, versions in sorted(found.items())]


def settings_table(section: Section) -> tuple[tuple[str, ...], list[tuple[str, str, tuple[str, ...]]]]:
    """(names of the lines, rows of (sysctl key, host, values set per line)); what is not set is default."""
    found: dict[tuple[str, str], dict[Line, dict[str, None]]] = {}
    for (line, _), runs in section.cells.items():
        for run in runs:
            for host, settings in run.environment.settings.items():
                for key, value in settings.items():
                    found.setdefault((key, host), {}).setdefault(line, {})[str(value)] = None
    rows: list[tuple[str, str, tuple[str, ...]]] = []
    for (key, host), by_line in sorted(found.items()):
        values = tuple(", ".join(by_line.get(line, {"default": None})) for line in section.lines)
        if rows and rows[-1][0] == key and rows[-1][2] == values:
            rows[-1] = (key, f"{rows[-1][1]}, {host}", values)
        else:
            rows.append((key, host, values))
    return tuple(section.label(line) for line in section.lines), rows


def warnings(section: Section) -> list[str]:
    """Reasons to doubt the section's numbers although its runs ended ok, one line each."""
    return _mixed_builds(section) + _mismatches(section)


def _mixed_builds(section: Section) -> list[str]:
    """Kernels of which the records hold more than one build; their numbers are not of one thing."""
    builds = Counter(row[:3] for row in kernels(section))
    mixed = sorted(flavour for (flavour, _, _), count in builds.items() if count > 1)
    return [f"records of several builds of the {flavour} kernel are mixed here" for flavour in mixed]


def _mismatches(section: Section) -> list[str]:
    """Settings that the scenario asked for and that read back differently in the running place."""
    found: set[str] = set()
    for run in section.runs:
        for host, settings in run.environment.settings.items():
            read = run.environment.sysctls.get(host, {})
            for key, value in settings.items():
                if key in read and str(read[key]).split() != str(value).split():
                    found.add(f"{key} on {host}: set to {value}, read back as {read[key]} ({run.path.name})")
    return sorted(found)


def commands(section: Section, out: str) -> list[str]:
    """The command lines that make these records again, one per place and base."""
    found = []
    for place, base in sorted({(line.place, line.base) for line in section.lines}):
        kernels_used = sorted(
            {line.kernel for line in section.lines}, key=lambda name: (name != "stock", name)
        )
        seeds = [run.seed for run in section.runs]
        words = ["testbed/lab", "run", section.scenario, "--place", place, "--kernel", ",".join(kernels_used)]
        words += ["--base", base] if base else []
        for name in section.factors:
            values = [value_text(value) for value in section.values(name) if value is not None]
            words += ["--set", f"{name}={','.join(values)}"]
        words += ["--repeat", str(max(seeds) - min(seeds) + 1), "--first-seed", str(min(seeds)), "--out", out]
        found.append(shlex.join(words))
    return found


def record_links(section: Section, results: Path) -> list[tuple[str, list[tuple[str, str]]]]:
    """Per cell: its name and (seed and status, address) of each record; empty when there are too many."""
    if len(section.runs) > MAX_LINKS:
        return []
    rows = []
    for (line, point), runs in section.cells.items():
        links = [(f"{r.seed}" if r.ok else f"{r.seed} {r.status}", address(r, results)) for r in runs]
        rows.append((cell_name(section, line, point), links))
    return rows


def address(run: Run, results: Path) -> str:
    """The record's address relative to the report."""
    return quote(run.path.relative_to(results).as_posix())


def _has(section: Section, line: Line, name: str) -> bool:
    return any(section.estimate(line, point, name) for point in section.points)


def _runs_expected(section: Section, line: Line, point: Point, name: str) -> bool:
    """True where the line has the metric, or has runs that all failed and so might have had it."""
    runs = section.cells.get((line, point), ())
    return section.estimate(line, point, name) is not None or bool(runs and not any(run.ok for run in runs))


def _result_cell(section: Section, line: Line, point: Point, metric: Metric, digits: int, usual: int) -> Cell:
    runs = section.cells.get((line, point), ())
    found = section.estimate(line, point, metric.name)
    lost = Counter(run.status for run in runs if not run.ok)
    notes = [f"{count} {status}" for status, count in sorted(lost.items())]
    if found is None:
        return Cell("no result" if lost else "missing" if not runs else "–", ", ".join(notes), bool(lost))
    notes = ([f"n = {found.n}"] if found.n != usual else []) + notes
    return Cell(estimate_text(found, digits), ", ".join(notes), bool(lost))


def _completed(runs: Sequence[Run]) -> Cell:
    done = sum(run.ok for run in runs)
    return Cell(f"{done} of {len(runs)}", bad=done < len(runs))


def _printed_cell(
    section: Section, point: Point, metric: Metric, printed: Sequence[Figure], source: str
) -> Cell:
    here = [f for f in figures_at(printed, section, point, metric.name) if f.source == source]
    digits = decimals(f.value for f in here)
    texts = [f"{f.value:g}" if f.interval is None else f"{f.value:.{digits}f}" for f in here]
    notes = [f"[{f.interval.low:.{digits}f}, {f.interval.high:.{digits}f}]" for f in here if f.interval]
    notes += dict.fromkeys(value for f in here for name, value in f.where if name == "variant")
    return Cell(", ".join(texts), ", ".join(notes))


def paired_cell(before: dict[int, float], after: dict[int, float], metric: Metric) -> Cell:
    pair = paired(before, after, metric.skewed)
    if pair is None:
        return Cell("")
    unit = f" {metric.unit}" if metric.unit else ""
    seeds = f"{len(pair.seeds)} seed{'s' if len(pair.seeds) > 1 else ''}"
    note = f"{difference_text(pair.difference)}{unit}, {seeds}"
    return Cell(ratio_text(pair.ratio) if pair.ratio else "–", note)


def settings(section: Section, point: Point) -> tuple[str, ...]:
    settings = dict(zip(section.factors, point, strict=True))
    return tuple(value_text(settings[name]) for name in section.varying)


def heads(section: Section) -> tuple[str, ...]:
    return tuple(factor_axis(name) for name in section.varying)


def _caption(metric: Metric, usual: int, mixed: bool) -> str:
    """The statistic and interval of a metric's cells; USUAL is the number of runs in most of them."""
    smallest = MIN_FOR_MEDIAN_INTERVAL if metric.skewed else 2
    what = "Median" if metric.skewed else "Mean"
    if usual >= smallest:
        what += " [95 % bootstrap interval]" if metric.skewed else " ± half of the 95 % interval"
    elif usual == 1:
        return f"One run per cell{' unless stated' if mixed else ''}, so no interval"
    else:
        what += f", no interval below {smallest} runs"
    return f"{what}; n = {usual} {'unless stated' if mixed else 'in each cell'}"
