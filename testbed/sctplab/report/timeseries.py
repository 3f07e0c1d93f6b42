# SPDX-License-Identifier: GPL-2.0
"""Time series: what one run of each line looked like from second to second, with the run's events."""

from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure as MplFigure

from sctplab.measure.records import Run, read_json
from sctplab.report.facets import Curve
from sctplab.report.naming import factor_setting, metric
from sctplab.report.plot_style import INK, drawing, finish, log_axis, look, spans_decades
from sctplab.report.summary import Line, Point, Section

MAX_PANELS = 6
AXES = {
    "goodput": "Goodput (Mbit/s)",
    "message_delay": "Message delay (s)",
    "wire_mbit": "On the wire (Mbit/s)",
}  # others are called like the metric of their name


@dataclass(frozen=True, slots=True)
class SeriesPanel:
    """One series at one point: a run of each line that has it."""

    title: str
    series: str
    members: tuple[tuple[Curve, Run], ...]


@dataclass(frozen=True, slots=True)
class SeriesFigure:
    """One kind of series, at a few points."""

    name: str
    title: str
    note: str
    panels: tuple[SeriesPanel, ...]


def series_figures(section: Section) -> list[SeriesFigure]:
    """One figure per kind of series ('wire_mbit.path1' is a wire_mbit), with MAX_PANELS panels at most."""
    names = sorted({name for run in section.runs if run.ok for name in run.series})
    kinds = sorted({name.partition(".")[0] for name in names})
    return [
        _series_figure(section, k, [name for name in names if name.partition(".")[0] == k]) for k in kinds
    ]


def draw_series(section: Section, figure: SeriesFigure) -> MplFigure:
    """The figure; reads the records it shows."""
    with drawing():
        columns = min(2, len(figure.panels))
        rows = -(-len(figure.panels) // columns)
        canvas = MplFigure(figsize=(6.6 if columns == 1 else 4.4 * columns, 1.1 + 2.2 * rows))
        axes = list(canvas.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat)
        curves = tuple(Curve(line, ()) for line in section.lines)
        drawn = [
            value
            for panel, ax in zip(figure.panels, axes, strict=False)
            for value in _draw_panel(section, panel, curves, ax)
        ]
        if figure.name == "message_delay" and drawn and spans_decades(drawn):
            log_axis(axes[0])
            axes[0].set_ylim(top=3 * max(drawn))  # room above the curves for the names of the events
        else:
            axes[0].set_ylim(0, 1.2 * max([*drawn, 1e-9]))
        finish(canvas, axes, columns, len(figure.panels), figure.title, figure.note)
        return canvas


def _series_figure(section: Section, kind: str, names: list[str]) -> SeriesFigure:
    panels = [
        panel for point in section.points for name in names if (panel := _panel(section, point, name)).members
    ]
    shown = panels
    note = "one run per curve, the lowest seed; dotted: events of the scenario"
    if len(panels) > MAX_PANELS:
        shown = [panels[i * len(panels) // MAX_PANELS] for i in range(MAX_PANELS)]
        note += f"; {len(shown)} of {len(panels)} panels shown"
    title = _axis(kind).partition(" (")[0]
    return SeriesFigure(kind, f"{section.scenario}: {title} over time", note, tuple(shown))


def _panel(section: Section, point: Point, series: str) -> SeriesPanel:
    """The runs that have this series at a point: of each line the ok one with the lowest seed."""
    settings = zip(section.factors, point, strict=True)
    texts = [factor_setting(name, value) for name, value in settings if name in section.varying]
    part = series.partition(".")[2]
    members = tuple(
        (Curve(line, ()), run) for line in section.lines if (run := _first(section, line, point, series))
    )
    return SeriesPanel(", ".join([*texts, part] if part else texts), series, members)


def _axis(kind: str) -> str:
    return AXES.get(kind) or metric(kind).axis


def _first(section: Section, line: Line, point: Point, kind: str) -> Run | None:
    return next((run for run in section.cells.get((line, point), ()) if run.ok and kind in run.series), None)


def _draw_panel(section: Section, panel: SeriesPanel, curves: tuple[Curve, ...], ax: Axes) -> list[float]:
    """Draws one panel and returns the values it shows."""
    values: list[float] = []
    events: dict[float, list[str]] = {}
    for curve, run in panel.members:
        record = read_json(run.path)
        pairs = record["series"][panel.series]
        values += [value for _, value in pairs]
        style = look(curves, curves.index(curve)) | {"marker": ""}
        ax.plot(
            [t for t, _ in pairs],
            [v for _, v in pairs],
            label=section.label(curve.line),
            linewidth=1.2,
            **style,
        )
        for event in record["spec"].get("events", []):
            text = f"{event['action']} {event['path']}"
            if text not in events.setdefault(event["at_s"], []):
                events[event["at_s"]].append(text)
    for at, texts in sorted(events.items()):
        ax.axvline(at, color=INK, linestyle=":", linewidth=0.9)
        ax.annotate(
            ", ".join(texts), (at, 1), xycoords=("data", "axes fraction"), xytext=(3, -3),
            textcoords="offset points", fontsize=7.5, va="top",
        )  # fmt: skip
    ax.set_title(panel.title)
    ax.set_xlabel("Time (s)")
    ax.set_ylabel(_axis(panel.series.partition(".")[0]))
    return values
