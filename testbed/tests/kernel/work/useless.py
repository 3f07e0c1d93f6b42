# SPDX-License-Identifier: GPL-2.0
"""A path that answers but loses large packets, a peer driven packet by packet: one function per case.

Standard library only.
"""

from __future__ import annotations

from collections.abc import Callable

from options import (
    expect,
    namespace,
    off_by_default_and_0_or_1,
)
from peer import HEARTBEAT, HEARTBEAT_ACK, OURS, Chunk, Heard, Peer
from reasons import reasons
from thresholds import ACTIVE, info

FAILOVER_USELESS = 0x1288
POTENTIALLY_FAILED, PAD = 1, 0x84
RTT_S, RTO_S, HEARD_S = 0.02, 1.0, 0.01
LARGE, SMALL = 1400, 100
MTU, IP_HEADER = 1500, 20
AS_LONG = 48  # bytes of a message whose chunk is as long as a HEARTBEAT and the shortest PAD chunk
ON = {"failover_useless": "1"}


class Losing(Peer):
    """A peer whose path 0 loses large packets from some moment on."""

    def __init__(self, large: int = LARGE, small: int = SMALL, **settings: str) -> None:
        super().__init__(**settings)
        self.done = 0
        self.large, self.small = large, small

    def state(self) -> int:
        return info(self.sock, "10.10.0.2")[0]

    def exchange(self, size: int = 0) -> int:
        """A message that is acknowledged, a large one if no SIZE is given; the path that it took."""
        self.say(1, size or self.large)
        path = self.messages(RTT_S)[0].path
        self.done += 1
        self.sack(path, self.done)
        return path

    def lose(self) -> None:
        """A large message; four small ones behind it arrive. It comes again over the other path."""
        self.say(1, self.large)
        self.say(4, self.small)
        expect([one.path for one in self.messages(RTT_S)], [0] * 5)
        for number in range(self.done + 2, self.done + 6):
            self.sack(0, self.done, (self.done + 2, number))
        found = self.messages(RTT_S)
        expect([(one.path, self.number(one)) for one in found], [(1, self.done + 1)])
        self.done += 5
        self.sack(1, self.done)

    def asked(self, seconds: float) -> list[tuple[int, int]]:
        """HEARTBEATs to path 0: bytes that each takes, and of its PAD chunk."""
        found = [one.chunk for one in self.listen(seconds) if one.path == 0]
        sizes = [(one.kind, len(one.packed())) for one in found]
        asked = []
        for number, (kind, size) in enumerate(sizes):
            if kind == HEARTBEAT:
                behind = sizes[number + 1] if number + 1 < len(sizes) else (0, 0)
                asked.append((size, behind[1] if behind[0] == PAD else 0))
        return asked


def after_losses(times: int, large: int = LARGE, small: int = SMALL, **settings: str) -> Losing:
    peer = Losing(large, small, **settings)
    for _ in range(4):
        expect(peer.exchange(), 0)
    for _ in range(times):
        peer.lose()
    return peer


def failover_useless_is_off_by_default_and_0_or_1() -> None:
    off_by_default_and_0_or_1("failover_useless", FAILOVER_USELESS)


def three_losses_in_a_row_make_a_path_potentially_failed() -> None:
    peer = after_losses(3, **ON)
    expect(peer.state(), POTENTIALLY_FAILED)
    expect(reasons(OURS)[0], "losses")
    expect(peer.exchange(), 1)
    expect(peer.exchange(SMALL), 1)


def two_losses_do_not_and_neither_does_any_number_without_the_setting() -> None:
    for times, settings in ((2, ON), (4, {})):
        peer = after_losses(times, **settings)
        expect((peer.state(), peer.exchange()), (ACTIVE, 0))
        namespace()


def a_large_message_that_arrives_ends_the_row() -> None:
    peer = after_losses(2, **ON)
    expect(peer.exchange(), 0)
    peer.lose()
    peer.lose()
    expect((peer.state(), peer.exchange()), (ACTIVE, 0))


