# SPDX-License-Identifier: GPL-2.0
"""[tables.NAME] of the manifest: a grid of cells, each the runs that its row and its column select. Pure.

    [tables.goodput]
    runs = "rtx-policy"                        # a set of runs; a row or column may name another
    where = { kernel = "patched" }             # settings of all cells: kernel, variant, scenario, factors
    corner = ["d2 (ms)", "queue"]              # heads of the columns of row heads; default: the factors
    rows = { by = ["d2_ms", "queue_pkts"] }    # a row per combination; or a list like that of columns
    columns = [
        { head = ["stock,", "one address"], kernel = "stock", variant = "single-homed" },
        { head = "ns-2", reference = "caro-ns2.csv", source = "ns-2 MfrHbAfterRto" },
        { head = "ratio", pmr = 0, against = { pmr = 5 }, cell = "{transfer_s:.4f ratio ci}" },
    ]
    cell = "{goodput_mbit:.2f ci}"             # see cell.py; a row or column may have its own
    pool = ["alt_loss_pct"]                    # settings that may differ within a cell
    absent = "refused"                         # the text of a cell without runs; default: an error
    values = { pmr = [0, 5] }                  # for by: these values, not all

A value that is a list selects any of its members. A head that is a list is put in as many lines.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from sctplab.errors import LabError
from sctplab.evidence import cell
from sctplab.evidence.data import Data, Row
from sctplab.report.reference import Figure, load_reference, reference_path
from sctplab.report.stats import Interval
from sctplab.spec.schema import At, build, check, mapping, names, scalars, text

OWN_KEYS = ("head", "cell", "runs", "against", "absent", "reference", "source")
Selection = dict[str, Any]
Load = Callable[[str], Data]


def _lines(value: object, at: At) -> Any:
    """Rows or columns: {by = [...]} or a list of tables."""
    if isinstance(value, Mapping):
        if set(value) != {"by"}:
            raise at.refuse(sorted(value), "by = [factors] alone, or a list of tables with head")
        return {"by": names("factors")["check"](value["by"], at("by"))}
    return headed(value, at)


def headed(value: object, at: At) -> tuple[Selection, ...]:
    """A list of tables with a head each."""
    if not isinstance(value, list) or not value:
        raise at.refuse(value, "a list of tables with head")
    for one in value:
        if not isinstance(one, Mapping) or "head" not in one:
            raise at.refuse(one, "a table with head")
    return tuple(dict(one) for one in value)


@dataclass(frozen=True)
class Table:
    """A table as the manifest describes it."""

    runs: str = field(metadata=text(r".+", "the name of a set of runs"))
    rows: Any = field(metadata=check(_lines))
    columns: Any = field(metadata=check(_lines))
    cell: str = field(default="", metadata=text(r".+", "a template, see cell.py"))
    corner: tuple[str, ...] = field(default=(), metadata=names("heads"))
    where: Selection = field(default_factory=dict, metadata=scalars())
    values: dict[str, Any] = field(
        default_factory=dict, metadata=check(lambda one, at: dict(mapping(one, at)))
    )
    pool: tuple[str, ...] = field(default=(), metadata=names("settings"))
    absent: str = field(default="", metadata=text(r".*", "a text"))

    def templates(self) -> Iterator[tuple[str, str]]:
        """(set of runs, template) of all cells that there may be."""
        for row, column in itertools.product(_explicit(self.rows), _explicit(self.columns)):
            merged = {**row, **column}
            if "reference" not in merged:
                yield merged.get("runs", self.runs), merged.get("cell", self.cell)


@dataclass(frozen=True)
class Grid:
    """A table with its texts: HEADS per column in lines, those of the row heads first."""

    heads: tuple[tuple[str, ...], ...]
    rows: tuple[tuple[str, ...], ...]
    runs: tuple[str, ...]


def read(name: str, found: object, file: str) -> Table:
    return build(Table, found, At(file, f"tables.{name}"))


def _explicit(lines: Any) -> tuple[Selection, ...]:
    return ({},) if isinstance(lines, dict) else lines


@dataclass(frozen=True)
class Cell:
    """One cell: WHERE is 'row head / column head'; the runs behind it, none for other people's figures."""

    where: str
    text: str
    runs: str
    rows: tuple[Row, ...]


def fill(name: str, table: Table, load: Load) -> Grid:
    """The table from its summaries; raises LabError with the cell that cannot be."""
    rows, columns = _expand(table, table.rows, load), _expand(table, table.columns, load)
    found = iter(cells_of(name, table, load))
    cells = [(*_head(row), *(next(found).text for _ in columns)) for row in rows]
    used = {runs for runs, _ in table.templates()} | {table.runs}
    return Grid(tuple(_heads(table, rows, columns)), tuple(cells), tuple(sorted(used)))


def cells_of(name: str, table: Table, load: Load) -> Iterator[Cell]:
    """All cells, row by row; raises LabError with the one that cannot be."""
    rows, columns = _expand(table, table.rows, load), _expand(table, table.columns, load)
    for row, column in itertools.product(rows, columns):
        where = f"{_text(row['head'])} / {_text(column['head'])}"
        try:
            yield _cell(table, where, {**table.where, **row, **column}, load)
        except LabError as error:
            raise LabError(f"tables.{name}: {where}: {error}") from None


