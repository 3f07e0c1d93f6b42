# SPDX-License-Identifier: GPL-2.0
"""Data sent over two paths at once, a peer driven packet by packet: one function per case.

Standard library only.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Callable

from options import (
    SCTP,
    choose,
    chosen,
    expect,
    namespace,
    one_to_many,
    one_to_one,
    refused,
    setting,
    shown_counters,
    write,
)
from peer import HEARTBEAT, IMMEDIATE, PR_SCTP_NONE, PR_SCTP_TTL, Heard, Peer, limit

BYTES, PERCENT = 0x128A, 0x128B
LIMITS = {"redundant_bytes": (BYTES, 65535), "redundant_pct": (PERCENT, 100)}
SNDINFO, DEFAULT_SNDINFO = 2, 34
TWICE, UNUSED = 1 << 14, 1 << 13  # of snd_flags
RTT_S, RTO_S, HEARD_S = 0.02, 1.0, 0.01
SMALL, LARGE = 100, 1400
CWND = 6000  # of a path that has carried nothing but a HEARTBEAT
REDUNDANT = {"cmt": "1", "cmt_scheduler": "redundant"}
BOTH, FIRST = [0, 1], [0]


def sent(peer: Peer, size: int = SMALL) -> list[Heard]:
    """One message, and what leaves for it at once."""
    peer.say(1, size)
    return peer.messages(HEARD_S)


def paths(heard: list[Heard]) -> list[int]:
    return [one.path for one in heard]


def flagged(peer: Peer, flags: int) -> list[int]:
    """The paths that a message with these flags takes."""
    info = struct.pack("=HHIIi", 0, flags, 0, 0, 0)
    peer.sock.sendmsg([bytes(SMALL)], [(SCTP, SNDINFO, info)])
    return paths(peer.messages(HEARD_S))


def what_goes_twice_is_a_number_within_its_limits() -> None:
    for name, (option, most) in LIMITS.items():
        expect((setting(name), chosen(one_to_one(), option_name=option)), ("0", 0))
        for value in (1, 100, most, 0):
            write(name, f"{value}\n")
            expect((setting(name), chosen(one_to_many(), option_name=option)), (str(value), value))
            namespace()
            expect((setting(name), chosen(one_to_one(), option_name=option)), ("0", 0))
            sock = one_to_one()
            choose(sock, value, option_name=option)
            expect(chosen(sock, option_name=option), value)
        for wrong in (-1, most + 1, most + 256, "x"):
            refused(errno.EINVAL, write, name, str(wrong))
        for wrong in (most + 1, 1 << 31, 0xFFFFFFFF):
            refused(errno.EINVAL, choose, one_to_one(), wrong, 0, option)
        expect(setting(name), "0")


def nothing_goes_twice_by_default() -> None:
    expect(paths(sent(Peer())), FIRST)


def a_small_message_goes_out_over_both_paths_with_one_tsn() -> None:
    peer = Peer(redundant_bytes=str(SMALL))
    first, copy = sent(peer)
    expect((first.path, copy.path), (0, 1))
    expect((peer.number(first), peer.number(copy)), (1, 1))
    expect((first.chunk.body, copy.chunk.flags & IMMEDIATE), (copy.chunk.body, IMMEDIATE))
    expect(shown_counters()["SctpMpCopies"], 1)
    peer.sack(0, 1, twice=(1,))
    expect(paths(sent(peer, SMALL + 1)), FIRST)


def a_message_of_several_chunks_is_no_small_one() -> None:
    peer = Peer(redundant_bytes="65535")
    expect(set(paths(sent(peer, 2 * LARGE))), {0})


def all_new_chunks_go_twice_with_the_scheduler() -> None:
    peer = Peer(rtts_s=(RTT_S, RTT_S), **REDUNDANT)
    for number in range(1, 9):
        expect(sorted(paths(sent(peer, LARGE))), BOTH)
        peer.sack(number % 2, number)


def the_scheduler_means_nothing_without_cmt() -> None:
    expect(paths(sent(Peer(cmt_scheduler="redundant"))), FIRST)


def a_program_asks_for_it_by_message() -> None:
    peer = Peer()
    expect(flagged(peer, TWICE), BOTH)
    peer.sack(0, 1)
    expect(flagged(peer, 0), FIRST)
    peer.sack(0, 2)
    refused(errno.EINVAL, flagged, peer, UNUSED)
    peer.sock.setsockopt(SCTP, DEFAULT_SNDINFO, struct.pack("=HHIIi", 0, TWICE, 0, 0, 0))
    expect(paths(sent(peer)), BOTH)


def with_one_path_the_flag_means_nothing() -> None:
    expect(flagged(Peer(1), TWICE), FIRST)


def copies_take_room_in_the_window_of_their_path() -> None:
    peer = Peer(redundant_bytes=str(LARGE))
    number = 0
    while number < 64:  # path 0 earns a window that path 1 does not
        peer.say(8, LARGE)
        for one in peer.messages(RTT_S):
            number = max(number, peer.number(one))
            peer.sack(0, number)
        peer.sack(1, number)
    peer.messages(RTT_S)
    peer.say(8, LARGE)
    found = paths(peer.messages(HEARD_S))
    expect((found.count(0), found.count(1)), (8, CWND // LARGE))
    peer.sack(0, number + 8)
    expect(paths(sent(peer, LARGE)), BOTH)


def copies_take_room_until_their_path_has_brought_them() -> None:
    """The peer reports one duplicate, so that it is known to report them, and no more. None is overdue."""
    peer = Peer(rtts_s=(8 * RTT_S, 8 * RTT_S), redundant_bytes=str(LARGE))
    expect(paths(sent(peer, LARGE)), BOTH)
    peer.sack(0, 1)
    peer.sack(1, 1, twice=(1,))
    found = []
    for number in range(2, 12):
        found += paths(sent(peer, LARGE))
        peer.sack(0, number)
    expect((found.count(0), found.count(1)), (10, CWND // LARGE))


def a_copy_takes_no_room_when_its_chunk_is_acknowledged_though_others_are_not() -> None:
    peer = Peer(rtts_s=(RTT_S, RTT_S), redundant_bytes=str(LARGE))
    sent(peer, LARGE)
    for number in range(2, 12):
        expect(paths(sent(peer, LARGE)), BOTH)
        peer.sack(0, number - 1)


def measured(**settings: str) -> tuple[Peer, int]:
    """A peer whose paths are known to take a round trip, and the messages that it has answered."""
    peer = Peer(rtts_s=(RTT_S, RTT_S), **settings)
    for number in (1, 2, 3):
        sent(peer)
        peer.sack(0, number)
        peer.listen(RTT_S)
    return peer, number


def copies_give_their_room_back_when_they_are_turned_off() -> None:
    """And on again, time after time, with copies outstanding; what they carry is acknowledged meanwhile."""
    peer, done = measured(redundant_bytes=str(LARGE))
    for _ in range(2 * CWND // LARGE):
        expect(paths(sent(peer, LARGE)), BOTH)
        done += 1
        choose(peer.sock, 0, option_name=BYTES)
        peer.sack(0, done)
        choose(peer.sock, LARGE, option_name=BYTES)


def a_copy_is_not_retransmitted() -> None:
    peer, _ = measured(redundant_bytes=str(SMALL))
    expect(paths(sent(peer)), BOTH)
    peer.silent = {0, 1}
    expect(len(peer.messages(1.5 * RTO_S)), 1)


def a_dead_path_is_found_although_the_copies_arrive() -> None:
    peer, done = measured(redundant_bytes=str(SMALL))
    peer.silent = {0}
    for number in range(done + 1, done + 20):
        sent(peer)
        peer.sack(1, number)
        peer.listen(RTT_S)
    expect(paths(sent(peer)), [1])
    counters = shown_counters()
    expect((counters["SctpMpSuspects"], counters["SctpMpSuspectsMoved"]), (1, 1))
    expect(counters["SctpT3RtxExpireds"], 0)


def a_path_that_answers_after_the_copies_is_no_suspect() -> None:
    peer, done = measured(redundant_bytes=str(SMALL))
    for number in range(done + 1, done + 40):
        sent(peer)
        peer.sack(1, number)
        peer.listen(RTT_S / 2)
        peer.sack(0, number, twice=(number,))
    expect(shown_counters()["SctpMpSuspects"], 0)


def what_copies_overtake_is_not_reported_missing() -> None:
    peer = Peer(redundant_bytes=str(SMALL))
    expect(paths(sent(peer, LARGE)), FIRST)
    peer.say(5, SMALL)
    for last in range(2, 7):
        peer.sack(1, 0, (2, last))
    expect([one for one in peer.messages(HEARD_S) if peer.number(one) == 1], [])


def what_is_lost_twice_is_copied_once_more_when_a_later_copy_is_answered() -> None:
    peer = Peer(rtts_s=(RTT_S, RTT_S), redundant_bytes=str(SMALL))
    soon_s = RTT_S / 20  # no path is suspect before a round trip has passed
    for _ in range(3):  # one after the other: virtual time may stand still between two calls
        peer.say(1, SMALL)
        expect(sorted(paths(peer.messages(soon_s))), BOTH)
    peer.sack(0, 0, (2, 2))
    expect(peer.messages(soon_s), [])
    peer.listen(1.25 * RTT_S)  # as long as the original and the copy may take
    peer.sack(1, 0, (2, 3))
    expect([(one.path, peer.number(one)) for one in peer.messages(soon_s)], [(1, 1)])
    peer.sack(1, 0, (2, 3))  # that copy may be on its way
    expect(peer.messages(soon_s), [])
    peer.say(1, SMALL)
    expect(sorted((one.path, peer.number(one)) for one in peer.messages(soon_s)), [(0, 4), (1, 4)])
    peer.listen(1.25 * RTT_S)
    peer.sack(1, 0, (2, 4))  # and now it is not
    expect([(one.path, peer.number(one)) for one in peer.messages(soon_s)], [(1, 1)])


def a_heartbeat_measures_a_path_that_carries_what_goes_twice() -> None:
    peer = Peer(redundant_bytes=str(SMALL))
    asked = []
    for number in range(1, 26):
        sent(peer)
        peer.sack(0, number)
        peer.sack(1, number, twice=(number,))
        asked += [one.path for one in peer.listen(1) if one.chunk.kind == HEARTBEAT]
    expect(asked.count(0), 3)


def copies_of_the_last_stay_within_the_budget() -> None:
    peer = Peer(redundant_pct="10")
    copies = 0
    for number in range(1, 101):
        copies += paths(sent(peer, LARGE)).count(1)
        peer.sack(0, number)
        peer.sack(1, number, twice=(number,))
    assert 5 <= copies <= 10, copies


def earned(path: int, rounds: int = 16) -> tuple[Peer, int]:
    """A peer that gets four full messages at a time by two paths, over PATH first; the messages so far.

    It answers the first of the two, and reports the second.
    """
    peer = Peer(rtts_s=(RTT_S, RTT_S), redundant_bytes=str(LARGE))
    number = 0
    for _ in range(rounds):
        number = carried(peer, number, path)
    return peer, number


def carried(peer: Peer, number: int, path: int, lost: int = 0) -> int:
    """As many as the window takes, NUMBER before them; of the first so many are LOST on the other path."""
    peer.say(16, LARGE)
    first = number
    while new := [peer.number(one) for one in peer.messages(HEARD_S) if peer.number(one) > number]:
        for number in sorted(set(new)):
            peer.sack(path, number)
        for late in sorted(set(new)):
            if late > first + lost:
                peer.sack(1 - path, number, twice=(late,))
    return number


def both_windows_open_though_one_path_is_always_first() -> None:
    """The second brings duplicates. The path of the copies carries nothing else."""
    for path in BOTH:
        peer, number = earned(path)
        cwnds = [peer.cwnd(one) for one in BOTH]
        assert min(cwnds) > CWND, (path, cwnds)
        peer.say(8, LARGE)
        found = paths(peer.messages(HEARD_S))
        expect((found.count(0), found.count(1)), (8, min(8, cwnds[1] // LARGE)))
        peer.sack(path, number + 8)
        expect(shown_counters()["SctpMpSuspects"], 0)
        namespace()


def what_a_copy_brought_halves_no_window() -> None:
    """The path that lost it is sent so much less, once."""
    peer, number = earned(1)
    before, lost = peer.cwnd(0), 2
    assert before > CWND, before
    number = carried(peer, number, 1, lost)
    for _ in range(3):
        number = carried(peer, number, 1)
    after = peer.cwnd(0)
    assert before - lost * LARGE <= after < before + 3 * LARGE, (before, after)
    expect(shown_counters()["SctpFastRetransmits"], 0)


def a_duplicate_that_an_overtaken_sack_reports_is_an_answer() -> None:
    """The SACKs of the longer path are all older than what the other has brought."""
    peer, done = measured(redundant_bytes=str(SMALL))
    for number in range(done + 1, done + 40):
        sent(peer)
        peer.sack(1, number)
        peer.listen(RTT_S / 2)
        peer.sack(0, number - 1, twice=(number - 1,))
    expect(shown_counters()["SctpMpSuspects"], 0)


def a_duplicate_says_that_the_other_path_was_first() -> None:
    """The SACK for data in order is delayed; the copy that comes then is answered at once, over its path."""
    peer, done = measured(redundant_bytes=str(SMALL))
    for number in range(done + 1, done + 40):
        sent(peer)
        peer.sack(1, number, twice=(number,))
        peer.listen(RTT_S)
    expect(shown_counters()["SctpMpSuspects"], 0)


def the_copy_of_what_is_given_up_takes_no_room() -> None:
    peer = Peer(rtts_s=(RTT_S, RTT_S), redundant_bytes=str(LARGE), prsctp_enable="1")
    limit(peer, PR_SCTP_TTL, 50)
    for _ in range(3):
        expect(sorted(paths(sent(peer, LARGE))), BOTH)
    expect(paths(sent(peer, LARGE)), BOTH)
    peer.listen(0.1)
    limit(peer, PR_SCTP_NONE, 0)
    peer.sack(0, 0)
    expect(sorted(paths(sent(peer, LARGE))), BOTH)


CASES: list[Callable[[], None]] = [
    what_goes_twice_is_a_number_within_its_limits,
    nothing_goes_twice_by_default,
    a_small_message_goes_out_over_both_paths_with_one_tsn,
    a_message_of_several_chunks_is_no_small_one,
    all_new_chunks_go_twice_with_the_scheduler,
    the_scheduler_means_nothing_without_cmt,
    a_program_asks_for_it_by_message,
    with_one_path_the_flag_means_nothing,
    copies_take_room_in_the_window_of_their_path,
    copies_take_room_until_their_path_has_brought_them,
    a_copy_takes_no_room_when_its_chunk_is_acknowledged_though_others_are_not,
    copies_give_their_room_back_when_they_are_turned_off,
    a_copy_is_not_retransmitted,
    a_dead_path_is_found_although_the_copies_arrive,
    a_path_that_answers_after_the_copies_is_no_suspect,
    what_copies_overtake_is_not_reported_missing,
    what_is_lost_twice_is_copied_once_more_when_a_later_copy_is_answered,
    a_heartbeat_measures_a_path_that_carries_what_goes_twice,
    copies_of_the_last_stay_within_the_budget,
    both_windows_open_though_one_path_is_always_first,
    what_a_copy_brought_halves_no_window,
    a_duplicate_that_an_overtaken_sack_reports_is_an_answer,
    a_duplicate_says_that_the_other_path_was_first,
    the_copy_of_what_is_given_up_takes_no_room,
]
