# SPDX-License-Identifier: GPL-2.0
"""Paths that do not answer: what they are sent, how often they are asked, and when they are found again."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from sctplab.spec.model import Event, Flow, RunSpec, Topology
from tests.cmt_run import Lab, bulk, longest_pause_s, open_lab, path, spec, steady, with_settings

pytestmark = pytest.mark.kernel
RTT_S = 0.04
HEALED_S = 20.0
RTO_S = 1.0
FLOOR_S = 0.2  # from one HEARTBEAT of a path to the next, whatever the RTO
TICK_S = 0.01
HB_DISABLE = 1 << 1
NO_HEARTBEATS = struct.pack("=i128sIHIIIIBx", 0, bytes(128), 0, 0, 0, 0, HB_DISABLE, 0, 0).hex()


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with open_lab(tmp_path_factory) as opened:
        yield opened


def two(**second: Any) -> Topology:
    return Topology((path(1, 20, 20), path(2, 20, 20, **second)))


def test_an_address_that_has_never_answered_carries_no_data(lab: Lab) -> None:
    """The program has named it, and buffers are large enough for any path."""
    seen = lab.see(spec(two(loss_pct=100), bulk(4, sndbuf_kb=1024, rcvbuf_kb=1024)))
    assert {one.path for one in seen.sent} == {"path1"}
    assert longest_pause_s(seen.sent) < 2 * RTT_S


def test_an_address_whose_init_was_lost_waits_for_its_answer(lab: Lab) -> None:
    """And joins with it, long before the next hb_interval."""
    events = (Event(0, "cut", "path1"), Event(8, "heal", "path1"))
    flow = steady(1500, 10, sndbuf_kb=1024, rcvbuf_kb=1024)
    seen = lab.see(replace(spec(two(), flow), events=events))
    answered_s = next(
        seen.seconds(one)
        for one in seen.at["host1"]
        if (one.kind, one.path, one.direction) == ("HEARTBEAT_ACK", "path1", "reverse")
    )
    used_s = next(seen.seconds(one) for one in seen.sent if one.path == "path1")
    assert 8 < answered_s <= used_s < 8 + 1.5 * 3 * 2
    assert longest_pause_s(seen.sent) < 2 * RTT_S


TURNS = {"cmt": "1", "cmt_scheduler": "round-robin"}


def second_fault(interval_ms: float, seed: int, **settings: str) -> RunSpec:
    """A path is away for ten seconds; two seconds after it is back the other one fails."""
    events = (Event(10, "cut", "path1"), Event(HEALED_S, "heal", "path1"), Event(22, "cut", "path2"))
    flow = Flow("main", duration_s=45, message_b=200, interval_ms=interval_ms, nodelay=True, message_log=True)
    one = replace(spec(Topology((path(1, 20), path(2, 20))), flow), events=events, seed=seed)
    return with_settings(one, **settings)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("interval_ms", [20, 3000])
@pytest.mark.parametrize(
    "settings",
    [{"failover_heartbeat": "1"}, {**TURNS, "failover_heartbeat": "1"}, TURNS],
    ids=["failover_heartbeat", "both", "cmt"],
)
def test_a_path_that_is_back_is_found_when_the_other_fails(
    settings: dict[str, str], interval_ms: float, seed: int, lab: Lab
) -> None:
    """One timeout, one round trip: whoever sends a message waits no longer.

    With all data on one path its window is soon full after a cut; then a loss probe restarts T3-rtx.
    """
    record = lab.see(second_fault(interval_ms, seed, **settings)).record
    assert record["metrics"]["max_message_delay_s"] < 1.2 * RTO_S


def test_no_path_is_flooded_however_short_the_timeout(lab: Lab) -> None:
    """The next HEARTBEAT comes after HZ / 5 at the least, as without the setting."""
    short = {f"rto_{name}": "10" for name in ("min", "initial", "max")}
    flow = Flow("main", duration_s=10, message_b=200, interval_ms=20, nodelay=True, sack_delay_ms=0)
    one = replace(spec(Topology((path(1, 1), path(2, 1))), flow), events=(Event(2, "cut", "path1"),))
    seen = lab.see(with_settings(one, failover_heartbeat="1", **short))
    asked = [
        seen.seconds(one)
        for one in seen.at["host1"]
        if (one.kind, one.path, one.direction) == ("HEARTBEAT", "path1", "forward")
    ]
    late = [moment for moment in asked if moment > 3]
    assert len(late) > 10
    assert all(later - one >= FLOOR_S - TICK_S for one, later in pairwise(late))


@pytest.mark.parametrize(
    "settings", [{"cmt": "1"}, {"cmt": "1", "failover_heartbeat": "1"}], ids=["cmt", "both"]
)
def test_a_path_that_was_left_returns_although_the_program_wants_no_heartbeats(
    settings: dict[str, str], lab: Lab
) -> None:
    """In turns: by round trips the scheduler may well leave an equal path alone that nothing measures.

    A path whose window the cut made small is not given as much as before by a program that sends little.
    """
    flow = steady(2000, 10, sockopts=(f"sctp:9:{NO_HEARTBEATS}",))
    events = (Event(4, "cut", "path2"), Event(6, "heal", "path2"))
    one = replace(spec(two(), flow), events=events)
    seen = lab.see(with_settings(one, cmt_scheduler="round-robin", **settings))
    assert seen.share("path2", until_s=4) > 0.3
    assert seen.share("path2", since_s=15) > 0.1
