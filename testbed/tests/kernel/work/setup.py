# SPDX-License-Identifier: GPL-2.0
"""Setting up an association with a peer of several addresses, driven packet by packet.

One function per case.

Standard library only.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import time
from collections.abc import Callable
from itertools import pairwise

from messages import CONNECTX
from options import (
    SCTP,
    aborts,
    choose,
    expect,
    namespace,
    off_by_default_and_0_or_1,
    one_to_many,
    one_to_one,
    option,
    refused,
    shown_counters,
    write,
)
from peer import (
    ABORT,
    COOKIE,
    COOKIE_ACK,
    COOKIE_ECHO,
    DATA,
    FIRST_TSN,
    HEARTBEAT,
    INIT,
    INIT_ACK,
    IPV4,
    NODELAY,
    OURS,
    TAG,
    THEIRS,
    Chunk,
    Heard,
    Peer,
)
from reasons import reasons
from thresholds import ACTIVE, BINDX_ADD, address, info

STATUS, INIT_ALTERNATE, CMT_ON_OFF = 14, 0x1287, 0x1200
POTENTIALLY_FAILED = 1
DELAY_S, TICK_S = 0.25, 0.01
RTO_INITIAL_S = 3.0
HEARD_S = 0.01
LINKS_S = 0.1  # after which new links carry packets
ON = {"init_alternate": "1"}
ERROR, STALE_COOKIE = 9, 3
NO_PROTOCOL = 2  # a code of ICMP's destination unreachable


class Called(Peer):
    """A peer that SOCK connects to, at its addresses on all paths; only HEARTBEATs are answered unasked."""

    def __init__(self, paths: int = 2, many: bool = False, **settings: str) -> None:
        for name, value in settings.items():
            write(name, value)
        self.paths = [self.join(number) for number in range(paths)]
        time.sleep(LINKS_S)
        self.silent: set[int] = set()
        self.tag = self.first = 0
        self.next_tsn = FIRST_TSN
        self.sock = one_to_many() if many else one_to_one()
        self.sock.bind(("10.10.0.1", THEIRS))
        for number in range(1, paths):
            self.sock.setsockopt(SCTP, BINDX_ADD, address(f"10.1{number}.0.1", THEIRS))
        self.sock.setsockopt(SCTP, NODELAY, 1)
        aborts(self.sock)
        self.sock.setblocking(False)
        everywhere = b"".join(address(f"10.1{number}.0.2", OURS) for number in range(paths))
        refused(errno.EINPROGRESS, self.sock.setsockopt, SCTP, CONNECTX, everywhere)

    def inits(self, seconds: float) -> list[Heard]:
        found = [one for one in self.listen(seconds) if one.chunk.kind == INIT]
        if found:
            self.tag, _, _, _, self.first = struct.unpack_from("!IIHHI", found[0].chunk.body)
        return found

    def init_ack(self, path: int, tag: int = TAG) -> None:
        """With a cookie that names the path."""
        body = struct.pack("!IIHHI", tag, 1 << 20, 10, 10, FIRST_TSN)
        for number in range(len(self.paths)):
            body += struct.pack("!HH4B", IPV4, 8, 10, 10 + number, 0, 2)
        self.send(path, Chunk(INIT_ACK, 0, body + struct.pack("!HHI", COOKIE, 8, path)))

    def echoes(self, seconds: float) -> list[Heard]:
        return [one for one in self.listen(seconds) if one.chunk.kind == COOKIE_ECHO]

    def established(self, path: int) -> None:
        """The first INIT that came over PATH is answered, and what follows."""
        self.init_ack(path)
        expect([(one.path, cookie(one)) for one in self.echoes(HEARD_S)], [(path, path)])
        self.send(path, Chunk(COOKIE_ACK, 0, b""))

    def primary(self) -> int:
        """The path that is the socket's primary."""
        return option(self.sock, STATUS, bytes(176))[33] - 10

    def state(self, path: int) -> int:
        return info(self.sock, f"10.1{path}.0.2")[0]


