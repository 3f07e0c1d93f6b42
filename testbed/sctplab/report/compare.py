# SPDX-License-Identifier: GPL-2.0
"""Two sets of records side by side: what differs, by how much, with intervals over the common seeds.

A cell is a scenario with one setting of its factors; drawn scenarios have other paths for each seed, so that
their seeds are listed one by one too.
"""

import io
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console, RenderableType
from rich.table import Table

from sctplab.errors import LabError
from sctplab.measure.records import Run, Value, load_runs, read_json
from sctplab.random.scenarios import SCENARIOS as DRAWN
from sctplab.report.naming import (
    HEADLINES,
    SPEEDS,
    Metric,
    decimals,
    difference_text,
    estimate_text,
    factor_setting,
    metric,
    ratio_text,
)
from sctplab.report.stats import Estimate, Interval, Paired, paired
from sctplab.report.summary import estimated, point_order
from sctplab.report.tables import tally

WIDTH = 220
MAX_LISTED = 20
WORST = 10
# Two sets are matched although they differ in one of these, provided each has a single value of it.
SIDES = ("kernel", "variant", "base", "place")

Key = tuple[str, tuple[Value, ...], tuple[tuple[str, Value], ...]]  # scenario, values of SIDES kept, factors
Cells = dict[Key, dict[int, Run]]  # -> seed -> run


@dataclass(frozen=True, slots=True)
class Match:
    """A cell that both sets have: seed -> run in each. NAME: 'rtx-policy, patched, d2 = 50 ms'."""

    name: str
    a: dict[int, Run]
    b: dict[int, Run]

    @property
    def drawn(self) -> bool:
        """Whether each seed has other paths."""
        return next(iter(self.a.values())).scenario in DRAWN

    @property
    def twins(self) -> list[tuple[Run, Run]]:
        """Runs of both with the same seed."""
        return [(run, self.b[seed]) for seed, run in self.a.items() if seed in self.b]


@dataclass(frozen=True, slots=True)
class Change:
    """B / A of one metric in one cell, or seed of a drawn scenario; RATIO is None where there are zeros."""

    name: str
    shown: Metric
    ratio: Estimate | None

    @property
    def gain(self) -> float:
        """Above 1 where B is better."""
        if not self.ratio:
            return 1.0
        return self.ratio.centre if self.shown.more else 1 / self.ratio.centre

    @property
    def certain(self) -> bool:
        """Whether the interval leaves out that nothing has changed."""
        interval = self.ratio.interval if self.ratio else None
        return bool(interval and not interval.low <= 1 <= interval.high)


@dataclass(frozen=True, slots=True)
class Comparison:
    """HEAD: what is compared. TABLE: every cell. VERDICT: medians, what is worse, new or gone."""

    head: list[str]
    table: Table
    verdict: list[str]

    @property
    def whole(self) -> str:
        return _render([*self.head, self.table, *self.verdict])

    @property
    def brief(self) -> str:
        """All but the table."""
        return _render([*self.head, *self.verdict])


def compare(a: Path, b: Path) -> str:
    """B against A as text. Each is a result folder or one record; LabError when nothing can be matched."""
    return compare_runs((str(a), tuple(load_runs(a))), (str(b), tuple(load_runs(b)))).whole


def compare_runs(a: tuple[str, tuple[Run, ...]], b: tuple[str, tuple[Run, ...]]) -> Comparison:
    """The same of runs with a name."""
    (name_a, runs_a), (name_b, runs_b) = a, b
    values = {side: (_values(runs_a, side), _values(runs_b, side)) for side in SIDES}
    cells_a, cells_b, names = _named_cells(runs_a, runs_b)
    matches = _matches(cells_a, cells_b, names)
    if not matches:
        raise LabError(
            f"{name_a} and {name_b}: nothing to compare, no scenario with the same factors is in both"
        )
    head = [f"A = {name_a}: {tally(runs_a)}", f"B = {name_b}: {tally(runs_b)}"]
    head += [
        f"{side}: A {of_a[0]}, B {of_b[0]}" for side, (of_a, of_b) in values.items() if _differ(of_a, of_b)
    ]
    gone = [names[key] for key in cells_a if key not in cells_b]
    gone += [f"{match.name}: {metric(name).title}" for match in matches for name in _lost(match)]
    new = [names[key] for key in cells_b if key not in cells_a]
    return Comparison(
        head,
        _table(matches, every_metric=len(runs_a) == len(runs_b) == 1),
        [
            *_verdict(matches),
            *_twins_text(matches),
            *_listed("Not ok in B, and ok in A", "runs", _failed(matches)),
            *_listed("Gone, in A only", "cells", gone),
            *_listed("New, in B only", "cells", new),
        ],
    )


