# SPDX-License-Identifier: GPL-2.0
"""Effects of single patches on the wire, a peer driven packet by packet: one function per case.

Standard library only.
"""

import errno
import gc
import os
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Sequence
from functools import wraps
from itertools import pairwise
from pathlib import Path
from typing import Any

import buffers
import control
import overdue
import setup
import twice
import useless
from cases import outcome
from options import SCTP, choose, expect, namespace, one_to_many, one_to_one, shown_counters, write
from peer import (
    ABORT,
    DATA,
    ECNE,
    FORWARD_TSN,
    HEARTBEAT,
    IMMEDIATE,
    NODELAY,
    OURS,
    PR_SCTP_NONE,
    PR_SCTP_PRIO,
    PR_SCTP_RTX,
    PR_SCTP_TTL,
    RTT_S,
    SACK,
    SHUTDOWN,
    TAG,
    THEIRS,
    Chunk,
    Heard,
    Peer,
    limit,
    measured,
)
from reasons import reasons
from thresholds import ACTIVE, BINDX_ADD, FAILOVER_LINK, FAILOVER_SUSPECT, INACTIVE, address, info
from wires import Line, Wire

LIMIT_S = 120  # of a case, in virtual time
GONE_S = 10  # from the end of a case to that of its namespace
RTO_S, RTO_INITIAL_S = 1.0, 3.0
TICK_S = 0.01
T3_S = RTO_S + 16 * TICK_S  # T3-rtx has expired by then: a timer of a second may be 8 ticks late
PROBE_S = 0.22  # the longest from one probe of failover_return to the next
NET_UNREACHABLE, HOST_UNREACHABLE = 0, 1  # codes of ICMP's destination unreachable
HB_INTERVAL_S = 30
LIMIT = 5  # of timeouts, for the association
HEARD_S = 0.01  # what the socket answers at once has come by then
AUTHINFO, AUTH_KEY = 6, 23
COUNT_SHIFT = 6  # of the packets a SACK is for, in its flags
MAX_DUPS = 16  # duplicates of a SACK that are looked at
SAME_BIT = 1024  # TSNs that differ by as much are not told apart as retransmissions
SMALL = 100  # bytes of a message
FAST = 4.3e6  # bytes per second, a T3 line
TRANSFER_S = 3


def paths(heard: list[Heard]) -> list[int]:
    return [one.path for one in heard]


def numbers(peer: Peer, heard: list[Heard]) -> list[int]:
    return sorted(peer.number(one) for one in heard)


def kinds_by_packet(peer: Peer, seconds: float) -> list[tuple[int, list[int]]]:
    """Path, and kinds of the chunks, of each packet that comes within so many seconds."""
    found = []
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        found += [(packet[0].path, [one.chunk.kind for one in packet]) for packet in peer.packets(left)]
    return found


