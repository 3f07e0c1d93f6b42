# SPDX-License-Identifier: GPL-2.0
"""When and where a receiver acknowledges what comes over several paths: net.sctp.cmt_sack."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import ceil, log2

import pytest
from sctplab.spec.model import Topology
from tests.cmt_run import (
    COUNT_BITS,
    Lab,
    Seen,
    bulk,
    longest_pause_s,
    open_lab,
    path,
    paths,
    spec,
    steady,
    with_settings,
)

pytestmark = pytest.mark.kernel
Look = Callable[[str], Seen]  # by the mode
SACK_DELAY_S, TICK_S = 0.2, 0.01
FIRST_WINDOW_B = 4380  # RFC 9260 7.2.1
MODES = ["standard", "delayed", "per-path"]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with open_lab(tmp_path_factory) as opened:
        yield opened


@pytest.fixture
def full(lab: Lab) -> Look:
    """Two paths full of data, one much longer, so that there is always a gap."""
    topology = paths(10, 60, rate_mbit=2)
    return lambda mode: lab.see(spec(topology, bulk(2), {"cmt_sack": mode}))


@pytest.fixture
def lone(lab: Lab) -> Look:
    """One packet at a time, on this path and on that."""
    return lambda mode: lab.see(spec(paths(10, 60), steady(20, 500), {"cmt_sack": mode}))


def arrived(seen: Seen, where: str | None = None) -> int:
    return sum(one.kind == "DATA" and where in (None, one.path) for one in seen.answers())


def sacked(seen: Seen, where: str | None = None) -> int:
    return sum(where in (None, one.path) for one in seen.sacks())


def after_joining(seen: Seen) -> float:
    """Since when both paths carry data, at the receiver; in ns."""
    return next(one.time_ns for one in seen.answers() if one.path == "path2" and one.kind == "DATA")


def counts(seen: Seen) -> list[int]:
    """The number of packets that each SACK answers, by its flags."""
    return [(one.flags & COUNT_BITS) >> 6 for one in seen.sacks()]


def test_standard_answers_every_packet_while_there_is_a_gap(full: Look) -> None:
    seen = full("standard")
    since = after_joining(seen)
    later = [one for one in seen.answers() if one.time_ns > since]
    gapped = [one for one in later if one.kind == "SACK" and one.gaps]
    assert len(gapped) > 0.9 * sum(one.kind == "DATA" for one in later)
    assert {one.flags for one in seen.sacks()} == {0}


@pytest.mark.parametrize("mode", ["delayed", "per-path"])
def test_others_answer_every_second_packet_in_spite_of_gaps(mode: str, full: Look) -> None:
    seen = full(mode)
    assert sum(bool(one.gaps) for one in seen.sacks()) > 100
    assert sacked(seen) == pytest.approx(arrived(seen) / 2, rel=0.05)


def test_delayed_says_how_many_packets_it_answers(full: Look) -> None:
    """At the end a SHUTDOWN may answer two more."""
    seen = full("delayed")
    assert set(counts(seen)) <= {1, 2}
    assert 0 <= arrived(seen) - sum(counts(seen)) <= 2
    assert {one.flags & ~COUNT_BITS for one in seen.sacks()} == {0}


def test_delayed_takes_the_paths_in_turn(full: Look) -> None:
    """Not that of the last packet, which may be the longer one for hundreds of SACKs."""
    seen = full("delayed")
    brought: set[str] = set()
    last, both, good = "", 0, 0
    for one in seen.answers():
        if one.kind == "DATA":
            brought.add(one.path)
            continue
        if len(brought) == 2:
            both += 1
            good += one.path != last
        last, brought = one.path, set()
    assert both > 100
    assert good > 0.95 * both


def test_per_path_answers_every_second_packet_of_each_path_over_that_path(full: Look) -> None:
    seen = full("per-path")
    for name in ("path1", "path2"):
        assert sacked(seen, name) == pytest.approx(arrived(seen, name) / 2, rel=0.05)
    waiting = {"path1": 0, "path2": 0}
    good = 0
    for one in seen.answers():
        if one.kind == "DATA":
            waiting[one.path] += 1
            continue
        good += waiting[one.path] == 2
        waiting[one.path] = 0
    assert good > 0.95 * sacked(seen)


@pytest.mark.parametrize("mode", ["delayed", "per-path"])
def test_half_the_sacks_double_a_window_in_a_round_trip(mode: str, lab: Lab) -> None:
    """In slow start, which is all that this transfer is."""
    delays_ms, size_b = (100, 110), 1e6
    seen = lab.see(spec(paths(*delays_ms, rate_mbit=100), bulk(size_b / 1e6), {"cmt_sack": mode}))
    rounds = ceil(log2(1 + size_b / (len(delays_ms) * FIRST_WINDOW_B)))
    assert seen.record["metrics"]["transfer_s"] < rounds * 2 * max(delays_ms) / 1e3


@pytest.mark.parametrize("mode", ["delayed", "per-path"])
def test_no_burst_waits_for_a_program_that_wants_few_sacks(mode: str, lab: Lab) -> None:
    """One for ten packets: a path sends fewer at once."""
    rarely = bulk(8, sack_freq=10, sack_delay_ms=500)
    seen = lab.see(spec(paths(10, 40, rate_mbit=20), rarely, {"cmt_sack": mode}))
    assert longest_pause_s(seen.sent) < 0.08


@pytest.mark.parametrize("mode", MODES)
def test_a_lone_packet_is_answered_within_the_sack_delay(mode: str, lone: Look) -> None:
    seen = lone(mode)
    answers = seen.answers()
    for number, one in enumerate(answers):
        if one.kind != "DATA":
            continue
        answer = next(later for later in answers[number:] if later.kind == "SACK")
        assert answer.time_ns - one.time_ns <= (SACK_DELAY_S + 2 * TICK_S) * 1e9
        assert mode != "per-path" or answer.path == one.path


@pytest.mark.parametrize("mode", ["standard", "per-path"])
def test_sacks_that_overtake_each_other_do_no_harm(mode: str, lab: Lab) -> None:
    """While a loss keeps the cumulative TSN where it is, those of the short path are newer and come first."""
    short, long = paths(10, 60, rate_mbit=2).paths
    lossy = replace(short, forward=replace(short.forward, loss_pct=2))
    flow = bulk(2, sndbuf_kb=64)  # keeps the queues short
    seen = lab.see(spec(Topology((lossy, long)), flow, {"cmt_sack": mode}))
    assert seen.counter("SctpMpStaleSacks") > 0
    assert seen.arrived_twice == 0


@pytest.mark.parametrize("mode", ["delayed", "per-path"])
def test_a_network_that_reorders_sacks_causes_no_retransmission(mode: str, lab: Lab) -> None:
    both = paths(10, 60, rate_mbit=2)
    mixed = [
        replace(one, reverse=replace(one.reverse, delay_ms=100, jitter_ms=50, reorder_pct=30))
        for one in both.paths
    ]
    assert lab.see(spec(Topology(tuple(mixed)), bulk(1), {"cmt_sack": mode})).sent_again == 0


@pytest.mark.parametrize("mode", ["delayed", "per-path"])
def test_one_path_is_answered_as_stock_does(mode: str, lab: Lab) -> None:
    """With losses: at once when there is a gap. Every packet at the same time."""
    lossy = spec(Topology((path(1, 10, 5, loss_pct=2),)), bulk(1))
    # As many settings for both kernels: to write one takes a moment of virtual time.
    stock = with_settings(replace(lossy, kernel="stock"), rto_min="1000", rto_max="60000")
    assert lab.differ(stock, with_settings(lossy, cmt="1", cmt_sack=mode)) == ""