def cookie(echo: Heard) -> int:
    """The path of the INIT ACK that it came in."""
    number: int = struct.unpack("!I", echo.chunk.body)[0]
    return number


def paths(heard: list[Heard]) -> list[int]:
    return [one.path for one in heard]


def waits(heard: list[Heard]) -> list[float]:
    return [later.at_s - one.at_s for one, later in pairwise(heard)]


def expect_waits(heard: list[Heard], *wanted: float) -> None:
    """Between what was heard; a timer is late by a tick or two, a long one by steps of 64."""
    found = waits(heard)
    assert len(found) == len(wanted), (found, wanted)
    for one, other in zip(found, wanted, strict=True):
        assert other - TICK_S <= one <= other * 1.25 + 2 * TICK_S, (found, wanted)


def init_alternate_is_off_by_default_and_0_or_1() -> None:
    off_by_default_and_0_or_1("init_alternate", INIT_ALTERNATE)


def an_init_that_is_not_answered_goes_to_each_address_in_turn() -> None:
    peer = Called(3, **ON)
    found = peer.inits(RTO_INITIAL_S + 1)
    expect(paths(found[:3]), [0, 1, 2])
    expect(len({one.chunk.body for one in found}), 1)
    expect_waits(found[:3], DELAY_S, DELAY_S)
    expect_waits([found[0], found[3]], RTO_INITIAL_S)  # T1-init counts from the start
    expect(shown_counters()["SctpOutCtrlChunks"], len(found))


def without_the_setting_it_waits_for_t1_init() -> None:
    found = Called(3).inits(RTO_INITIAL_S + 1)
    expect(paths(found), [0, 1])
    expect_waits(found, RTO_INITIAL_S)


def an_init_to_the_only_address_waits_for_t1_init() -> None:
    found = Called(1, **ON).inits(RTO_INITIAL_S + 1)
    expect_waits(found, RTO_INITIAL_S)


def rounds(seconds: float, **settings: str) -> list[Heard]:
    """The INITs that T1-init has sent: they follow what came before after more than twice the delay."""
    found = Called(2, **settings).inits(seconds)
    return found[:1] + [later for one, later in pairwise(found) if later.at_s - one.at_s > 2 * DELAY_S]


def t1_init_is_due_when_it_is_without_the_setting() -> None:
    usual = rounds(50)
    namespace()
    found = rounds(50, **ON)
    expect(paths(found), paths(usual))
    for one, other in zip(waits(found), waits(usual), strict=True):
        assert abs(one - other) <= other / 8, (waits(found), waits(usual))


def t1_init_is_due_before_the_next_address_would_be_asked() -> None:
    rto_s = 2.2 * DELAY_S
    found = Called(4, rto_initial=f"{1000 * rto_s:.0f}", **ON).inits(0.9)
    expect_waits(found[:3], DELAY_S, DELAY_S)
    expect_waits([found[0], found[3]], rto_s)


def an_attempt_takes_max_init_retransmits_as_without_the_setting() -> None:
    limits = {"max_init_retransmits": "2", "rto_initial": "1000"}
    for settings in ({}, ON):
        peer = Called(2, **limits, **settings)
        found = peer.inits(60)
        expect(len(found), 6 if settings else 3)
        refused(errno.ETIMEDOUT, error_of, peer.sock)
        namespace()


def error_of(sock: socket.socket) -> None:
    """Raise what went wrong in the background."""
    number = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if number:
        raise OSError(number, os.strerror(number))


def an_init_that_is_answered_is_the_only_one() -> None:
    peer = Called(**ON)
    expect(paths(peer.inits(DELAY_S - 2 * TICK_S)), [0])
    peer.established(0)
    heard = peer.listen(2 * DELAY_S)
    expect([one for one in heard if one.chunk.kind in (INIT, COOKIE_ECHO)], [])
    peer.say(1)
    expect(paths(peer.messages(HEARD_S)), [0])


def over_the_second() -> Called:
    """The first path is dead, the association has been set up over the other one."""
    peer = Called(**ON)
    peer.silent = {0}
    expect(paths(peer.inits(1.5 * DELAY_S)), [0, 1])
    peer.established(1)
    return peer


