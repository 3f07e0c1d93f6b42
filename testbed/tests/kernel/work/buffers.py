# SPDX-License-Identifier: GPL-2.0
"""A full receive buffer, that of the peer or of the socket, driven packet by packet: one function per case.

Standard library only.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable

from control import reset
from options import expect, namespace
from peer import ABORT, COOKIE_ACK, DATA, FIRST_TSN, RTT_S, SACK, SHUTDOWN, TAG, Heard, Peer, measured

RTO_S, HEARD_S = 1.0, 0.01
T5 = 5  # times RTO.Max, which is RTO_S here
BUFFER, SMALL, MOST, TIMES = 16 << 10, 24, 300, 3  # bytes, bytes, messages, transmissions of the first


def shut_behind_a_closed_window(
    messages: int, before: Callable[[Peer], None] = lambda _: None, **settings: str
) -> tuple[Peer, int, list[Heard]]:
    """A peer that has closed its window when the socket has so many messages and is shut.

    Also what it has acknowledged, and the messages that left all the same. BEFORE the window is closed this
    happens. Two errors end the association.
    """
    peer = Peer(association_max_retrans="2", rto_max="1000", hb_interval="1000", **settings)
    done = measured(peer)
    before(peer)
    peer.sack(0, done, window=0)
    peer.say(messages)
    heard = peer.messages(HEARD_S)
    peer.sock.shutdown(socket.SHUT_WR)
    return peer, done, heard


def a_shutdown_behind_a_closed_window_ends_by_its_guard() -> None:
    """Window probes, each answered, reach Association.Max.Retrans after two seconds, and T5 begins.

    Neither the HEARTBEATs of a second end the association before it, nor T3-rtx when the window is open.
    """
    peer, done, _ = shut_behind_a_closed_window(2)
    kinds = []
    until = time.monotonic() + T5 * RTO_S
    while time.monotonic() < until:
        for one in peer.listen(RTT_S):
            kinds.append(one.chunk.kind)
            if one.chunk.kind == DATA:
                peer.sack(one.path, done, window=0)
    peer.sack(0, done)
    kinds += [one.chunk.kind for one in peer.listen(1.2 * RTO_S)]
    expect(kinds.count(ABORT), 0)
    peer.sack(0, done + 2)
    assert SHUTDOWN in [one.chunk.kind for one in peer.listen(RTT_S)]


def a_peer_that_is_gone_ends_a_shutdown_behind_a_closed_window() -> None:
    """By HEARTBEATs without an answer, at Association.Max.Retrans, not by T5, which begins there."""
    peer, _, _ = shut_behind_a_closed_window(2)
    peer.silent = {0, 1}
    kinds = [one.chunk.kind for one in peer.listen((T5 - 1) * RTO_S)]
    expect(kinds.count(ABORT), 1)


def a_peer_that_is_gone_ends_a_shutdown_with_nothing_in_flight() -> None:
    """Data waits for the reset of its stream, behind a closed window, and no T3-rtx runs."""
    peer, _, heard = shut_behind_a_closed_window(1, reset, reconf_enable="1")
    expect(heard, [])
    peer.silent = {0, 1}
    kinds = [one.chunk.kind for one in peer.listen(2 * T5 * RTO_S)]
    expect((kinds.count(DATA), kinds.count(ABORT)), (0, 1))


def arrived(peer: Peer) -> tuple[int, int]:
    """Messages that have arrived in order and the window, by the last SACK."""
    sack = [one.chunk.body for one in peer.listen(HEARD_S) if one.chunk.kind == SACK][-1]
    last, window = struct.unpack_from("!II", sack)
    return last + 1 - FIRST_TSN, window


def fill(peer: Peer, size: int) -> None:
    """The buffer of the socket, with messages of SIZE, of which the first is missing."""
    number, window = 1, BUFFER
    while window and number < MOST:
        peer.message(0, number, size)
        _, window = arrived(peer)
        number += 1


def taken(size: int) -> bool:
    """Is the first message, a small one, taken that comes when others of SIZE have filled the buffer?

    The one that is taken back for it, the last one, is as small: with it more is over the limit than that.
    """
    namespace()
    peer = Peer()
    peer.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
    peer.message(0, MOST, SMALL)
    fill(peer, size)
    for _ in range(TIMES):
        peer.message(0, 0, SMALL)
        done, _ = arrived(peer)
    return done > 0


def what_is_missing_is_taken_however_full_the_buffer_is() -> None:
    sizes = range(200, 400, 25)
    expect([size for size in sizes if not taken(size)], [])


def nothing_is_sent_between_a_restart_and_its_cookie_ack() -> None:
    """Data that waits for the window of the peer before; the restart frees what was received out of order."""
    peer = Peer(window=1500)  # the least that an INIT may have
    peer.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
    fill(peer, SMALL)
    peer.say(4)
    expect(len(peer.messages(HEARD_S)), 1)
    peer.shake_hands(TAG + 1)
    kinds = [one.chunk.kind for one in peer.listen(RTO_S / 2)]
    expect(kinds[: kinds.index(COOKIE_ACK)].count(DATA), 0)


CASES: list[Callable[[], None]] = [
    a_shutdown_behind_a_closed_window_ends_by_its_guard,
    a_peer_that_is_gone_ends_a_shutdown_behind_a_closed_window,
    a_peer_that_is_gone_ends_a_shutdown_with_nothing_in_flight,
    nothing_is_sent_between_a_restart_and_its_cookie_ack,
    what_is_missing_is_taken_however_full_the_buffer_is,
]
