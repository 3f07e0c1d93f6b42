# SPDX-License-Identifier: GPL-2.0
"""Paths that get another length: what is drawn is valid and in its bounds, and is judged after the change."""

from collections import Counter
from dataclasses import replace

import pytest
from sctplab.random import lengths
from sctplab.spec.model import RunSpec
from sctplab.spec.scenario import Choice
from sctplab.spec.schema import At, build, plain

SEEDS = range(1, 201)
ALL = [lengths.runs(seed, "patched", Choice(), {}) for seed in SEEDS]


def test_every_spec_is_valid() -> None:
    for spec in (one for some in ALL for one in some):
        assert build(RunSpec, plain(spec), At("spec", "")) == spec


def test_those_beside_it_have_the_new_length_from_the_start() -> None:
    for changed, start, *alone in ALL:
        (event,) = changed.events
        (path,) = (one for one in start.topology.paths if one.name == event.path)
        before = next(one for one in changed.topology.paths if one.name == event.path)
        assert path.forward == replace(before.forward, **event.values) == path.reverse
        assert [one.flows[0].paths for one in alone] == [("path1",), ("path2",)]
        assert all(replace(one, variant=start.variant, flows=start.flows) == start for one in alone)
        assert replace(start, variant=changed.variant, topology=changed.topology, events=(event,)) == changed


def test_both_paths_and_both_ways_are_drawn() -> None:
    found = Counter(
        (changed.events[0].path, changed.events[0].values["delay_ms"] >= lengths.LONG_MS[0])
        for changed, *_ in ALL
    )
    assert len(found) == 4 and min(found.values()) > 20


def test_it_is_judged_from_twenty_round_trips_after_the_change_on() -> None:
    for changed, *_ in ALL:
        (event,) = changed.events
        delays = (event.values["delay_ms"], *(one.forward.delay_ms for one in changed.topology.paths))
        begin = lengths.judged_from_s(changed.seed)
        assert begin >= event.at_s + 20 * 2 * event.values["delay_ms"] / 1000
        assert begin <= event.at_s + 20 * 2 * max(delays) / 1000 + 0.001
        assert (changed.flows[0].duration_s or 0) >= begin + lengths.LOOK_S - 0.001


def test_the_goodput_is_that_of_this_time() -> None:
    begin = lengths.judged_from_s(7)
    samples = [[0.1 + 0.5 * n, 1.0 if 0.5 * n < begin else 3.0] for n in range(100)]
    samples.append([50.1, 0.0])  # not a whole one
    record = {"spec": {"seed": 7}, "series": {"goodput": samples}}
    assert lengths.goodput_mbit(record) == pytest.approx(3.0)
