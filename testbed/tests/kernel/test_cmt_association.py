# SPDX-License-Identifier: GPL-2.0
"""Concurrent multipath transfer with everything else SCTP can do: all arrives, and over all paths.

Transfers that mpflow can make are runs of the laboratory; the rest are the cases of work/transfer.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from sctplab.measure import capture
from sctplab.spec.model import Event, Flow, RunSpec, Topology
from tests.cmt_run import MESSAGE_B, Lab, bulk, open_lab, path, paths, spec, transfer
from tests.failover_run import with_families
from tests.kernel.work.peer import IMMEDIATE

pytestmark = pytest.mark.kernel
RATE = 2.0
PACKET_NS = 1500 * 8 / RATE * 1e3
CLOCK_NS = 256  # that UML's clock goes on by when it is read outside of interrupts; measuring paths reads it
WAYS = ("forward", "reverse")
FORWARD_TSN, AUTH, RE_CONFIG = "0xc0", "0x0f", "0x82"
CUT = tuple(Event(1, "cut", name) for name in ("path1", "path2"))
HEAL = tuple(Event(2, "heal", name) for name in ("path1", "path2"))


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with open_lab(tmp_path_factory) as opened:
        yield opened


@dataclass(frozen=True)
class Case:
    """A case of work/transfer.py that held."""

    result: dict[str, Any]
    chunks: tuple[capture.Chunk, ...]  # at host1

    def share(self, where: str, kind: str = "DATA") -> float:
        """Of the chunks that left host1."""
        found = [one.path for one in self.chunks if (one.kind, one.direction) == (kind, "forward")]
        return found.count(where) / len(found)

    def kinds(self) -> set[str]:
        return {one.kind for one in self.chunks}


def carry_out(
    case: str,
    folder: Path,
    topology: Topology,
    *settings: dict[str, str],
    events: tuple[Event, ...] = (),
) -> Case:
    """On two hosts with this topology."""
    one = spec(topology, bulk(1), *settings, events=events, pcap=True)
    return Case(*transfer(case, one, folder))


def two() -> Topology:
    return paths(10, 35, rate_mbit=RATE)


@pytest.mark.parametrize("mode", ["delayed", "per-path"])
@pytest.mark.parametrize("case", ["shutdown", "peeling_off", "one_to_many"])
def test_everything_arrives(case: str, mode: str, tmp_path: Path) -> None:
    found = carry_out(case, tmp_path, two(), {"cmt_sack": mode})
    assert 0.25 < found.share("path2") < 0.75


def test_sacks_that_travel_with_data_keep_the_count(tmp_path: Path) -> None:
    """Of the packets that they answer; at the end a SHUTDOWN may answer two more."""
    found = carry_out("bulk", tmp_path, two(), {"cmt_sack": "delayed"})
    data = {
        way: {one.packet for one in found.chunks if (one.kind, one.direction) == ("DATA", way)}
        for way in WAYS
    }
    sacks = [one for one in found.chunks if (one.kind, one.direction) == ("SACK", "forward")]
    assert sum(one.packet in data["forward"] for one in sacks) > 10
    assert 0 <= len(data["reverse"]) - sum(one.flags >> 6 for one in sacks) <= 2


def test_a_path_joins_when_its_heartbeat_is_answered(tmp_path: Path) -> None:
    """It is not asked for a sign of life later than the association is established."""
    found = carry_out("at_once", tmp_path, two())
    times = {(one.kind, one.direction): one.time_ns for one in reversed(found.chunks) if one.path == "path2"}
    answered, used = times["HEARTBEAT_ACK", "reverse"], times["DATA", "forward"]
    assert 0 <= used - answered < 0.1e9
    established = next(one.time_ns for one in found.chunks if one.kind == "COOKIE_ACK")
    assert answered - established < 0.1e9


def test_a_path_that_never_answers_changes_nothing(tmp_path: Path) -> None:
    """The same leaves and arrives in the same order and, but for readings of the clock, at the same time.

    With cmt the first packet and the last one ask for their SACKs: little is before them, and nothing behind.
    """
    topology = Topology((path(1, 10, RATE), path(2, 10, RATE, loss_pct=100)))
    found = []
    for cmt in ("0", "1"):
        (tmp_path / cmt).mkdir()
        chunks = carry_out("at_once", tmp_path / cmt, topology, {"cmt": cmt}).chunks
        found.append([one for one in chunks if one.kind in ("DATA", "SACK")])
    off, on = found
    asked = [one for one in on if one.kind == "DATA" and one.flags & IMMEDIATE]
    assert asked == [next(one for one in on if one.kind == "DATA"), on[-2]]
    assert (on.pop().kind, len(on)) == ("SACK", len(off))
    assert [replace(one, time_ns=0, packet=0) for one in off] == [
        replace(one, time_ns=0, packet=0, flags=one.flags & ~IMMEDIATE) for one in on
    ]
    apart = {abs(one.time_ns - two.time_ns) for one, two in zip(off, on, strict=True)}
    assert all(ns % CLOCK_NS == 0 for ns in apart), apart
    assert max(apart) < PACKET_NS / 1000


def test_a_peer_that_restarts(tmp_path: Path) -> None:
    found = carry_out("restart", tmp_path, two(), events=CUT + HEAL)
    assert 0.25 < found.share("path2") < 0.75


DOWN, UP = (Event(at, f"carrier-{what}", "path2", host="host2") for at, what in ((1, "down"), (2, "up")))


@pytest.mark.parametrize("cmt", "01")
@pytest.mark.parametrize(
    ("setting", "counter", "events"),
    [
        ("failover_suspect", "SctpMpSuspects", CUT + HEAL),
        ("failover_link", "SctpMpLinkFailures", (CUT[0], DOWN, HEAL[0], UP)),
    ],
)
def test_a_peer_that_restarts_while_its_paths_are_watched(
    setting: str, counter: str, events: tuple[Event, ...], cmt: str, tmp_path: Path
) -> None:
    """When the new association comes, an answer of the old is overdue or a carrier is looked for."""
    found = carry_out("restart", tmp_path, two(), {"cmt": cmt, setting: "1"}, events=events)
    assert found.result["counters"]["host2"][counter] >= 1
    used = {one.path for one in found.chunks[-300:] if one.kind == "DATA"}
    assert used == ({"path1", "path2"} if cmt == "1" else {"path1"})


def test_an_abort_in_mid_transfer(tmp_path: Path) -> None:
    found = carry_out("abort", tmp_path, two())
    assert "ABORT" in found.kinds() and 0.25 < found.share("path2") < 0.75


def test_addresses_that_come_and_go(tmp_path: Path) -> None:
    settings = {"addip_enable": "1", "addip_noauth_enable": "1"}
    found = carry_out("addresses", tmp_path, paths(10, 35, 20, rate_mbit=RATE, queue_pkts=60), settings)
    data = [one.path for one in found.chunks if (one.kind, one.direction) == ("DATA", "forward")]
    tenth = len(data) // 10
    assert [set(part) for part in (data[:tenth], data[-tenth:])] == [{"path1", "path2"}, {"path1", "path3"}]


def test_an_address_that_is_cut_and_removed(tmp_path: Path) -> None:
    settings = {
        "addip_enable": "1",
        "addip_noauth_enable": "1",
        "cmt_sack": "per-path",
        "failover_heartbeat": "1",
    }
    case, cut = "an_address_that_is_cut_and_removed", (Event(1, "cut", "path1", direction="forward"),)
    found = carry_out(case, tmp_path, paths(10, 40, rate_mbit=20), settings, events=cut)
    assert found.result["counters"]["host1"]["SctpT3RtxExpireds"] == 0


def test_settings_that_change_while_data_is_under_way(tmp_path: Path) -> None:
    assert 0.2 < carry_out("switching", tmp_path, two()).share("path2") < 0.8


@pytest.mark.parametrize("mode", ["standard", "per-path"])
def test_a_window_that_closes(mode: str, tmp_path: Path) -> None:
    """It is so small that the longer path is hardly worth it."""
    assert carry_out("slow_reader", tmp_path, two(), {"cmt_sack": mode}).share("path2") > 0


def test_interleaved_messages_under_every_stream_scheduler(tmp_path: Path) -> None:
    found = carry_out("interleaving", tmp_path, two(), {"intl_enable": "1"})
    assert 0.25 < found.share("path2", "0x40") < 0.75
    assert "DATA" not in found.kinds()


def test_messages_that_expire(tmp_path: Path) -> None:
    events = (Event(1, "cut", "path2"), Event(2, "heal", "path2"))
    found = carry_out("lifetimes", tmp_path, paths(10, 35, rate_mbit=RATE, loss_pct=2), events=events)
    assert found.share("path2") > 0.1
    assert FORWARD_TSN in found.kinds()


def test_chunks_that_are_authenticated(tmp_path: Path) -> None:
    found = carry_out("authentication", tmp_path, two(), {"auth_enable": "1"})
    assert 0.25 < found.share("path2") < 0.75
    signed = {one.packet for one in found.chunks if one.kind == AUTH}
    assert {one.packet for one in found.chunks if one.kind in ("DATA", "SACK")} <= signed


def test_copies_of_what_is_overdue_are_authenticated(tmp_path: Path) -> None:
    settings = {"cmt": "0", "auth_enable": "1", "failover_suspect": "1"}
    found = carry_out("authentication_and_a_cut", tmp_path, two(), settings, events=CUT[:1])
    counters = found.result["counters"]["host1"]
    assert counters["SctpMpCopies"] >= 1 and counters["SctpMpSuspectsMoved"] == 1
    assert counters["SctpT3RtxExpireds"] == 0
    signed = {one.packet for one in found.chunks if one.kind == AUTH}
    assert {one.packet for one in found.chunks if one.kind in ("DATA", "SACK")} <= signed


@pytest.mark.parametrize("delays", [(10, 40), (40, 10)], ids=str)
def test_streams_that_are_reset(delays: tuple[float, float], tmp_path: Path) -> None:
    """The request does not overtake data that it refers to, so that it is made once."""
    found = carry_out("stream_resets", tmp_path, paths(*delays, rate_mbit=20), {"reconf_enable": "1"})
    asked = [one for one in found.chunks if (one.kind, one.direction) == (RE_CONFIG, "forward")]
    assert len(asked) == 5
    assert found.result["counters"]["host1"]["SctpT3RtxExpireds"] == 0


def test_explicit_congestion_notification(tmp_path: Path) -> None:
    """A path marks what it would lose: nothing is sent again."""
    found = carry_out("bulk", tmp_path, paths(10, 35, rate_mbit=RATE, loss_pct=3, ecn=True))
    assert {"ECNE", "CWR"} <= found.kinds()
    assert 0.25 < found.share("path2") < 0.75
    assert found.result["counters"]["host1"]["SctpFastRetransmits"] == 0


def test_an_address_that_the_program_names_is_obeyed(tmp_path: Path) -> None:
    found = carry_out("explicit_addresses", tmp_path, two())
    data = [one for one in found.chunks if (one.kind, one.direction) == ("DATA", "forward")]
    assert [one.path for one in data] == [f"path{1 + ((one.tsn or 0) - 1) // 10 % 2}" for one in data]


# Transfers of mpflow


def shares(lab: Lab, one: RunSpec) -> list[float]:
    """Of what the paths carried, each one's."""
    record, _ = lab.captured(one)
    wire = [record["metrics"][f"wire_mbit.{found.name}"] for found in one.topology.paths]
    return [rate / sum(wire) for rate in wire]


