# SPDX-License-Identifier: GPL-2.0
"""Concurrent multipath transfer at the sender, packet by packet: which path, when, and what is sent again."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

import pytest
from sctplab.spec.model import Event, Flow, RunSpec, Topology
from tests.cmt_run import (
    MAX_BURST,
    MESSAGE_B,
    MTU,
    RTO_S,
    Lab,
    Seen,
    bulk,
    bursts,
    cell,
    longest_pause_s,
    metrics_of,
    most_at_once,
    open_lab,
    path,
    paths,
    spec,
    steady,
    with_settings,
)

pytestmark = pytest.mark.kernel
RUN = 1 / 8  # of its window is sent to a path in a row, when it was full
RATE = 2.0  # Mbit/s; 170 packets a second
MOST_AT_ONCE = math.ceil(MAX_BURST * MTU / MESSAGE_B)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with open_lab(tmp_path_factory) as opened:
        yield opened


def full(scheduler: str = "round-robin", size_mb: float = 2, **settings: str) -> RunSpec:
    """More to send than two paths carry; their SACKs never arrive in one moment."""
    chosen = {"cmt_scheduler": scheduler, **settings}
    return spec(paths(10, 23.7, rate_mbit=RATE), bulk(size_mb), chosen)


def light(scheduler: str, primary_ms: float, alternate_ms: float) -> RunSpec:
    """A message every 20 ms, a third of what one path carries."""
    topology = paths(primary_ms, alternate_ms, rate_mbit=RATE)
    return spec(topology, steady(300, 20), {"cmt_scheduler": scheduler})


def test_every_tsn_is_new_once_and_both_paths_carry_them(lab: Lab) -> None:
    seen = lab.see(full())
    assert sorted(one.tsn or 0 for one in seen.sent) == list(range(1, len(seen.sent) + 1))
    assert 0.4 < seen.share("path1") < 0.6
    assert seen.record["metrics"]["rtx_ratio"] == 0
    assert seen.counter("SctpMpCmtChunks") == sum(one.path == "path2" for one in seen.new)


@pytest.mark.parametrize("scheduler", ["round-robin", "primary-first", "lowest-rtt"])
def test_no_burst_is_longer_than_max_burst(scheduler: str, lab: Lab) -> None:
    seen = lab.see(full(scheduler))
    assert max(most_at_once(seen.sent, name) for name in ("path1", "path2")) <= MOST_AT_ONCE


@pytest.mark.parametrize("scheduler", ["round-robin", "primary-first", "lowest-rtt"])
def test_lost_sacks_cause_no_burst(scheduler: str, lab: Lab) -> None:
    """When one arrives after several were lost, it acknowledges more than Max.Burst packets."""
    deaf = {"direction": "reverse", "values": {"loss_pct": 60}}
    events = tuple(Event(0.5, "change", name, **deaf) for name in ("path1", "path2"))
    both = paths(10, 23.7, rate_mbit=RATE)
    seen = lab.see(spec(both, bulk(1), {"cmt_scheduler": scheduler}, events=events))
    for name in ("path1", "path2"):
        assert most_at_once(seen.new, name) <= MOST_AT_ONCE


def flights(seen: Seen, where: str) -> Iterator[tuple[int, int]]:
    """(time in ns, packets of this path under way) after each moment in which the sender sent or heard."""
    chunks = [one for one in seen.at["host1"] if one.kind in ("DATA", "SACK")]
    out: set[int] = set()
    for time_ns, group in bursts(chunks):
        for one in group:
            if one.kind == "SACK":
                out = {tsn for tsn in out if not reported(tsn, one.cum_tsn or 0, one.gaps)}
            elif one.path == where and one.tsn is not None:
                out.add(one.tsn)
        yield time_ns, len(out)


def reported(tsn: int, cum_tsn: int, gaps: tuple[tuple[int, int], ...]) -> bool:
    return tsn <= cum_tsn or any(first <= tsn <= last for first, last in gaps)


def test_primary_first_uses_the_others_when_the_primary_is_full(lab: Lab) -> None:
    """Nothing is lost, so its window only grows: full means as full as ever, but a packet and a run."""
    seen = lab.see(full("primary-first"))
    other = {one.time_ns for one in seen.new if one.path == "path2"}
    assert len(other) > 100
    most = 0
    for time_ns, flight in flights(seen, "path1"):
        most = max(most, flight)
        if time_ns in other:
            assert flight >= most * (1 - RUN) - 1


def test_primary_first_is_the_primary_where_that_is_enough(lab: Lab) -> None:
    """Its window grows beyond that within a second."""
    assert lab.see(light("primary-first", 10, 50)).share("path1", 1) == 1


def test_round_robin_takes_turns(lab: Lab) -> None:
    seen = lab.see(light("round-robin", 10, 10))
    assert seen.share("path1") == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize(("primary_ms", "alternate_ms", "best"), [(50, 10, "path2"), (10, 50, "path1")])
def test_lowest_rtt_is_the_fastest_where_that_is_enough(
    primary_ms: float, alternate_ms: float, best: str, lab: Lab
) -> None:
    """And when its window has grown."""
    seen = lab.see(light("lowest-rtt", primary_ms, alternate_ms))
    assert seen.share(best, 1) == 1


@pytest.mark.parametrize(("primary_ms", "alternate_ms"), [(10, 40), (40, 10)])
@pytest.mark.parametrize("rule", ["standard", "per-path"])
def test_a_message_now_and_then_is_as_fast_as_the_shortest_path(
    primary_ms: float, alternate_ms: float, rule: str, lab: Lab
) -> None:
    """With the default scheduler, once that path is known: it is asked when the association begins."""
    topology = paths(primary_ms, alternate_ms, rate_mbit=20)
    seen = lab.see(spec(topology, steady(1000, 5), {"cmt_sack": rule}))
    assert seen.record["flows"][0]["receiver"]["p95_message_delay_s"] < 0.012


@pytest.mark.parametrize("buffer_kb", [64, 1024, 16384])
def test_a_path_that_is_slow_makes_no_transfer_slower(buffer_kb: int, lab: Lab) -> None:
    """It is left alone where buffers have no room for what its data waits for; the largest have.

    At the start nothing is known of it, and the packets of its first window may be waited for.
    """
    fast, slow = path(1, 10, 10), path(2, 200, 0.5)
    first_s = 0.2 + 3 * 1500 * 8 / 0.5e6
    flow = bulk(2, sndbuf_kb=buffer_kb, rcvbuf_kb=buffer_kb)
    alone, both = (lab.see(spec(Topology(some), flow)) for some in ((fast,), (fast, slow)))
    assert both.record["metrics"]["transfer_s"] < alone.record["metrics"]["transfer_s"] + first_s
    assert both.counter("SctpMpSchedWaits") > 0 or buffer_kb == 16384


def unlike(split: str) -> RunSpec:
    return spec(
        paths(5, 200, rate_mbit=RATE),
        bulk(1.5),
        {"cmt_loss_detection": "missing-reports", "cmt_split_fast_rtx": split},
    )


def test_delays_that_differ_cause_no_retransmission(lab: Lab) -> None:
    seen = lab.see(unlike("1"))
    assert (seen.sent_again, seen.record["metrics"]["rtx_ratio"]) == (0, 0)
    assert seen.share("path2") > 0.2


def test_without_the_split_report_they_do(lab: Lab) -> None:
    seen = lab.see(unlike("0"))
    assert seen.sent_again > 50
    assert seen.counter("SctpFastRetransmits") > 20


def blackout(start_s: float, for_s: float) -> tuple[Event, ...]:
    """Nothing that is sent over either path arrives for a while; what the receiver sends does."""
    return tuple(
        Event(at_s, "change", name, "forward", values={"loss_pct": loss})
        for at_s, loss in ((start_s, 100), (start_s + for_s, 0))
        for name in ("path1", "path2")
    )


def short_queues(*events: Event) -> RunSpec:
    """More to send than two paths carry, but buffers so small that data leaves all the time."""
    chosen = {"failover_heartbeat": "1"}
    return spec(paths(10, 23.7, rate_mbit=RATE), bulk(2, sndbuf_kb=64), chosen, events=events)


def test_losses_on_both_paths_at_once_are_repaired_without_a_timeout(lab: Lab) -> None:
    seen = lab.see(short_queues(*blackout(1.5, for_s=0.04)))
    assert seen.sent_again > 4
    assert seen.record["metrics"]["t3_timeouts"] == 0
    assert seen.counter("SctpMpFastRecoveries") == 2


def test_a_retransmission_that_is_lost_is_found_without_a_timeout(lab: Lab) -> None:
    """Queues overflow at the end of slow start, and the hole shuts the window: nothing new tells of it."""
    metrics = metrics_of(lab.bench, cell("cmt-cut", "cmt", d2_ms=50, cut_s=600, heal_s=600))
    assert metrics["fast_rtx"] > 0
    assert metrics["t3_timeouts"] == 0 and metrics["max_gap_s"] < RTO_S


TURNS = {"cmt_scheduler": "round-robin"}
I_BIT = 0x08  # of a DATA chunk's flags: the receiver is not to delay the SACK
ROUND_TRIP_S = 0.1  # is shorter, the longest SACK delay is longer


def last_but_two_lost() -> RunSpec:
    """A message every 20 ms, on either path in turn; one that is nearly the last never arrives."""
    topology = paths(10, 10, rate_mbit=RATE)
    return spec(topology, steady(100, 20), TURNS, events=blackout(1.931, for_s=0.02))


def test_a_loss_near_the_end_waits_for_no_timeout(lab: Lab) -> None:
    """Two packets follow, one on each path; a probe may ask for the very last."""
    seen = lab.see(last_but_two_lost())
    lost, *probes = seen.again
    assert seen.counter("SctpMpRackLost") == 1 and len(probes) == seen.counter("SctpMpLossProbes") <= 1
    (first,) = (one for one in seen.new if one.tsn == lost.tsn)
    assert lost.path == first.path and (lost.time_ns - first.time_ns) / 1e9 < 4 * ROUND_TRIP_S
    assert seen.record["metrics"]["t3_timeouts"] == 0


def test_a_retransmission_asks_for_a_sack_at_once(lab: Lab) -> None:
    """It closes the only gap, so the receiver would wait for a second packet."""
    seen = lab.see(last_but_two_lost())
    again = seen.again[0]
    assert again.flags & I_BIT
    late = [one for one in seen.at["host1"] if one.kind == "SACK" and (one.cum_tsn or 0) >= again.tsn]
    assert late[0].time_ns - again.time_ns < ROUND_TRIP_S * 1e9


SACK_DELAY_S = 0.2


def last_lost(delay_ms: float, sent_s: float, rtx_policy: str = "same", for_s: float = 0.2) -> RunSpec:
    """A message every 20 ms; the last of either path, sent after SENT_S, never arrives at first."""
    return spec(
        paths(delay_ms, delay_ms, rate_mbit=RATE),
        steady(100, 20),
        {"rtx_policy": rtx_policy, "cmt_scheduler": "round-robin"},
        events=blackout(sent_s, for_s),
    )


@pytest.mark.parametrize("rtx_policy", ["same", "alternate"])
def test_a_loss_at_the_very_end_waits_for_no_timeout(rtx_policy: str, lab: Lab) -> None:
    """No packet follows on its path: it is sent again there when its SACK is overdue, long before T3-rtx."""
    seen = lab.see(last_lost(10, sent_s=2.01, rtx_policy=rtx_policy))
    assert seen.sent_again == 2 == seen.counter("SctpMpLossProbes")
    assert seen.record["metrics"]["t3_timeouts"] == 0
    *first, again, other = seen.sent[-4:]
    assert {(one.tsn, one.path) for one in first} == {(one.tsn, one.path) for one in (again, other)}
    waited_s = (again.time_ns - first[0].time_ns) / 1e9
    # A smoothed round trip, and another or four deviations, which a SACK that was delayed has made larger.
    assert 2 * 0.02 + SACK_DELAY_S < waited_s < 0.03 + 4 * 0.015 + SACK_DELAY_S


def test_a_probe_whose_answer_would_come_after_the_timeout_is_not_sent(lab: Lab) -> None:
    """RTT 0.6 s, RTO.Min 1 s. T3-rtx sends all again that is outstanding on its path (RFC 9260 6.3.3 E3)."""
    seen = lab.see(last_lost(300, sent_s=3.666, for_s=0.6))
    assert seen.counter("SctpMpLossProbes") == 0
    assert {one.tsn for one in seen.again} == {one.tsn for one in seen.new if seen.seconds(one) > 3.666}
    took = {one.tsn: one.path for one in seen.new}
    for (tsn, over), times in Counter((one.tsn, one.path) for one in seen.again).items():
        assert times == 1 or (times == 2 and over != took[tsn]), "what the other one's timeout had sent there"
    assert seen.record["metrics"]["t3_timeouts"] > 0


def test_the_answer_to_a_probe_tells_of_all_that_was_lost_before_it(lab: Lab) -> None:
    """All that is on its way over both paths: one probe for each, and the shorter path takes the SACK."""
    seen = lab.see(short_queues(*blackout(1.44, for_s=0.16)))
    assert seen.counter("SctpMpLossProbes") == 2 and seen.record["metrics"]["t3_timeouts"] == 0
    probe, *others = (one for one in seen.again if one.path == "path2")
    assert len(others) > 10
    assert all(10 + 23.7 <= (one.time_ns - probe.time_ns) / 1e6 < 1000 * RTO_S for one in others)
    assert seen.counter("SctpMpFastRecoveries") == 2


def test_a_probe_into_a_path_that_is_cut_costs_nothing_once_it_heals(lab: Lab) -> None:
    """T3-rtx has seen to what was lost; what is acknowledged after that is no answer to the probe."""
    seen = lab.see(short_queues(Event(1.5, "cut", "path2"), Event(3, "heal", "path2")))
    assert seen.counter("SctpMpLossProbes") == 1 == seen.record["metrics"]["t3_timeouts"]
    assert seen.share("path2", 4) > 0.3
    assert seen.counter("SctpMpFastRecoveries") == 0
    assert all(seen.seconds(one) < 3 for one in seen.again)


CUT_S, HEAL_S = 4.0, 7.0
OTHER = {"path1": "path2", "path2": "path1"}
either = pytest.mark.parametrize("gone", OTHER)


def cut(gone: str) -> RunSpec:
    """A path is away for a while."""
    flow = Flow("main", duration_s=12, message_b=MESSAGE_B, message_log=True, sndbuf_kb=512)
    events = (Event(CUT_S, "cut", gone), Event(HEAL_S, "heal", gone))
    topology = paths(10, 23.7, rate_mbit=RATE, queue_pkts=60)
    return spec(topology, flow, {"failover_heartbeat": "1"}, events=events)


@either
def test_a_path_that_is_cut_does_not_hold_up_the_other(gone: str, lab: Lab) -> None:
    """New data pauses no longer than one timeout."""
    seen = lab.see(cut(gone))
    other = [one for one in seen.new if one.path == OTHER[gone] and seen.seconds(one) > 2]
    assert longest_pause_s(other) < RTO_S
    assert 0.4 < seen.share(gone, 2, CUT_S) < 0.6
    assert seen.share(gone, CUT_S + 2 * RTO_S, HEAL_S) == 0


@either
def test_only_the_timer_of_the_path_that_is_cut_expires(gone: str, lab: Lab) -> None:
    """The cumulative TSN stands still for as long as a timeout takes."""
    assert lab.see(cut(gone)).record["metrics"]["t3_timeouts"] == 1


@either
def test_what_timed_out_is_sent_again_once_and_over_the_path_that_is_left(gone: str, lab: Lab) -> None:
    """But for one packet, the probe that found the path silent."""
    seen = lab.see(cut(gone))
    again = [one for one in seen.again if CUT_S < seen.seconds(one) < HEAL_S]
    (probe,) = (one for one in again if one.path == gone)
    again.remove(probe)
    assert all(one.time_ns > probe.time_ns for one in again)
    lost = {one.tsn for one in seen.new if one.path == gone and CUT_S < seen.seconds(one) < HEAL_S}
    assert {one.path for one in again} == {OTHER[gone]}
    assert lost <= {one.tsn for one in again}
    assert len(again) == len({one.tsn for one in again}) <= len(lost) + 60  # and what was in the queue


@either
def test_a_path_that_heals_carries_data_again_after_one_probe(gone: str, lab: Lab) -> None:
    """Probes leave 0, 1, 3, 7 seconds after the timeout."""
    seen = lab.see(cut(gone))
    assert seen.record["metrics"]["return_s"] < 4 * RTO_S
    assert 0.3 < seen.share(gone, HEAL_S + seen.record["metrics"]["return_s"] + 1) < 0.7


def test_no_tsn_leaves_that_is_too_far_ahead_for_the_receiver(lab: Lab) -> None:
    """Its map holds 4096; small messages use them up while a lost one waits for a timeout.

    There are gaps from the beginning if the paths take turns and differ; without any, more are sent.
    """
    flow = Flow("main", duration_s=1.6, message_b=40, sndbuf_kb=8192)
    events = (Event(0.5, "cut", "path1"), Event(1, "heal", "path1"))
    seen = lab.see(spec(paths(10, 60, rate_mbit=2.5), flow, TURNS, events=events))
    ahead = acked = 0
    for _, group in bursts(list(seen.at["host1"])):
        acked = max([acked, *(one.cum_tsn or 0 for one in group if one.kind == "SACK")])
        ahead = max([ahead, *((one.tsn or 0) - acked for one in group)])
    assert 4000 < ahead <= 4096
    assert seen.counter("SctpMpTsnLimit") > 0


# Small messages

SMALL_B = 100
SMALL_CHUNK_B = 16 + SMALL_B
PACKET_CHUNKS = (MTU - 20 - 12) // SMALL_CHUNK_B  # of IPv4 and SCTP headers


def small(topology: Topology, nodelay: bool) -> RunSpec:
    """A program that always has more; its send buffer holds some forty kilobytes of such messages."""
    flow = Flow("main", size_mb=1, message_b=SMALL_B, sndbuf_kb=256, rcvbuf_kb=256, nodelay=nodelay)
    return spec(topology, flow, {"autocork": "1"})


def chunks_per_packet(seen: Seen) -> float:
    return len(seen.sent) / len({(one.path, one.packet) for one in seen.sent})


@pytest.mark.parametrize("nodelay", [False, True])
def test_small_messages_of_a_program_that_has_more_share_packets(nodelay: bool, lab: Lab) -> None:
    """Queues hold what the path does, in packets, so both paths lose again and again."""
    seen = lab.see(small(paths(10, 15, rate_mbit=5, queue_pkts=15), nodelay))
    assert seen.sent_again > 0
    assert chunks_per_packet(seen) > 0.75 * PACKET_CHUNKS


def test_small_messages_that_may_not_wait_do_not(lab: Lab) -> None:
    """A message every 2 ms, so that several are always on their way."""
    flow = Flow("main", messages=300, interval_ms=2, message_b=SMALL_B, nodelay=True)
    seen = lab.see(spec(paths(10, 15, rate_mbit=RATE), flow, {"autocork": "1"}))
    assert chunks_per_packet(seen) == 1


@pytest.mark.parametrize("cmt_sack", ["standard", "delayed", "per-path"])
def test_the_last_small_messages_wait_for_no_delayed_sack(cmt_sack: str, lab: Lab) -> None:
    """Any number may be left when its buffer is empty; a receiver may wait 0.2 s for a second packet."""
    for more in range(5):
        flow = Flow("main", messages=4000 + more, message_b=SMALL_B, sndbuf_kb=64, nodelay=True)
        seen = lab.see(spec(paths(1, 1.5), flow, {"cmt_sack": cmt_sack}))
        assert longest_pause_s(seen.new) < 0.1


# One path


@pytest.mark.parametrize("nodelay", [False, True])
def test_one_path_with_it_packs_small_messages_as_without(nodelay: bool, lab: Lab) -> None:
    off = with_settings(small(Topology((path(1, 10, 5, queue_pkts=25),)), nodelay), cmt="0")
    assert lab.differ(off, with_settings(off, cmt="1")) == ""


@pytest.mark.parametrize("scheduler", ["round-robin", "primary-first", "lowest-rtt", "redundant"])
def test_one_path_with_it_sends_what_it_sends_without(scheduler: str, lab: Lab) -> None:
    """With losses each way; every packet at the same time."""
    lossy = spec(Topology((path(1, 10, 5, loss_pct=2),)), bulk(1))
    off = with_settings(lossy, cmt="0", cmt_scheduler="round-robin")
    assert lab.differ(off, with_settings(lossy, cmt="1", cmt_scheduler=scheduler)) == ""
