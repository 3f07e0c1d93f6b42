# SPDX-License-Identifier: GPL-2.0
"""Other people's figures beside ours: a CSV that a scenario names in its member 'reference'.

Columns: any factors of the scenario, metric, value, source ('Caro 2004, figure 5'). A column kernel
or variant ties a figure to one line. An empty field, or a factor without column, means "any"; "all" that
the figure is of all values of the factor together: it stands beside plots that pool them. Columns n,
ci_low and ci_high may be empty: how many runs stand behind the value, and its 95 % interval.

The metric "spurious_failovers<=3" is the share of runs with at most three of them: a point of a cdf.
"""

import csv
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sctplab.errors import LabError
from sctplab.measure.records import Value
from sctplab.paths import SCENARIOS
from sctplab.report.naming import value_text
from sctplab.report.stats import Estimate, Interval
from sctplab.report.summary import Line, Point, Section
from sctplab.spec.report_spec import Plot

ALL = "all"
_REQUIRED = ("metric", "value", "source")
_OPTIONAL = ("n", "ci_low", "ci_high")


@dataclass(frozen=True, slots=True)
class Figure:
    """One printed number: where it was measured (factor -> value as text), of what, by whom."""

    where: tuple[tuple[str, str], ...]
    metric: str
    value: float
    source: str
    n: int | None = None
    interval: Interval | None = None

    def matches(self, settings: dict[str, Value | None]) -> bool:
        """True when every setting that the figure states is given and is the same."""
        return all(
            _same(text, settings[name]) if name in settings else text == ALL for name, text in self.where
        )


def at_most(metric: str, limit: int) -> str:
    """The metric of a point of a cdf: 'spurious_failovers<=3'."""
    return f"{metric}<={limit}"


def reference_names(text: str) -> list[str]:
    """The file names of a scenario's member 'reference': 'a.csv, b.csv'."""
    return [name.strip() for name in text.split(",") if name.strip()]


def reference_path(name: str) -> Path:
    """Where a scenario's reference file is: relative to the folder of the scenario files."""
    return SCENARIOS / name


def load_reference(path: Path) -> list[Figure]:
    """All figures of a reference file in its order; raises LabError naming file and line."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise LabError(f"{path}: reference file cannot be read: {error}") from error
    missing = [name for name in _REQUIRED if not rows or name not in rows[0]]
    if missing:
        raise LabError(f"{path}: not a reference file, no column {', '.join(missing)} (or no rows)")
    return [_figure(path, number, row) for number, row in enumerate(rows, start=1)]


def replaced(path: Path, text: str) -> str:
    """TEXT, a reference file, with what the file at PATH has from other sources in front of it.

    Comments belong to the source they start with. Raises LabError where PATH has other columns.
    """
    if not path.exists():
        return text
    notes, head, rows = _split(text)
    sources = {row.rpartition(",")[2] for row in rows}
    old_notes, old_head, old_rows = _split(path.read_text(encoding="utf-8"))
    if head != old_head:
        raise LabError(f"{path}: has the columns {old_head}, expected {head}; give another file")
    notes = [note for note in old_notes if note[2:].partition(": ")[0] not in sources] + notes
    rows = [row for row in old_rows if row.rpartition(",")[2] not in sources] + rows
    return "".join(f"{line}\n" for line in (*notes, head, *rows))


def _split(text: str) -> tuple[list[str], str, list[str]]:
    """(comments, head, rows) of a reference file that reference_csv wrote."""
    lines = text.splitlines()
    table = [line for line in lines if not line.startswith("#")]
    return [line for line in lines if line.startswith("#")], (table or [""])[0], table[1:]


def reference_csv(section: Section, plots: Sequence[Plot], how: str) -> str:
    """The numbers of a section as such a file, its kernels as sources; what PLOTS pool and count is added.

    A column variant is there when lines have one.
    """
    out = io.StringIO()
    out.writelines(f"# {kernel}: {how}\n" for kernel in dict.fromkeys(line.kernel for line in section.lines))
    writer = csv.writer(out, lineterminator="\n")
    own = ["variant"] if any(line.variant for line in section.lines) else []
    head = [*section.factors, *own]
    writer.writerow([*head, "metric", "value", "n", "ci_low", "ci_high", "source"])
    for (line, point), found in section.estimates.items():
        where = (*point, line.variant)[: len(head)]
        writer.writerows(
            _row(where, name, found[name], line.kernel) for name in section.metrics if name in found
        )
    for plot in plots:
        pooled = section.pooled(plot.pool)
        for line, point in pooled.cells:
            settings = dict(zip(pooled.factors, point, strict=True))
            settings["variant"] = line.variant
            where = tuple(settings.get(name, ALL) for name in head)
            for name, estimate in _shown(pooled, line, point, plot):
                if estimate and (name not in section.metrics or plot.pool):
                    writer.writerow(_row(where, name, estimate, line.kernel))
    return out.getvalue()


def _shown(section: Section, line: Line, point: Point, plot: Plot) -> Iterator[tuple[str, Estimate | None]]:
    """(metric, estimate) of a cell as a plot shows it: one, or one per step of a cdf."""
    if plot.kind == "cdf":
        for k in range(plot.up_to + 1):
            yield at_most(plot.metric, k), section.at_most(line, point, plot.metric, k)
    else:
        yield plot.metric, section.estimate(line, point, plot.metric)


def _row(point: Point, name: str, estimate: Estimate, source: str) -> list[str]:
    ends = (estimate.interval.low, estimate.interval.high) if estimate.interval else ()
    numbers = [f"{value:.6g}" for value in ends] or ["", ""]
    where = ["" if value is None else value_text(value) for value in point]
    return [*where, name, f"{estimate.centre:.6g}", str(estimate.n), *numbers, source]


def figures_at(figures: Sequence[Figure], section: Section, point: Point, name: str) -> list[Figure]:
    """The figures for a metric that belong beside a point, whatever their line."""
    settings = dict(zip(section.factors, point, strict=True))
    return [f for f in figures if f.metric == name and _without_line(f).matches(settings)]


def belongs_to(figure: Figure, line: Line, fixed: Sequence[tuple[str, Value | None]] = ()) -> bool:
    """False when the figure states a kernel, a variant or a value of the FIXED factors other than these."""
    own = {"kernel": line.kernel, "variant": line.variant, **dict(fixed)}
    return all(_same(text, own[name]) for name, text in figure.where if name in own)


def _without_line(figure: Figure) -> Figure:
    where = tuple(item for item in figure.where if item[0] not in ("kernel", "variant"))
    return replace(figure, where=where)


def _figure(path: Path, number: int, row: dict[str, str]) -> Figure:
    if None in row or None in row.values():
        raise LabError(f"{path}: data row {number}: expected as many fields as the head has columns")
    value = _number(path, number, "value", row["value"])
    where = tuple(
        (name, text.strip())
        for name, text in row.items()
        if name not in (*_REQUIRED, *_OPTIONAL) and text.strip()
    )
    n, low, high = (
        _number(path, number, name, text) if (text := row.get(name, "").strip()) else None
        for name in _OPTIONAL
    )
    return Figure(
        where,
        row["metric"].strip(),
        value,
        row["source"].strip(),
        None if n is None else round(n),
        None if low is None or high is None else Interval(low, high),
    )


def _number(path: Path, row: int, column: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise LabError(f"{path}: data row {row}: {column} is {text!r}, expected a number")
    return value


def _same(text: str, value: Value | None) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value is not None and text == str(value)
    try:
        return math.isclose(float(text), value, rel_tol=1e-9)
    except ValueError:
        return False
