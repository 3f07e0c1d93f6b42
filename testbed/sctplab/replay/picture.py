# SPDX-License-Identifier: GPL-2.0
"""testbed/lab explain --plot: outstanding data of each path, what was sent again, and waits, over time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from textwrap import wrap

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sctplab.errors import LabError
from sctplab.files import write_text
from sctplab.replay.explain import Told, Wait, captures_of, tell
from sctplab.report.plot_style import COLOURS, INK, drawing, finish, svg_text
from sctplab.run.record import read_spec

TITLE_WIDTH = 80  # characters
PARTS = 1500  # of the time shown; of each the most that was outstanding is drawn
MARKS = {"fast rtx": "x", "T3": "v"}


def write(told: Told, file: Path) -> None:
    with drawing():
        svg = svg_text(picture(told))
    try:
        write_text(file, svg)
    except OSError as error:
        raise LabError(f"{error.filename or file}: cannot be written: {error.strerror}") from error


def of_run(record: Path) -> Figure | None:
    """Of a run whose captures lie beside its record; None without, or if its flow is of another kind."""
    if not captures_of(record).is_dir():
        return None
    if read_spec(record).measured_flow.kind != "sctp":
        return None
    told = tell(record, None)
    with drawing():
        return picture(told)


def picture(told: Told) -> Figure:
    """One panel per path that carried data; the waits and the scenario's events go through all of them.

    To be called, and saved, under drawing().
    """
    spec, trace = told.trace.spec, told.trace
    paths = [path.name for path in spec.topology.paths if trace.outstanding.get(path.name)]
    end_s = max((rows[-1][0] for rows in trace.outstanding.values()), default=told.start_ns) - told.start_ns
    canvas = Figure(figsize=(8.8, 1.3 + 1.9 * len(paths)))
    axes = list(canvas.subplots(len(paths), 1, sharex=True, squeeze=False).flat)
    for path, ax in zip(paths, axes, strict=True):
        draw_path(told, path, end_s / 1e9, ax)
        draw_waits(told, ax)
        for event in spec.events:
            ax.axvline(event.at_s, color=INK, linestyle=":", linewidth=0.9)
    note = "shaded: waits of more than two round trips, by cause; dotted: events of the scenario"
    axes[0].set_xlim(left=0)
    finish(canvas, axes, 1, len(axes), "\n".join(wrap(spec.run_id, TITLE_WIDTH)), note)
    return canvas


def draw_path(told: Told, path: str, end_s: float, ax: Axes) -> None:
    rows = [((time - told.start_ns) / 1e9, size / 1000) for time, size in told.trace.outstanding[path]]
    line = thinned(rows, end_s / PARTS)
    ax.step(*zip(*line, strict=True), where="post", color=INK, linewidth=0.9, label="outstanding")
    for why, mark in MARKS.items():
        times = sorted(sent_again(told, path, why))
        if times:
            ax.plot(times, at(rows, times), mark, color=COLOURS[1], label=f"sent again: {why}", markersize=4)
    ax.set_title(path)
    ax.set_ylabel("Outstanding (kB)")
    ax.set_xlabel("Time (s)")
    ax.set_ylim(bottom=0)


def draw_waits(told: Told, ax: Axes) -> None:
    causes = sorted({one.cause for one in told.waits})
    for cause in causes:
        colour = COLOURS[(2 + causes.index(cause)) % len(COLOURS)]
        for one in told.waits:
            if one.cause == cause:
                ax.axvspan(*span(told, one), color=colour, alpha=0.3, linewidth=0, label=cause)


def span(told: Told, one: Wait) -> tuple[float, float]:
    return (one.start_ns - told.start_ns) / 1e9, (one.end_ns - told.start_ns) / 1e9


def sent_again(told: Told, path: str, why: str) -> Iterable[float]:
    for sendings in told.trace.sendings.values():
        for one in sendings[1:]:
            if one.path == path and one.why == why:
                yield (one.time_ns - told.start_ns) / 1e9


def thinned(rows: Sequence[tuple[float, float]], part_s: float) -> list[tuple[float, float]]:
    """The largest value of each part, and the last one."""
    most: dict[int, tuple[float, float]] = {}
    for row in rows:
        part = int(row[0] / part_s) if part_s > 0 else 0
        most[part] = max(most.get(part, row), row, key=lambda one: one[1])
    return [*most.values(), rows[-1]]


def at(rows: Sequence[tuple[float, float]], times: Sequence[float]) -> list[float]:
    """The value at each of TIMES; both in order."""
    found, last, index = [], 0.0, 0
    for time in times:
        while index < len(rows) and rows[index][0] <= time:
            last = rows[index][1]
            index += 1
        found.append(last)
    return found
