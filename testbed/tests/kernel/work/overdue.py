# SPDX-License-Identifier: GPL-2.0
"""Paths that answer late, or answer HEARTBEATs and lose data, with failover_suspect: one function per case.

A peer is driven packet by packet. Standard library only.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from options import expect, shown_counters
from peer import DATA, SHUTDOWN, Peer, measured

RTT_S, LONG_S, HEARD_S = 0.02, 0.1, 0.005
RTO_S, AUTOCLOSE_S, LATE_S = 1.0, 6, 0.7  # the kernel rounds a timer of 6 seconds up by as much
SMALL = 100
ACTIVE, POTENTIALLY_FAILED = 2, 1
MOVES = 6  # in MOVING_S: with no wait, at once, and after 1, 2, 4 s and their jitter
MOVING_S = 10


def suspecting(**settings: str) -> tuple[Peer, int]:
    """A peer whose answers have all taken a round trip, and how many messages it has got."""
    peer = Peer(failover_suspect="1", **settings)
    return peer, measured(peer, 16)


def counted(name: str) -> int:
    return shown_counters()[f"SctpMp{name}"]


def sent_on(peer: Peer, seconds: float) -> set[int]:
    """One small message; the paths that it leaves over within so many seconds."""
    peer.say(1, SMALL)
    return {one.path for one in peer.messages(seconds)}


def answers_that_copies_do_not_overtake_teach_how_long_a_path_is() -> None:
    """The first path takes longer from now on, and the other one as long as that."""
    peer, done = suspecting()
    peer.silent = {0, 1}
    for number in range(done + 1, done + 11):
        sent_on(peer, LONG_S)
        peer.sack(0, number)
    expect((counted("Suspects"), counted("SuspectsMoved")), (1, 0))


def the_heartbeat_of_a_suspicion_teaches_how_long_a_path_is() -> None:
    """Copies over the other path are answered first. The first path is left and taken back once."""
    peer, done = suspecting()
    peer.rtts_s = (LONG_S, RTT_S)
    for number in range(done + 1, done + 21):
        left = sent_on(peer, LONG_S)
        peer.sack(1 if 1 in left else 0, number)
        peer.listen(HEARD_S)
        if left == {0, 1}:
            peer.sack(0, number, twice=(number,))
    expect(peer.states()[0], ACTIVE)
    assert counted("Suspects") <= 2, counted("Suspects")
    assert counted("SuspectsMoved") <= 1, counted("SuspectsMoved")


def a_path_that_loses_data_and_answers_heartbeats_is_left() -> None:
    """A message every quarter of a round trip, so three waits of a round trip and a quarter are 15."""
    peer, done = suspecting()
    asked_for = 0
    while peer.states()[0] == ACTIVE:
        asked_for += 1
        assert asked_for <= 15 + 2, asked_for
        if 1 in sent_on(peer, RTT_S / 4):
            peer.sack(1, done + asked_for)
    expect(peer.states()[0], POTENTIALLY_FAILED)
    expect(counted("SuspectsMoved"), 1)


def a_single_loss_of_a_path_that_answers_heartbeats_leaves_it() -> None:
    """As often as it likes, if what comes next is answered."""
    peer, done = suspecting()
    for number in range(done + 1, done + 11):
        copied = 1 in sent_on(peer, 2 * RTT_S) if number % 2 else False
        if not number % 2:
            sent_on(peer, RTT_S)
        peer.sack(1 if copied else 0, number)
        peer.listen(RTT_S)
    expect((counted("SuspectsMoved"), peer.states()[0]), (0, ACTIVE))


def data_that_comes_in_time_moves_nothing_though_its_answers_are_late() -> None:
    """A copy is reported as a duplicate: the path has an RTO for its answer."""
    peer, done = suspecting()
    peer.silent = {0}
    expect(sent_on(peer, 2 * RTT_S), {0, 1})
    peer.sack(1, done + 1, twice=(done + 1,))
    peer.listen(10 * RTT_S)
    expect((counted("SuspectsMoved"), peer.states()[0]), (0, ACTIVE))


def what_is_moved_by_a_peer_that_answers_copies_only_backs_off() -> None:
    """Each HEARTBEAT is answered at once: states would change every few round trips."""
    peer, done = suspecting()
    until = time.monotonic() + MOVING_S
    while time.monotonic() < until:
        done += 1
        if 1 in sent_on(peer, RTT_S / 4):
            peer.sack(1, done)
    moved = counted("SuspectsMoved")
    assert 2 <= moved <= MOVES, moved


def a_copy_does_not_put_off_autoclose() -> None:
    """It is of what has started that timer. A round trip of a second, so that a copy leaves late."""
    peer = Peer(failover_suspect="1", rto_min="3000", autoclose_s=AUTOCLOSE_S)
    done = measured(peer, 4, RTO_S)
    began = time.monotonic()
    peer.say(1, SMALL)
    copies = [one for one in peer.listen(2 * RTO_S) if (one.chunk.kind, one.path) == (DATA, 1)]
    assert copies and copies[0].at_s - began > RTO_S, copies
    peer.sack(1, done + 1)
    closed = [one.at_s for one in peer.listen(2 * AUTOCLOSE_S) if one.chunk.kind == SHUTDOWN]
    assert closed and closed[0] - began < AUTOCLOSE_S + LATE_S, (began, closed)


CASES: list[Callable[[], None]] = [
    answers_that_copies_do_not_overtake_teach_how_long_a_path_is,
    the_heartbeat_of_a_suspicion_teaches_how_long_a_path_is,
    a_path_that_loses_data_and_answers_heartbeats_is_left,
    a_single_loss_of_a_path_that_answers_heartbeats_leaves_it,
    data_that_comes_in_time_moves_nothing_though_its_answers_are_late,
    what_is_moved_by_a_peer_that_answers_copies_only_backs_off,
    a_copy_does_not_put_off_autoclose,
]
