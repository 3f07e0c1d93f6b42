# SPDX-License-Identifier: GPL-2.0
"""failover-time --assoc: from an association and its socket to settings and a situation."""

from __future__ import annotations

from dataclasses import replace

import pytest
from failover.cli import main
from failover.live import (
    Live,
    chosen,
    inferred_rto_min,
    settings_of,
    situation_of,
    told,
    traffic,
    with_inodes,
)
from failover.predict import Prediction, Range, answer, predict
from failover.settings import Settings
from failover.situation import Situation
from pathview import netlink
from pathview.model import Association, Path
from sctpkernel.errors import Problem
from tests.test_pathview import DUMPED, recorded

USUAL = Situation(40, 40, 20, 200)
FIRST = Path(
    "10.1.0.2", "active", marks=("primary", "active"), error_limit=8, pf_limit=0, rto_ms=200,
    srtt_us=60_000, rttvar_us=10_000, rtt_min_us=40_000, pmtu=1500,
    out_packets=10, out_bytes=1280, out_chunks=10,
)  # fmt: skip
SECOND = Path("10.2.0.2", "active", marks=("retransmission",), srtt_us=70_000, out_chunks=0)
ONE = Association(3, 5000, 5001, "established", 2, (FIRST, SECOND), error_limit=16)
OPTIONS = {
    "nodelay": 0,
    "rto_min": 300,
    "rto_max": 4000,
    "rto_initial": 500,
    "failover_suspect": 1,
    "heartbeats": 1,
}


def later(chunks: int, size_b: int) -> Association:
    """ONE after so many messages, each in a packet."""
    moved = replace(
        FIRST,
        out_chunks=10 + chunks,
        out_packets=10 + chunks,
        out_bytes=1280 + chunks * (size_b + 28),
    )
    return replace(ONE, paths=(moved, SECOND))


def test_options_of_the_socket_come_before_those_of_the_host() -> None:
    found = settings_of(Live(ONE, {**OPTIONS, "dormant_policy": 1}), Settings())
    assert (found.rto_min, found.rto_max, found.failover_suspect, found.dormant_policy) == (
        300,
        4000,
        1,
        "hop",
    )
    assert (found.path_max_retrans, found.association_max_retrans, found.pf_retrans) == (8, 16, 0)
    assert found.hb_interval == Settings().hb_interval


@pytest.mark.parametrize(
    ("rto_ms", "srtt_us", "expected"),
    [(200, 60_000, 200), (1000, 60_000, 1000), (1300, 1_260_000, 1000), (3000, 60_000, 3000)],
)
def test_a_least_rto_is_inferred_without_the_socket(rto_ms: int, srtt_us: int, expected: int) -> None:
    assert inferred_rto_min(replace(FIRST, rto_ms=rto_ms, srtt_us=srtt_us), Settings()) == expected


def test_round_trips_and_traffic_are_those_seen() -> None:
    found = situation_of(Live(ONE, OPTIONS, 50.0, 90), Settings(), USUAL)
    assert (found.rtt_ms, found.alternate_rtt_ms, found.interval_ms, found.size_b) == (40, 70, 50, 90)
    assert (found.nodelay, found.heartbeats, found.sack_delay_ms) == (False, True, 200)
    slow = replace(ONE, paths=(replace(FIRST, srtt_us=340_000), SECOND))
    assert situation_of(Live(slow), Settings(), USUAL).sack_delay_ms == 300


def test_traffic_is_told_in_intervals_and_sizes() -> None:
    assert traffic(ONE, later(60, 90), 3.0) == (50.0, 90)
    assert traffic(ONE, ONE, 3.0) is None


def test_the_association_is_told_with_its_socket() -> None:
    lines = told(Live(ONE, OPTIONS, 50.0, 90), situation_of(Live(ONE, OPTIONS, 50.0, 90), Settings(), USUAL))
    assert "association 3, port 5000 to 5001: new data takes 10.1.0.2, RTT 40 ms" in lines[0]
    assert "every 50 ms; SCTP_NODELAY not set" in lines[1]
    assert "run as root" in told(Live(ONE), USUAL)[1]


def test_an_association_that_is_not_there_is_one_line() -> None:
    known = [(ONE, 1), (replace(ONE, assoc_id=4), 2)]
    assert chosen(known, 4, None)[1] == 2
    for identity, port, said in (
        (5, None, "--assoc: got 5, 0 associations; expected an established association: 3, 4"),
        (None, 5001, "--port: got 5001, 2 associations; expected one of several: 3, 4"),
        (None, 1, "--port: got 1, 0 associations"),
    ):
        with pytest.raises(Problem) as caught:
            chosen(known, identity, port)
        assert said in str(caught.value)


def test_an_association_that_changes_during_a_dump_is_one() -> None:
    ((one, inode),) = with_inodes([*netlink.messages(DUMPED), *netlink.messages(DUMPED)])
    assert (one, inode > 0) == (recorded(), True)


def test_nagle_waits_for_acknowledgments_or_a_full_packet() -> None:
    assert not USUAL.fills(13)
    assert USUAL.fills(15)
    waits = [predict(Settings(), replace(USUAL, lasted_s=5, nodelay=one), trials=3) for one in (True, False)]
    found = [one.max_message_delay_s for one in waits]
    assert found[0] and found[1]
    assert found[0].high < found[1].high


def test_an_answer_may_wait_twice() -> None:
    wait = Range(0.02, 0.05, 0.07)
    made = Prediction(None, wait, None, None, None, 0, 0, 0, ())
    assert answer(made, USUAL) == Range(0.04, 0.07, 0.14)
    assert answer(replace(made, max_message_delay_s=None), USUAL) is None


def test_a_program_is_known_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--json", "--interval", "50", "--set", "failover_suspect=1"]
    assert main([*words, "--program", "socat"]) == 0
    assert '"nodelay": false' in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        main(["--program", "nothing"])
    assert ended.value.code == 2