def data_begins_where_the_answer_came_from() -> None:
    peer = over_the_second()
    peer.say(3)
    expect(paths(peer.messages(HEARD_S)), [1, 1, 1])
    expect((peer.state(0), peer.state(1)), (POTENTIALLY_FAILED, ACTIVE))
    expect(reasons(OURS), ["init", "set-up"])
    expect(peer.primary(), 0)


def the_primary_has_its_place_when_it_answers_a_heartbeat() -> None:
    peer = over_the_second()
    heard = peer.listen(HEARD_S)
    expect([one.path for one in heard if one.chunk.kind == HEARTBEAT], [0])
    peer.silent = set()
    peer.listen(1.5 * RTO_INITIAL_S + 1)
    expect((peer.state(0), peer.primary()), (ACTIVE, 0))
    peer.say(1)
    expect(paths(peer.messages(HEARD_S)), [0])


def a_heartbeat_is_answered_at_once_when_an_init_was_lost() -> None:
    peer = Called(**ON)
    expect(paths(peer.inits(1.5 * DELAY_S)), [0, 1])
    peer.established(1)
    peer.listen(HEARD_S)
    peer.listen(HEARD_S)
    expect(peer.state(0), ACTIVE)


def t1_init_leaves_the_primary_what_it_is() -> None:
    """Both first INITs are lost, so that T1-init takes the other path."""
    for settings, primary in ((ON, 0), ({}, 1)):
        peer = Called(**settings)
        found = peer.inits(RTO_INITIAL_S + 0.1)
        expect(found[-1].path, 1)
        peer.established(1)
        peer.say(1)
        expect(paths(peer.messages(HEARD_S)), [1])
        expect(peer.primary(), primary)
        namespace()


def a_cookie_echo_that_is_not_answered_goes_to_the_next_address() -> None:
    peer = Called(3, **ON)
    peer.inits(HEARD_S)
    peer.init_ack(0)
    found = peer.echoes(RTO_INITIAL_S + 0.1)
    expect(paths(found[:3]), [0, 1, 2])
    expect_waits(found[:3], DELAY_S, DELAY_S)
    expect({cookie(one) for one in found}, {0})
    peer.silent = {0, 1}
    peer.send(2, Chunk(COOKIE_ACK, 0, b""))
    peer.listen(HEARD_S)
    peer.say(1)
    expect(peer.messages(HEARD_S)[0].path, 2)
    expect(peer.primary(), 0)


def a_stale_cookie_sends_the_init_where_the_last_was_answered() -> None:
    """RFC 9260 5.2.6; the addresses but the primary are forgotten, and that is silent here."""
    peer = Called(**ON)
    expect(paths(peer.inits(1.5 * DELAY_S)), [0, 1])
    peer.init_ack(1)
    expect(paths(peer.echoes(HEARD_S)), [1])
    peer.send(1, Chunk(ERROR, 0, struct.pack("!HHI", STALE_COOKIE, 8, 1000)))
    expect(paths(peer.inits(HEARD_S)), [1])


def data_that_went_with_a_cookie_echo_does_not_wait_for_a_timeout() -> None:
    """It goes with the first only; the peer would abort data that comes before the cookie."""
    peer = Called(many=True, **ON)
    peer.inits(HEARD_S)
    for _ in range(3):
        peer.sock.sendto(bytes(100), ("10.10.0.2", OURS))
    peer.init_ack(0)
    heard = [one for one in peer.listen(1.5 * DELAY_S) if one.chunk.kind != HEARTBEAT]
    expect([(one.path, one.chunk.kind) for one in heard], [(0, COOKIE_ECHO), (0, DATA), (1, COOKIE_ECHO)])
    peer.silent = {0}
    peer.send(1, Chunk(COOKIE_ACK, 0, b""))
    found = peer.messages(HEARD_S)
    expect(set(paths(found)), {1})
    expect(sorted(peer.number(one) for one in found), [1, 2, 3])


