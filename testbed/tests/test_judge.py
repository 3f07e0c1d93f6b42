# SPDX-License-Identifier: GPL-2.0
"""Reasons that explain a wait, and records with complaints. Expected figures are worked out by hand."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sctplab.measure import judge
from sctplab.plan import expected_gap
from sctplab.random import cmt
from sctplab.spec.model import Direction, Event, Flow, HostSettings, RunSpec, Topology
from sctplab.spec.model import Path as LinkPath
from sctplab.spec.scenario import Choice
from sctplab.spec.schema import plain
from tests.lab_run import lab

# A full packet takes 12.112 ms, so a full queue of 20 takes 242.24 ms.
LINK = Direction(1, 20, queue_pkts=20)
SETTINGS = {"rto_min": 500, "rto_initial": 500, "rto_max": 2000, "hb_interval": 1000, "path_max_retrans": 2}
FLOW = Flow("flow1", size_mb=1.4, sack_delay_ms=100)
ROUND_TRIP_S = 0.24224 + 0.032112 + 0.1


def spec(*events: Event, flow: Flow = FLOW, settings: dict[str, int] | None = None) -> RunSpec:
    paths = tuple(LinkPath(name, LINK, LINK) for name in ("path1", "path2"))
    values = {f"net.sctp.{name}": str(value) for name, value in {**SETTINGS, **(settings or {})}.items()}
    return replace(
        cmt.spec(1, "patched", Choice()),
        topology=Topology(paths),
        flows=(flow,),
        events=events,
        sysctl=HostSettings(values, values),
    )


def outage(path: str, start_s: float, end_s: float) -> tuple[Event, Event]:
    return Event(start_s, "cut", path), Event(end_s, "heal", path)


def costs(run: RunSpec, begin_s: float, gap_s: float, timeouts: int = 0) -> dict[str, float]:
    return dict(expected_gap.reasons(run, run.flows[0], (begin_s, begin_s + gap_s), timeouts))


def test_round_trips_end_in_an_empty_and_in_a_full_queue() -> None:
    found = expected_gap.round_trips(spec(), FLOW, spec().topology.paths[0])
    assert found == pytest.approx((0.04, ROUND_TRIP_S))


def test_opposite_flows_fill_the_way_back_too() -> None:
    run = replace(spec(), flows=(FLOW, replace(FLOW, name="flow2", reverse=True)))
    assert expected_gap.round_trips(run, FLOW, run.topology.paths[0])[1] == pytest.approx(2 * 0.24224 + 0.1)


def test_the_timeout_is_that_of_round_trips_that_vary_most() -> None:
    run = spec()
    assert expected_gap.rto(run, FLOW, run.topology.paths[0]) == pytest.approx(
        ROUND_TRIP_S + 4 * (ROUND_TRIP_S - 0.04)
    )
    capped = spec(settings={"rto_max": 1000})
    assert expected_gap.rto(capped, FLOW, capped.topology.paths[0]) == 1


def test_a_chunk_of_a_clean_path_may_be_lost_twice() -> None:
    """1000 packets: three times in a row 1e-9, in one of them 1e-6; twice 1e-3."""
    assert expected_gap.losses_in_a_row(spec(), FLOW) == 2


def test_losses_explain_no_more_than_the_timeouts_that_were_counted() -> None:
    first = expected_gap.rto(spec(), FLOW, spec().topology.paths[0])
    none, one, many = (costs(spec(), 1, 1, timeouts)["losses"] for timeouts in (0, 1, 500))
    assert none == 0
    assert one == pytest.approx(1.1 * first)
    assert many == pytest.approx(1.1 * (first + 2))


@pytest.mark.parametrize(
    ("settings", "timeouts"),
    [
        ({}, 1),
        ({"pf_retrans": 1}, 2),
        ({"pf_enable": 0}, 3),
        ({"pf_retrans": 9}, 3),
        ({"pf_enable": 0, "path_max_retrans": 0}, 1),
    ],
)
def test_a_path_is_left_when_it_is_potentially_failed_or_inactive(
    settings: dict[str, int], timeouts: int
) -> None:
    assert expected_gap.timeouts_until_left(spec(settings=settings)) == timeouts


def test_an_outage_explains_the_gaps_that_it_overlaps() -> None:
    run = spec(*outage("path2", 3, 4))
    cost = ROUND_TRIP_S + 1.1 * expected_gap.rto(run, FLOW, run.topology.paths[1])
    assert costs(run, 3.5, 1)["path2 down at 3 s"] == pytest.approx(cost)
    assert "path2 down at 3 s" in costs(run, 4.5, 1)
    assert "path2 down at 3 s" not in costs(run, 1, 1.9)
    assert "path2 down at 3 s" not in costs(run, 4 + cost, 1)


def test_a_cut_that_nothing_heals_explains_every_later_gap() -> None:
    run = spec(Event(3, "cut", "path2"))
    assert "path2 down at 3 s" in costs(run, 80, 1)
    assert expected_gap.blind_moments(run) == []
    cut = spec(Event(3, "cut", "path2"), Event(5, "cut", "path1"))
    assert expected_gap.blind_moments(cut) == [(5, math.inf)]


def test_an_outage_of_another_flows_path_explains_nothing() -> None:
    run = spec(*outage("path2", 3, 4), flow=replace(FLOW, paths=("path1",)))
    assert costs(run, 3.5, 1).keys() == {"pace and round trips", "losses"}


def test_a_path_that_has_just_come_back_is_not_known_to_be_up() -> None:
    """A heartbeat may take hb_interval and one and a half RTO.Max (1 + 3 s), a probe 3 s; a tenth more."""
    run = spec(*outage("path1", 1, 5), *outage("path2", 6, 20))
    assert expected_gap.blind_moments(run) == [(6, pytest.approx(5 + 1.1 * 4 + ROUND_TRIP_S))]
    assert expected_gap.blind_moments(spec(*outage("path1", 1, 5), *outage("path2", 10, 20))) == []
    probing = spec(*outage("path1", 1, 5), *outage("path2", 6, 20), settings={"failover_heartbeat": 1})
    assert expected_gap.blind_moments(probing) == [(6, pytest.approx(5 + 1.1 * 3 + ROUND_TRIP_S))]


def record(run: RunSpec, goodput_mbit: float = 1.0, gap_s: float = 0.1, **more: Any) -> dict[str, Any]:
    """As much of a record as is judged; the gap begins 2 s after the start."""
    return {
        "format": 1,
        "status": "ok",
        "reason": "",
        "spec": plain(run),
        "start_t": 1000.0,
        "metrics": {"goodput_mbit": goodput_mbit},
        "counters": {"host1": {"SctpT3RtxExpireds": 0}, "host2": {}},
        "flows": [{"name": "flow1", "receiver": {"max_gap_s": gap_s, "max_gap_t": 1002.0}}],
        **more,
    }


def judged(folder: Path, *records: dict[str, Any]) -> tuple[list[str], str]:
    """(complaints, counted)"""
    for number, one in enumerate(records):
        (folder / f"{number}.json").write_text(json.dumps(one))
    verdict = judge.judge(folder)
    return list(verdict.complaints), verdict.counted


def test_a_wait_without_a_reason_is_a_complaint(tmp_path: Path) -> None:
    told, counted = judged(tmp_path, record(spec()), record(spec(), gap_s=4))
    assert len(told) == 1 and "flow1: nothing arrived for 4.00 s at 2.00 s; explained: pace" in told[0]
    assert counted == "2 runs, 0 comparisons; 1 complaints"


def test_a_single_message_waits_for_no_other(tmp_path: Path) -> None:
    one = record(spec())
    one["flows"] = [{"name": "flow1", "receiver": {}}]
    assert judged(tmp_path, one)[0] == []


def test_the_same_wait_in_an_outage_is_none(tmp_path: Path) -> None:
    slow = {"pf_enable": 0, "path_max_retrans": 5}
    assert judged(tmp_path, record(spec(*outage("path1", 2, 9), settings=slow), gap_s=4))[0] == []


def test_the_waits_of_a_single_path_are_not_judged(tmp_path: Path) -> None:
    assert judged(tmp_path, record(cmt.alone(spec(), "path1"), gap_s=40))[0] == []


def test_a_run_that_is_not_ok_is_a_complaint(tmp_path: Path) -> None:
    told, _ = judged(tmp_path, record(spec(), status="failed", reason="kernel: WARNING: CPU"))
    assert len(told) == 1 and told[0].endswith(": failed: kernel: WARNING: CPU")


def test_the_best_path_alone_is_the_measure(tmp_path: Path) -> None:
    whole = spec()
    alone = [cmt.alone(whole, name) for name in ("path1", "path2")]
    slow = [record(whole, 8.9), record(alone[0], 10), record(alone[1], 5)]
    told, counted = judged(tmp_path, *slow)
    assert len(told) == 1 and "8.900 Mbit/s over all paths, 10.000 over path1: 0.89 of it" in told[0]
    assert counted == "3 runs, 1 comparisons, lowest 0.890; 1 complaints"
    assert judged(tmp_path, record(whole, 9.1))[0] == []


def test_the_means_over_the_series_of_losses_count(tmp_path: Path) -> None:
    whole = [cmt.with_losses(spec(), losses) for losses in (0, 1)]
    alone = [cmt.alone(one, "path1") for one in whole]
    records = [record(whole[0], 8), record(whole[1], 10), record(alone[0], 9), record(alone[1], 9)]
    assert judged(tmp_path, *records)[1] == "4 runs, 1 comparisons, lowest 1.000; 0 complaints"
    worse = [record(whole[0], 8), record(whole[1], 8), record(alone[0], 9), record(alone[1], 9)]
    assert "0.89 of it, expected at least 0.9 (means of 2 series of losses)" in judged(tmp_path, *worse)[0][0]
    assert lab("judge", "--behind", str(tmp_path)).stdout == "1\n"


def test_seeds_and_kernels_do_not_race_each_other(tmp_path: Path) -> None:
    alone = cmt.alone(spec(), "path1")
    others = (replace(alone, seed=2), replace(alone, kernel="stock"))
    told, _ = judged(tmp_path, record(spec(), 1), *(record(other, 10) for other in others))
    assert told == []


def test_the_command_tells_and_fails(tmp_path: Path) -> None:
    judged(tmp_path, record(spec()))
    assert (lab("judge", str(tmp_path)).returncode, lab("judge", str(tmp_path)).stdout) == (
        0,
        "1 runs, 0 comparisons; 0 complaints\n",
    )
    judged(tmp_path, record(spec(), gap_s=4))
    assert lab("judge", str(tmp_path)).returncode == 1
    nothing = lab("judge", str(tmp_path / "none"))
    assert nothing.returncode == 2 and nothing.stderr.count("\n") == 1
