# SPDX-License-Identifier: GPL-2.0
"""Draws a figure of estimates: curves with interval bars, other people's figures as single marks."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as MplFigure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from sctplab.report.facets import Curve, Figure, Panel, setting_text
from sctplab.report.naming import factor_axis
from sctplab.report.plot_style import INK, drawing, finish, log_axis, look, spans_decades
from sctplab.report.reference import Figure as Printed
from sctplab.report.reference import at_most, belongs_to, figures_at
from sctplab.report.stats import Estimate
from sctplab.report.summary import Point, Section

PRINTED_MARKERS = "x+1234"


@dataclass(frozen=True)
class Scene:
    """A figure with everything it shows."""

    section: Section
    figure: Figure
    printed: Sequence[Printed] = ()

    @cached_property
    def sources(self) -> list[str]:
        """Where printed figures come from: of the whole scenario, so that a source keeps its mark."""
        return sorted({mark.source for mark in self.printed})

    def curve(self, curve: Curve, panel: Panel) -> list[tuple[float, Estimate | None]]:
        """(x, estimate) along a curve in a panel, None where the cell is missing or has no good run."""
        section, name = self.section, self.figure.metric.name
        points = [point for point in panel.points if self._has(curve, point)]
        if self.figure.steps:
            return [(k, section.at_most(curve.line, p, name, k)) for p in points for k in self.figure.steps]
        return [(self.x_of(p), section.estimate(curve.line, p, name)) for p in points]

    def shift(self, number: int) -> float:
        """How far aside a curve stands in a plot that was asked for, lest one hide the other's bars."""
        if not self.figure.plot or not self.figure.x:
            return 0.0
        xs = [x for x, _ in self.shown()]
        return 0.008 * (max(xs) - min(xs)) * (number - (len(self.figure.curves) - 1) / 2)

    def marks(self, panel: Panel) -> list[tuple[float, Printed]]:
        """The printed figures of a panel, each with its x."""
        name = self.figure.metric.name
        if not self.figure.steps:
            return [(self.x_of(p), mark) for p in panel.points for mark in self._printed_at(p, name)]
        return [
            (k, mark)
            for p in panel.points
            for k in self.figure.steps
            for mark in self._printed_at(p, at_most(name, k))
        ]

    def shown(self) -> list[tuple[float, Estimate]]:
        """Every estimate of the figure, with its x."""
        figure = self.figure
        return [
            (x, e) for panel in figure.panels for c in figure.curves for x, e in self.curve(c, panel) if e
        ]

    def label(self, curve: Curve) -> str:
        """The curve's entry in the legend: its line, and its values of the factors that were made curves."""
        line = [self.section.label(curve.line)] if self.several_lines or not curve.fixed else []
        return ", ".join([*line, *([setting_text(curve.fixed)] if curve.fixed else [])])

    @property
    def several_lines(self) -> bool:
        """False when all curves are of one line, which then needs saying only once."""
        return len({curve.line for curve in self.figure.curves}) > 1

    @property
    def title(self) -> str:
        """'rtx-policy: Goodput by d2, queue = 100 packets'."""
        figure = self.figure
        by = f" by {factor_axis(figure.x).partition(' (')[0]}" if figure.x else ""
        page = f", {setting_text(figure.page)}" if figure.page else ""
        own = figure.plot.title if figure.plot else ""
        return f"{self.section.scenario}: {own or figure.metric.title + by}{page}"

    @property
    def caption(self) -> str:
        """The meaning of marks and bars, and the number of runs per mark."""
        estimates = [found for _, found in self.shown()]
        counts = sorted({found.n for found in estimates})
        n = f"n = {counts[0]}" if len(counts) == 1 else f"n = {counts[0]} to {counts[-1]}"
        shown = self.figure.metric
        share = shown.share or bool(self.figure.steps)
        what = "share" if share else "median" if shown.skewed else "mean"
        if not self.several_lines:
            what = f"{self.section.label(self.figure.curves[0].line)}: {what}"
        if not any(found.interval for found in estimates):
            return f"{what}, {n} per mark: too few runs for an interval"
        method = "Wilson" if share else "bootstrap of the median" if shown.skewed else "Student's t"
        bars = "bands where some do and some do not" if self.figure.steps else "bars"
        return f"{what}, {bars}: 95 % interval ({method}), {n} per mark"

    def x_of(self, point: Point) -> float:
        """The point's place on the x axis."""
        value = point[self.section.factors.index(self.figure.x)] if self.figure.x else 0
        return float(value or 0)

    def owners(self, mark: Printed) -> list[int]:
        """The number of the curve that a printed figure belongs to; none where it belongs to several."""
        curves = self.figure.curves
        own = [n for n, curve in enumerate(curves) if belongs_to(mark, curve.line, curve.fixed)]
        return own if len(own) == 1 and len(curves) > 1 else []

    def _printed_at(self, point: Point, name: str) -> list[Printed]:
        return figures_at(self.printed, self.section, point, name)

    def _has(self, curve: Curve, point: Point) -> bool:
        settings = dict(zip(self.section.factors, point, strict=True))
        return all(settings[name] == value for name, value in curve.fixed)


