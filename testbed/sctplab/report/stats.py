# SPDX-License-Identifier: GPL-2.0
"""Estimates with honest intervals. Pure functions on sequences of numbers, no files, no records.

Means get Student's t interval. Metrics whose distribution is skewed (a failover time is a sum of
doubling timeouts) are judged by their median with a percentile bootstrap, whose random numbers come
from a fixed seed so that a report is the same each time it is made. Where the sample cannot support
a 95 % interval there is none: one run has no interval, and a median needs six, because even the
whole range of n runs holds the true median with a chance of only 1 - 2^(1-n), 93.8 % for five.
Shares of runs, which are yes or no, get Wilson's interval.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from scipy import stats as scipy_stats

CONFIDENCE = 0.95
MIN_FOR_MEDIAN_INTERVAL = 6
RESAMPLES = 1999  # the interval's ends are then the 50th and the 1950th of the sorted medians
BOOTSTRAP_SEED = 1


@dataclass(frozen=True, slots=True)
class Interval:
    """Ends of a 95 % confidence interval, in the unit of the sample."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """A sample of n runs in numbers. interval belongs to centre; None where the sample is too small.

    share: the sample is of runs that do (1) or do not (0), its mean the share of those that do.
    """

    n: int
    median: float
    mean: float
    low: float
    high: float
    skewed: bool
    interval: Interval | None
    share: bool = False

    @property
    def centre(self) -> float:
        """The measure of location: the median of a skewed metric, else the mean."""
        return self.median if self.skewed else self.mean


@dataclass(frozen=True, slots=True)
class Paired:
    """B against A over their common seeds: difference B - A, and ratio B / A where all are positive."""

    seeds: tuple[int, ...]
    difference: Estimate
    ratio: Estimate | None


def mean_interval(values: Sequence[float]) -> Interval | None:
    """Student's t interval for the mean; None for fewer than two values."""
    n = len(values)
    if n < 2:
        return None
    mean = math.fsum(values) / n
    half = _t_quantile(n - 1) * _deviation(values, mean) / math.sqrt(n)
    return Interval(mean - half, mean + half)


def median_interval(values: Sequence[float]) -> Interval | None:
    """Percentile bootstrap interval for the median; None for fewer than six values (see above)."""
    if len(values) < MIN_FOR_MEDIAN_INTERVAL:
        return None
    result = scipy_stats.bootstrap(
        (np.asarray(values, dtype=np.float64),),
        np.median,
        n_resamples=RESAMPLES,
        confidence_level=CONFIDENCE,
        method="percentile",
        rng=np.random.default_rng(BOOTSTRAP_SEED),
    )
    return Interval(float(result.confidence_interval.low), float(result.confidence_interval.high))


def estimate(values: Sequence[float], skewed: bool = False) -> Estimate:
    """Summary of at least one value; the order of the values does not matter."""
    if not values:
        raise ValueError("an estimate needs at least one value")
    ordered = sorted(values)
    return Estimate(
        n=len(ordered),
        median=float(np.median(ordered)),
        mean=math.fsum(ordered) / len(ordered),
        low=ordered[0],
        high=ordered[-1],
        skewed=skewed,
        interval=median_interval(ordered) if skewed else mean_interval(ordered),
    )


def share(by_seed: Mapping[int, Sequence[bool]]) -> Estimate:
    """Share of runs that do, given seed -> runs with that seed (one, or several cells' runs pooled).

    Wilson's interval. Runs with the same seed meet the same losses and so do not count as independent: their
    number is divided by the design effect, the variance of the share over seeds relative to independent runs.
    Where all seeds agree nothing is known of that, and only seeds are counted. One seed has no interval.
    """
    runs = [float(does) for seed in sorted(by_seed) for does in by_seed[seed]]
    if not runs:
        raise ValueError("a share needs at least one run")
    n, mean = len(runs), math.fsum(runs) / len(runs)
    interval = _wilson(mean, _independent(by_seed, mean)) if len(by_seed) > 1 else None
    return Estimate(n, float(np.median(runs)), mean, min(runs), max(runs), False, interval, share=True)


def _wilson(mean: float, n: float) -> Interval:
    z2 = float(scipy_stats.norm.ppf((1 + CONFIDENCE) / 2)) ** 2
    centre = (mean + z2 / (2 * n)) / (1 + z2 / n)
    half = math.sqrt(z2 * (mean * (1 - mean) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    return Interval(max(0.0, centre - half), min(1.0, centre + half))


def _independent(by_seed: Mapping[int, Sequence[bool]], mean: float) -> float:
    """As many independent runs as these are worth, at least one per seed."""
    n, seeds = sum(map(len, by_seed.values())), len(by_seed)
    binomial = mean * (1 - mean) / n
    if not binomial:
        return float(seeds)
    excess = math.fsum((sum(does) - len(does) * mean) ** 2 for does in by_seed.values())
    clustered = seeds / (seeds - 1) * excess / n**2
    return min(float(n), max(float(seeds), n * binomial / clustered if clustered else n))


def paired(a: Mapping[int, float], b: Mapping[int, float], skewed: bool = False) -> Paired | None:
    """B against A, seed by seed (seed -> value); None when no seed is in both.

    The ratio is the geometric mean of the ratios of each seed; its interval is Student's, on the logarithms.
    """
    seeds = tuple(sorted(a.keys() & b.keys()))
    if not seeds:
        return None
    difference = estimate([b[s] - a[s] for s in seeds], skewed)
    if any(a[s] <= 0 or b[s] <= 0 for s in seeds):
        return Paired(seeds, difference, None)
    return Paired(seeds, difference, _geometric([b[s] / a[s] for s in seeds]))


def ratio_over_cells(cells: Sequence[Paired]) -> Estimate | None:
    """The geometric mean of the ratios of each cell, n of them, the lowest and the highest.

    No interval: cells are different settings, and those with the same seeds are not independent. None for no
    cell, or where one has no ratio.
    """
    ratios = [cell.ratio.mean for cell in cells if cell.ratio]
    if not ratios or len(ratios) < len(cells):
        return None
    return replace(_geometric(ratios), interval=None)


def _geometric(ratios: Sequence[float]) -> Estimate:
    logs = estimate([math.log(r) for r in ratios])
    interval = logs.interval and Interval(math.exp(logs.interval.low), math.exp(logs.interval.high))
    return Estimate(
        logs.n, float(np.median(ratios)), math.exp(logs.mean), min(ratios), max(ratios), False, interval
    )


@cache
def _t_quantile(degrees: int) -> float:
    return float(scipy_stats.t.ppf((1 + CONFIDENCE) / 2, degrees))


def _deviation(values: Sequence[float], mean: float) -> float:
    """Sample standard deviation (n - 1), exactly 0 for equal values whatever the rounding of the mean."""
    if min(values) == max(values):
        return 0.0
    return math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1))
