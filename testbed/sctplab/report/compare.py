# SPDX-License-Identifier: GPL-2.0
"""Two sets of records side by side: what differs, by how much, with intervals over the common seeds."""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table

from sctplab.errors import LabError
from sctplab.measure.records import Run, Value, load_runs, read_json
from sctplab.report.naming import (
    HEADLINES,
    decimals,
    difference_text,
    estimate_text,
    factor_setting,
    metric,
    ratio_text,
)
from sctplab.report.stats import paired
from sctplab.report.summary import estimated, point_order
from sctplab.report.tables import tally

WIDTH = 160
MAX_LISTED = 20
# What two sets may differ in and still be matched, provided each has a single value of it.
SIDES = ("kernel", "variant", "base", "place")

Key = tuple[str, tuple[Value, ...], tuple[tuple[str, Value], ...]]  # scenario, values of SIDES kept, factors


@dataclass(frozen=True, slots=True)
class Match:
    """A cell that both sets have: seed -> run in each."""

    key: Key
    a: dict[int, Run]
    b: dict[int, Run]

    @property
    def name(self) -> str:
        """'rtx-policy, patched, d2 = 50 ms'."""
        return _name(self.key)


def compare(a: Path, b: Path) -> str:
    """B against A as text. Each is a result folder or one record; LabError when nothing can be matched."""
    runs_a, runs_b = tuple(load_runs(a)), tuple(load_runs(b))
    values = {side: (_values(runs_a, side), _values(runs_b, side)) for side in SIDES}
    kept = [side for side, (of_a, of_b) in values.items() if len(of_a) > 1 or len(of_b) > 1]
    cells_a, cells_b = _cells(runs_a, kept), _cells(runs_b, kept)
    matches = [Match(key, cells_a[key], cells_b[key]) for key in cells_a if key in cells_b]
    if not matches:
        raise LabError(f"{a} and {b}: nothing to compare, no scenario with the same factors is in both")
    parts: list[RenderableType] = [f"A = {a}: {tally(runs_a)}", f"B = {b}: {tally(runs_b)}"]
    parts += [
        f"{side}: A {of_a[0]}, B {of_b[0]}" for side, (of_a, of_b) in values.items() if _differ(of_a, of_b)
    ]
    parts.append(_table(matches, every_metric=len(runs_a) == len(runs_b) == 1))
    parts += _twins_text(matches)
    parts += _unmatched("A", [key for key in cells_a if key not in cells_b])
    parts += _unmatched("B", [key for key in cells_b if key not in cells_a])
    return _render(parts)


def differences(a: Any, b: Any, at: str = "") -> Iterator[str]:
    """Where two parsed records differ, apart from "host", which says when and where they were made."""
    if isinstance(a, dict) and isinstance(b, dict):
        for name in sorted(a.keys() | b.keys()):
            if at or name != "host":
                yield from differences(a.get(name), b.get(name), f"{at}.{name}" if at else name)
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for index, (one, other) in enumerate(zip(a, b, strict=True)):
            yield from differences(one, other, f"{at}[{index}]")
    elif a != b or type(a) is not type(b):
        yield f"{at}: {_short(a)} against {_short(b)}"


def _table(matches: list[Match], every_metric: bool) -> Table:
    table = Table(
        box=box.ASCII2, caption="± and [ ]: 95 % interval; difference and ratio over the seeds both have"
    )
    table.caption_justify = "left"
    for head in ("Cell", "Metric", "n A", "n B", "A", "B", "Pairs", "B - A", "B / A"):
        table.add_column(head, justify="left" if head in ("Cell", "Metric") else "right")
    for match in matches:
        name = match.name
        for metric_name in _metric_names(match, every_metric):
            table.add_row(name, *_row(match, metric_name))
            name = ""
    return table


