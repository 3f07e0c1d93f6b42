# SPDX-License-Identifier: GPL-2.0
"""Draws figures as SVG and PNG: the same data gives the same bytes.

Colours are Okabe and Ito's, which people with colour-blindness can tell apart and which read on white
and on black. A variant has one colour on every kernel; marker and dash tell the kernel and the variant
without colour. Text, axes and grid use colours of their own, so that a page can replace them.
"""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure as MplFigure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

from sctplab.labels import factor_axis
from sctplab.layout import Curve, Figure, Panel, setting_text
from sctplab.reference import Figure as Printed
from sctplab.reference import belongs_to, figures_at
from sctplab.stats import Estimate
from sctplab.summary import Point, Section

INK = "#1f2328"
GRID = "#d8dee4"
PAPER = "#fefefe"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d5a", "#7f7f7f")
MARKERS = "osD^vPX<>h"
REFERENCE_MARKERS = "x+1234"
LOG_RATIO = 50  # largest over smallest value from which an axis is logarithmic
_STYLE: dict[Any, Any] = {
    "axes.edgecolor": INK,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 9,
    "figure.constrained_layout.use": True,
    "figure.facecolor": PAPER,
    "figure.titlesize": 11,
    "figure.titleweight": "bold",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "legend.title_fontsize": 8,
    "lines.linewidth": 1.6,
    "lines.markersize": 5,
    "savefig.facecolor": PAPER,
    "svg.fonttype": "none",
    "svg.hashsalt": "sctp-multipath",
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


def draw(section: Section, figure: Figure, printed: Sequence[Printed] = ()) -> MplFigure:
    """One figure of estimates with interval bars, other people's figures as single marks."""
    with drawing():
        columns = figure.columns
        rows = -(-len(figure.panels) // columns)
        canvas = MplFigure(figsize=(6.6 if columns == 1 else 3.1 * columns, 1.1 + _height(figure) * rows))
        axes = list(canvas.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat)
        for panel, ax in zip(figure.panels, axes, strict=False):
            if figure.x is None:
                _draw_rows(section, figure, panel, ax, printed)
            else:
                _draw_curves(section, figure, figure.x, panel, ax, printed)
        _set_scale(section, figure, axes[0])
        finish(
            canvas, axes, columns, len(figure.panels), figure_title(section, figure), caption(section, figure)
        )
        return canvas


def save(canvas: MplFigure, stem: Path) -> str:
    """Writes STEM.svg and STEM.png and returns the SVG's text."""
    with drawing():
        svg = io.StringIO()
        canvas.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
        stem.parent.mkdir(parents=True, exist_ok=True)
        stem.with_name(stem.name + ".svg").write_text(svg.getvalue(), encoding="utf-8")
        canvas.savefig(stem.with_name(stem.name + ".png"), format="png", dpi=150, metadata={"Software": None})
    return svg.getvalue()


@contextmanager
def drawing() -> Iterator[None]:
    """matplotlib with this project's look, whatever the user's own configuration says."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        yield


def figure_title(section: Section, figure: Figure) -> str:
    """'Goodput by d2, queue = 100 packets'."""
    by = f" by {factor_axis(figure.x).partition(' (')[0]}" if figure.x else ""
    page = f", {setting_text(figure.page)}" if figure.page else ""
    return f"{section.scenario}: {figure.metric.title}{by}{page}"


def caption(section: Section, figure: Figure) -> str:
    """What the marks and bars are, and how many runs stand behind them."""
    estimates = [found for _, _, found in _shown(section, figure)]
    counts = sorted({found.n for found in estimates})
    n = f"n = {counts[0]}" if len(counts) == 1 else f"n = {counts[0]} to {counts[-1]}"
    what = "median" if figure.metric.skewed else "mean"
    if not any(found.interval for found in estimates):
        return f"{what}, {n} per mark: too few runs for an interval"
    method = "bootstrap of the median" if figure.metric.skewed else "Student's t"
    return f"{what}, bars: 95 % interval ({method}), {n} per mark"


def _shown(section: Section, figure: Figure) -> Iterator[tuple[Curve, Point, Estimate]]:
    """Every estimate that the figure shows."""
    for panel in figure.panels:
        for curve in figure.curves:
            for point in panel.points:
                found = section.estimate(curve.line, point, figure.metric.name)
                if found and _on_curve(section, curve, point):
                    yield curve, point, found


def _on_curve(section: Section, curve: Curve, point: Point) -> bool:
    settings = dict(zip(section.factors, point, strict=True))
    return all(settings[name] == value for name, value in curve.fixed)


def _draw_curves(
    section: Section, figure: Figure, x: str, panel: Panel, ax: Axes, printed: Sequence[Printed]
) -> None:
    """Panel with the factor x on its axis: curves with interval bars, broken where a cell is missing."""
    index = section.factors.index(x)
    sources = sorted({p.source for p in printed})
    for number, curve in enumerate(figure.curves):
        points = [point for point in panel.points if _on_curve(section, curve, point)]
        found = [section.estimate(curve.line, point, figure.metric.name) for point in points]
        xs = [float(point[index] or 0) for point in points]
        _errorbar(ax, xs, found, section, figure, number)
    for point in panel.points:
        for mark in figures_at(printed, section, point, figure.metric.name):
            _printed_mark(ax, float(point[index] or 0), mark, sources, section, figure)
    ax.set_xlabel(factor_axis(x))
    ax.set_ylabel(figure.metric.axis)
    ax.set_title(panel.title)


def _errorbar(
    ax: Axes, xs: list[float], found: list[Estimate | None], section: Section, figure: Figure, number: int
) -> None:
    centres = np.array([f.centre if f else np.nan for f in found])
    ends = np.array(
        [[f.interval.low, f.interval.high] if f and f.interval else [np.nan, np.nan] for f in found]
    )
    ax.errorbar(
        xs,
        centres,
        yerr=np.maximum(0.0, np.abs(ends.T - centres)) if len(found) else None,
        label=curve_label(section, figure.curves[number]),
        capsize=2.5,
        elinewidth=1,
        **look(figure.curves, number),
    )


def _draw_rows(section: Section, figure: Figure, panel: Panel, ax: Axes, printed: Sequence[Printed]) -> None:
    """Panel without numeric factor: one row per line, value on the x axis."""
    labels = []
    for number, curve in enumerate(figure.curves):
        labels.append(curve_label(section, curve))
        for point in panel.points:
            found = section.estimate(curve.line, point, figure.metric.name)
            if found and _on_curve(section, curve, point):
                interval = found.interval
                ends = [[found.centre - interval.low], [interval.high - found.centre]] if interval else None
                style = look(figure.curves, number) | {"linestyle": "none"}
                ax.errorbar([found.centre], [number], xerr=ends, capsize=2.5, elinewidth=1, **style)
            for mark in figures_at(printed, section, point, figure.metric.name):
                if belongs_to(mark, curve.line):
                    ax.plot(
                        [mark.value], [number], marker="x", color=INK, linestyle="none", label=mark.source
                    )
    ax.set_yticks(range(len(labels)), labels)
    ax.set_ylim(len(labels) - 0.5, -0.5)
    ax.set_xlabel(figure.metric.axis)
    ax.set_title(panel.title)


def _printed_mark(
    ax: Axes, x: float, mark: Printed, sources: list[str], section: Section, figure: Figure
) -> None:
    """A printed number, in the colour of the curve it belongs to, or in ink where it belongs to all."""
    own = [n for n, curve in enumerate(figure.curves) if _tied(mark, curve)]
    colour = look(figure.curves, own[0])["color"] if len(own) == 1 and len(figure.curves) > 1 else INK
    shape = REFERENCE_MARKERS[sources.index(mark.source) % len(REFERENCE_MARKERS)]
    ax.plot(
        [x],
        [mark.value],
        marker=shape,
        color=colour,
        linestyle="none",
        label=mark.source,
        markersize=7,
        zorder=5,
    )


def _tied(mark: Printed, curve: Curve) -> bool:
    stated = [(name, value) for name, value in curve.fixed if mark.setting(name) is not None]
    return belongs_to(mark, curve.line) and all(mark.setting(name) == f"{value}" for name, value in stated)


def curve_label(section: Section, curve: Curve) -> str:
    """The line's label with the factors that tell this curve from its siblings."""
    return ", ".join([section.label(curve.line), *([setting_text(curve.fixed)] if curve.fixed else [])])


def look(curves: Sequence[Curve], number: int) -> dict[str, Any]:
    """Colour by variant (and fixed factors), dash and filling by kernel, marker by curve."""
    line, fixed = curves[number].line, curves[number].fixed
    kinds = list(dict.fromkeys((c.line.variant, c.line.base, c.line.place, c.fixed) for c in curves))
    colour = COLOURS[kinds.index((line.variant, line.base, line.place, fixed)) % len(COLOURS)]
    stock = line.kernel == "stock"
    return {
        "color": colour,
        "linestyle": (0, (4, 2)) if stock else "-",
        "marker": MARKERS[number % len(MARKERS)],
        "markerfacecolor": "none" if stock else colour,
    }


def _height(figure: Figure) -> float:
    """Inches per row of panels."""
    if figure.x is None:
        return 0.6 + 0.3 * len(figure.curves)
    return 3.2 if len(figure.panels) == 1 else 2.3


def _set_scale(section: Section, figure: Figure, ax: Axes) -> None:
    """Ticks at the measured x values; both scales linear from zero unless the values span decades."""
    shown = list(_shown(section, figure))
    centres = [found.centre for _, _, found in shown]
    if figure.x is None:
        ax.set_xlim(left=0)
        return
    index = section.factors.index(figure.x)
    xs = sorted({float(point[index] or 0) for _, point, _ in shown})
    if spans_decades(xs):
        ax.set_xscale("log")
    if len(xs) <= 12:
        ax.xaxis.set_major_locator(FixedLocator(_readable(xs, ax.get_xscale() == "log")))
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    if figure.metric.unit == "s" and spans_decades(centres):
        log_axis(ax)
        return
    # An interval from two or three runs can be many times the value; the axis must still show the values.
    ends = [found.interval.high for _, _, found in shown if found.interval]
    top = max([*centres, min(max(ends, default=0.0), 1.6 * max(centres))])
    ax.set_ylim(0, 1.08 * top if top > 0 else 1)


def spans_decades(values: Sequence[float]) -> bool:
    """True when a linear axis would hide the smaller values."""
    return min(values) > 0 and max(values) / min(values) >= LOG_RATIO


def log_axis(ax: Axes) -> None:
    """A logarithmic y axis with plain numbers at 1, 2, 5, 10 ..."""
    ax.set_yscale("log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _readable(xs: list[float], log: bool) -> list[float]:
    """Those tick positions that are at least 1/16 of the axis apart, the first and last included."""
    position = {x: float(np.log(x)) if log else x for x in xs}
    gap = (position[xs[-1]] - position[xs[0]]) / 16
    kept = [xs[-1]]
    for x in reversed(xs[:-1]):
        if position[kept[-1]] - position[x] >= gap:
            kept.append(x)
    return kept


def finish(canvas: MplFigure, axes: Sequence[Axes], columns: int, used: int, title: str, note: str) -> None:
    """Hides spare axes, keeps labels on the outer ones; title above, caption and one legend below."""
    canvas.suptitle(title, x=0.01, ha="left")
    for ax in axes[used:]:
        ax.set_visible(False)
    for number, ax in enumerate(axes[:used]):
        if number + columns < used:
            ax.set_xlabel("")
        else:
            ax.tick_params(labelbottom=True)
        if number % columns:
            ax.set_ylabel("")
    entries: dict[str, Artist] = {}
    for ax in axes[:used]:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    widest = max((len(label) for label in entries), default=0)
    canvas.legend(
        list(entries.values()),
        list(entries),
        loc="outside lower left",
        title=note,
        alignment="left",
        ncols=max(1, min(len(entries), int(canvas.get_figwidth() / (0.7 + 0.075 * widest)))),
        handlelength=3,
    )
