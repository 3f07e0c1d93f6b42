# SPDX-License-Identifier: GPL-2.0
"""Results as tables on the terminal: rows are factors, columns kernel and variant."""

from pathlib import Path

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from sctplab.measure.records import load_runs
from sctplab.report.naming import SILENCE
from sctplab.report.summary import Section, sections
from sctplab.report.tables import Cell, failures, overview_table, results_table, tally, warnings
from sctplab.report.tables import Table as Content

MAX_FAILURES = 10
MAX_ROWS = 40
WIDEST = 10000  # more than any table, so that its own width can be asked for
MAX_COLUMNS = 4  # metrics beside each other
PLAIN_WIDTH = 200  # of a file or a pipe, which has no width of its own


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
    first = section.headlines[:1]
    if section.has_events:
        first = tuple(m for m in section.headlines if m.name in SILENCE) or first
    parts: list[RenderableType] = []
    if len(section.points) == 1 and section.headlines:
        parts += _fitting(section, overview_table(section, section.headlines[:MAX_COLUMNS]), console)
    elif section.headlines:
        parts += [part for m in first for part in _fitting(section, results_table(section, m, ()), console)]
    bad = failures(section)
    parts.append(Text(f"{section.scenario}: {tally(section.runs)}", style="bold red" if bad else "bold"))
    parts += [Text(f"  doubtful: {line}", style="red") for line in warnings(section)]
    parts += [Text(f"  {failure.text}", style="red") for failure in bad[:MAX_FAILURES]]
    if len(bad) > MAX_FAILURES:
        parts.append(Text(f"  and {len(bad) - MAX_FAILURES} more cells, see report.html", style="red"))
    return parts


def _fitting(section: Section, content: Content, console: Console) -> list[RenderableType]:
    """The table with intervals where the console is wide enough, else with the bare numbers; its caption."""
    plain = not console.is_terminal
    table = _table(content, plain, bare=False)
    caption = content.caption
    if console.measure(table, options=console.options.update(width=WIDEST)).maximum > console.width:
        table = _table(content, plain, bare=True)
        caption += "; too narrow here for the intervals, see report.html"
    if len(content.rows) > MAX_ROWS:
        caption += f"; {len(content.rows) - MAX_ROWS} more rows in report.html"
    return [Text(f"{section.scenario}: {content.title}", style="bold"), table, Text(caption, style="dim")]


def _table(content: Content, plain: bool, bare: bool) -> Table:
    """The content with frames; BARE: numbers without interval and note."""
    table = Table(box=box.ASCII2 if plain else box.SIMPLE_HEAD, header_style="bold")
    for name in content.factors:
        table.add_column(name.replace(" (", "\n("), justify="right" if name else "left", no_wrap=True)
    for name in content.columns:
        table.add_column(name.replace(": ", ":\n"), justify="right", overflow="fold")
    for settings, cells in content.rows[:MAX_ROWS]:
        table.add_row(*settings, *(_cell_text(cell, bare) for cell in cells))
    return table


def _cell_text(cell: Cell, bare: bool) -> Text:
    style = "red" if cell.bad else ""
    if bare:
        return Text(cell.text.partition(" ±")[0].partition(" [")[0], style=style)
    text = Text(cell.text, style="" if cell.note else style)
    if cell.note:
        text.append(f" ({cell.note})", style=style or "dim")
    return text