def changes(a: Sequence[Run], b: Sequence[Run]) -> dict[str, list[Change]]:
    """Name of a metric -> B / A of it in each cell that both have."""
    return {shown.name: found for shown, _, found in _changes(_matches(*_named_cells(a, b)))}


def differences(a: Any, b: Any, at: str = "", apart: Sequence[str] = ("host",)) -> Iterator[str]:
    """Where two parsed records differ, apart from "host", which says when and where they were made."""
    if isinstance(a, dict) and isinstance(b, dict):
        for name in sorted(a.keys() | b.keys()):
            if at or name not in apart:
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
        table.add_column(head, justify="left" if head in ("Cell", "Metric") else "right", no_wrap=True)
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
    ratio = _ratio(pair) if pair else None
    return [
        shown.axis,
        *(str(len(values)) for values in (a, b)),
        *(estimate_text(found, digits) if found else "-" for found in estimates),
        str(len(pair.seeds)) if pair else "0",
        difference_text(pair.difference) if pair else "-",
        ratio_text(ratio) if ratio else "-",
    ]


def _ratio(pair: Paired) -> Estimate | None:
    """B / A; 1 where no seed differs, though they be zeros."""
    if pair.ratio or pair.difference.low or pair.difference.high:
        return pair.ratio
    n = len(pair.seeds)
    return Estimate(n, 1.0, 1.0, 1.0, 1.0, False, Interval(1.0, 1.0) if n > 1 else None)


def _change(name: str, shown: Metric, a: dict[int, Run], b: dict[int, Run]) -> Change | None:
    pair = paired(_samples(a, shown.name), _samples(b, shown.name), shown.skewed)
    return Change(name, shown, _ratio(pair)) if pair else None


def _verdict(matches: list[Match]) -> list[str]:
    """For each metric: the ratios of all cells in one line, then the worst cells."""
    lines: list[str] = []
    for shown, cells, found in _changes(matches):
        lines += [_counted(shown, found), *_worst("cells", found), *_worst("seeds", _seeds(shown, cells))]
    return lines


def _changes(matches: list[Match]) -> Iterator[tuple[Metric, list[Match], list[Change]]]:
    """Each metric with the cells that have it, and their changes; none that has no change."""
    by_metric: dict[str, list[Match]] = {}
    for match in matches:
        for name in _metric_names(match, every=False):
            by_metric.setdefault(name, []).append(match)
    for shown in HEADLINES:
        cells = by_metric.get(shown.name, [])
        found = [change for one in cells if (change := _change(one.name, shown, one.a, one.b))]
        if found:
            yield shown, cells, found


def _counted(shown: Metric, found: list[Change]) -> str:
    """'Goodput (Mbit/s), more is better: 12 cells, median ratio 1.000 (0.871 to 1.090); ...'."""
    ratios = [one.ratio.centre for one in found if one.ratio]
    wish = "more" if shown.more else "less"
    text = f"{shown.axis}, {wish} is better: {len(found)} cells"
    if ratios:
        text += f", median ratio {float(np.median(ratios)):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"
    worse, better = (sum(one.certain and (one.gain < 1) is bad for one in found) for bad in (True, False))
    text += f"; beyond their interval worse {worse}, better {better}"
    without = len(found) - len(ratios)
    return text + (f"; {without} with zeros have no ratio" if without else "")


def _seeds(shown: Metric, cells: list[Match]) -> list[Change]:
    """Each seed of a drawn scenario by itself."""
    found = [
        _change(f"{cell.name}, seed {a.seed}", shown, {a.seed: a}, {b.seed: b})
        for cell in cells
        if cell.drawn
        for a, b in cell.twins
    ]
    return [one for one in found if one]


def _worst(what: str, found: list[Change]) -> list[str]:
    """The cells, or seeds, that lose most."""
    worse = sorted((one for one in found if one.gain < 1), key=lambda one: one.gain)
    if not worse:
        return []
    lines = [f"    {ratio_text(one.ratio)}  {one.name}" for one in worse[:WORST] if one.ratio]
    return [f"  worst {what} of {len(worse)} that lose:", *lines]