def _row(match: Match, name: str) -> list[str]:
    """The cells after the first: metric, n A, n B, A, B, pairs, difference, ratio."""
    shown = metric(name)
    a, b = _samples(match.a, name), _samples(match.b, name)
    estimates = [
        estimated({seed: [value] for seed, value in values.items()}, shown) if values else None
        for values in (a, b)
    ]
    digits = decimals(found.centre for found in estimates if found)
    pair = paired(a, b, shown.skewed)
    return [
        shown.axis,
        *(str(len(values)) for values in (a, b)),
        *(estimate_text(found, digits) if found else "-" for found in estimates),
        str(len(pair.seeds)) if pair else "0",
        difference_text(pair.difference) if pair else "-",
        ratio_text(pair.ratio) if pair and pair.ratio else "-",
    ]


def _twins_text(matches: list[Match]) -> list[str]:
    """How many runs of one specification have equal records, and how the first unequal pair differs."""
    twins = [
        (run, match.b[seed])
        for match in matches
        for seed, run in match.a.items()
        if seed in match.b and all(getattr(run, side) == getattr(match.b[seed], side) for side in SIDES)
    ]
    if not twins:
        return []
    found = [(a, list(differences(read_json(a.path), read_json(b.path)))) for a, b in twins]
    unequal = [(run, texts) for run, texts in found if texts]
    same = len(twins) - len(unequal)
    lines = [f'Identical apart from "host": {same} of {len(twins)} pairs of runs with the same specification']
    if unequal:
        run, texts = unequal[0]
        lines.append(f"First difference: {run.path.name}")
        lines += [f"  {text}" for text in texts[:MAX_LISTED]]
        lines += [f"  and {len(texts) - MAX_LISTED} more"] if len(texts) > MAX_LISTED else []
    return lines


def _unmatched(side: str, keys: list[Key]) -> list[str]:
    if not keys:
        return []
    names = [f"  {_name(key)}" for key in keys[:MAX_LISTED]]
    more = [f"  and {len(keys) - MAX_LISTED} more"] if len(keys) > MAX_LISTED else []
    return [f"Only in {side}: {len(keys)} cells", *names, *more]


def _cells(runs: tuple[Run, ...], kept: list[str]) -> dict[Key, dict[int, Run]]:
    """Runs by what they are matched by, then by seed; in the order of scenario and factors."""
    cells: dict[Key, dict[int, Run]] = {}
    for run in runs:
        key = (run.scenario, tuple(getattr(run, side) for side in kept), tuple(sorted(run.factors)))
        cells.setdefault(key, {})[run.seed] = run
    return {key: cells[key] for key in sorted(cells, key=_order)}


def _order(key: Key) -> tuple[Any, ...]:
    scenario, kept, factors = key
    names = tuple(name for name, _ in factors)
    return (scenario, kept, names, point_order(tuple(value for _, value in factors)))


def _name(key: Key) -> str:
    scenario, kept, factors = key
    return ", ".join([scenario, *(str(value) for value in kept), *(factor_setting(n, v) for n, v in factors)])


def _values(runs: tuple[Run, ...], side: str) -> list[str]:
    return sorted({getattr(run, side) for run in runs})


def _differ(of_a: list[str], of_b: list[str]) -> bool:
    return len(of_a) == len(of_b) == 1 and of_a != of_b


def _samples(runs: dict[int, Run], name: str) -> dict[int, float]:
    return {seed: run.metrics[name] for seed, run in runs.items() if run.ok and name in run.metrics}


def _metric_names(match: Match, every: bool) -> list[str]:
    present = {name for runs in (match.a, match.b) for run in runs.values() if run.ok for name in run.metrics}
    first = [m.name for m in HEADLINES if m.name in present]
    return first + (sorted(present - set(first)) if every else [])


def _short(value: Any) -> str:
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _render(parts: list[RenderableType]) -> str:
    out = io.StringIO()
    console = Console(file=out, width=WIDTH, color_system=None, highlight=False, markup=False, soft_wrap=True)
    for part in parts:
        console.print(part)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())
