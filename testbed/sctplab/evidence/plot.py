# SPDX-License-Identifier: GPL-2.0
"""[plots.NAME] of the manifest: curves over a factor, as Documentation/tables/NAME.svg.

    [plots.jungmaier]
    runs = "jungmaier"
    metric = "goodput_mbit"
    x = "d2_ms"                                 # a factor; its values are the ticks
    labels = ["path 2, each way (ms)", "goodput (Mbit/s)"]
    where = { queue_pkts = 1000 }               # settings of all curves
    lines = [{ head = "CMT", variant = "cmt-per-path" }, { head = "MPTCP", variant = "mptcp" }]

A point is the mean over seeds. The same summary gives the same bytes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from sctplab.errors import LabError
from sctplab.evidence import table
from sctplab.evidence.table import Load, Selection
from sctplab.spec.schema import At, build, check, names, scalars, text

SIZE = (7.0, 3.2)  # inches


@dataclass(frozen=True)
class Plot:
    """A plot as the manifest describes it."""

    runs: str = field(metadata=text(r".+", "the name of a set of runs"))
    metric: str = field(metadata=text(r".+", "a metric"))
    x: str = field(metadata=text(r".+", "a factor"))
    labels: tuple[str, ...] = field(metadata=names("two labels, x and y"))
    lines: tuple[Selection, ...] = field(metadata=check(table.headed))
    where: Selection = field(default_factory=dict, metadata=scalars())

    def validate(self, at: At) -> None:
        if len(self.labels) != 2:
            raise at("labels").refuse(list(self.labels), "two labels, x and y")


def read(name: str, found: object, file: str) -> Plot:
    return build(Plot, found, At(file, f"plots.{name}"))


def points(name: str, plot: Plot, load: Load) -> list[tuple[str, list[tuple[float, float]]]]:
    """(head, [(x, mean)]) of each line; raises LabError for a line without runs."""
    made = []
    for line in plot.lines:
        wanted = {**plot.where, **{key: one for key, one in line.items() if key != "head"}}
        rows = [row for row in table.select(load(plot.runs).rows, wanted) if plot.metric in row.metrics]
        if not rows:
            raise LabError(
                f"plots.{name}: {line['head']}: no run of {plot.runs} has {wanted} and {plot.metric}"
            )
        xs = sorted({float(row.settings[plot.x]) for row in rows})
        mean = {x: [row.metrics[plot.metric] for row in rows if float(row.settings[plot.x]) == x] for x in xs}
        made.append((line["head"], [(x, math.fsum(values) / len(values)) for x, values in mean.items()]))
    return made


def svg(name: str, plot: Plot, load: Load) -> str:
    """The file's content."""
    from matplotlib.figure import Figure

    from sctplab.report.plot_style import COLOURS, MARKERS, drawing, svg_text

    curves = points(name, plot, load)
    with drawing():
        figure = Figure(figsize=SIZE)
        axes = figure.add_subplot()
        for number, (head, curve) in enumerate(curves):
            colour, mark = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
            axes.plot(*zip(*curve, strict=True), label=head, color=colour, marker=mark)
        axes.set_xticks(sorted({x for _, curve in curves for x, _ in curve}))
        axes.set_xlabel(plot.labels[0])
        axes.set_ylabel(plot.labels[1])
        axes.set_ylim(bottom=0)
        figure.legend(loc="outside right upper")
        return "".join(f"{line.rstrip()}\n" for line in svg_text(figure).splitlines())