def a_small_message_that_arrives_does_not() -> None:
    peer = after_losses(2, **ON)
    expect(peer.exchange(SMALL), 0)
    peer.lose()
    expect((peer.state(), peer.exchange()), (POTENTIALLY_FAILED, 1))


def a_burst_of_losses_is_one() -> None:
    """Three large messages lost at once, three times over, with one that arrives in between."""
    peer = after_losses(0, **ON)
    for _ in range(3):
        expect(peer.exchange(), 0)
        peer.say(2, LARGE)
        peer.say(4, SMALL)
        sent = peer.messages(RTT_S)
        expect([one.path for one in sent], [0] * 6)
        for number in range(peer.done + 3, peer.done + 7):
            peer.sack(0, peer.done, (peer.done + 3, number))
        peer.messages(RTT_S)
        peer.done += 6
        peer.sack(1, peer.done)
        peer.listen(HEARD_S)
    expect(peer.state(), ACTIVE)


def a_heartbeat_to_such_a_path_is_as_long_as_what_was_lost() -> None:
    peer = after_losses(3, **ON)
    peer.silent = {0}
    asked = peer.asked(4 * RTO_S)
    assert asked, "no HEARTBEAT"
    sizes = {12 + size + pad for size, pad in asked}  # with the header of SCTP
    data = 12 + 16 + LARGE
    assert all(data <= size <= MTU - IP_HEADER for size in sizes), sizes


def a_heartbeat_that_is_as_long_already_is_not_padded() -> None:
    for size, padded in ((AS_LONG, {False}), (AS_LONG + 4, {True})):
        peer = after_losses(3, size, 4, **ON)
        peer.silent = {0}
        expect({pad > 0 for _, pad in peer.asked(4 * RTO_S)}, padded)
        namespace()


def an_answer_to_a_heartbeat_of_before_does_not_bring_it_back() -> None:
    old: list[Heard] = []
    peer = Losing(**ON)
    while not old:
        heard = peer.listen(10)
        old = [one for one in heard if one.path == 0 and one.chunk.kind == HEARTBEAT]
    for _ in range(4):
        expect(peer.exchange(), 0)
    for _ in range(3):
        peer.lose()
    peer.silent = {0}
    peer.send(0, Chunk(HEARTBEAT_ACK, 0, old[-1].chunk.body))
    peer.listen(HEARD_S)
    expect((peer.state(), peer.exchange()), (POTENTIALLY_FAILED, 1))
    peer.silent = set()
    peer.listen(8 * RTO_S)
    expect((peer.state(), peer.exchange()), (ACTIVE, 0))


def an_answer_older_than_the_last_heartbeat_brings_it_back() -> None:
    """A round trip that is longer than the time from one to the next."""
    peer = after_losses(3, **ON, failover_return="1")
    peer.silent = {0}
    heard = [one for one in peer.listen(2 * RTO_S) if (one.path, one.chunk.kind) == (0, HEARTBEAT)]
    assert len(heard) > 2, heard
    peer.send(0, Chunk(HEARTBEAT_ACK, 0, heard[-2].chunk.body))
    peer.listen(HEARD_S)
    expect((peer.state(), peer.exchange()), (ACTIVE, 0))


CASES: list[Callable[[], None]] = [
    failover_useless_is_off_by_default_and_0_or_1,
    three_losses_in_a_row_make_a_path_potentially_failed,
    two_losses_do_not_and_neither_does_any_number_without_the_setting,
    a_large_message_that_arrives_ends_the_row,
    a_small_message_that_arrives_does_not,
    a_burst_of_losses_is_one,
    a_heartbeat_to_such_a_path_is_as_long_as_what_was_lost,
    a_heartbeat_that_is_as_long_already_is_not_padded,
    an_answer_to_a_heartbeat_of_before_does_not_bring_it_back,
    an_answer_older_than_the_last_heartbeat_brings_it_back,
]
