# SPDX-License-Identifier: GPL-2.0
"""Which plots a section gets: what goes on the x axis, into curves, panels and separate figures.

Pure choices from the data, no drawing. The numeric factor with most values is the x axis; the other
varying factors become panels; curves where a panel has few, or where there would be too many panels.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sctplab.measure.records import Value
from sctplab.report.naming import Metric, factor_setting, metric
from sctplab.report.summary import Line, Point, Section, is_number, point_order
from sctplab.spec.report_spec import Plot

MAX_PANELS = 12
MAX_CURVES = 8
MANY_CURVES = 6
MAX_COLUMNS = 4

Setting = tuple[tuple[str, Value | None], ...]


@dataclass(frozen=True, slots=True)
class Curve:
    """A line of the section, at fixed values of the factors that were moved from panels into curves."""

    line: Line
    fixed: Setting


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes: the points that belong to it."""

    title: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """One image. x is None when no numeric factor varies; the lines are then the rows of the plot."""

    metric: Metric
    x: str | None
    curves: tuple[Curve, ...]
    panels: tuple[Panel, ...]
    columns: int  # panels per row
    page: Setting
    plot: Plot | None = None  # what the scenario asked for; None for an automatic figure

    @property
    def name(self) -> str:
        """File name without ending."""
        kind = self.plot.kind if self.plot and self.plot.kind != "curves" else ""
        pooled = f"all={'+'.join(self.plot.pool)}" if self.plot and self.plot.pool else ""
        settings = (f"{name}={value}" for name, value in self.page)
        return "-".join(part for part in (self.metric.name, kind, pooled, *settings) if part)

    @property
    def steps(self) -> range:
        """The x values of a cdf; none for other figures."""
        return range(self.plot.up_to + 1) if self.plot and self.plot.kind == "cdf" else range(0)


def figures(section: Section, metric: Metric) -> list[Figure]:
    """The figures for one metric; several when even curves cannot take all factors."""
    points = _points_with(section, metric.name)
    lines = _lines_with(section, metric.name)
    x = x_factor(section, points)
    others = [name for name in section.varying if name != x and len(_values(section, points, name)) > 1]
    panels, curves, pages = _divide(section, points, others, len(lines))
    return _arranged(section, metric, x, curves, panels, pages)


def asked(section: Section, plot: Plot) -> list[Figure]:
    """The figures that a scenario asks for; SECTION is pooled already. None when no run has the metric."""
    shown = metric(plot.metric)
    points = _points_with(section, shown.name)
    if not points:
        return []
    x = None if plot.kind == "cdf" else plot.x or x_factor(section, points)
    panels, curves = (
        [name for name in names if name in section.varying] for names in (plot.panels, plot.curves)
    )
    pages = [name for name in section.varying if name not in (x, *panels, *curves)]
    return [replace(figure, plot=plot) for figure in _arranged(section, shown, x, curves, panels, pages)]


def _points_with(section: Section, name: str) -> tuple[Point, ...]:
    present = {point for (_, point), found in section.estimates.items() if name in found}
    return tuple(point for point in section.points if point in present)


def _lines_with(section: Section, name: str) -> tuple[Line, ...]:
    present = {line for (line, _), found in section.estimates.items() if name in found}
    return tuple(line for line in section.lines if line in present)


def _arranged(
    section: Section, metric: Metric, x: str | None, curves: list[str], panels: list[str], pages: list[str]
) -> list[Figure]:
    """One figure per setting of PAGES, with each factor in its place."""
    points, lines = _points_with(section, metric.name), _lines_with(section, metric.name)
    panels.sort(key=lambda name: len(_values(section, points, name)))
    found = []
    for page, page_points in _groups(section, points, pages):
        split = sorted(_groups(section, page_points, panels), key=lambda group: _panel_order(group[0]))
        found.append(
            Figure(
                metric,
                x,
                tuple(
                    Curve(line, fixed) for line in lines for fixed, _ in _groups(section, page_points, curves)
                ),
                tuple(Panel(setting_text(fixed), members) for fixed, members in split),
                _columns(len(split), len(_values(section, page_points, panels[-1])) if panels else 1),
                page,
            )
        )
    return found


def x_factor(section: Section, points: Sequence[Point]) -> str | None:
    """The numeric factor with most values (at least two) over these points; the scenario's first on a tie."""
    counts = {}
    for name in section.varying:
        values = _values(section, points, name)
        if len(values) > 1 and all(is_number(value) for value in values):
            counts[name] = len(values)
    return max(counts, key=lambda name: counts[name], default=None)


def setting_text(fixed: Sequence[tuple[str, Value | None]]) -> str:
    """'queue = 100 packets, loss = 1 %'."""
    return ", ".join(factor_setting(name, value) for name, value in fixed)


def _divide(
    section: Section, points: Sequence[Point], others: list[str], lines: int
) -> tuple[list[str], list[str], list[str]]:
    """Splits factors into those for panels, curves and pages.

    The smallest leave the panels first, of equally small ones the scenario's first.
    """
    panels = list(others)
    curves: list[str] = []
    pages: list[str] = []
    if panels:
        # Curves in one panel compare better than panels do: a small factor goes there while few lines are.
        smallest = min(panels, key=lambda name: len(_values(section, points, name)))
        if lines * len(_values(section, points, smallest)) <= MANY_CURVES:
            panels.remove(smallest)
            curves.append(smallest)
    while len(_groups(section, points, panels)) > MAX_PANELS:
        smallest = min(panels, key=lambda name: len(_values(section, points, name)))
        panels.remove(smallest)
        fits = lines * len(_groups(section, points, [*curves, smallest])) <= MAX_CURVES
        (curves if fits else pages).append(smallest)
    return panels, curves, pages


def _panel_order(fixed: Setting) -> tuple[tuple[int, float, str], ...]:
    return point_order(tuple(value for _, value in fixed))


def _columns(panels: int, fastest: int) -> int:
    """Panels per row: one value of the factor with most values per column where that gives full rows."""
    if 1 < fastest <= MAX_COLUMNS and panels % fastest == 0:
        return fastest
    return min(panels, 2 if panels in (2, 4) else 3)


def _groups(
    section: Section, points: Sequence[Point], names: Sequence[str]
) -> list[tuple[Setting, tuple[Point, ...]]]:
    """Points by their values of the named factors, in the order of the points."""
    groups: dict[Setting, list[Point]] = {}
    for point in points:
        settings = dict(zip(section.factors, point, strict=True))
        groups.setdefault(tuple((name, settings[name]) for name in names), []).append(point)
    return [(fixed, tuple(members)) for fixed, members in groups.items()]


def _values(section: Section, points: Sequence[Point], name: str) -> set[Value | None]:
    index = section.factors.index(name)
    return {point[index] for point in points}