def slab_kb() -> int:
    """Kernel memory in small pieces, of which the kernel cannot take any back."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("SUnreclaim:"))


def acknowledged_in_turn(rule: str) -> list[Heard]:
    """The SACKs for 40 packets that come over two paths by turns."""
    peer = Peer(cmt_sack=rule)
    for number in range(40):
        peer.data(number % 2)
    return [one for one in peer.listen(HEARD_S) if one.chunk.kind == SACK]


def delayed_sacks_take_the_paths_in_turn() -> None:
    found = paths(acknowledged_in_turn("delayed"))
    expect(len(found) >= 18, True)
    expect({one != other for one, other in pairwise(found[1:])}, {True})


def a_sack_says_how_many_packets_it_is_for() -> None:
    found = acknowledged_in_turn("delayed")
    expect({one.chunk.flags >> COUNT_SHIFT for one in found[1:]}, {2})


def data_takes_the_sack_of_its_path_along() -> None:
    for rule in ("per-path", "delayed"):
        peer = Peer(cmt_sack=rule)
        for _ in range(2):  # the first SACK of all is not delayed
            peer.data(0)
        peer.listen(HEARD_S)
        found = []
        for path in (1, 0):
            peer.prefer(path)
            peer.say(1, SMALL)
            found += kinds_by_packet(peer, HEARD_S)
        expect(found, [(1, [DATA]), (0, [SACK, DATA])])
        namespace()


def a_copy_of_a_sack_puts_off_no_sack() -> None:
    """A path gets one for every second packet that it brings, whatever has gone over another one."""
    peer = Peer(cmt="1")
    found = []
    for number in range(1, 13):
        peer.data(1)
        peer.say(1, SMALL)
        found += kinds_by_packet(peer, HEARD_S)
        peer.sack(0, number)
    expect(sorted(path for path, kinds in found if DATA in kinds), 12 * [0])
    assert found.count((1, [SACK])) >= 5, found


def first_retransmission_s(**settings: str) -> float:
    """Of a last message that is lost, from when it was sent."""
    peer = Peer(**settings)
    done = measured(peer)
    peer.say(4)
    sent = peer.messages(RTT_S)
    expect(numbers(peer, sent), [done + 1, done + 2, done + 3, done + 4])
    lost = max(sent, key=lambda one: (one.path == sent[0].path, peer.number(one)))
    number = peer.number(lost)
    others = [(one, one) for one in range(number + 1, done + 5)]
    peer.sack(lost.path, number - 1, *others)
    again = peer.messages(2 * RTO_S)
    expect(peer.number(again[0]), number)
    if "cmt" in settings:
        expect(again[0].path, lost.path)
    return again[0].at_s - lost.at_s


def a_loss_at_the_tail_is_probed_for_before_the_timeout() -> None:
    waited_s = first_retransmission_s(cmt="1")
    assert 2 * RTT_S < waited_s < RTO_S / 2, waited_s


def a_loss_at_the_tail_waits_for_the_timeout_without_cmt() -> None:
    waited_s = first_retransmission_s(rtx_policy="same")
    assert RTO_S <= waited_s < 1.2 * RTO_S, waited_s


def retransmitted_after_gaps(**settings: str) -> Heard:
    """The first of eight messages, after SACKs for each of the others."""
    peer = Peer(**settings)
    done = measured(peer)
    peer.say(8)
    number = done + 1
    for one in sorted(peer.messages(RTT_S), key=peer.number)[1:]:
        peer.sack(one.path, done, (number + 1, peer.number(one)))
    return next(one for one in peer.messages(2 * RTT_S) if peer.number(one) == number)


def what_is_retransmitted_asks_for_a_sack() -> None:
    expect(retransmitted_after_gaps(cmt="1").chunk.flags & IMMEDIATE, IMMEDIATE)


def what_is_retransmitted_asks_for_no_sack_without_cmt() -> None:
    expect(retransmitted_after_gaps(rtx_policy="same").chunk.flags & IMMEDIATE, 0)


def sacks_that_are_longer_than_usual_leave_no_memory_behind() -> None:
    """A receiver reports all its gaps, for which it takes memory."""
    if Path("/proc/net/sctp/sctp_dbg_objcnt").exists():  # with runtime checks: KASAN keeps what is freed
        return
    peer = Peer(cmt="1")
    for number in range(50):  # every second message is missing
        peer.next_tsn += 1
        peer.data(number % 2, SMALL)
    before = slab_kb()
    for _ in range(3000):
        peer.next_tsn -= 1
        peer.data(0, SMALL)  # once more
    peer.listen(RTT_S)
    assert slab_kb() - before < 500, (before, slab_kb())


def by_turns(policy: int = PR_SCTP_NONE, rtt_s: float = RTT_S, **settings: str) -> tuple[Peer, int]:
    """A peer that was sent six messages over two paths by turns; number of the second, which has POLICY."""
    peer = Peer(rtts_s=(rtt_s, rtt_s), cmt="1", cmt_scheduler="round-robin", **settings)
    done = measured(peer, rtt_s=rtt_s)
    for one in (PR_SCTP_NONE, policy, *[PR_SCTP_NONE] * 4):
        limit(peer, one, 2)
        peer.say(1)
    expect(paths(peer.messages(rtt_s)), [0, 1] * 3)
    return peer, done + 2


def data_behind_a_loss_that_time_shows_is_probed_for() -> None:
    """The timer of the path was that of the reordering window; the loss goes over the other path."""
    peer, lost = by_turns(rtx_policy="alternate")
    peer.sack(1, lost - 1, (lost + 1, lost + 3))
    again = [(one.path, peer.number(one)) for one in peer.messages(RTO_S / 2)]
    expect(again[0], (0, lost))
    assert (1, lost + 4) in again, again


def data_behind_what_is_given_up_is_retransmitted() -> None:
    """A message that time would show to be lost makes room for a more important one (RFC 7496 4.2)."""
    peer, lost = by_turns(PR_SCTP_PRIO, prsctp_enable="1")
    peer.sack(1, lost - 1, (lost + 1, lost + 3))
    peer.buffer(0)  # and so it is full
    limit(peer, PR_SCTP_PRIO, 1)
    expect(peer.fill(SMALL), 0)
    found = numbers(peer, peer.messages(2 * RTO_S))
    assert lost not in found and lost + 4 in found, found


def new_data_behind_what_is_given_up_has_a_timeout_of_its_own() -> None:
    """A loss probe finds that all that is outstanding expired. New data is not due with that."""
    peer = Peer(rtts_s=(RTT_S, RTT_S), cmt="1", prsctp_enable="1")
    done = measured(peer)
    limit(peer, PR_SCTP_TTL, int(2 * 1000 * RTT_S))
    peer.say(20)
    limit(peer, PR_SCTP_NONE, 0)
    peer.say(1)
    number = done + len(peer.messages(RTT_S)) + 1
    expect(number < done + 21, True)
    first, again = peer.messages(2 * RTO_S)[:2]
    expect((peer.number(first), peer.number(again)), (number, number))
    assert again.at_s - first.at_s >= RTO_S, (first, again)


def probed_for_after_s(late: bool) -> float:
    """From a needless retransmission on; LATE: a SACK says after most of a round trip that it was one."""
    rtt_s = 0.1
    peer, lost = by_turns(rtt_s=rtt_s)
    peer.sack(1, lost - 2, (lost + 2, lost + 2))
    again = next(one for one in peer.messages(rtt_s / 2) if peer.number(one) == lost)
    peer.listen(again.at_s + 0.8 * rtt_s - time.monotonic())
    if late:
        peer.sack(1, lost - 2, (lost, lost), (lost + 2, lost + 2))
    probe = next(one for one in peer.messages(RTO_S) if one.path == 1)
    expect((again.path, peer.number(probe)), (1, lost + 4))
    return probe.at_s - again.at_s


def an_answer_puts_the_probe_off() -> None:
    usual_s = probed_for_after_s(late=False)
    namespace()
    put_off_s = probed_for_after_s(late=True)
    assert 5 * TICK_S < put_off_s - usual_s < 11 * TICK_S, (usual_s, put_off_s)


def reported_once_with_a_closed_window(**settings: str) -> list[int]:
    """Messages that come again at one report of a gap, when no new data may be sent."""
    peer = Peer(**settings)
    done = measured(peer)
    peer.say(3)
    sent = peer.messages(RTT_S)
    expect(numbers(peer, sent), [done + 1, done + 2, done + 3])
    peer.say(1)
    late = peer.messages(HEARD_S)
    path = sent[0].path
    peer.sack(path, done, (done + 2, done + 3 + len(late)), window=0)
    return numbers(peer, peer.messages(2 * RTT_S))


def one_report_does_when_no_more_will_come() -> None:
    expect(reported_once_with_a_closed_window(cmt="1"), [5])


def one_report_does_not_without_cmt() -> None:
    expect(reported_once_with_a_closed_window(rtx_policy="same"), [])


def sent_after_a_sack(count: int) -> int:
    """Messages of a path in slow start that a SACK for two of its packets lets go, if it says COUNT."""
    peer = Peer(cmt="1", cmt_scheduler="round-robin", max_burst="0")
    done = measured(peer)
    peer.say(30)
    one, other = [peer.number(one) for one in peer.messages(RTT_S) if one.path == 0][:2]
    expect((one, other), (done + 1, done + 3))
    peer.sack(0, one, (other, other), flags=count << COUNT_SHIFT)
    return paths(peer.messages(HEARD_S)).count(0)


def a_window_grows_by_both_packets_that_a_sack_is_for() -> None:
    two = sent_after_a_sack(2)
    namespace()
    expect(two, sent_after_a_sack(1) + 1)


def served(peer: Peer, done: int, messages: int) -> int:
    """Messages that are acknowledged one by one as they come, so that windows grow; number of the last."""
    peer.say(messages)
    return answered(peer, done, done + messages)


def answered(peer: Peer, last: int, until: int) -> int:
    """Messages from LAST on are acknowledged as they come, up to the number UNTIL, which is returned."""
    while last < until:
        for one in peer.messages(RTT_S):
            last = max(last, peer.number(one))
            peer.sack(one.path, last)
    return last


def retransmitted_though_late(**settings: str) -> tuple[Peer, Heard, int]:
    """A peer; a message of path 0 that was only late, as it comes again; the number of the last message."""
    peer = Peer(cmt="1", cmt_scheduler="round-robin", max_burst="0", **settings)
    done = served(peer, measured(peer), 60)
    peer.say(20)
    sent = peer.messages(RTT_S)
    late = min(peer.number(one) for one in sent if one.path == 0)
    last = done + len(sent)
    peer.sack(0, late - 1, (late + 1, last))
    (again,) = peer.messages(2 * RTT_S)
    expect((again.path, peer.number(again)), (1 if "rtx_policy" in settings else 0, late))
    return peer, again, last


def a_mark_cuts_a_window_once_though_it_is_echoed_over_both_paths() -> None:
    """The second echo comes after more than a round trip; a later mark counts."""
    peer = Peer(ecn_enable="1", cmt="1", cmt_scheduler="round-robin", max_burst="0")
    served(peer, served(peer, measured(peer), 60), 60)
    peer.say(8)
    sent = peer.messages(HEARD_S)
    mine = [one.chunk.tsn for one in sent if one.path == 0]
    windows = [peer.cwnd(0)]
    for over, tsn in ((0, mine[0]), (1, mine[0]), (1, mine[1])):
        peer.send(over, Chunk(ECNE, 0, struct.pack("!I", tsn)))
        peer.listen(3 * RTT_S)
        windows.append(peer.cwnd(0))
    whole = windows[0]
    expect(windows, [whole, whole // 2, whole // 2, whole // 4])


def window_after_a_probe(twice: bool) -> int:
    """Messages that a path is sent at once, after a probe for its last one; TWICE: which was not lost."""
    peer = Peer(cmt="1", cmt_scheduler="round-robin", max_burst="0")
    last = served(peer, measured(peer), 60)
    peer.say(1)
    (first,) = peer.messages(RTT_S)
    (probe,) = peer.messages(RTO_S / 2)
    expect((probe.path, peer.number(probe)), (first.path, last + 1))
    peer.sack(probe.path, last + 1, twice=(last + 1,) if twice else ())
    peer.listen(HEARD_S)
    peer.say(60)
    return paths(peer.messages(HEARD_S)).count(probe.path)


def a_probe_that_repairs_a_loss_cuts_the_window() -> None:
    cut = window_after_a_probe(twice=False)
    namespace()
    whole = window_after_a_probe(twice=True)
    assert whole >= 2 * cut - 1, (whole, cut)


def window_after_a_late_packet(
    twice: bool, overtaken: bool = False, others: int = 0, counts: bool = True, **settings: str
) -> int:
    """Messages that path 0 is sent at once, after a message of it was retransmitted that was only late.

    TWICE: the peer says that it has got it twice; OVERTAKEN: in a SACK that another one has overtaken;
    OTHERS: so many that the SACK names before it. COUNTS: whether that undoes the cut.
    """
    peer, again, last = retransmitted_though_late(**settings)
    listed = (*range(1, 1 + others), peer.number(again)) if twice else ()
    if overtaken:
        peer.sack(0, last)
        peer.sack(0, last - 1, (last, last), twice=listed)
    else:
        peer.sack(again.path, last, twice=listed)
    for path in (0, 1):  # a message each, so that one more SACK comes over path 0
        peer.say(1)
        last += len(peer.messages(RTT_S))
        peer.sack(path, last)
    peer.listen(HEARD_S)
    expect(shown_counters()["SctpMpCutsUndone"], int(twice and counts))
    peer.say(60)
    return paths(peer.messages(HEARD_S)).count(0)


def a_cut_for_a_packet_that_was_late_is_undone() -> None:
    cut = window_after_a_late_packet(twice=False)
    namespace()
    undone = window_after_a_late_packet(twice=True)
    namespace()
    expect(undone, window_after_a_late_packet(twice=True, overtaken=True))
    assert undone >= 2 * cut - 1, (undone, cut)


def a_duplicate_counts_although_its_sack_acknowledges_nothing() -> None:
    peer, again, last = retransmitted_though_late()
    peer.sack(0, last)
    expect(shown_counters()["SctpMpCutsUndone"], 0)
    peer.sack(1, last, twice=(peer.number(again),))
    peer.listen(HEARD_S)
    expect(shown_counters()["SctpMpCutsUndone"], 1)


def a_duplicate_counts_for_the_path_that_lost_it() -> None:
    """The policy has sent it to the other path, over which the SACK comes as well."""
    cut = window_after_a_late_packet(twice=False, rtx_policy="alternate")
    namespace()
    undone = window_after_a_late_packet(twice=True, rtx_policy="alternate")
    assert undone >= 2 * cut - 1, (undone, cut)


def the_duplicates_that_a_sack_has_beyond_a_limit_do_not_count() -> None:
    undone = window_after_a_late_packet(twice=True, others=MAX_DUPS - 1)
    namespace()
    cut = window_after_a_late_packet(twice=True, others=MAX_DUPS, counts=False)
    assert undone >= 2 * cut - 1, (undone, cut)


def cuts_undone(apart: int) -> int:
    """Of a path that has lost two messages APART, which were only late: the peer has got them twice."""
    peer = Peer(cmt="1", max_burst="0", failover_link="1")
    peer.buffer(16 << 20)
    done = measured(peer)
    ip("link set va1 down")  # all that follows takes one path
    done = served(peer, done, 3000)
    peer.say(2200, SMALL)
    sent = [peer.number(one) for one in peer.messages(RTT_S) if one.path == 0]
    late = next(number for number in sent if number > done + 1 and number + apart in sent)
    last = done + 2200
    peer.sack(0, late - 1, (late + 1, late + apart - 1), (late + apart + 1, last))
    again = numbers(peer, peer.messages(2 * RTT_S))
    expect(again, [late, late + apart])
    peer.sack(0, last, twice=(late, late + apart))
    peer.say(1)
    peer.sack(peer.messages(RTT_S)[0].path, last + 1)
    peer.listen(HEARD_S)
    return shown_counters()["SctpMpCutsUndone"]


def a_cut_stays_when_two_retransmissions_are_not_told_apart() -> None:
    expect(cuts_undone(SAME_BIT - 1), 1)
    namespace()
    expect(cuts_undone(SAME_BIT), 0)


def a_sack_with_no_room_left_tells_of_what_is_below_its_last_block() -> None:
    """Linux reports 16 gaps. Nothing is known yet of what is above them."""
    peer = Peer(cmt="1", cmt_scheduler="primary-first", max_burst="0")
    done = served(peer, measured(peer), 60)
    peer.say(36, SMALL)
    expect(set(paths(peer.messages(RTT_S))), {0})
    peer.say(1, SMALL)
    expect(len(peer.messages(RTT_S)), 1)
    peer.sack(0, done, *((done + number, done + number) for number in (*range(2, 32, 2), 37)))
    again = [number - done for number in numbers(peer, peer.messages(RTT_S))]
    expect(again, [*range(1, 31, 2), *range(31, 37)])


def a_packet_that_overtakes_others_makes_none_of_them_lost() -> None:
    """Seven packets that each need a round trip; the eighth is there at once."""
    peer = Peer(cmt="1", cmt_scheduler="round-robin", max_burst="0")
    done = served(peer, measured(peer), 60)
    peer.say(8)
    sent = [one for one in peer.messages(RTT_S / 4) if one.path == 0]
    first, last = peer.number(sent[0]), peer.number(sent[-1])
    expect((first > done, last > first), (True, True))
    peer.sack(0, first - 1, (last, last))
    expect(numbers(peer, peer.messages(RTT_S * 3 / 4)), [])


def dormant_paths(policy: str) -> list[int]:
    """Where the socket tries when nothing has answered for two timeouts."""
    limits = {"path_max_retrans": "0", "association_max_retrans": "12", "rto_max": "1000"}
    peer = Peer(dormant_policy=policy, **limits)
    measured(peer)
    peer.silent = {0, 1}
    peer.say(1)
    return paths(peer.messages(9 * RTO_S))[3:]


def a_dormant_association_hops() -> None:
    found = dormant_paths("hop")
    expect(len(found) >= 4, True)
    assert shown_counters()["SctpMpDormantMoves"] >= len(found)
    expect({one != other for one, other in pairwise(found)}, {True})


def a_dormant_association_stays_on_the_primary_path() -> None:
    found = dormant_paths("primary")
    expect(len(found) >= 4, True)
    expect(set(found), {0})


def a_fast_retransmission_of_the_oldest_restarts_t3() -> None:
    """RFC 9260 7.2.4, step 4. It is lost as well."""
    peer = Peer(rtx_policy="same")
    done = measured(peer)
    peer.say(5)
    expect(len(peer.messages(RTO_S / 2)), 4)
    for last in (2, 3, 4):
        peer.sack(0, done, (done + 2, done + last))
    first, again = (one for one in peer.messages(2 * RTO_S) if peer.number(one) == done + 1)
    assert again.at_s - first.at_s >= RTO_S, (first.at_s, again.at_s)


def a_cut_after_close_costs_one_timeout() -> None:
    first_timeout = {"path_max_retrans": "0", "pf_enable": "0"}
    policy = {"rtx_policy": "fr-same-rto-alt", "multiple_fast_rtx": "1"}
    for more in ({}, first_timeout, {**policy, **first_timeout}):
        peer = Peer(**more)
        peer.buffer(1_000_000)
        last = served(peer, measured(peer), 60)
        until = last + 200
        peer.say(until - last)
        peer.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 0, 0))
        peer.sock.close()
        peer.silent = {0}
        wait_s = T3_S
        while last < until:
            heard = peer.listen(wait_s)
            last = max(peer.number(one) for one in heard if one.chunk.kind == DATA and one.path == 1)
            peer.sack(1, last)
            wait_s = RTT_S
        peer.send(1, Chunk(ABORT, 0, b""))
        namespace()


def after_a_timeout(policy: str) -> int:
    """Path of new data after a timeout and a SACK for what was sent once, over the path that timed out."""
    peer = Peer(rtx_policy=policy)
    done = measured(peer)
    peer.say(3)
    expect(set(paths(peer.messages(RTT_S))), {0})
    again = peer.messages(T3_S)
    assert done + 3 not in numbers(peer, again), again
    peer.sack(0, done, (done + 3, done + 3))
    peer.messages(HEARD_S)
    peer.say(1)
    return next(one.path for one in peer.messages(RTT_S) if peer.number(one) == done + 4)


def acknowledged_data_brings_back_a_potentially_failed_path() -> None:
    expect(after_a_timeout("same"), 0)


def acknowledged_data_brings_no_path_back_without_a_policy() -> None:
    expect(after_a_timeout("kernel"), 1)


def a_path_that_is_brought_back_has_its_rto_of_before() -> None:
    peer = Peer(rtx_policy="same", rto_min="10")
    done = measured(peer)
    _, before_ms = info(peer.sock, "10.10.0.2")
    assert 1000 * RTT_S < before_ms < 1000 * RTO_S, before_ms
    peer.say(3)
    expect(len(peer.messages(before_ms / 1000 + 2 * TICK_S)), 4)
    expect(info(peer.sock, "10.10.0.2")[1], 2 * before_ms)
    peer.sack(0, done, (done + 3, done + 3))
    expect(info(peer.sock, "10.10.0.2"), (ACTIVE, before_ms))


def probes_of_a_dead_path_end_no_association_whose_other_works() -> None:
    limits = {"path_max_retrans": "0", "association_max_retrans": str(LIMIT), "rto_max": "1000"}
    peer = Peer(failover_heartbeat="1", hb_interval=str(HB_INTERVAL_S * 1000), **limits)
    done = measured(peer)
    peer.silent = {0}
    peer.say(1)
    again = peer.messages(T3_S)[-1]
    expect(again.path, 1)
    peer.sack(1, done + 1)
    heard = peer.listen(HB_INTERVAL_S - 5)
    kinds = [one.chunk.kind for one in heard if one.path == 0]
    assert kinds.count(HEARTBEAT) > 2 * LIMIT, kinds
    expect(shown_counters()["SctpMpFailoverProbes"], 1 + kinds.count(HEARTBEAT))  # one at the timeout
    expect([one.chunk.kind for one in heard].count(ABORT), 0)
    peer.say(1)
    expect(paths(peer.messages(RTT_S)), [1])


def suspecting(paths: int = 2, **settings: str) -> tuple[Peer, int]:
    """A peer whose answers have all taken a round trip, and how many messages it has got."""
    peer = Peer(paths, failover_suspect="1", **settings)
    return peer, measured(peer, 16)


def copied(**settings: str) -> tuple[Peer, int]:
    """One that has got a message by both paths, of which the first is silent; how many it has answered."""
    peer, done = suspecting(**settings)
    peer.silent = {0}
    peer.say(1)
    expect(paths(peer.messages(2 * RTT_S)), [0, 1])
    return peer, done


def an_overdue_message_is_copied_and_its_path_asked() -> None:
    peer, done = suspecting()
    peer.say(1)
    heard = peer.listen(RTO_S / 2)
    first, copy = (one for one in heard if one.chunk.kind == DATA)
    expect((first.path, copy.path), (0, 1))
    expect((peer.number(first), peer.number(copy)), (done + 1, done + 1))
    expect(copy.chunk.flags & IMMEDIATE, IMMEDIATE)
    assert RTT_S < copy.at_s - first.at_s < 2 * RTT_S, copy.at_s - first.at_s
    expect([one.path for one in heard if one.chunk.kind == HEARTBEAT], [0])
    expect(shown_counters()["SctpMpSuspects"], 1)
    peer.sack(1, done + 1)
    peer.say(1)
    expect(paths(peer.messages(RTT_S)), [0])
    expect(shown_counters()["SctpMpSuspectsMoved"], 0)


def copies_take_no_sack_along() -> None:
    """A receiver would take it for an answer over the path of the copy. The second packet is as the first."""
    peer, done = suspecting()
    done = served(peer, done, 20)
    peer.data(1)  # the first SACK of all is not delayed
    peer.listen(HEARD_S)
    peer.silent = {0}
    peer.say(3)
    expect(paths(peer.messages(RTT_S / 2)), [0, 0, 0])
    peer.data(1)
    expect([kinds for path, kinds in kinds_by_packet(peer, 2 * RTT_S) if path == 1], [[DATA]] * 3)


def nothing_is_copied_without_the_setting() -> None:
    peer = Peer()
    measured(peer, 16)
    peer.say(1)
    expect(paths(peer.messages(RTO_S / 2)), [0])


def nothing_is_copied_once_a_program_has_turned_it_off() -> None:
    peer, _ = suspecting()
    peer.say(1)
    choose(peer.sock, 0, option_name=FAILOVER_SUSPECT)
    expect(paths(peer.messages(RTO_S / 2)), [0])


def a_path_that_stays_silent_is_left_once_a_copy_is_answered() -> None:
    peer, done = copied()
    peer.sack(1, done + 1)
    peer.listen(2 * RTT_S)
    peer.say(1)
    expect(paths(peer.messages(RTT_S)), [1])
    expect(shown_counters()["SctpMpSuspectsMoved"], 1)
    expect(reasons(OURS)[0], "overdue")


def a_path_is_not_left_while_no_copy_is_answered() -> None:
    peer, _ = suspecting()
    peer.silent = {0, 1}
    peer.say(1)
    expect(paths(peer.messages(5 * RTT_S)), [0, 1])
    peer.say(1)
    expect(paths(peer.messages(HEARD_S)), [0, 1])
    expect(shown_counters()["SctpMpSuspectsMoved"], 0)


def a_path_is_no_suspect_while_there_is_no_other() -> None:
    peer, _ = copied(failover_link="1")
    ip("link set va1 down")
    peer.listen(2 * RTT_S)
    ip("link set va1 up")
    expect(len(heartbeats(peer.listen(RTO_S / 4), 1)), 1)
    peer.say(1)
    expect(paths(peer.messages(HEARD_S)), [0])


def after_a_second_copy_a_path_is_given_as_long_again() -> None:
    peer, done = suspecting(paths=3)
    peer.silent = {0, 1}
    peer.say(1)
    heard = peer.messages(2.5 * RTT_S + TICK_S)
    expect(paths(heard), [0, 1, 2])
    peer.sack(2, done + 1)
    peer.listen(HEARD_S / 2)
    assert reasons(OURS)[0] != "overdue", reasons(OURS)
    peer.listen(RTT_S)
    expect(reasons(OURS)[0], "overdue")


def an_answer_over_the_path_itself_clears_it() -> None:
    """The receiver answers where data came from, so it was not the copy."""
    peer, done = copied()
    peer.sack(0, done + 1)
    peer.listen(3 * RTT_S)
    peer.say(1)
    expect(paths(peer.messages(HEARD_S)), [0])


def waited_for_a_copy_s(peer: Peer, primary: int = 0) -> float:
    peer.say(1)
    first, copy = peer.messages(RTO_S / 2)
    expect((first.path, copy.path), (primary, 1 - primary))
    return copy.at_s - first.at_s


def a_needless_copy_makes_the_next_wait_longer() -> None:
    for primary in (0, 1):
        peer = Peer(rtts_s=(RTT_S, RTT_S), failover_suspect="1")
        peer.prefer(primary)
        done = measured(peer, 16)
        before = waited_for_a_copy_s(peer, primary)
        peer.sack(1 - primary, done + 1, twice=(done + 1,))
        peer.listen(RTT_S)
        after = waited_for_a_copy_s(peer, primary)
        assert RTT_S / 8 < after - before < RTT_S / 2, (before, after)
        namespace()


def a_needed_copy_makes_no_wait_longer() -> None:
    peer, done = suspecting()
    before = waited_for_a_copy_s(peer)
    peer.sack(1, done + 1)
    peer.listen(RTT_S)
    after = waited_for_a_copy_s(peer)
    assert after - before < RTT_S / 8, (before, after)


def no_more_is_copied_at_once_than_a_burst() -> None:
    peer, done = suspecting(max_burst="2")
    done = served(peer, done, 60)
    peer.silent = {0}
    peer.say(20)
    heard = peer.messages(3 * RTT_S)
    copies = [one for one in heard if one.path == 1]
    assert paths(heard).count(0) > 2, paths(heard)
    expect(len(copies), 2)
    expect(peer.number(copies[0]), done + 1)


def what_may_be_sent_so_often_only_is_not_copied() -> None:
    """RFC 7496 4.1: no more than one retransmission."""
    peer, _ = suspecting(prsctp_enable="1")
    limit(peer, PR_SCTP_RTX, 1)
    peer.say(1)
    expect(paths(peer.messages(RTO_S / 2)), [0])


def on_the_way(**settings: str) -> tuple[Peer, int]:
    """A peer, and the number of a message that is on its way over path 0."""
    peer = Peer(**settings)
    done = measured(peer)
    peer.say(1)
    expect([(one.path, peer.number(one)) for one in peer.messages(HEARD_S)], [(0, done + 1)])
    return peer, done + 1


def ip(command: str) -> None:
    subprocess.run(["ip", *command.split()], check=True)


def retransmitted_at_once(peer: Peer, number: int) -> None:
    expect([(one.path, peer.number(one)) for one in peer.messages(TICK_S + HEARD_S)], [(1, number)])
    expect(shown_counters()["SctpMpLinkFailures"], 1)


def heartbeats(heard: list[Heard], path: int) -> list[Heard]:
    return [one for one in heard if one.path == path and one.chunk.kind == HEARTBEAT]


def a_path_whose_interface_goes_is_left_and_asked_when_it_is_back() -> None:
    peer, number = on_the_way(failover_link="1")
    ip("link set va0 down")
    retransmitted_at_once(peer, number)
    peer.sack(1, number)
    time.sleep(RTO_S)
    ip("link set va0 up")
    expect(len(heartbeats(peer.listen(HEARD_S), 0)), 1)
    peer.say(1)
    expect(paths(peer.messages(RTT_S)), [0])


def an_association_may_have_its_own_failover_link() -> None:
    peer, number = on_the_way()
    choose(peer.sock, 1, option_name=FAILOVER_LINK)
    ip("link set va0 down")
    retransmitted_at_once(peer, number)


def an_interface_that_flaps_is_looked_at_five_times_a_second() -> None:
    peer, _ = on_the_way(failover_link="1")
    heard = []
    for _ in range(20):
        ip("link set va0 down")
        ip("link set va0 up")
        heard += peer.listen(TICK_S)
    assert len(heartbeats(heard, 0)) <= 3, heartbeats(heard, 0)


def a_path_whose_address_goes_is_left() -> None:
    peer, number = on_the_way(failover_link="1")
    ip("addr del 10.10.0.1/24 dev va0")
    retransmitted_at_once(peer, number)


def a_path_whose_route_goes_is_left_when_something_is_sent() -> None:
    peer, number = on_the_way(failover_link="1")
    ip("route del 10.10.0.0/24 dev va0")
    peer.say(1)
    heard = peer.messages(TICK_S + HEARD_S)
    expect([(one.path, peer.number(one)) for one in heard], [(1, number), (1, number + 1)])


def every_path_of_many_associations_is_looked_at() -> None:
    """A hundred with both ends here, so 400 paths; half of them lose their address."""
    write("failover_link", "1")
    for one in ("10.1.0.1", "10.2.0.1"):
        ip(f"addr add {one}/32 dev lo")
    ends = [one_to_many(), *(one_to_one() for _ in range(100))]
    for sock in ends:
        sock.bind(("10.1.0.1", 0))
        sock.setsockopt(SCTP, BINDX_ADD, address("10.2.0.1", sock.getsockname()[1]))
    ends[0].listen()
    for sock in ends[1:]:
        sock.connect(("10.1.0.1", ends[0].getsockname()[1]))
    time.sleep(3 * RTO_INITIAL_S)  # all addresses are confirmed
    ip("addr del 10.2.0.1/32 dev lo")
    time.sleep(2 * TICK_S)
    expect(shown_counters()["SctpMpLinkFailures"], 200)


def an_interface_that_goes_is_nothing_with_the_setting_off() -> None:
    peer, _ = on_the_way()
    ip("link set va0 down")
    expect(peer.messages(RTO_S / 2), [])
    expect(shown_counters()["SctpMpLinkFailures"], 0)


def a_path_without_another_is_not_left() -> None:
    peer, _ = on_the_way(failover_link="1")
    ip("link set va1 down")
    ip("link set va0 down")
    expect(peer.messages(RTO_S / 2), [])
    expect(shown_counters()["SctpMpLinkFailures"], 0)  # both have gone before either is looked at


def after_an_icmp_error(code: int, tag: int = TAG) -> list[tuple[int, int]]:
    """Paths and numbers, from that of what is on its way, of what is sent within a tick."""
    peer, number = on_the_way(failover_link="1")
    peer.silent = {0}
    peer.unreachable(0, code, tag)
    heard = peer.listen(TICK_S + HEARD_S)
    expect(len(heartbeats(heard, 0)), shown_counters()["SctpMpLinkFailures"])
    expect(reasons(OURS)[0], "icmp" if tag == TAG else "set-up")
    return [(one.path, peer.number(one) - number) for one in heard if one.chunk.kind == DATA]


def a_path_that_a_router_calls_unreachable_is_left_and_asked() -> None:
    for code in (NET_UNREACHABLE, HOST_UNREACHABLE):
        expect(after_an_icmp_error(code), [(1, 0)])
        namespace()


def a_router_that_does_not_know_the_tag_is_not_believed() -> None:
    expect(after_an_icmp_error(HOST_UNREACHABLE, TAG + 1), [])


def probes_of_a_failed_path(**settings: str) -> list[Heard]:
    """HEARTBEATs to a path that failed, for ten seconds; new data is back on it when one was answered."""
    peer = Peer(failover_return="1", **settings)
    done = measured(peer)
    peer.silent = {0}
    peer.say(1)
    again = peer.messages(T3_S)[-1]
    expect(again.path, 1)
    peer.sack(1, done + 1)
    found = heartbeats(peer.listen(10), 0)
    peer.silent = set()
    peer.listen(PROBE_S + TICK_S)
    peer.say(1)
    expect(paths(peer.messages(RTT_S)), [0])
    return found


def a_failed_path_is_asked_five_times_a_second() -> None:
    cmt = {"cmt": "1", "cmt_scheduler": "primary-first"}
    for more in ({}, {"failover_heartbeat": "1"}, {"path_max_retrans": "0"}, cmt):
        found = probes_of_a_failed_path(**more)
        waits = [later.at_s - earlier.at_s for earlier, later in pairwise(found)]
        assert min(waits) >= PROBE_S - 3 * TICK_S and max(waits) <= PROBE_S + 2 * TICK_S, (more, waits)
        namespace()


def probes_behind_a_closed_window(closing: bool) -> int:
    """HEARTBEATs to a path that failed, in five seconds, while the peer has no room for what is left."""
    peer = Peer(failover_return="1", path_max_retrans="0")
    done = measured(peer)
    peer.sack(0, done, window=0)
    peer.say(2)
    expect(paths(peer.messages(RTT_S)), [0])
    if closing:
        peer.sock.shutdown(socket.SHUT_WR)
    peer.silent = {0}
    expect(paths(peer.messages(T3_S)), [1])
    peer.sack(1, done, window=0)
    return len(heartbeats(peer.listen(5), 0))


def a_shutdown_behind_a_closed_window_is_not_put_off_by_probes() -> None:
    """Only the back-off of T3-rtx and Association.Max.Retrans end it; answers to probes would undo that."""
    left_open = probes_behind_a_closed_window(closing=False)
    namespace()
    closing = probes_behind_a_closed_window(closing=True)
    assert left_open > 15 and closing <= 1, (left_open, closing)


def frequent_probes_count_as_heartbeats_do() -> None:
    limits = {"path_max_retrans": "0", "association_max_retrans": str(LIMIT), "rto_max": "1000"}
    peer = Peer(failover_return="1", hb_interval=str(HB_INTERVAL_S * 1000), **limits)
    done = measured(peer)
    peer.silent = {0}
    peer.say(1)
    peer.messages(T3_S)
    peer.sack(1, done + 1)
    heard = peer.listen(HB_INTERVAL_S - 5)
    assert len(heartbeats(heard, 0)) > 100, len(heard)
    expect([one.chunk.kind for one in heard].count(ABORT), 0)


def one_probe_in_a_heartbeat_interval_counts() -> None:
    """One that counts ends the association, while the other path has nothing to answer."""
    limits = {"path_max_retrans": "0", "association_max_retrans": "1", "rto_max": "1000"}
    for more in ({}, {"failover_return": "1"}):
        peer = Peer(failover_heartbeat="1", **limits, **more)
        done = measured(peer)
        peer.silent = {0, 1}
        peer.say(1)
        expect(paths(peer.messages(T3_S)), [0, 1])
        peer.sack(1, done + 1)
        assert len(heartbeats(peer.listen(HB_INTERVAL_S - 5), 0)) > 20
        expect(failed(peer.sock), 0)
        peer.listen(10)
        expect(failed(peer.sock), errno.ETIMEDOUT)
        namespace()


def failed(sock: socket.socket) -> int:
    return sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)


def after_two_timeouts(over: int) -> int:
    """Path of new data after two timeouts of path 0, one of which fails it not yet.

    In between something that path 1 has lost is sent again to path 0, and acknowledged over path OVER.
    """
    peer = Peer(rtx_policy="alternate", path_max_retrans="1", pf_enable="0", rto_max="1000")
    done = measured(peer)
    peer.say(1)
    expect(paths(peer.messages(T3_S)), [0, 1])
    peer.sack(1, done + 1)
    peer.prefer(1)
    peer.say(1)
    expect(paths(peer.messages(T3_S)), [1, 0])
    peer.sack(over, done + 2)
    peer.prefer(0)
    peer.say(1)
    expect(paths(peer.messages(T3_S)), [0, 1])
    peer.sack(1, done + 3)
    peer.say(1)
    return peer.messages(HEARD_S)[0].path


def what_may_have_come_over_another_path_clears_no_error_counter() -> None:
    expect(after_two_timeouts(over=1), 1)
    namespace()
    expect(after_two_timeouts(over=0), 0)


def a_confirmed_path_takes_the_place_of_one_that_is_removed() -> None:
    peer = Peer(paths=3, silent=[1], addip_enable="1", addip_noauth_enable="1")
    peer.remove(0, over=2)
    peer.say(1)
    expect(paths(peer.messages(HEARD_S)), [2])


def an_active_path_takes_the_place_of_one_that_is_removed() -> None:
    """Before one that has failed, and one that is not confirmed."""
    peer = Peer(paths=4, silent=[1], addip_enable="1", addip_noauth_enable="1", hb_interval="1000")
    peer.silent = {1, 2}
    while peer.states()[2] == ACTIVE:
        peer.listen(RTT_S)
    peer.remove(0, over=3)
    peer.say(1)
    expect(paths(peer.messages(HEARD_S)), [3])


def a_shutdown_takes_no_gap_ack_back() -> None:
    """It has a Cumulative TSN Ack only.  The missing message is retransmitted alone."""
    peer = Peer(1)
    done = measured(peer)
    peer.say(4, size=SMALL)
    expect(len(peer.messages(HEARD_S)), 4)
    peer.sack(0, done, (done + 2, done + 4))
    peer.send(0, Chunk(SHUTDOWN, 0, struct.pack("!I", peer.first - 1 + done)))
    expect(numbers(peer, peer.messages(T3_S)), [done + 1])


def the_peer_is_told_at_once_of_what_expired_where_it_removed_an_address() -> None:
    """No T3-rtx is left that would do so, RFC 3758 3.5 A5."""
    peer = Peer(rtx_policy="same", prsctp_enable="1", addip_enable="1", addip_noauth_enable="1")
    done = measured(peer)
    limit(peer, PR_SCTP_TTL, int(1000 * RTT_S))
    peer.say(1)
    lost = paths(peer.messages(2 * RTT_S))[0]
    peer.remove(lost, over=1 - lost)
    told = [one for one in peer.listen(HEARD_S) if one.chunk.kind == FORWARD_TSN]
    expect([(one.path, peer.number(one)) for one in told], [(1 - lost, done + 1)])


def as_much_is_reneged_on_as_had_migrated() -> None:
    """Two messages move with their address; a SACK has one and takes back one of the path they came to."""
    peer = Peer(addip_enable="1", addip_noauth_enable="1")
    done = measured(peer)
    peer.say(2, size=SMALL)
    lost = paths(peer.messages(HEARD_S))[0]
    other = 1 - lost
    peer.remove(lost, over=other)
    peer.say(1, size=SMALL)
    expect(paths(peer.messages(HEARD_S)), [other])
    peer.sack(other, done, (done + 3, done + 3))
    peer.sack(other, done, (done + 2, done + 2))
    peer.sack(other, done + 3)
    peer.say(1, size=SMALL)
    expect(numbers(peer, peer.messages(HEARD_S)), [done + 4])


def migrated(messages: int) -> tuple[Peer, int, int]:
    """A peer that removes the address that it was sent messages at; the other path; the last one before."""
    peer = Peer(addip_enable="1", addip_noauth_enable="1")
    done = measured(peer)
    peer.say(messages, size=SMALL)
    lost = paths(peer.messages(HEARD_S))[0]
    peer.remove(lost, over=1 - lost)
    peer.listen(HEARD_S)
    return peer, 1 - lost, done


def what_migrated_and_is_reneged_on_is_outstanding_again() -> None:
    peer, other, done = migrated(2)
    peer.sack(other, done, (done + 2, done + 2))
    peer.sack(other, done)
    peer.sack(other, done + 2)
    peer.say(1, size=SMALL)
    expect(numbers(peer, peer.messages(HEARD_S)), [done + 3])


def what_migrated_is_retransmitted_although_the_rest_is_acknowledged() -> None:
    peer, other, done = migrated(1)
    peer.say(1, size=SMALL)
    expect(paths(peer.messages(HEARD_S)), [other])
    peer.sack(other, done, (done + 2, done + 2))
    expect(numbers(peer, peer.messages(T3_S)), [done + 1])


def what_goes_again_from_a_path_that_is_removed_keeps_no_window_closed() -> None:
    """The path that carries it takes new data as well before that is acknowledged."""
    settings = {"cmt": "1", "cmt_scheduler": "round-robin", "max_burst": "0"}
    peer = Peer(paths=3, addip_enable="1", addip_noauth_enable="1", **settings)
    served(peer, measured(peer), 30)
    peer.say(3)
    expect(sorted(paths(peer.messages(HEARD_S))), [0, 1, 2])
    peer.remove(0, over=1)
    expect(len(peer.messages(HEARD_S)), 1)
    peer.say(6)
    expect({*paths(peer.messages(HEARD_S))}, {1, 2})


def two_sacks_in_a_packet_take_a_chunk_out_of_flight_once() -> None:
    """The first marks it for fast retransmission, the second acknowledges it; then another is lost."""
    peer = Peer(paths=1, max_burst="0")
    done = served(peer, measured(peer), 30)
    peer.say(12)
    path = peer.messages(RTT_S)[0].path
    for last in (3, 4):
        peer.sack(path, done, (done + 3, done + last))
    marks = peer.sack_chunk(done, (done + 3, done + 5))
    peer.send(path, marks, peer.sack_chunk(done, (done + 2, done + 5)))
    expect(numbers(peer, peer.messages(HEARD_S)), [done + 1])
    for last in (7, 8, 9):
        peer.sack(path, done, (done + 2, done + 5), (done + 7, done + last))
    assert done + 6 in numbers(peer, peer.messages(HEARD_S))
    peer.sack(path, done + 12)
    peer.say(2)
    expect(numbers(peer, peer.messages(HEARD_S)), [done + 13, done + 14])


def a_burst_of_any_length_may_be_sent() -> None:
    """2^30 times the path MTU is 0 in 32 bits."""
    peer = Peer(max_burst=str(1 << 30))
    done = measured(peer)
    peer.say(2)
    expect(numbers(peer, peer.messages(HEARD_S)), [done + 1, done + 2])


def retransmitted_in_order() -> list[int]:
    """Six messages over two paths by turns, all lost, as they are sent once more and acknowledged at once."""
    peer = Peer()
    done = measured(peer)
    for number in range(6):
        peer.prefer(number % 2)
        peer.say(1)
    expect(by_path(peer.messages(HEARD_S)), [3, 3])
    again: list[int] = []
    whole = 0  # of the first ones, so many have come
    while whole < 6:
        for one in peer.messages(HEARD_S):
            again.append(peer.number(one) - done)
            whole = max(number for number in range(7) if {*range(1, 1 + number)} <= {*again})
            blocks = ((done + number, done + number) for number in sorted({*again}) if number > whole)
            peer.sack(one.path, done + whole, *blocks)
    return again


def what_timed_out_on_two_paths_is_retransmitted_in_order() -> None:
    again = retransmitted_in_order()  # a packet of each path leaves when its timer expires
    expect((sorted(again[:2]), again[2:]), ([1, 2], [3, 4, 5, 6]))


def missing_after(blocks: Sequence[tuple[int, int]], **settings: str) -> list[int]:
    """Messages of eight that timeouts retransmit, the first of which arrives; all count from 1."""
    peer = Peer(**settings)
    done = served(peer, measured(peer), 60)
    peer.say(8)
    path = peer.messages(RTT_S)[0].path
    again: list[int] = []
    for received in (0, 1):
        peer.sack(path, done + received, *((done + low, done + high) for low, high in blocks))
        again += numbers(peer, peer.messages(2 * RTO_S))
    return sorted({number - done for number in again})


def gap_ack_blocks_may_come_in_any_order_and_overlap() -> None:
    blocks = [(7, 8), (2, 3), (6, 5), (4, 4), (2, 3), (7, 7)]
    for settings in ({}, {"cmt": "1"}, {"rtx_policy": "same"}):
        expect(missing_after(blocks, **settings), [1, 5, 6])
        namespace()


def window_after(taken_back: bool) -> int:
    """Messages that are sent at once after 60 SACKs in congestion avoidance, one of which took data back."""
    peer = Peer(window=4 * 1500, max_burst="0", rtx_policy="same")
    done = served(peer, measured(peer), 30)
    peer.say(60)
    sent = len(peer.messages(RTT_S))
    peer.sack(0, done + 2)
    later = (done + 5, done + sent + len(peer.messages(HEARD_S)))
    peer.sack(0, done + 2, later)
    peer.sack(0, done + 3, *(() if taken_back else (later,)))
    for number in range(done + 4 if taken_back else later[1], done + 61):
        peer.listen(HEARD_S)
        peer.sack(0, number)
    peer.listen(HEARD_S)
    peer.say(60)
    return len(peer.messages(HEARD_S))


def data_that_is_taken_back_opens_no_window() -> None:
    usual = window_after(taken_back=False)
    namespace()
    taken = window_after(taken_back=True)
    assert usual <= taken <= usual + 1, (taken, usual)


def a_window_probe_that_is_answered_fails_no_path() -> None:
    """The peer drops it, and says that its window is closed; once it says nothing, that is an error.

    Between an answered probe and the HEARTBEAT that follows it the path is potentially failed. The timeout of
    the last probe with an answer is followed by that of one without, a second later, on either path.
    """
    for settings in ({}, {"cmt": "1"}, {"failover_heartbeat": "1"}):
        peer = Peer(rto_max="1000", path_max_retrans="0", **settings)
        done = measured(peer)
        peer.say(2)
        last = peer.messages(RTT_S)[-1]
        peer.sack(last.path, done + 2, window=0)
        peer.say(3)
        probes = 0
        until = time.monotonic() + 10 * RTO_S
        while time.monotonic() < until:
            for one in peer.messages(RTT_S):
                expect(peer.number(one), done + 3)
                peer.sack(one.path, done + 2, window=0)
                probes += 1
            assert INACTIVE not in peer.states(), probes
        assert probes >= 7, probes
        peer.silent = {0, 1}
        peer.listen(3 * T3_S)
        assert INACTIVE in peer.states()
        peer.silent = set()
        peer.sack(0, done + 2)
        answered(peer, done + 2, done + 5)
        namespace()


def a_link_local_peer_is_named_with_its_interface() -> None:
    """Whole messages, and those that are fragmented, received by GSO, or read in parts."""
    ip("link set lo up")
    ip("link add ll type veth peer name other")
    for name in ("ll", "other"):
        ip(f"link set {name} addrgenmode none up")
    ip("addr add fe80::1/64 dev ll nodad")
    scope = socket.if_nametoindex("ll")
    server, client = (one_to_many(socket.AF_INET6) for _ in range(2))
    server.bind(("fe80::1", THEIRS, 0, scope))
    server.listen()
    client.bind(("fe80::1", OURS, 0, scope))
    for size in (1, SMALL, 1400, 5000, 20000):
        client.sendto(bytes(size), ("fe80::1", THEIRS, 0, scope))
        left = size
        while left:
            data, source = server.recvfrom(max(1, size // 2))
            expect(source, ("fe80::1", OURS, 0, scope))
            left -= len(data)
    server.sendto(b"answer", source)
    expect(client.recvfrom(SMALL)[0], b"answer")


def a_small_message_waits_for_an_answer() -> None:
    """Nagle's algorithm, with a policy that has rules of its own for windows."""
    peer = Peer(rtx_policy="same")
    done = measured(peer)
    peer.sock.setsockopt(SCTP, NODELAY, 0)
    peer.say(2, SMALL)
    expect(numbers(peer, peer.messages(HEARD_S)), [done + 1])
    peer.sack(0, done + 1)
    expect(numbers(peer, peer.messages(HEARD_S)), [done + 2])