def _heads(
    table: Table, rows: Sequence[Selection], columns: Sequence[Selection]
) -> Iterator[tuple[str, ...]]:
    by = table.rows["by"] if isinstance(table.rows, dict) else ()
    corner = table.corner or by or (".",)
    if len(corner) != len(_head(rows[0])):
        raise LabError(f"corner: got {len(corner)} heads, expected {len(_head(rows[0]))}, one per row head")
    yield from ((one,) for one in corner)
    yield from (_head(column) for column in columns)


def _head(line: Selection) -> tuple[str, ...]:
    head = line["head"]
    return (head,) if isinstance(head, str) else tuple(head)


def _text(head: Any) -> str:
    return head if isinstance(head, str) else " ".join(head)


def _expand(table: Table, lines: Any, load: Load) -> list[Selection]:
    if not isinstance(lines, dict):
        return list(lines)
    by = lines["by"]
    rows = select(load(table.runs).rows, {key: one for key, one in table.where.items() if key not in by})
    known = [
        table.values.get(name) or list(dict.fromkeys(row.settings.get(name) for row in rows)) for name in by
    ]
    there = {tuple(row.settings.get(name) for name in by) for row in rows}
    return [
        {"head": [shown(value) for value in values], **dict(zip(by, values, strict=True))}
        for values in itertools.product(*known)
        if values in there
    ]


def shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _cell(table: Table, where: str, merged: Selection, load: Load) -> Cell:
    wanted = {key: one for key, one in merged.items() if key not in OWN_KEYS}
    template, runs = merged.get("cell", table.cell), merged.get("runs", table.runs)
    others = "reference" in merged
    if others:
        shows = cell.metrics_of(template)
        pick = partial(_reference, merged["reference"], merged.get("source", ""), shows)
    else:
        pick = partial(select, load(runs).rows)
    found = pick(wanted)
    absent = merged.get("absent", table.absent)
    if not found and absent:
        return Cell(where, str(absent), runs, ())
    one_cell(found, {*table.pool})
    against = pick({**wanted, **merged["against"]}) if "against" in merged else []
    shown_text = cell.text(template, found, against)
    return Cell(where, shown_text, runs, () if others else (*found, *against))


def select(rows: Sequence[Row], wanted: Selection) -> list[Row]:
    """The runs with these settings; "seed" is one of them here."""
    return [row for row in rows if all(_is(_setting(row, key), one) for key, one in wanted.items())]


def _setting(row: Row, key: str) -> object:
    return row.seed if key == "seed" else row.settings.get(key)


def _is(value: object, wanted: object) -> bool:
    return value in wanted if isinstance(wanted, list | tuple) else value == wanted


def one_cell(rows: Sequence[Row], pool: set[str]) -> None:
    """Raise LabError where there is no run, or where runs differ in more than seed and POOL."""
    if not rows:
        raise LabError("no such run; write 'absent' if that is intended")
    for key in {key for row in rows for key in row.settings} - pool:
        values = {row.settings.get(key) for row in rows}
        if len(values) > 1:
            raise LabError(f"runs differ in {key}; choose a value, or name it in 'pool'")


def _reference(file: str, source: str, shows: set[str], wanted: Selection) -> list[Row]:
    """Other people's figures of the metrics SHOWS in the cell, as one row, if any.

    A setting without a column in the file is any; "spurious_failovers<=3" is a figure of spurious_failovers.
    """
    metrics: dict[str, float] = {}
    intervals: dict[str, Interval] = {}
    for figure in _figures(file):
        where = dict(figure.where)
        same = all(where[key] == shown(one) for key, one in wanted.items() if key in where)
        if same and source in ("", figure.source) and figure.metric.partition("<=")[0] in shows:
            if figure.metric in metrics:
                raise LabError(f"{file}: several figures of {figure.metric}; narrow the selection")
            metrics[figure.metric] = figure.value
            if figure.interval:
                intervals[figure.metric] = figure.interval
    return [Row({}, 0, metrics, intervals)] if metrics else []


@cache
def _figures(file: str) -> list[Figure]:
    return load_reference(reference_path(file))


def rst(grid: Grid) -> list[str]:
    """A simple table of reStructuredText, as lines."""
    depth = max(map(len, grid.heads))
    heads = [tuple(_at(head, line) for head in grid.heads) for line in range(depth)]
    # An empty first cell would go on with the row above.
    body = [(row[0] or "\\", *row[1:]) for row in grid.rows]
    widths = [max(map(len, column)) for column in zip(*heads, *body, strict=True)]
    rule = "  ".join("=" * width for width in widths)
    shown_rows = [
        "  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip()
        for row in (*heads, *body)
    ]
    return [rule, *shown_rows[:depth], rule, *shown_rows[depth:], rule]


def _at(head: tuple[str, ...], line: int) -> str:
    return head[line] if line < len(head) else ""


def markdown(grid: Grid) -> list[str]:
    heads = [" ".join(head) for head in grid.heads]
    lines = [heads, ["---"] * len(heads), *grid.rows]
    return ["| " + " | ".join(line) + " |" for line in lines]
