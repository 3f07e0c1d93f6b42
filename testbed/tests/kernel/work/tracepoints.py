# SPDX-License-Identifier: GPL-2.0
"""Events of the multipath sender's tracepoints, a peer driven packet by packet: one function per case.

Standard library only.
"""

import re
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from cases import outcome
from options import expect, namespace, option
from packets import FAST, HEARD_S, LIMIT_S, RTO_S, RTT_S, T3_S, ip, measured, served, suspecting
from peer import OURS, Heard, Peer
from setup import STATUS
from wires import Line, Wire

TRACEFS = "/sys/kernel/tracing"
EVENTS = ("state", "t3", "lost", "copy", "choice")
LINE = re.compile(r"^[^#].*: sctp_mp_(\w+): (.*)$", re.MULTILINE)
NONE = "0.0.0.0:0"
HB_INTERVAL_S = 30

Event = dict[str, str]


def put(name: str, text: str) -> None:
    with open(f"{TRACEFS}/{name}", "w", encoding="ascii") as file:
        file.write(text)


def happened(name: str) -> list[Event]:
    """The events of a tracepoint that are recorded, oldest first: field -> value."""
    with open(f"{TRACEFS}/trace", encoding="ascii") as file:
        found = LINE.findall(file.read())
    return [dict(field.split("=", 1) for field in fields.split()) for event, fields in found if event == name]


def association(peer: Peer) -> int:
    number: int = struct.unpack_from("i", option(peer.sock, STATUS, bytes(176)))[0]
    return number


@contextmanager
def recording(peer: Peer, *names: str) -> Iterator[None]:
    """With these tracepoints enabled for its association, and what they have recorded before forgotten.

    The association of another case may still be ending, and has the same addresses and ports.
    """
    put("trace", "")
    for name in names:
        put(f"events/sctp/sctp_mp_{name}/filter", f"assoc_id == {association(peer)}")
        put(f"events/sctp/sctp_mp_{name}/enable", "1")
    try:
        yield
    finally:
        for name in names:
            put(f"events/sctp/sctp_mp_{name}/enable", "0")
            put(f"events/sctp/sctp_mp_{name}/filter", "0")


def address(path: int) -> str:
    return f"10.1{path}.0.2:{OURS}"


def fields(events: list[Event], *names: str) -> list[tuple[str, ...]]:
    return [tuple(event[name] for name in names) for event in events]


def lost(peer: Peer, heard: Heard) -> tuple[str, str]:
    """Path and TSN as an event has them."""
    return address(heard.path), str(heard.chunk.tsn)


def every_new_chunk_has_a_choice() -> None:
    peer = Peer(cmt="1", cmt_scheduler="round-robin", max_burst="0")
    served(peer, measured(peer), 60)
    with recording(peer, "choice"):
        peer.say(60)
        sent = sorted(peer.messages(HEARD_S), key=peer.number)
    expect({one.path for one in sent}, {0, 1})
    choices = happened("choice")
    taken = [choice for choice in choices if choice["ipaddr"] != NONE]
    expect([address(one.path) for one in sent], [choice["ipaddr"] for choice in taken])
    expect({choice["why"] for choice in taken}, {"scheduler"})
    for choice in taken:
        assert int(choice["flight_size"]) < int(choice["cwnd"]), choice
        assert int(choice["srtt_us"]) and int(choice["rate"]), choice


def with_full_windows_no_path_has_room() -> None:
    peer = Peer(cmt="1", max_burst="0")
    served(peer, measured(peer), 60)
    with recording(peer, "choice"):
        peer.say(60)
        peer.messages(HEARD_S)
    expect(fields(happened("choice")[-1:], "why", "ipaddr", "cwnd"), [("full", NONE, "0")])


def a_slow_path_with_room_is_worse_than_to_wait_for_a_fast_one() -> None:
    wires = (Wire(FAST, RTT_S), Wire(FAST, 20 * RTT_S))
    peer = Peer(rtts_s=[wire.rtt_s for wire in wires], cmt="1")
    line = Line(peer, measured(peer), wires)
    with recording(peer, "choice"):
        sent = line.burst(40, 1400, RTO_S)
    expect({one.path for one in sent}, {0})
    waits = [choice for choice in happened("choice") if choice["ipaddr"] == NONE]
    expect({choice["why"] for choice in waits}, {"worse"})


def what_rack_finds_lost_is_told() -> None:
    peer = Peer(cmt="1", cmt_scheduler="round-robin", max_burst="0")
    done = served(peer, measured(peer), 60)
    peer.say(20)
    sent = peer.messages(RTT_S)
    late = min((one for one in sent if one.path == 0), key=peer.number)
    number = peer.number(late)
    with recording(peer, "lost"):
        peer.sack(0, number - 1, (number + 1, done + len(sent)))
        peer.messages(2 * RTT_S)
    wanted = (*lost(peer, late), "rack", "1")
    expect(fields(happened("lost"), "ipaddr", "tsn", "by", "sent_count"), [wanted])


def what_missing_reports_find_lost_is_told() -> None:
    peer = Peer(rtx_policy="same")
    done = measured(peer)
    peer.say(8)
    sent = peer.messages(RTT_S)
    number = peer.number(sent[0])
    with recording(peer, "lost"):
        for one in sent[1:]:
            peer.sack(one.path, done, (number + 1, peer.number(one)))
        peer.messages(2 * RTT_S)
    expect(fields(happened("lost"), "ipaddr", "tsn", "by"), [(*lost(peer, sent[0]), "missing-reports")])


