# SPDX-License-Identifier: GPL-2.0
"""Random outages: what is drawn keeps its promises and follows from the seed alone."""

import json
import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from sctplab.random import flaps
from sctplab.random.choice import Draw, most_timeouts, names
from sctplab.spec import outages
from sctplab.spec.model import Event, RunSpec
from sctplab.spec.outages import Outage
from sctplab.spec.scenario import Choice
from sctplab.spec.schema import At, build, plain

SEEDS = range(1, 201)
CUT = {"action": "cut", "direction": "both"}
DRAWN = Path(__file__).parent / "golden" / "flaps.json"  # seed -> what was drawn for a patched kernel


def drawn(seed: int) -> tuple[RunSpec, list[Outage]]:
    spec = flaps.spec(seed, "patched", Choice())
    return spec, flaps.schedule(Draw(flaps.NAME, seed), spec.topology)


def test_a_spec_follows_from_its_seed() -> None:
    one, again, other = (flaps.spec(seed, "patched", Choice()) for seed in (7, 7, 8))
    assert one == again
    assert one.events != other.events and one.topology != other.topology


def holds(whole: Any, part: Any) -> bool:
    """Whether WHOLE says what PART says, in the same order; it may have more keys."""
    if isinstance(part, dict):
        common = [key for key in whole if key in part]
        return common == list(part) and all(holds(whole[key], part[key]) for key in part)
    if isinstance(part, list):
        return len(whole) == len(part) and all(map(holds, whole, part))
    return bool(whole == part)


@pytest.mark.parametrize("seed", ["1", "17"])
def test_a_seed_means_the_same_for_ever(seed: str) -> None:
    assert holds(plain(flaps.spec(int(seed), "patched", Choice())), json.loads(DRAWN.read_text())[seed])


def test_kernels_differ_in_settings_only() -> None:
    stock, patched = (flaps.spec(7, kernel, Choice()) for kernel in ("stock", "patched"))
    assert stock.sysctl.host1.keys() < patched.sysctl.host1.keys()
    assert replace(patched, kernel="stock", sysctl=stock.sysctl) == stock


@pytest.mark.parametrize("seed", range(1, 21))
def test_a_spec_survives_its_file(seed: int) -> None:
    spec = flaps.spec(seed, "patched", Choice())
    assert build(RunSpec, plain(spec), At("spec", "")) == spec


def test_everything_is_mended_before_the_flows_end() -> None:
    for seed in SEEDS:
        spec, broken = drawn(seed)
        end_s = max(event.at_s for event in spec.events)
        assert all(flow.duration_s and flow.duration_s > end_s for flow in spec.flows)
        assert sum(event.action in outages.MENDS for event in spec.events) == len(broken)
        assert sum(event.action in outages.MENDS.values() for event in spec.events) == len(broken)


def test_most_seeds_leave_one_path_up_and_some_do_not() -> None:
    gaps = sum(bool(outages.all_down(broken, names(spec.topology))) for spec, broken in map(drawn, SEEDS))
    assert 0.1 * len(SEEDS) < gaps < 0.4 * len(SEEDS)


def test_outages_of_a_path_follow_each_other() -> None:
    for seed in SEEDS:
        spec, broken = drawn(seed)
        for name in names(spec.topology):
            own = [outage for outage in broken if outage.path == name]
            assert all(one.start_s < one.end_s < later.start_s for one, later in pairwise(own))


def test_when_no_path_is_up() -> None:
    broken = [
        Outage("a", 1, 4, CUT),
        Outage("b", 3, 5, CUT),
        Outage("a", 4.5, 9, CUT),
        Outage("b", 9, 10, CUT),
    ]
    assert outages.all_down(broken, ["a", "b"]) == [(3, 4), (4.5, 5)]
    assert outages.all_down(broken, ["a", "b", "c"]) == []


@pytest.mark.parametrize(
    ("happened", "expected"),
    [
        ([Event(10, "cut", "a")], [(10, math.inf)]),
        ([Event(10, "change", "a", values={"delay_ms": 5})], []),
        ([Event(1, "cut", "a"), Event(2, "change", "a"), Event(3, "heal", "a")], [(1, 2)]),
        ([Event(4, "heal", "a"), Event(2, "carrier-down", "a"), Event(1, "cut", "a")], [(1, math.inf)]),
        (
            [Event(1, "address-del", "a"), Event(2, "address-add", "a"), Event(3, "cut", "a")],
            [(1, 2), (3, math.inf)],
        ),
        (
            [
                Event(1, "cut", "a", "forward"),
                Event(2, "cut", "a", "reverse"),
                Event(3, "heal", "a", "forward"),
                Event(4, "heal", "a"),
            ],
            [(1, 4)],
        ),
    ],
)
def test_outages_last_from_what_breaks_to_what_mends(
    happened: list[Event], expected: list[tuple[float, float]]
) -> None:
    assert [(one.start_s, one.end_s) for one in outages.of_events(happened)] == expected


def test_the_limit_is_stocks_where_the_sender_can_find_the_path_that_is_up() -> None:
    for seed in SEEDS:
        spec, broken = drawn(seed)
        settings = spec.sysctl.host1
        searches = (
            settings["net.sctp.dormant_policy"] == "hop" or settings["net.sctp.failover_heartbeat"] == "1"
        )
        one_is_up = not outages.all_down(broken, names(spec.topology))
        assert (settings["net.sctp.association_max_retrans"] == "10") == (searches and one_is_up)


def test_a_limit_that_no_sender_reaches() -> None:
    assert most_timeouts(paths=2, seconds=10, rto_min_ms=100) > 200