def draw(scene: Scene) -> MplFigure:
    """The figure, ready for saving."""
    figure = scene.figure
    with drawing():
        columns = figure.columns
        rows = -(-len(figure.panels) // columns)
        canvas = MplFigure(figsize=(6.6 if columns == 1 else 3.1 * columns, 1.1 + _height(figure) * rows))
        same = not figure.plot or figure.plot.zero
        axes = list(canvas.subplots(rows, columns, sharex=True, sharey=same, squeeze=False).flat)
        for panel, ax in zip(figure.panels, axes, strict=False):
            (_draw_steps if figure.steps else _draw_curves if figure.x else _draw_rows)(scene, panel, ax)
            ax.set_title(panel.title)
        _set_scale(scene, axes[0])
        finish(canvas, axes, columns, len(figure.panels), scene.title, scene.caption)
        return canvas


def _draw_curves(scene: Scene, panel: Panel, ax: Axes) -> None:
    """Panel with a factor on the x axis; curves are broken where a cell is missing."""
    figure = scene.figure
    for number, curve in enumerate(figure.curves):
        members = scene.curve(curve, panel)
        centres = np.array([found.centre if found else np.nan for _, found in members])
        ax.errorbar(
            [x + scene.shift(number) for x, _ in members],
            centres,
            yerr=_bars([found for _, found in members]) if members else None,
            label=scene.label(curve),
            capsize=2.5,
            elinewidth=1,
            **look(figure.curves, number),
        )
    _draw_all_printed(scene, panel, ax)
    ax.set_xlabel(factor_axis(figure.x or ""))
    ax.set_ylabel(figure.metric.axis)


def _draw_steps(scene: Scene, panel: Panel, ax: Axes) -> None:
    """Panel with a distribution per curve: the share of runs with at most x."""
    figure = scene.figure
    for number, curve in enumerate(figure.curves):
        members = [(x, found) for x, found in scene.curve(curve, panel) if found]
        if not members:
            continue
        xs, style = [x for x, _ in members], look(figure.curves, number)
        ax.plot(
            xs,
            [found.mean for _, found in members],
            drawstyle="steps-post",
            label=scene.label(curve),
            **style,
        )
        if ends := [found.interval for _, found in members if found.interval]:
            low, high = [end.low for end in ends], [end.high for end in ends]
            some = [
                0 < found.mean < 1 for _, found in members
            ]  # else the bands of all curves lie on each other
            ax.fill_between(xs, low, high, some, step="post", color=style["color"], alpha=0.15, linewidth=0)
    _draw_all_printed(scene, panel, ax)
    ax.set_xlabel(f"{figure.metric.title}: at most")
    ax.set_ylabel("Share of runs")


def _draw_rows(scene: Scene, panel: Panel, ax: Axes) -> None:
    """Panel without numeric factor: one row per line, value on the x axis."""
    figure = scene.figure
    for number, curve in enumerate(figure.curves):
        style = look(figure.curves, number) | {"linestyle": "none"}
        for _, found in scene.curve(curve, panel):
            if found:
                ax.errorbar([found.centre], [number], xerr=_bars([found]), capsize=2.5, elinewidth=1, **style)
        for _, mark in scene.marks(panel):
            if belongs_to(mark, curve.line, curve.fixed):
                _draw_printed(scene, ax, mark.value, number, mark)
    ax.set_yticks(range(len(figure.curves)), [scene.label(curve) for curve in figure.curves])
    ax.set_ylim(len(figure.curves) - 0.5, -0.5)
    ax.set_xlabel(figure.metric.axis)


def _bars(found: Sequence[Estimate | None]) -> "np.ndarray[tuple[int, ...], np.dtype[np.float64]]":
    """Lengths of the bars below and above each centre, shape (2, n); nan draws none."""
    lengths = [
        (e.centre - e.interval.low, e.interval.high - e.centre) if e and e.interval else (np.nan, np.nan)
        for e in found
    ]
    return np.maximum(0.0, np.array(lengths, dtype=np.float64)).T


def _draw_all_printed(scene: Scene, panel: Panel, ax: Axes) -> None:
    """The printed numbers of a panel; measured ones, with intervals, are joined by a thin line per curve."""
    joined: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for x, mark in scene.marks(panel):
        colour = _printed_colour(scene, mark)
        if own := scene.owners(mark):
            x += scene.shift(own[0])
        _draw_printed(scene, ax, x, mark.value, mark)
        if mark.interval and colour != INK:
            joined.setdefault((mark.source, colour), []).append((x, mark.value))
            if not scene.figure.steps:
                ends = (mark.interval.low, mark.interval.high)
                ax.vlines(x, *ends, color=colour, linewidth=0.8, zorder=5)
    for (_, colour), points in joined.items():
        ax.plot(*zip(*sorted(points), strict=True), color=colour, linestyle=":", linewidth=0.9)


def _draw_printed(scene: Scene, ax: Axes, x: float, y: float, mark: Printed) -> None:
    """A printed number; its shape says whose it is."""
    shape = PRINTED_MARKERS[scene.sources.index(mark.source) % len(PRINTED_MARKERS)]
    colour = _printed_colour(scene, mark)
    ax.plot([x], [y], marker=shape, color=colour, linestyle="none", markersize=7, zorder=5)
    if mark.source not in ax.get_legend_handles_labels()[1]:
        ax.plot([], [], marker=shape, color=INK, linestyle="none", markersize=7, label=mark.source)


def _printed_colour(scene: Scene, mark: Printed) -> str:
    """That of the curve it belongs to; ink where it belongs to several."""
    own = scene.owners(mark)
    return str(look(scene.figure.curves, own[0])["color"]) if own else INK


def _height(figure: Figure) -> float:
    """Inches per row of panels."""
    if figure.x is None and not figure.steps:
        return 0.6 + 0.3 * len(figure.curves)
    return 3.2 if len(figure.panels) == 1 else 2.3


def _set_scale(scene: Scene, ax: Axes) -> None:
    """Ticks at the measured x values; both scales linear from zero unless the values span decades."""
    if scene.figure.steps:
        ax.set_ylim(0, 1.03)
        return
    if scene.figure.x is None:
        ax.set_xlim(left=0)
        return
    shown = scene.shown()
    _set_ticks(ax, sorted({x for x, _ in shown}))
    if scene.figure.plot and not scene.figure.plot.zero:
        return
    values = [found.centre for _, found in shown]
    values += [mark.value for panel in scene.figure.panels for _, mark in scene.marks(panel)]
    if scene.figure.metric.unit == "s" and spans_decades(values):
        log_axis(ax)
        return
    # An interval from two or three runs can be many times the value; the axis must still show the values.
    ends = [found.interval.high for _, found in shown if found.interval]
    top = max([*values, min(max(ends, default=0.0), 1.6 * max(values))])
    ax.set_ylim(0, 1.08 * top if top > 0 else 1)


def _set_ticks(ax: Axes, xs: list[float]) -> None:
    log = spans_decades(xs)
    if log:
        ax.set_xscale("log")
    if len(xs) <= 12:
        ax.xaxis.set_major_locator(FixedLocator(_readable(xs, log)))
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _readable(xs: list[float], log: bool) -> list[float]:
    """Those tick positions that are at least 1/16 of the axis apart, the last included."""
    position = {x: float(np.log(x)) if log else x for x in xs}
    gap = (position[xs[-1]] - position[xs[0]]) / 16
    kept = [xs[-1]]
    for x in reversed(xs[:-1]):
        if position[kept[-1]] - position[x] >= gap:
            kept.append(x)
    return kept