def _twins_text(matches: list[Match]) -> list[str]:
    """How many runs of one specification have equal records, and how the first unequal pair differs."""
    twins = [
        (a, b)
        for match in matches
        for a, b in match.twins
        if all(getattr(a, side) == getattr(b, side) for side in SIDES)
    ]
    if not twins:
        return []
    one_kernel = all(a.environment.kernel == b.environment.kernel for a, b in twins)
    apart = ("host",) if one_kernel else ("host", "kernel")
    found = [(a, list(differences(read_json(a.path), read_json(b.path), apart=apart))) for a, b in twins]
    unequal = [(run, texts) for run, texts in found if texts]
    same = len(twins) - len(unequal)
    named = " and ".join(f'"{name}"' for name in apart)
    lines = [
        f"Identical apart from {named}: {same} of {len(twins)} pairs of runs with the same specification"
    ]
    if unequal:
        run, texts = unequal[0]
        lines.append(f"First difference: {run.path.name}")
        lines += [f"  {text}" for text in texts[:MAX_LISTED]]
        lines += [f"  and {len(texts) - MAX_LISTED} more"] if len(texts) > MAX_LISTED else []
    return lines


def _failed(matches: list[Match]) -> list[str]:
    """Runs that B has not ok and A has."""
    pairs = [(b, match.name) for match in matches for a, b in match.twins if a.ok and not b.ok]
    return [f"{name}, seed {run.seed}: {run.status}: {run.reason}" for run, name in pairs]


def _lost(match: Match) -> list[str]:
    """The metrics that A has in this cell and B has not."""
    names = _metric_names(match, every=False)
    return [name for name in names if _samples(match.a, name) and not _samples(match.b, name)]


def _listed(title: str, what: str, names: list[str]) -> list[str]:
    if not names:
        return []
    more = [f"  and {len(names) - MAX_LISTED} more"] if len(names) > MAX_LISTED else []
    return [f"{title}: {len(names)} {what}", *(f"  {name}" for name in names[:MAX_LISTED]), *more]


def _named_cells(a: Sequence[Run], b: Sequence[Run]) -> tuple[Cells, Cells, dict[Key, str]]:
    """The cells of both, and how each is called."""
    kept = [side for side in SIDES if len(_values(a, side)) > 1 or len(_values(b, side)) > 1]
    cells_a, cells_b = _cells(a, kept), _cells(b, kept)
    return cells_a, cells_b, _names([*cells_a, *cells_b])


def _matches(cells_a: Cells, cells_b: Cells, names: dict[Key, str]) -> list[Match]:
    return [Match(names[key], cells_a[key], cells_b[key]) for key in cells_a if key in cells_b]


def _cells(runs: Sequence[Run], kept: list[str]) -> Cells:
    """Runs by what they are matched by, then by seed; in the order of scenario and factors."""
    cells: Cells = {}
    for run in runs:
        key = (run.scenario, tuple(getattr(run, side) for side in kept), tuple(sorted(run.factors)))
        cells.setdefault(key, {})[run.seed] = run
    return {key: cells[key] for key in sorted(cells, key=_order)}


def _order(key: Key) -> tuple[Any, ...]:
    scenario, kept, factors = key
    names = tuple(name for name, _ in factors)
    return (scenario, kept, names, point_order(tuple(value for _, value in factors)))


def _names(keys: list[Key]) -> dict[Key, str]:
    """How cells are called; without the factors that have one value in all cells of their scenario."""
    settings: dict[str, set[tuple[str, Value]]] = {}
    cells = dict.fromkeys(keys)
    for scenario, _, factors in cells:
        settings.setdefault(scenario, set()).update(factors)
    found = {}
    for scenario, kept, factors in cells:
        values = Counter(name for name, _ in settings[scenario])
        varying = [factor_setting(name, value) for name, value in factors if values[name] > 1]
        found[scenario, kept, factors] = ", ".join([scenario, *map(str, kept), *varying])
    return found


def _values(runs: Sequence[Run], side: str) -> list[str]:
    return sorted({getattr(run, side) for run in runs})


def _differ(of_a: list[str], of_b: list[str]) -> bool:
    return len(of_a) == len(of_b) == 1 and of_a != of_b


def _samples(runs: dict[int, Run], name: str) -> dict[int, float]:
    return {seed: run.metrics[name] for seed, run in runs.items() if run.ok and name in run.metrics}


def _metric_names(match: Match, every: bool) -> list[str]:
    """Those of HEADLINES, of SPEEDS the first; EVERY: all that there are."""
    present = {name for runs in (match.a, match.b) for run in runs.values() if run.ok for name in run.metrics}
    first = [m.name for m in HEADLINES if m.name in present]
    if every:
        return first + sorted(present - set(first))
    speeds = [name for name in first if name in SPEEDS]
    return [name for name in first if name not in speeds[1:]]


def _short(value: Any) -> str:
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _render(parts: list[RenderableType]) -> str:
    out = io.StringIO()
    console = Console(file=out, width=WIDTH, color_system=None, highlight=False, markup=False, soft_wrap=True)
    for part in parts:
        console.print(part)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())