@pytest.mark.parametrize(
    "flow",
    [
        Flow("main", size_mb=1.5, message_b=5000, streams=4),
        Flow("main", size_mb=1.5, message_b=5000, streams=4, unordered=True),
        Flow("main", size_mb=0.7, message_b=100),
        Flow("main", size_mb=1.5, message_b=MESSAGE_B, rcvbuf_kb=64, sndbuf_kb=64),
    ],
    ids=["fragmented", "unordered", "bundled", "small-buffers"],
)
def test_messages_of_all_kinds(flow: Flow, lab: Lab) -> None:
    assert min(shares(lab, spec(two(), flow))) > 0.1


@pytest.mark.parametrize("offload", ["host", "whole"])
def test_segmentation_offload(offload: str, lab: Lab) -> None:
    assert min(shares(lab, spec(replace(two(), offload=offload), bulk(2)))) > 0.2


def test_udp_encapsulation(lab: Lab) -> None:
    settings = {"udp_port": "9899", "encap_port": "9899"}
    assert min(shares(lab, spec(two(), bulk(1.5), settings))) > 0.2


@pytest.mark.parametrize("families", [("ipv6", "ipv6"), ("ipv4", "ipv6")], ids="-".join)
def test_ipv6(families: tuple[str, ...], lab: Lab) -> None:
    assert min(shares(lab, spec(with_families(two(), families), bulk(1.5)))) > 0.2


def test_eight_paths(lab: Lab) -> None:
    eight = paths(*range(10, 90, 10), rate_mbit=1)
    assert min(shares(lab, spec(eight, bulk(4)))) > 0.03
