# SPDX-License-Identifier: GPL-2.0
"""Runs grouped into sections (one per scenario) and cells, their estimates, and summary.csv.

A *line* is what is compared (kernel and variant; base and place too where there are several), a
*point* is one setting of all factors. A cell is a line at a point. Only runs with status ok give
numbers; the others are kept in the cell so that tables can count and name them.
"""

import csv
import io
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from sctplab.measure.records import Run, Value
from sctplab.report.naming import HEADLINES, SILENCE, Metric, metric, value_text
from sctplab.report.stats import Estimate, estimate, share

Point = tuple[Value | None, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """One thing under comparison."""

    kernel: str
    variant: str
    base: str
    place: str

    def order(self) -> tuple[bool, str, str, str, str]:
        """Sort key: the stock kernel comes first, everything else by name."""
        return (self.kernel != "stock", self.kernel, self.variant, self.base, self.place)


@dataclass(frozen=True)
class Section:
    """All runs of one scenario, in cells. factors have the scenario's order; points and lines are sorted."""

    scenario: str
    factors: tuple[str, ...]
    cells: Mapping[tuple[Line, Point], tuple[Run, ...]]

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """Every run, in the order of the cells, then by seed."""
        return tuple(run for runs in self.cells.values() for run in runs)

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """The lines that have at least one run."""
        return tuple(sorted({line for line, _ in self.cells}, key=Line.order))

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """The points at which at least one line has a run."""
        return tuple(sorted({point for _, point in self.cells}, key=point_order))

    @cached_property
    def varying(self) -> tuple[str, ...]:
        """The factors that take more than one value here."""
        return tuple(name for name in self.factors if len(self.values(name)) > 1)

    @cached_property
    def constant(self) -> dict[str, Value | None]:
        """The factors that take one value here, with it."""
        return {name: self.values(name)[0] for name in self.factors if name not in self.varying}

    @cached_property
    def estimates(self) -> dict[tuple[Line, Point], dict[str, Estimate]]:
        """Cell -> metric name -> estimate over the runs that ended ok; cells without any are left out."""
        return {cell: found for cell, runs in self.cells.items() if (found := _estimates(runs))}

    @cached_property
    def metrics(self) -> tuple[str, ...]:
        """Names of all metrics, headline metrics first and in their order."""
        names = {name for found in self.estimates.values() for name in found}
        first = [m.name for m in HEADLINES if m.name in names]
        return tuple(first + sorted(names - set(first)))

    @property
    def headlines(self) -> tuple[Metric, ...]:
        """The metrics that get a table and a plot; first the silence where the runs have events."""
        found = [m for m in HEADLINES if m.name in self.metrics]
        if self.has_events:
            found.sort(key=lambda m: m.name not in SILENCE)
        return tuple(found)

    @property
    def has_events(self) -> bool:
        """True when something happens to a path during these runs."""
        return any(run.events for run in self.runs)

    def values(self, factor: str) -> tuple[Value | None, ...]:
        """The values a factor takes, sorted."""
        index = self.factors.index(factor)
        return tuple(sorted({point[index] for _, point in self.cells}, key=_value_order))

    def estimate(self, line: Line, point: Point, name: str) -> Estimate | None:
        """The estimate of a metric in a cell, None where no run gives one."""
        return self.estimates.get((line, point), {}).get(name)

    def at_most(self, line: Line, point: Point, name: str, limit: float) -> Estimate | None:
        """The share of a cell's runs whose metric is at most LIMIT."""
        by_seed: dict[int, list[bool]] = defaultdict(list)
        for run in self.cells.get((line, point), ()):
            if run.ok and name in run.metrics:
                by_seed[run.seed].append(run.metrics[name] <= limit)
        return share(by_seed) if by_seed else None

    def pooled(self, factors: Collection[str]) -> "Section":
        """The same runs, with the cells that differ only in these factors put together."""
        kept = [number for number, name in enumerate(self.factors) if name not in factors]
        cells: dict[tuple[Line, Point], tuple[Run, ...]] = defaultdict(tuple)
        for (line, point), runs in self.cells.items():
            cells[line, tuple(point[number] for number in kept)] += runs
        return Section(self.scenario, tuple(self.factors[number] for number in kept), dict(cells))

    def by_seed(self, line: Line, point: Point, name: str) -> dict[int, float]:
        """Seed -> value of a metric over the ok runs of a cell that is not pooled."""
        runs = self.cells.get((line, point), ())
        return {run.seed: run.metrics[name] for run in runs if run.ok and name in run.metrics}

    def label(self, line: Line) -> str:
        """'stock: single-homed': kernel and variant, with base and place where the section has several."""
        parts = [line.kernel]
        parts += [line.base] if len({other.base for other in self.lines}) > 1 else []
        parts += [line.place] if len({other.place for other in self.lines}) > 1 else []
        return " ".join(parts) + (f": {line.variant}" if line.variant else "")


def sections(runs: Iterable[Run]) -> list[Section]:
    """Groups runs by scenario, sorted by name; within a cell runs are sorted by seed."""
    by_scenario: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        by_scenario[run.scenario].append(run)
    return [_section(name, by_scenario[name]) for name in sorted(by_scenario)]


def summary_csv(parts: Iterable[Section]) -> str:
    """The tidy table: one row per cell and metric. A column place or base is added where there are several.

    ci_low and ci_high are for what interval_of names, mean or median; empty when there is no interval.
    """
    parts = list(parts)
    lines = [line for part in parts for line in part.lines]
    extra = [name for name in ("base", "place") if len({getattr(line, name) for line in lines}) > 1]
    factors = list(dict.fromkeys(name for part in parts for name in part.factors))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    ours = ["metric", "n", "median", "mean", "ci_low", "ci_high", "interval_of"]
    writer.writerow(["scenario", "kernel", "variant", *extra, *factors, *ours])
    for part in parts:
        for (line, point), found in part.estimates.items():
            settings = dict(zip(part.factors, point, strict=True))
            start = [part.scenario, line.kernel, line.variant, *(getattr(line, name) for name in extra)]
            start += ["" if settings.get(name) is None else value_text(settings[name]) for name in factors]
            writer.writerows([*start, name, *_csv_estimate(found[name])] for name in sorted(found))
    return out.getvalue()


def point_order(point: Point) -> tuple[tuple[int, float, str], ...]:
    """Sort key of a point: factor by factor, absent before numbers before texts."""
    return tuple(_value_order(value) for value in point)


def is_number(value: Value | None) -> bool:
    """True for a factor value that can stand on a numeric axis."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _section(scenario: str, runs: list[Run]) -> Section:
    factors = tuple(dict.fromkeys(name for run in runs for name, _ in run.factors))
    cells: dict[tuple[Line, Point], list[Run]] = defaultdict(list)
    for run in runs:
        settings = dict(run.factors)
        line = Line(run.kernel, run.variant, run.base, run.place)
        cells[line, tuple(settings.get(name) for name in factors)].append(run)
    ordered = sorted(cells, key=lambda cell: (cell[0].order(), point_order(cell[1])))
    return Section(
        scenario,
        factors,
        {cell: tuple(sorted(cells[cell], key=lambda run: (run.seed, run.path.name))) for cell in ordered},
    )


def estimated(by_seed: Mapping[int, Sequence[float]], shown: Metric) -> Estimate:
    """The estimate that suits the metric; seed -> values of its runs, several where cells are pooled."""
    if shown.share:
        return share({seed: [value > 0 for value in values] for seed, values in by_seed.items()})
    return estimate([value for values in by_seed.values() for value in values], shown.skewed)


def _estimates(runs: tuple[Run, ...]) -> dict[str, Estimate]:
    values: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        if run.ok:
            for name, value in run.metrics.items():
                values[name][run.seed].append(value)
    return {name: estimated(values[name], metric(name)) for name in sorted(values)}


def _value_order(value: Value | None) -> tuple[int, float, str]:
    if value is None:
        return (0, 0.0, "")
    if isinstance(value, int | float):
        return (1, float(value), "")
    return (2, 0.0, value)


def _csv_estimate(found: Estimate) -> list[str]:
    ends = (found.interval.low, found.interval.high) if found.interval else None
    numbers = [f"{value:.10g}" for value in (found.median, found.mean, *(ends or ()))]
    return [str(found.n), *numbers, *([] if ends else ["", ""]), "median" if found.skewed else "mean"]
