# SPDX-License-Identifier: GPL-2.0
"""The look of all plots, and saving them so that the same data gives the same bytes.

Colours are Okabe and Ito's, which people with colour-blindness can tell apart and which read on white
and on black. A variant has one colour on every kernel; marker, dash and filling tell lines apart
without colour. Text, axes and grid use colours of their own, so that a page can replace them.
"""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure as MplFigure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from sctplab.report.facets import Curve

INK = "#1f2328"
GRID = "#d8dee4"
PAPER = "#fefefe"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d5a", "#7f7f7f")
MARKERS = "osD^vPX<>h"
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


@contextmanager
def drawing() -> Iterator[None]:
    """matplotlib with this project's look, whatever the user's own configuration says."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        yield


def svg_text(canvas: MplFigure) -> str:
    """The SVG of a canvas, without the time at which it is made."""
    svg = io.StringIO()
    canvas.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
    return svg.getvalue()


def save(canvas: MplFigure, stem: Path) -> str:
    """Writes STEM.svg and STEM.png and returns the SVG's text."""
    with drawing():
        svg = svg_text(canvas)
        stem.parent.mkdir(parents=True, exist_ok=True)
        stem.with_name(stem.name + ".svg").write_text(svg, encoding="utf-8")
        canvas.savefig(stem.with_name(stem.name + ".png"), format="png", dpi=150, metadata={"Software": None})
    return svg


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


def spans_decades(values: Sequence[float]) -> bool:
    """True when a linear axis would hide the smaller values."""
    return min(values) > 0 and max(values) / min(values) >= LOG_RATIO


def log_axis(ax: Axes) -> None:
    """A logarithmic y axis with plain numbers at 1, 2, 5, 10 ..."""
    ax.set_yscale("log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


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
