# SPDX-License-Identifier: GPL-2.0
"""One figure from runs: a template such as "{goodput_mbit:.2f ci}" and the runs of a cell. Pure.

{METRIC:FORMAT STATISTIC}; FORMAT as Python's, STATISTIC one of

    (none)      mean                            ci          mean ± half of Student's 95 % interval, if any
    max         most                            range       least to most; one number where they read the same
    n           number of runs                  share       share of runs above 0 [Wilson's 95 % interval]
    below N     number of runs below N          share N     share of runs with at least N, without interval
    ratio       against the other cell, run by run with equal seed and settings, geometric mean;
                "ratio ci" with its interval
    difference  the same as difference of means, "difference ci" with its interval
    race S      of the transfers over all paths against those over the best single one, seed by seed: S is
                n (how many), least, median, or a number (how many have at least that share)
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from statistics import fmean, median

from sctplab.errors import LabError
from sctplab.evidence.data import Row
from sctplab.random.cmt import ALL_PATHS
from sctplab.report import stats

FIELD = re.compile(r"\{([a-z][a-z0-9_.]*)(?::([^ {}]*))?(?: ([a-z]+)(?: ([0-9.]+|ci|n|least|median))?)?\}")


def metrics_of(template: str) -> set[str]:
    """Metrics that a template asks for; raises LabError for one that cannot be read."""
    rest = FIELD.sub("", template)
    if "{" in rest or "}" in rest:
        raise LabError(f"{template!r}: got {rest!r}, expected {{METRIC:FORMAT STATISTIC}}, see cell.py")
    return {found[1] for found in FIELD.finditer(template)}


def text(template: str, rows: Sequence[Row], against: Sequence[Row] = ()) -> str:
    """TEMPLATE filled from the runs ROWS, and for a ratio or difference from those AGAINST."""

    def fill(found: re.Match[str]) -> str:
        metric, shape, statistic, more = found.groups()
        return _field(metric, shape or ".4g", statistic or "mean", more or "", rows, against)

    metrics_of(template)
    return FIELD.sub(fill, template)


def _field(
    metric: str, shape: str, statistic: str, more: str, rows: Sequence[Row], against: Sequence[Row]
) -> str:
    show: Callable[[float], str] = lambda number: format(number, shape)  # noqa: E731
    if statistic in ("ratio", "difference"):
        ours, others = _pairs(rows, against, metric)
        return _paired(ours, others, statistic, more, show)
    if known := [row.intervals[metric] for row in rows if metric in row.intervals]:
        return _given(rows[0].metrics[metric], known[0], statistic, show)
    if statistic == "share":
        return _share(rows, metric, more, show)
    if statistic == "race":
        return _race(rows, metric, more, show)
    values = [row.metrics[metric] for row in rows if metric in row.metrics]
    if not values:
        raise LabError(f"{metric}: none of {len(rows)} runs has it")
    if statistic == "below":
        return str(sum(value < float(more) for value in values))
    if statistic not in PLAIN:
        raise LabError(f"{statistic}: no such statistic; expected one of those in cell.py")
    return PLAIN[statistic](values, show)


def _given(mean: float, interval: stats.Interval, statistic: str, show: Callable[[float], str]) -> str:
    """A figure that comes with its interval."""
    if statistic == "ci":
        return _plus_minus(show(mean), interval)
    return _bracketed(mean, interval if statistic == "share" else None, show)


def _bracketed(mean: float, interval: stats.Interval | None, show: Callable[[float], str]) -> str:
    return show(mean) + (f" [{show(interval.low)}, {show(interval.high)}]" if interval else "")


def _mean(values: Sequence[float], show: Callable[[float], str]) -> str:
    return show(math.fsum(values) / len(values))


def _ci(values: Sequence[float], show: Callable[[float], str]) -> str:
    return _plus_minus(_mean(values, show), stats.mean_interval(values))


def _plus_minus(mean: str, interval: stats.Interval | None) -> str:
    """Half of the interval with as many decimals as the mean has; without it where they do not show it."""
    half = (interval.high - interval.low) / 2 if interval else 0.0
    shown = f"{half:.{len(mean.partition('.')[2])}f}"
    return f"{mean} ± {shown}" if shown.strip("0.") else mean


def _range(values: Sequence[float], show: Callable[[float], str]) -> str:
    low, high = show(min(values)), show(max(values))
    return low if low == high else f"{low} to {high}"


PLAIN: dict[str, Callable[[Sequence[float], Callable[[float], str]], str]] = {
    "mean": _mean,
    "ci": _ci,
    "range": _range,
    "max": lambda values, show: show(max(values)),
    "n": lambda values, _: str(len(values)),
}


def _pairs(rows: Sequence[Row], against: Sequence[Row], metric: str) -> list[dict[int, float]]:
    """Both sides' values by pair: runs that differ in nothing but what sets the two sides apart."""
    sides = (rows, against)
    names = {name for row in (*rows, *against) for name in row.settings}
    common = [
        name
        for name in sorted(names)
        if len({frozenset(row.settings.get(name) for row in side) for side in sides}) == 1
    ]
    numbers: dict[object, int] = {}
    found: list[dict[int, float]] = [{}, {}]
    for side, values in zip(sides, found, strict=True):
        for row in side:
            if metric in row.metrics:
                pair = (row.seed, *(row.settings.get(name) for name in common))
                values[numbers.setdefault(pair, len(numbers))] = row.metrics[metric]
    return found


def _share(rows: Sequence[Row], metric: str, least: str, show: Callable[[float], str]) -> str:
    below = f"{metric}<={int(least or 1) - 1}"  # as a reference file has it
    if given := [row.metrics[below] for row in rows if below in row.metrics]:
        return show(1 - given[0])
    does: dict[int, list[bool]] = defaultdict(list)
    for row in rows:
        if metric in row.metrics:
            value = row.metrics[metric]
            does[row.seed].append(value >= float(least) if least else value > 0)
    if not does:
        raise LabError(f"{metric}: none of {len(rows)} runs has it")
    found = stats.share(does)
    return _bracketed(found.mean, None if least else found.interval, show)


def _race(rows: Sequence[Row], metric: str, what: str, show: Callable[[float], str]) -> str:
    by_seed: dict[int, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        by_seed[row.seed][str(row.settings["variant"])].append(row.metrics[metric])
    shares = [
        fmean(variants.pop(ALL_PATHS)) / max(map(fmean, variants.values()))
        for variants in by_seed.values()
        if ALL_PATHS in variants and len(variants) > 1
    ]
    if what == "n":
        return str(len(shares))
    if not shares:
        raise LabError(f"race: none of {len(by_seed)} seeds has runs over all paths and over single ones")
    if what in ("least", "median"):
        return show(min(shares) if what == "least" else median(shares))
    return str(sum(share >= float(what) for share in shares))


def _paired(
    ours: dict[int, float], others: dict[int, float], kind: str, more: str, show: Callable[[float], str]
) -> str:
    found = stats.paired(others, ours)
    if found is None:
        raise LabError(f"{kind}: no common seed; name the runs to compare with in 'against'")
    one = found.ratio if kind == "ratio" else found.difference
    if one is None:
        raise LabError(f"{kind}: some value is 0 or less; use a difference")
    return _bracketed(one.mean, one.interval if more else None, show)