def a_small_message_that_is_lost_waits_for_no_answer_of_another_path() -> None:
    """Nor does Nagle's algorithm hold back what is retransmitted."""
    peer = Peer(rtts_s=(RTT_S, RTT_S), cmt="1", cmt_scheduler="round-robin")
    done = measured(peer)
    for _ in range(8):
        peer.say(1, SMALL)
    sent = peer.messages(RTT_S)
    expect(by_path(sent), [4, 4])
    lost, *others = (peer.number(one) for one in sent if one.path == 0)
    assert lost <= done + 2, lost
    peer.sock.setsockopt(SCTP, NODELAY, 0)
    peer.sack(0, lost - 1, *((number, number) for number in others))
    expect([(one.path, peer.number(one)) for one in peer.messages(RTT_S)], [(0, lost)])


def retransmitted_with_keys(*keys: int) -> list[int]:
    """Of lost messages that are authenticated with these keys: which come again at the third report.

    More is outstanding than the window that is left when they have cut it.
    """
    peer = Peer(rtx_policy="same", max_burst="0", auth_enable="1")
    secret = b"secret"
    peer.sock.setsockopt(SCTP, AUTH_KEY, struct.pack("=iHH", 0, 1, len(secret)) + secret)
    done = served(peer, measured(peer), 60)
    for key in keys:
        peer.sock.sendmsg([bytes(SMALL)], [(SCTP, AUTHINFO, struct.pack("=H", key))])
    peer.say(80)
    last = done + len(peer.messages(RTT_S))
    assert done + 80 > last > done + len(keys) + 20, last
    first = done + len(keys) + 1
    for number in range(first, first + 3):
        peer.sack(0, done, (first, number))
    again = numbers(peer, peer.messages(HEARD_S))
    return [number - done for number in again if number < first]