def a_tail_loss_probe_and_the_timeout_are_told() -> None:
    peer = Peer(cmt="1")
    measured(peer)
    peer.say(1)
    (last,) = peer.messages(RTT_S)
    with recording(peer, "lost", "t3"):
        peer.silent = {0, 1}
        peer.messages(T3_S)
    told = fields(happened("lost"), "ipaddr", "tsn", "by", "sent_count")
    expect(told, [(*lost(peer, last), "tail-probe", "1"), (*lost(peer, last), "t3-rtx", "2")])
    (expired,) = happened("t3")
    expect((expired["ipaddr"], expired["rto_ms"], expired["error_count"]), (address(last.path), "1000", "0"))
    assert int(expired["flight_size"]) >= 1400, expired


def a_copy_is_told() -> None:
    peer, _ = suspecting()
    with recording(peer, "copy"):
        peer.say(1)
        first, copy = peer.messages(2 * RTT_S)
    expect((first.path, copy.path), (0, 1))
    told = fields(happened("copy"), "ipaddr", "tsn", "to")
    expect(told, [(*lost(peer, first), address(1))])


def what_a_failed_path_had_is_given_up() -> None:
    peer, done = suspecting()
    peer.silent = {0}
    with recording(peer, "state", "lost", "t3"):
        peer.say(1)
        expect([one.path for one in peer.messages(2 * RTT_S)], [0, 1])
        peer.say(1)
        last, _ = peer.messages(HEARD_S)
        peer.sack(1, done + 1)
        peer.messages(2 * RTT_S)
    expect(fields(happened("state"), "ipaddr", "new"), [(address(0), "potentially-failed")])
    expect(fields(happened("lost"), "ipaddr", "tsn", "by"), [(*lost(peer, last), "given-up")])
    expect((last.path, happened("t3")), (0, []))


def a_path_that_is_back_loses_data_to_its_timer_again() -> None:
    peer = Peer(failover_link="1")
    done = measured(peer)
    with recording(peer, "lost"):
        peer.say(1)
        (first,) = peer.messages(HEARD_S)
        ip("link set va0 down")
        expect([one.path for one in peer.messages(RTT_S)], [1])
        peer.sack(1, done + 1)
        ip("link set va0 up")
        peer.listen(RTO_S / 2)
        peer.say(1)
        second, again = peer.messages(T3_S)
    expect((first.path, second.path, again.path), (0, 0, 1))
    told = fields(happened("lost"), "ipaddr", "tsn", "by")
    expect(told, [(*lost(peer, first), "given-up"), (*lost(peer, second), "t3-rtx")])


def until_told(peer: Peer, changes: int, limit_s: float) -> None:
    """Listen until the state has changed so often; a timer is up to an eighth late, and has a random part."""
    until = time.monotonic() + limit_s * 9 / 8
    while len(happened("state")) < changes and time.monotonic() < until:
        peer.listen(RTT_S)


def a_path_that_fails_and_comes_back_is_told_with_stock_settings() -> None:
    """RFC 9260 8.3: HEARTBEATs are RTO and up to a half of it apart, while the path is in use, or inactive,
    HB.interval longer.
    """
    peer = Peer(path_max_retrans="2")
    done = measured(peer)
    peer.silent = {0}
    with recording(peer, "state", "t3", "lost"):
        peer.say(1)
        first, again = peer.messages(T3_S)
        expect((first.path, again.path), (0, 1))
        peer.sack(1, done + 1)
        until_told(peer, 2, 1.5 * (2 + 2 + 4) * RTO_S)
        peer.silent = set()
        until_told(peer, 3, HB_INTERVAL_S + 1.5 * 8 * RTO_S)
    told = fields(happened("state"), "ipaddr", "old", "new", "reason", "error_count")
    expect(
        told,
        [
            (address(0), "active", "potentially-failed", "t3-rtx", "1"),
            (address(0), "potentially-failed", "inactive", "heartbeat", "3"),
            (address(0), "inactive", "active", "heartbeat-ack", "0"),
        ],
    )
    expect(fields(happened("t3"), "ipaddr", "rto_ms", "error_count"), [(address(0), "1000", "0")])
    expect(fields(happened("lost"), "ipaddr", "tsn", "by"), [(*lost(peer, first), "t3-rtx")])


def only_the_association_that_was_asked_for_is_told() -> None:
    other = Peer(cmt="1")
    done = measured(other)
    namespace()
    peer = Peer(cmt="1")
    measured(peer)
    with recording(peer, "choice"):
        served(other, done, 20)
    expect(happened("choice"), [])


def nothing_is_told_that_was_not_asked_for() -> None:
    peer = Peer(cmt="1")
    done = measured(peer)
    with recording(peer, "t3"):
        served(peer, done, 20)
    expect([happened(name) for name in EVENTS], [[], [], [], [], []])


CASES: list[Callable[[], None]] = [
    every_new_chunk_has_a_choice,
    with_full_windows_no_path_has_room,
    a_slow_path_with_room_is_worse_than_to_wait_for_a_fast_one,
    what_rack_finds_lost_is_told,
    what_missing_reports_find_lost_is_told,
    a_tail_loss_probe_and_the_timeout_are_told,
    a_copy_is_told,
    what_a_failed_path_had_is_given_up,
    a_path_that_is_back_loses_data_to_its_timer_again,
    a_path_that_fails_and_comes_back_is_told_with_stock_settings,
    only_the_association_that_was_asked_for_is_told,
    nothing_is_told_that_was_not_asked_for,
]


def carry_out(_: dict[str, Any]) -> dict[str, Any]:
    subprocess.run(["mount", "-t", "tracefs", "tracefs", TRACEFS], check=True)
    return {"status": "ok", "cases": {case.__name__: outcome(case, LIMIT_S) for case in CASES}}
