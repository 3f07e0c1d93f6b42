# SPDX-License-Identifier: GPL-2.0
"""Metrics from what the agent brings back."""

import json
from dataclasses import replace
from typing import Any

import pytest
from sctplab.measure import collect
from sctplab.spec.model import Direction, Event, Flow, Path, RunSpec
from tests.lab_run import small_spec

LINK = Direction(rate_mbit=10)


@pytest.mark.parametrize(
    ("kind", "family", "message_b", "share"),
    [
        ("sctp", "ipv4", 1400, 1400 / 1462),
        ("sctp", "ipv6", 1400, 1400 / 1482),
        ("sctp", "ipv4", 1000, 1000 / 1062),
        ("sctp", "ipv4", 1452, 1452 / 1514),
        ("sctp", "ipv4", 9000, 1452 / 1514),  # fragments fill their packets
        ("sctp", "ipv4", 1397, 1397 / 1462),  # padded to 1400
        ("sctp", "ipv4", 100, 12 * 100 / (46 + 12 * 116)),  # 12 chunks share a packet
        ("usrsctp", "ipv4", 1400, 1400 / 1470),  # in UDP
        ("sctp-to-usrsctp", "ipv6", 1400, 1400 / 1490),
        ("tcp", "ipv4", 1400, 1448 / 1514),
        ("mptcp", "ipv6", 1400, 1428 / 1514),
    ],
)
def test_payload_share(kind: str, family: str, message_b: int, share: float) -> None:
    path = Path("path1", LINK, LINK, family=family)
    assert collect.payload_share(kind, path, message_b) == pytest.approx(share)


def lines(*events: dict[str, Any]) -> dict[str, Any]:
    return {"exit": 0, "output": "".join(json.dumps(event) + "\n" for event in events)}


def result(receiver: list[dict[str, Any]]) -> dict[str, Any]:
    sent = {"event": "result", "role": "send", "bytes": 1000000, "first_t": 100.0, "last_t": 109.0,
            "association_stats": {"rtx_chunks": 25, "sacks_in": 400}}  # fmt: skip
    got = {"event": "result", "role": "recv", "bytes": 1000000, "first_t": 100.0, "last_t": 108.0,
           "max_message_delay_s": 1.5, "content": "ok", "order": "ok"}  # fmt: skip
    flow = {"name": "flow1", "sender": lines(sent), "receiver": lines(*receiver, got)}
    return {"start_t": 100.0, "flows": [flow], "samples": []}


def measured(spec: RunSpec, *receiver: dict[str, Any]) -> dict[str, float]:
    counters = {"host1": {"SctpT3RtxExpireds": 2, "SctpFastRetransmits": 7, "SctpOutOrderChunks": 500}}
    paths = [{"name": "path1", "forward": {"tx_bytes": 900000}, "reverse": {"tx_bytes": 1}}]
    return collect.metrics(spec, result(list(receiver)), counters, paths)


def test_bulk_metrics() -> None:
    found = measured(small_spec())
    assert found["transfer_s"] == 8 and found["goodput_mbit"] == 1
    assert found["capacity_share"] == pytest.approx(1 / (2 * 20 * 1400 / 1462))
    assert (found["t3_timeouts"], found["fast_rtx"], found["sacks"]) == (2, 7, 400)
    assert found["rtx_ratio"] == 0.05
    assert found["wire_mbit.path1"] == pytest.approx(0.9)
    assert found["max_message_delay_s"] == 1.5
    assert "failover_s" not in found and "wire_mbit.path2" not in found


def test_failover_counts_from_the_cut_to_the_first_message_sent_after_it() -> None:
    log = [
        {"event": "message", "sent": 101.9, "received": 102.5, "delay_us": 600000},
        {"event": "message", "sent": 102.1, "received": 103.5, "delay_us": 1400000},
        {"event": "message", "sent": 102.2, "received": 103.6, "delay_us": 1400000},
    ]
    cut = replace(small_spec(), events=(Event(2, "cut", "path1"),))
    assert measured(cut, *log)["failover_s"] == pytest.approx(1.5)
    assert collect.series(cut, result(log))["message_delay"] == [[1.9, 0.6], [2.1, 1.4], [2.2, 1.4]]


def test_mean_and_percentile_of_logged_delays() -> None:
    log = [
        {"event": "message", "sent": 100 + n, "received": 101 + n, "delay_us": 1000 * n}
        for n in range(200, 0, -1)
    ]
    found = measured(small_spec(), *log)
    assert (found["mean_message_delay_s"], found["p99_message_delay_s"]) == (0.1005, 0.198)
    alone = measured(small_spec(), log[0])
    assert alone["mean_message_delay_s"] == alone["p99_message_delay_s"] == 0.2
    assert not {"mean_message_delay_s", "p99_message_delay_s"} & measured(small_spec()).keys()


def test_what_the_agent_saw_as_the_path_broke() -> None:
    raw = result([])
    paths = [{"address": where, "primary": where == "10.1.2.1"} for where in ("10.1.2.1", "10.2.2.1")]
    raw["flows"][0]["sender"] = lines({"event": "connected", "paths": paths})
    rows = [{"ADDR": "10.1.2.1", "RTO": "16"}, {"ADDR": "10.2.2.1", "RTO": "300"}]
    seen = {"paths": {"host1": rows}, "t3": {"host1": 7}}
    raw |= {"hz": 100, "before": {"host1": {"SctpT3RtxExpireds": 4}}}
    raw["events"] = [{"label": "heal path1 both", **seen}, {"label": "cut path1 both", **seen}]
    found = collect.metrics(small_spec(), raw, {"host1": {}}, [])
    assert (found["rto_ms"], found["early_timeouts"]) == (160, 3)