def one_packet_exceeds_the_window_whatever_its_key() -> None:
    """RFC 9260 7.2.4 step 3; data with one key does not go into a packet of another (RFC 4895 5.1)."""
    expect(retransmitted_with_keys(0, 0, 0, 1, 1, 1), [1, 2, 3])
    namespace()
    expect(retransmitted_with_keys(0, 1, 0, 1, 0, 1), [1])


def the_last_packet_of_a_full_send_buffer_is_sent() -> None:
    peer = Peer(cmt="1", max_burst="0")
    done = served(peer, measured(peer), 60)
    peer.buffer(64 << 10)
    written = peer.fill(SMALL)
    expect(written > 40, True)
    expect(numbers(peer, peer.messages(HEARD_S)), list(range(done + 1, done + 1 + written)))


def by_path(sent: list[Heard]) -> list[int]:
    """How many of them each path was sent."""
    return [paths(sent).count(path) for path in (0, 1)]


def ahead(peer: Peer, heard: Heard) -> bool:
    """Was a message sent before an older one?  Messages and TSNs count from the same one."""
    return 0 < (heard.chunk.ssn + 1 - peer.number(heard)) % (1 << 16) < 1 << 15


def a_slow_path_is_sent_what_is_due_when_it_arrives() -> None:
    wires = (Wire(FAST, RTT_S), Wire(FAST, 20 * RTT_S))
    peer = Peer(window=1_000_000, rtts_s=[wire.rtt_s for wire in wires], cmt="1")
    peer.buffer(3_000_000)
    sent = Line(peer, measured(peer), wires).transfer(1400, TRANSFER_S)
    found = [one.path for one in sent if ahead(peer, one)]
    expect(set(found), {1})
    assert 2 * len(found) > by_path(sent)[1] > 50, (len(found), by_path(sent))


