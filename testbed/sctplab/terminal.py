# SPDX-License-Identifier: GPL-2.0
"""Results as tables on the terminal: rows are factors, columns kernel and variant."""

from pathlib import Path

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from sctplab.labels import Metric, decimals, estimate_text, metric
from sctplab.load_records import load_runs
from sctplab.page import Cell, failures, results_table, tally
from sctplab.page import Table as Content
from sctplab.summary import Line, Section, sections

MAX_FAILURES = 10
MAX_ROWS = 40
PLAIN_WIDTH = 200  # of a file or a pipe, which has no width of its own
# What a section is first asked for: the speed of a transfer, and the silence after a path was lost.
SPEED = ("goodput_mbit", "transfer_s")
SILENCE = ("failover_s", "max_gap_s", "max_message_delay_s")


def print_results(where: Path, console: Console | None = None) -> None:
    """Prints the tables of every scenario in a result folder; plain text unless stdout is a terminal."""
    console = console or Console()
    if not console.is_terminal:
        console = Console(file=console.file, width=PLAIN_WIDTH)
    for section in sections(load_runs(where)):
        for part in terminal_tables(section, console):
            console.print(part)


def terminal_tables(section: Section, console: Console) -> list[RenderableType]:
    """A section as tables and lines of text for this console: its numbers, then the runs that give none."""
    plain = not console.is_terminal
    groups = (SPEED, SILENCE) if any(run.events for run in section.runs) else (SPEED,)
    chosen = [[metric(name) for name in group if name in section.metrics] for group in groups]
    parts: list[RenderableType] = []
    if len(section.points) == 1 and any(chosen):
        parts += _by_line(section, [one for group in chosen for one in group], plain)
    elif any(chosen):
        parts += [part for group in chosen if group for part in _fitting(section, group[0], console)]
    bad = failures(section)
    parts.append(Text(f"{section.scenario}: {tally(section.runs)}", style="bold red" if bad else "bold"))
    parts += [Text(f"  {failure.text}", style="red") for failure in bad[:MAX_FAILURES]]
    if len(bad) > MAX_FAILURES:
        parts.append(Text(f"  and {len(bad) - MAX_FAILURES} more cells, see report.html", style="red"))
    return parts


def _fitting(section: Section, shown: Metric, console: Console) -> list[RenderableType]:
    """The table with intervals where the console is wide enough, else with the bare numbers; its caption."""
    content = results_table(section, shown, ())
    plain = not console.is_terminal
    table = _by_point(section, content, plain, bare=False)
    if console.measure(table).maximum > console.width:
        table = _by_point(section, content, plain, bare=True)
    return [table, Text(content.caption, style="dim")]


def _by_point(section: Section, content: Content, plain: bool, bare: bool) -> Table:
    """Rows: the settings of the factors; columns: the lines. BARE: numbers without interval and note."""
    more = len(content.rows) - MAX_ROWS
    note = f", first {MAX_ROWS} rows, {more} more in report.html" if more > 0 else ""
    table = _table(f"{section.scenario}: {content.title}{note}", plain)
    for name in content.factors:
        table.add_column(name, justify="right", no_wrap=True)
    for name in content.columns:
        table.add_column(name, justify="right")
    for settings, cells in content.rows[:MAX_ROWS]:
        table.add_row(*settings, *(_cell_text(cell, bare) for cell in cells))
    return table


def _by_line(section: Section, shown: list[Metric], plain: bool) -> list[RenderableType]:
    """Rows: the lines; columns: the metrics, and how many transfers were completed."""
    table = _table(section.scenario, plain)
    table.add_column("", no_wrap=True)
    for one in shown:
        table.add_column(one.axis, justify="right")
    table.add_column("Completed", justify="right")
    point = section.points[0]
    for line in section.lines:
        runs = section.cells[line, point]
        done = sum(run.ok for run in runs)
        numbers = [_metric_text(section, line, one) for one in shown]
        style = "" if done == len(runs) else "red"
        table.add_row(section.label(line), *numbers, Text(f"{done} of {len(runs)}", style))
    return [table]


def _metric_text(section: Section, line: Line, shown: Metric) -> str:
    point = section.points[0]
    every = [e for other in section.lines if (e := section.estimate(other, point, shown.name))]
    found = section.estimate(line, point, shown.name)
    return estimate_text(found, decimals(e.centre for e in every)) if found else "–"


def _cell_text(cell: Cell, bare: bool) -> Text:
    style = "red" if cell.bad else ""
    if bare:
        return Text(cell.text.partition(" ±")[0].partition(" [")[0], style=style)
    text = Text(cell.text)
    if cell.note:
        text.append(f" ({cell.note})", style="red" if cell.bad else "dim")
    return text


def _table(title: str, plain: bool) -> Table:
    return Table(
        title=Text(title, style="bold"),
        box=box.ASCII2 if plain else box.SIMPLE_HEAD,
        title_justify="left",
        header_style="bold",
    )