def unreachable(*addresses: str) -> list[dict[str, Any]]:
    states = ("potentially-failed", "unreachable", "available")
    return [{"event": "path", "address": where, "state": state} for where in addresses for state in states]


def told(spec: RunSpec, *sender: dict[str, Any], primary: str = "10.1.2.1") -> dict[str, float]:
    """Metrics of a run whose sender said this; a second flow, in the background, lost its primary too."""
    raw = result([])
    paths = [{"address": where, "primary": where == primary} for where in ("10.1.2.1", "10.2.2.1")]
    raw["flows"][0]["sender"] = lines({"event": "connected", "paths": paths}, *sender)
    raw["flows"].append({"name": "other", "sender": lines(*unreachable("10.1.2.1")), "receiver": lines()})
    spec = replace(spec, flows=(*spec.flows, Flow("other", background=True)))
    return collect.metrics(spec, raw, {"host1": {"SctpMpDormantMoves": 4}}, [])


def spurious(spec: RunSpec, *sender: dict[str, Any], primary: str = "10.1.2.1") -> float | None:
    return told(spec, *sender, primary=primary).get("spurious_failovers")


def test_only_the_primary_given_up_is_a_spurious_failover() -> None:
    assert spurious(small_spec(), *unreachable("10.1.2.1", "10.2.2.1", "10.1.2.1")) == 2
    assert spurious(small_spec()) == 0


def test_the_primary_is_what_the_senders_kernel_says() -> None:
    """Not the first path where that one lost the handshake."""
    lost = unreachable("10.1.2.1", "10.2.2.1", "10.1.2.1")
    assert spurious(small_spec(), *lost, primary="10.2.2.1") == 1


def test_failovers_are_not_spurious_where_something_happens_or_nothing_can() -> None:
    cut = replace(small_spec(), events=(Event(2, "cut", "path1"),))
    assert spurious(cut, *unreachable("10.1.2.1")) is None
    alone = replace(small_spec(), flows=(Flow("flow1", size_mb=1, paths=("path1",)),))
    assert spurious(alone, *unreachable("10.1.2.1")) is None


def test_dormant_is_when_the_last_path_fails_too() -> None:
    def change(number: int, state: str) -> dict[str, Any]:
        return {"event": "path", "address": f"10.{number}.2.1", "state": state}

    story = ((1, "unreachable"), (2, "unreachable"), (2, "unreachable"), (1, "available"), (1, "unreachable"))
    found = told(small_spec(), *(change(number, state) for number, state in story))
    assert (found["times_dormant"], found["dormant_moves"]) == (2, 4)
    assert told(small_spec(), *unreachable("10.1.2.1", "10.2.2.1"))["times_dormant"] == 0


def test_a_flow_without_end_has_no_goodput() -> None:
    unfinished = result([])
    unfinished["flows"][0]["sender"] = lines()
    assert collect.metrics(small_spec(), unfinished, {"host1": {}}, []) == {
        "max_message_delay_s": 1.5,
        "t3_timeouts": 0,
        "fast_rtx": 0,
        "spurious_failovers": 0,
        "any_spurious_failover": 0,
        "times_dormant": 0,
        "dormant_moves": 0,
    }


def test_iperf3_speaks_another_language() -> None:
    output = json.dumps(
        {
            "start": {"timestamp": {"timesecs": 100}},
            "end": {"sum_received": {"bytes": 5000000, "seconds": 4.0, "bits_per_second": 1e7}},
        },
        indent=1,
    )
    outcome = {"exit": 0, "output": output}
    assert collect.result_of(outcome)["last_t"] == 104
    assert collect.result_of({"exit": 1, "output": "iperf3: error"}) == {}
    spec = replace(small_spec(), flows=(Flow("flow1", kind="iperf3", size_mb=5),))
    raw = {
        "start_t": 100.0,
        "samples": [],
        "flows": [{"name": "flow1", "sender": outcome, "receiver": lines()}],
    }
    found = collect.metrics(spec, raw, {"host1": {}}, [])
    assert found["goodput_mbit"] == 10 and "rtx_ratio" not in found


def test_usrsctp_counts_for_itself() -> None:
    raw = result([])
    stats = {"data_chunks_out": 1000, "rtx_chunks": 25, "sacks_in": 400}
    sent = {"event": "result", "first_t": 100.0, "last_t": 109.0, "association_stats": stats}
    raw["flows"][0]["sender"] = lines(sent)
    spec = replace(small_spec(), flows=(Flow("flow1", kind="usrsctp", size_mb=1),))
    found = collect.metrics(spec, raw, {"host1": {"SctpOutOrderChunks": 7}}, [])
    assert (found["rtx_ratio"], found["sacks"]) == (0.025, 400)
    assert "t3_timeouts" not in found and found["goodput_mbit"] == 1


def test_long_series_keep_their_peaks() -> None:
    points = [[float(i), 9.0 if i == 4567 else 0.0] for i in range(10000)]
    thin = collect.thinned(points)
    assert len(thin) <= collect.SERIES_POINTS and [4567.0, 9.0] in thin


def test_deltas_leave_out_what_did_not_change() -> None:
    assert collect.deltas({"a": 1, "b": 2}, {"a": 1, "b": 5, "c": 0, "d": 1}) == {"b": 3, "d": 1}