def messages_a_little_larger_than_a_packet_are_not_held_back() -> None:
    """Their second chunks have a few bytes, of which a send buffer would hold next to nothing."""
    rate = FAST / 2
    wires = (Wire(rate, RTT_S), Wire(rate, 1.5 * RTT_S))
    peer = Peer(rtts_s=[wire.rtt_s for wire in wires], cmt="1")
    peer.buffer(1_000_000)
    sent = Line(peer, measured(peer), wires).transfer(1470, TRANSFER_S)
    carried = sum(len(one.chunk.packed()) for one in sent)
    assert carried > 0.9 * rate * TRANSFER_S, by_path(sent)


def windows_grow_although_paths_send_in_runs() -> None:
    """An eighth of a window is free before a run begins. Two paths that differ have gaps enough for that."""
    wires = (Wire(FAST, RTT_S), Wire(FAST, 3 * RTT_S))
    peer = Peer(rtts_s=[wire.rtt_s for wire in wires], cmt="1")
    peer.buffer(3_000_000)
    sent = Line(peer, measured(peer), wires).transfer(1400, TRANSFER_S)
    carried = sum(len(one.chunk.packed()) for one in sent)
    assert carried > 1.7 * FAST * TRANSFER_S, by_path(sent)


def carried_with_a_small_window(window: int, **settings: str) -> int:
    wires = (Wire(FAST / 2, RTT_S), Wire(FAST / 2, 4 * RTT_S))
    peer = Peer(window=window, rtts_s=[wire.rtt_s for wire in wires], **settings)
    return len(Line(peer, measured(peer), wires).transfer(SMALL, TRANSFER_S))


