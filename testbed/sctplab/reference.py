# SPDX-License-Identifier: GPL-2.0
"""Other people's figures beside ours: a CSV that a scenario names in its member 'reference'.

Columns: any factors of the scenario, metric, value, source ('Caro 2004, figure 5'). A column kernel
or variant ties a figure to one line. An empty field, or a factor without column, means "any".
"""

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sctplab.errors import LabError
from sctplab.load_records import Value
from sctplab.summary import Line, Point, Section

SCENARIOS = Path(__file__).resolve().parents[1] / "scenarios"
_REQUIRED = ("metric", "value", "source")


@dataclass(frozen=True, slots=True)
class Figure:
    """One printed number: where it was measured (factor -> value as text), of what, by whom."""

    where: tuple[tuple[str, str], ...]
    metric: str
    value: float
    source: str

    def matches(self, settings: dict[str, Value | None]) -> bool:
        """True when every setting that the figure states is given and is the same."""
        return all(name in settings and _same(text, settings[name]) for name, text in self.where)


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
    return Figure(where, figure.metric, figure.value, figure.source)


def _figure(path: Path, number: int, row: dict[str, str]) -> Figure:
    try:
        value = float(row["value"])
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value) or None in row or None in row.values():
        raise LabError(
            f"{path}: data row {number}: value is {row['value']!r}, expected a number and all columns filled"
        )
    where = tuple(
        (name, text.strip()) for name, text in row.items() if name not in _REQUIRED and text.strip()
    )
    return Figure(where, row["metric"].strip(), value, row["source"].strip())


def _same(text: str, value: Value | None) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value is not None and text == str(value)
    try:
        return math.isclose(float(text), value, rel_tol=1e-9)
    except ValueError:
        return False
