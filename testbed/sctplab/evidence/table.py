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
from typing import Any

from sctplab.errors import LabError
from sctplab.evidence import cell
from sctplab.evidence.data import Data, Row
from sctplab.report.reference import load_reference, reference_path
from sctplab.spec.schema import At, build, check, mapping, names, scalars, text

OWN_KEYS = ("head", "cell", "runs", "against", "absent", "reference", "source", "text", "pool")
Selection = dict[str, Any]
Load = Callable[[str], Data]


def _lines(value: object, at: At) -> Any:
    """Rows or columns: {by = [...]} or a list of tables."""
    if isinstance(value, Mapping):
        if set(value) != {"by"}:
            raise at.refuse(sorted(value), "by = [factors] alone, or a list of tables with head")
        return {"by": names("factors")["check"](value["by"], at("by"))}
    if not isinstance(value, list) or not value or not all(isinstance(one, Mapping) for one in value):
        raise at.refuse(value, "by = [factors], or a list of tables with head")
    for one in value:
        if "head" not in one:
            raise at.refuse(dict(one), "a head in each")
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
            if "text" not in merged and "reference" not in merged:
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


def fill(name: str, table: Table, load: Load) -> Grid:
    """The table from its summaries; raises LabError with the cell that cannot be."""
    rows, columns = _expand(table, table.rows, load), _expand(table, table.columns, load)
    cells = []
    for row in rows:
        line = []
        for column in columns:
            try:
                line.append(_cell(table, {**table.where, **row, **column}, load))
            except LabError as error:
                where = f"{_text(row['head'])} / {_text(column['head'])}"
                raise LabError(f"tables.{name}: {where}: {error}") from None
        cells.append((*_head(row), *line))
    used = {runs for runs, _ in table.templates()} | {table.runs}
    return Grid(tuple(_heads(table, rows, columns)), tuple(cells), tuple(sorted(used)))


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


def _cell(table: Table, merged: Selection, load: Load) -> str:
    if "text" in merged:
        return str(merged["text"])
    wanted = {key: one for key, one in merged.items() if key not in OWN_KEYS}
    template = merged.get("cell", table.cell)
    absent = merged.get("absent", table.absent)
    if "reference" in merged:
        if absent and not any(
            metric in one.metrics
            for metric in cell.metrics_of(template)
            for one in _reference(merged, wanted)
        ):
            return str(absent)
        beside = _reference(merged, {**wanted, **merged["against"]}) if "against" in merged else []
        return cell.text(template, _reference(merged, wanted), beside)
    data = load(merged.get("runs", table.runs))
    found = select(data.rows, wanted)
    if not found and absent:
        return str(absent)
    one_cell(found, {*table.pool, *merged.get("pool", ())})
    against = select(data.rows, {**wanted, **merged["against"]}) if "against" in merged else []
    return cell.text(template, found, against)


def select(rows: Sequence[Row], wanted: Selection) -> list[Row]:
    """The runs with these settings; "seed" is one of them here."""
    return [row for row in rows if all(_is(dict(row.key).get(key), one) for key, one in wanted.items())]


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


def _reference(merged: Selection, wanted: Selection) -> list[Row]:
    """Other people's figure of the cell, as one row; a setting without a column in the file is any."""
    figures = load_reference(reference_path(merged["reference"]))
    metrics: dict[str, float] = {}
    intervals: dict[str, tuple[float, float]] = {}
    for figure in figures:
        where = dict(figure.where)
        same = all(where[key] == shown(one) for key, one in wanted.items() if key in where)
        if same and figure.source == merged.get("source", figure.source):
            if figure.metric in metrics:
                raise LabError(
                    f"{merged['reference']}: several figures of {figure.metric}; narrow the selection"
                )
            metrics[figure.metric] = figure.value
            if figure.interval:
                intervals[figure.metric] = (figure.interval.low, figure.interval.high)
    return [Row({}, 0, metrics, intervals)]


def rst(grid: Grid) -> list[str]:
    """A simple table of reStructuredText, as lines."""
    depth = max(map(len, grid.heads))
    heads = [tuple(_at(head, line) for head in grid.heads) for line in range(depth)]
    body = [
        (row[0] or "\\", *row[1:]) for row in grid.rows
    ]  # an empty first cell would go on with the row above
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