def with_a_window_of_few_packets_all_paths_carry_what_one_does() -> None:
    """But for a tenth: packets leave at other times, so a round trip takes a packet's time longer."""
    for window in (3000, 4096, 8000):
        namespace()
        one = carried_with_a_small_window(window)
        namespace()
        both = carried_with_a_small_window(window, cmt="1")
        assert both > 0.9 * one, (window, one, both)


CASES: list[Callable[[], None]] = [
    delayed_sacks_take_the_paths_in_turn,
    a_sack_says_how_many_packets_it_is_for,
    data_takes_the_sack_of_its_path_along,
    a_copy_of_a_sack_puts_off_no_sack,
    a_loss_at_the_tail_is_probed_for_before_the_timeout,
    a_loss_at_the_tail_waits_for_the_timeout_without_cmt,
    what_is_retransmitted_asks_for_a_sack,
    what_is_retransmitted_asks_for_no_sack_without_cmt,
    data_behind_a_loss_that_time_shows_is_probed_for,
    data_behind_what_is_given_up_is_retransmitted,
    new_data_behind_what_is_given_up_has_a_timeout_of_its_own,
    an_answer_puts_the_probe_off,
    a_probe_that_repairs_a_loss_cuts_the_window,
    sacks_that_are_longer_than_usual_leave_no_memory_behind,
    one_report_does_when_no_more_will_come,
    one_report_does_not_without_cmt,
    a_window_grows_by_both_packets_that_a_sack_is_for,
    a_mark_cuts_a_window_once_though_it_is_echoed_over_both_paths,
    a_cut_for_a_packet_that_was_late_is_undone,
    a_duplicate_counts_although_its_sack_acknowledges_nothing,
    a_duplicate_counts_for_the_path_that_lost_it,
    the_duplicates_that_a_sack_has_beyond_a_limit_do_not_count,
    a_cut_stays_when_two_retransmissions_are_not_told_apart,
    a_sack_with_no_room_left_tells_of_what_is_below_its_last_block,
    a_packet_that_overtakes_others_makes_none_of_them_lost,
    a_fast_retransmission_of_the_oldest_restarts_t3,
    a_cut_after_close_costs_one_timeout,
    a_dormant_association_hops,
    a_dormant_association_stays_on_the_primary_path,
    acknowledged_data_brings_back_a_potentially_failed_path,
    acknowledged_data_brings_no_path_back_without_a_policy,
    a_path_that_is_brought_back_has_its_rto_of_before,
    probes_of_a_dead_path_end_no_association_whose_other_works,
    an_overdue_message_is_copied_and_its_path_asked,
    copies_take_no_sack_along,
    nothing_is_copied_without_the_setting,
    nothing_is_copied_once_a_program_has_turned_it_off,
    a_path_that_stays_silent_is_left_once_a_copy_is_answered,
    a_path_is_not_left_while_no_copy_is_answered,
    a_path_is_no_suspect_while_there_is_no_other,
    after_a_second_copy_a_path_is_given_as_long_again,
    an_answer_over_the_path_itself_clears_it,
    a_needless_copy_makes_the_next_wait_longer,
    a_needed_copy_makes_no_wait_longer,
    no_more_is_copied_at_once_than_a_burst,
    what_may_be_sent_so_often_only_is_not_copied,
    a_path_whose_interface_goes_is_left_and_asked_when_it_is_back,
    an_association_may_have_its_own_failover_link,
    an_interface_that_flaps_is_looked_at_five_times_a_second,
    a_path_whose_address_goes_is_left,
    a_path_whose_route_goes_is_left_when_something_is_sent,
    every_path_of_many_associations_is_looked_at,
    an_interface_that_goes_is_nothing_with_the_setting_off,
    a_path_without_another_is_not_left,
    a_path_that_a_router_calls_unreachable_is_left_and_asked,
    a_router_that_does_not_know_the_tag_is_not_believed,
    a_failed_path_is_asked_five_times_a_second,
    a_shutdown_behind_a_closed_window_is_not_put_off_by_probes,
    frequent_probes_count_as_heartbeats_do,
    one_probe_in_a_heartbeat_interval_counts,
    *control.CASES,
    *buffers.CASES,
    *overdue.CASES,
    *setup.CASES,
    *useless.CASES,
    *twice.CASES,
    what_may_have_come_over_another_path_clears_no_error_counter,
    a_confirmed_path_takes_the_place_of_one_that_is_removed,
    an_active_path_takes_the_place_of_one_that_is_removed,
    a_shutdown_takes_no_gap_ack_back,
    what_goes_again_from_a_path_that_is_removed_keeps_no_window_closed,
    the_peer_is_told_at_once_of_what_expired_where_it_removed_an_address,
    as_much_is_reneged_on_as_had_migrated,
    what_migrated_and_is_reneged_on_is_outstanding_again,
    what_migrated_is_retransmitted_although_the_rest_is_acknowledged,
    two_sacks_in_a_packet_take_a_chunk_out_of_flight_once,
    a_burst_of_any_length_may_be_sent,
    what_timed_out_on_two_paths_is_retransmitted_in_order,
    gap_ack_blocks_may_come_in_any_order_and_overlap,
    data_that_is_taken_back_opens_no_window,
    a_window_probe_that_is_answered_fails_no_path,
    a_link_local_peer_is_named_with_its_interface,
    a_small_message_waits_for_an_answer,
    a_small_message_that_is_lost_waits_for_no_answer_of_another_path,
    one_packet_exceeds_the_window_whatever_its_key,
    the_last_packet_of_a_full_send_buffer_is_sent,
    a_slow_path_is_sent_what_is_due_when_it_arrives,
    messages_a_little_larger_than_a_packet_are_not_held_back,
    windows_grow_although_paths_send_in_runs,
    with_a_window_of_few_packets_all_paths_carry_what_one_does,
]


