# SPDX-License-Identifier: GPL-2.0
"""Estimates against values worked out by hand or taken from printed tables."""

import math

import pytest
from sctplab.report.stats import estimate, mean_interval, median_interval, paired, share


def test_mean_interval_is_students() -> None:
    # mean 3, s = sqrt(2.5), t(0.975, 4) = 2.776445: half = 2.776445 * sqrt(2.5 / 5)
    interval = mean_interval([1, 2, 3, 4, 5])
    assert interval is not None
    assert interval.low == pytest.approx(3 - 1.963243, abs=1e-5)
    assert interval.high == pytest.approx(3 + 1.963243, abs=1e-5)


def test_two_values_use_one_degree_of_freedom() -> None:
    interval = mean_interval([10, 12])
    assert interval is not None
    assert interval.high - 11 == pytest.approx(12.7062, abs=1e-4)


def test_one_run_has_no_interval() -> None:
    assert mean_interval([5.0]) is None
    assert estimate([5.0]).interval is None
    assert estimate([5.0], skewed=True).interval is None


def test_equal_values_give_an_interval_of_no_width() -> None:
    interval = mean_interval([0.1, 0.1, 0.1])
    assert interval is not None
    assert interval.low == interval.high == pytest.approx(0.1)


def test_median_needs_six() -> None:
    assert median_interval([1, 2, 3, 4, 5]) is None
    interval = median_interval([1, 2, 3, 4, 5, 6])
    assert interval is not None
    assert 1 <= interval.low <= 2 and 5 <= interval.high <= 6


def test_median_interval_is_the_same_each_time_and_in_any_order() -> None:
    values = [1.05, 1.1, 3.2, 1.07, 63.5, 1.06, 1.2, 1.09]
    assert estimate(values, skewed=True) == estimate(values[::-1], skewed=True)


def test_centre_is_the_median_of_a_skewed_metric() -> None:
    values = [1.0, 1.0, 1.0, 61.0]
    assert estimate(values).centre == 16.0
    assert estimate(values, skewed=True).centre == 1.0


def test_pairs_are_made_by_seed_and_only_of_common_seeds() -> None:
    pair = paired({1: 10.0, 2: 20.0, 3: 30.0, 9: 1.0}, {1: 11.0, 2: 22.0, 3: 33.0, 8: 99.0})
    assert pair is not None and pair.ratio is not None
    assert pair.seeds == (1, 2, 3)
    # differences 1, 2, 3: mean 2, s = 1, t(0.975, 2) = 4.302653
    assert pair.difference.mean == pytest.approx(2)
    assert pair.difference.interval is not None
    assert pair.difference.interval.high == pytest.approx(2 + 4.302653 / math.sqrt(3), abs=1e-5)
    assert pair.ratio.centre == pytest.approx(1.1)
    assert pair.ratio.interval is not None
    assert pair.ratio.interval.low == pytest.approx(1.1) == pair.ratio.interval.high


def test_no_common_seed_is_no_pair() -> None:
    assert paired({1: 1.0}, {2: 1.0}) is None


def test_a_ratio_needs_positive_values() -> None:
    pair = paired({1: 0.0}, {1: 2.0})
    assert pair is not None and pair.ratio is None and pair.difference.mean == 2


def test_nothing_cannot_be_estimated() -> None:
    with pytest.raises(ValueError, match="at least one"):
        estimate([])


def test_share_has_wilsons_interval() -> None:
    found = share({seed: [seed <= 4] for seed in range(1, 11)})
    assert (found.n, found.mean) == (10, 0.4)
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == pytest.approx((0.168180, 0.687326), abs=1e-6)


def test_share_of_none_and_of_all_has_an_interval_towards_the_middle() -> None:
    for does, ends in ((False, (0.0, 0.277533)), (True, (0.722467, 1.0))):
        found = share({seed: [does] for seed in range(10)})
        assert found.interval is not None
        assert (found.interval.low, found.interval.high) == pytest.approx(ends, abs=1e-6)


def test_runs_of_one_seed_that_agree_count_once() -> None:
    once = share({seed: [seed < 5] for seed in range(10)})
    often = share({seed: [seed < 5] * 4 for seed in range(10)})
    assert often.n == 40
    assert often.interval == once.interval


def test_runs_of_one_seed_that_differ_as_those_of_different_seeds_count_each() -> None:
    apart = share({seed: [seed % 2 == 0] for seed in range(40)})
    pooled = share({seed: [True, False] for seed in range(20)})
    assert pooled.interval == apart.interval


def test_share_over_one_seed_has_no_interval() -> None:
    assert share({1: [True, False, True]}).interval is None