def answers_that_come_late_are_of_no_effect() -> None:
    """Both INITs are answered, with other tags and cookies, and both COOKIE ECHOs."""
    peer = Called(**ON)
    expect(paths(peer.inits(1.5 * DELAY_S)), [0, 1])
    peer.init_ack(0)
    peer.init_ack(1, TAG + 1)
    found = peer.echoes(1.5 * DELAY_S)
    expect([(one.path, cookie(one)) for one in found], [(0, 0), (1, 0)])
    for path in (0, 1):
        peer.send(path, Chunk(COOKIE_ACK, 0, b""))
    peer.init_ack(1, TAG + 1)
    heard = peer.listen(HEARD_S)
    expect([one for one in heard if one.chunk.kind in (ABORT, COOKIE_ECHO, INIT)], [])
    expect((peer.primary(), peer.state(0), peer.state(1)), (0, ACTIVE, ACTIVE))
    peer.say(1)
    expect(paths(peer.messages(HEARD_S)), [0])


def an_association_that_turns_cmt_on_asks_the_other_addresses() -> None:
    """At once, those that the program has named: nothing has told yet whether the peer is there."""
    peer = Called()
    expect(paths(peer.inits(HEARD_S)), [0])
    peer.established(0)
    peer.listen(HEARD_S)
    choose(peer.sock, 1, option_name=CMT_ON_OFF)
    expect([one.path for one in peer.listen(2 * TICK_S) if one.chunk.kind == HEARTBEAT], [1])


def refused_over(path: int, refuse: Callable[[Called, int], None], error: int) -> None:
    """An answer to one of two INITs refuses the association; it counts if that is over path 0."""
    peer = Called(**ON)
    expect(paths(peer.inits(1.5 * DELAY_S)), [0, 1])
    refuse(peer, path)
    peer.listen(HEARD_S)
    if path:
        peer.established(0)
        peer.listen(HEARD_S)
        expect(peer.state(0), ACTIVE)
    else:
        refused(error, error_of, peer.sock)


def an_abort_counts_if_it_is_from_the_address_that_t1_init_has_asked() -> None:
    """Another address may not be one of the peer at all."""
    for path in (0, 1):
        refused_over(path, lambda peer, path: peer.send(path, Chunk(ABORT, 0, b"")), errno.ECONNREFUSED)
        namespace()


def so_does_an_icmp_error_that_quotes_an_init() -> None:
    def refuse(peer: Called, path: int) -> None:
        peer.unreachable(path, NO_PROTOCOL, 0, struct.pack("!BBHI", INIT, 0, 20, peer.tag))

    for path in (0, 1):
        refused_over(path, refuse, errno.ENOPROTOOPT)
        namespace()


CASES: list[Callable[[], None]] = [
    init_alternate_is_off_by_default_and_0_or_1,
    an_init_that_is_not_answered_goes_to_each_address_in_turn,
    without_the_setting_it_waits_for_t1_init,
    an_init_to_the_only_address_waits_for_t1_init,
    t1_init_is_due_when_it_is_without_the_setting,
    t1_init_is_due_before_the_next_address_would_be_asked,
    an_attempt_takes_max_init_retransmits_as_without_the_setting,
    an_init_that_is_answered_is_the_only_one,
    data_begins_where_the_answer_came_from,
    the_primary_has_its_place_when_it_answers_a_heartbeat,
    a_heartbeat_is_answered_at_once_when_an_init_was_lost,
    t1_init_leaves_the_primary_what_it_is,
    a_cookie_echo_that_is_not_answered_goes_to_the_next_address,
    a_stale_cookie_sends_the_init_where_the_last_was_answered,
    data_that_went_with_a_cookie_echo_does_not_wait_for_a_timeout,
    answers_that_come_late_are_of_no_effect,
    an_association_that_turns_cmt_on_asks_the_other_addresses,
    an_abort_counts_if_it_is_from_the_address_that_t1_init_has_asked,
    so_does_an_icmp_error_that_quotes_an_init,
]
