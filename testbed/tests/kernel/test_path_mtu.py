# SPDX-License-Identifier: GPL-2.0
"""A router whose MTU is smaller than that of its neighbours, with and without the ICMP that says so.

Hosts have a routing table for each of their addresses, as an operator of multihomed hosts has them.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from failover.kinds import kinds
from failover.predict import predict
from failover.settings import Settings, changed
from sctplab.measure import capture
from sctplab.measure.capture import Chunk
from sctplab.plan import run_plan
from sctplab.spec.model import Topology
from tests.cmt_run import bulk, path, spec
from tests.failover_run import assumed
from tests.kernel_run import linux, run_work

pytestmark = pytest.mark.kernel
WALL_S = 300
MESSAGES = 5000
TO_HOST2 = ("dev", "to-host2")
SMALL_MTU = ["ip", "link", "set", *TO_HOST2, "mtu", "1300"]
# Larger packets than its bucket holds a token bucket drops without a word.
SILENT = [
    "tc",
    "qdisc",
    "replace",
    *TO_HOST2,
    "root",
    "tbf",
    "rate",
    "20mbit",
    "burst",
    "1300",
    "limit",
    "1000000",
]
TIMEOUTS = "SctpT3RtxExpireds"
RTO_S = 1.0
USELESS = {"failover_useless": "1"}
EVERY = {"a_hole_in_the_first_path": 1, "a_hole_and_small_messages": 3}  # messages, one of which is large
LARGE_B = 1400
TWO = Topology((path(1, 20, 20), path(2, 20, 20)))


def carry_out(
    folder: Path, topology: Topology, router: list[str], settings: dict[str, str]
) -> tuple[dict[str, int], list[Chunk]]:
    """Counters of the sender, and the DATA that left it, when the last path has ROUTER."""
    one = spec(topology, bulk(1), settings, pcap=True)
    made = run_plan.as_json(run_plan.make(one, "mpflow"))
    made["setup"].append({"where": f"mid-{topology.paths[-1].name}", "argv": router})
    addresses = [[f"10.{number}.{host}.1" for number in range(1, len(topology.paths) + 1)] for host in (1, 2)]
    result = run_work(
        "transfer", linux("patched"), folder, WALL_S, **made, case="one_way", addresses=addresses
    )
    if result["said"]:
        pytest.fail(result["said"], pytrace=False)
    chunks = capture.chunks(folder, topology, "host1")
    data = [one for one in chunks if (one.kind, one.direction) == ("DATA", "forward")]
    return result["counters"]["host1"], data


def test_what_a_router_says_reaches_the_route_of_the_path(tmp_path: Path) -> None:
    """On the only path, with settings off: every full packet is lost until it does."""
    counters, data = carry_out(tmp_path, Topology((path(1, 10, 20),)), SMALL_MTU, {"cmt": "0"})
    assert counters[TIMEOUTS] == 0
    assert len(data) < 1.01 * MESSAGES


@pytest.mark.parametrize(
    "settings", [{"cmt": "1"}, {"cmt": "1", "failover_heartbeat": "1"}], ids=["cmt", "both"]
)
def test_a_path_that_loses_full_packets_is_asked_for_data_less_and_less(
    settings: dict[str, str], tmp_path: Path
) -> None:
    topology = Topology((path(1, 10, 2), path(2, 10, 20)))
    counters, data = carry_out(tmp_path, topology, SILENT, settings)
    tried = [one.time_ns for one in data if one.path == "path2"]
    turns = [later - one for one, later in pairwise(tried) if later - one > 0.9e9]
    assert len(turns) >= 2
    assert all(later > 1.3 * one for one, later in pairwise(turns[1:]))
    assert counters[TIMEOUTS] <= 6


def with_a_hole(
    case: str, folder: Path, settings: dict[str, str], topology: Topology = TWO
) -> tuple[list[Chunk], list[Chunk]]:
    """A case of work/transfer.py; DATA of large messages that left the sender, and that arrived."""
    one = spec(topology, bulk(1), {"cmt": "0"}, settings, pcap=True)
    made = run_plan.as_json(run_plan.make(one, "mpflow"))
    made["events"] = [{"at_s": 1.0, "commands": [{"where": "mid-path1", "argv": SILENT}]}]
    addresses = [[f"10.{number}.{host}.1" for number in range(1, len(topology.paths) + 1)] for host in (1, 2)]
    result = run_work("transfer", linux("patched"), folder, WALL_S, **made, case=case, addresses=addresses)
    if result["said"]:
        pytest.fail(result["said"], pytrace=False)
    sent, arrived = (capture.chunks(folder, topology, host) for host in ("host1", "host2"))
    every = EVERY[case]
    return [one for one in sent if large(one, every)], [one for one in arrived if large(one, every)]


def large(one: Chunk, every: int) -> bool:
    """Is it DATA of a large message? Each message has the number that its stream has."""
    return (one.kind, one.direction) == ("DATA", "forward") and one.ssn is not None and one.ssn % every == 0


def wasted_s(sent: list[Chunk], arrived: list[Chunk]) -> float:
    """From the last large message that the first path brought until none is sent there any more."""
    brought = max(one.time_ns for one in arrived if one.path == "path1")
    tried = max(one.time_ns for one in sent if one.path == "path1")
    return (tried - brought) / 1e9


@pytest.mark.parametrize("case", EVERY)
def test_a_path_with_a_hole_is_left_by_its_first_timeout(case: str, tmp_path: Path) -> None:
    assert 0 < wasted_s(*with_a_hole(case, tmp_path, USELESS)) < 1.1 * RTO_S


@pytest.mark.parametrize(
    "settings", [USELESS, USELESS | {"failover_suspect": "1"}], ids=["useless", "suspect"]
)
@pytest.mark.parametrize("case", EVERY)
def test_a_large_message_waits_as_long_as_predicted(
    case: str, settings: dict[str, str], tmp_path: Path
) -> None:
    sent, arrived = with_a_hole(case, tmp_path, settings)
    first = {one.tsn: one.time_ns for one in reversed(sent)}
    came = {one.tsn: one.time_ns for one in reversed(arrived)}
    longest_s = max(came[tsn] - first[tsn] for tsn in first) / 1e9
    assumptions = assumed(size_b=LARGE_B)
    of = changed(Settings(), settings, "test", strict=True)
    found = kinds(of, assumptions, predict(of, assumptions))
    seconds = next(one.seconds for one in found if one.failure == "MTU hole")
    assert seconds is not None
    assert 0.9 * seconds.low <= longest_s <= 1.1 * seconds.high


def test_it_is_left_after_three_losses_where_no_timeout_does_that(tmp_path: Path) -> None:
    """Small messages tell of the losses; without them each takes a timeout, which is twice the one before."""
    no_pf = USELESS | {"pf_enable": "0"}
    (tmp_path / "small").mkdir()
    assert 0 < wasted_s(*with_a_hole("a_hole_and_small_messages", tmp_path / "small", no_pf)) < RTO_S
    found = with_a_hole("a_hole_in_the_first_path", tmp_path, no_pf)
    assert 0 < wasted_s(*found) < (1 + 2 + 4) * RTO_S * 1.1


@pytest.mark.parametrize("case", EVERY)
def test_it_is_never_left_without_the_setting(case: str, tmp_path: Path) -> None:
    assert wasted_s(*with_a_hole(case, tmp_path, {"failover_useless": "0"})) > 10


def test_plpmtud_begins_anew_so_that_the_path_carries_what_fits(tmp_path: Path) -> None:
    """By itself it takes three probes, 5 s apart, to find a hole."""
    settings = USELESS | {"plpmtud_probe_interval": "5000"}
    _, arrived = with_a_hole("a_hole_and_small_messages", tmp_path, settings)
    (away,) = (pair for pair in pairwise(arrived) if [one.path for one in pair] == ["path1", "path2"])
    back = next(one for one in arrived if one.time_ns > away[1].time_ns and one.path == "path1")
    assert back.time_ns - away[0].time_ns < 5e9
    assert arrived[-1].path == "path1"