def and_nothing_is_left(case: Callable[[], None], first: str) -> str:
    """How the case went wrong, or that its namespace does not end: a reference to a path or a socket is lost.

    A namespace takes its devices along, and a veth its other end, which is in FIRST here, another namespace.
    """

    @wraps(case)
    def marked() -> None:
        ip(f"link add mark type veth peer name mark netns {first}")
        case()

    def in_first(command: str) -> int:
        argv = ["nsenter", f"--net={first}", "ip", *command.split()]
        return subprocess.run(argv, capture_output=True, check=False).returncode

    wrong = outcome(marked, LIMIT_S)
    namespace()
    gc.collect()
    until = time.monotonic() + GONE_S
    while in_first("link show mark") == 0:
        if time.monotonic() > until:
            in_first("link delete mark")
            return wrong or f"the namespace is still there after {GONE_S} s"
        time.sleep(GONE_S / 100)
    return wrong


def carry_out(plan: dict[str, Any]) -> dict[str, Any]:
    """All cases, or those that the plan names; a kernel with faults may lose namespaces."""
    if chosen := plan.get("cases"):
        return {
            "status": "ok",
            "cases": {case.__name__: outcome(case, LIMIT_S) for case in CASES if case.__name__ in chosen},
        }
    with open("/proc/self/ns/net", encoding="ascii") as place:
        first = f"/proc/{os.getpid()}/fd/{place.fileno()}"
        return {"status": "ok", "cases": {case.__name__: and_nothing_is_left(case, first) for case in CASES}}
