# SPDX-License-Identifier: GPL-2.0
"""Requests of the socket, RE-CONFIG and ASCONF, a peer driven packet by packet: one function per case.

Standard library only.
"""

from __future__ import annotations

import select
import struct
import subprocess
import time
from collections.abc import Callable

from options import SCTP, choose, expect, namespace
from peer import (
    ASCONF,
    FIRST_TSN,
    FORWARD_TSN,
    HEARTBEAT,
    PR_SCTP_TTL,
    RECONF,
    RTT_S,
    TAG,
    THEIRS,
    Heard,
    Peer,
    limit,
    measured,
)
from thresholds import ACTIVE, BINDX_ADD, INACTIVE, address

BINDX_REMOVE = 101
EVENTS, SEND_FAILURES = 11, bytes((0, 0, 0, 1))
ENABLE_STREAM_RESET, RESET_STREAMS, OUTGOING = 118, 119, 2
RESET_ASSOC, OF_TSNS = 120, 2
PERFORMED, DENIED, IN_PROGRESS = 1, 2, 6
RTO_S, RTO_INITIAL_S, HEARD_S = 1.0, 3.0, 0.01
LATE_S = 0.16  # a timer of some seconds may be as late
PROBES_S = 10  # in which failover_return has about 45 probes
BY_THE_CLOCK = 5  # HEARTBEATs of a failed path meanwhile, at the most


def reset(peer: Peer, stream: int = 0) -> None:
    """The program asks to have a stream of its own start anew."""
    choose(peer.sock, 1, option_name=ENABLE_STREAM_RESET)
    peer.sock.setsockopt(SCTP, RESET_STREAMS, struct.pack("=iHHH", 0, OUTGOING, 1, stream))


def requests(peer: Peer, kind: int, seconds: float) -> list[Heard]:
    return [one for one in peer.listen(seconds) if one.chunk.kind == kind]


def resets_asked_for(result: int, seconds: float, **settings: str) -> tuple[int, int]:
    """RE-CONFIGs that ask to reset a stream, each answered with RESULT; messages of the stream after that."""
    peer = Peer(reconf_enable="1", pf_enable="0", **settings)
    measured(peer)
    reset(peer)
    asked = 0
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for one in requests(peer, RECONF, RTT_S):
            peer.answer(one, result)
            asked += 1
        expect(peer.states(), [ACTIVE, ACTIVE])
    peer.say(1)
    return asked, len(peer.messages(RTT_S))


def a_stream_reset_that_is_denied_is_not_asked_for_again() -> None:
    """One in progress is, first after one RTO and then after two, which fails no path, and holds the stream.

    A path fails at its second error in a row.
    """
    expect(resets_asked_for(DENIED, 6 * RTO_S, path_max_retrans="1"), (1, 1))
    namespace()
    expect(resets_asked_for(IN_PROGRESS, 6 * RTO_S, path_max_retrans="1"), (4, 0))


def a_stream_reset_in_progress_does_not_end_the_association() -> None:
    """Two errors in a row would."""
    expect(resets_asked_for(IN_PROGRESS, 8 * RTO_S, association_max_retrans="2"), (5, 0))


def over_a_restart(waits: bool) -> None:
    """A stream reset is asked for again when the peer has restarted, and its answer ends it.

    WAITS: it has not been sent before, because of data in flight. TSNs begin anew, below that of this data.
    """
    peer = Peer(reconf_enable="1", cmt="1")
    measured(peer)
    if waits:
        peer.say(1)
        expect(len(peer.messages(HEARD_S)), 1)
    reset(peer)
    expect(len(requests(peer, RECONF, HEARD_S)), 0 if waits else 1)
    peer.shake_hands(TAG + 1)
    asked = requests(peer, RECONF, RTO_INITIAL_S + LATE_S)
    expect(len(asked), 1)
    peer.answer(asked[0], PERFORMED)
    peer.say(1)
    expect([(peer.number(one), one.chunk.ssn) for one in peer.messages(HEARD_S)], [(1, 0)])


def a_stream_reset_that_waits_is_sent_to_a_peer_that_has_restarted() -> None:
    over_a_restart(waits=True)


def a_stream_reset_that_was_sent_is_sent_again_to_a_peer_that_has_restarted() -> None:
    over_a_restart(waits=False)


def a_stream_reset_without_an_answer_is_an_error_although_a_window_probe_has_one() -> None:
    """It is asked for again between two probes, of which the first was answered.

    With a Path.Max.Retrans of 0, which such a probe does not exceed.
    """
    peer = Peer(1, reconf_enable="1", rto_max="1000", path_max_retrans="0")
    done = measured(peer)
    peer.say(1)
    expect(len(peer.messages(RTT_S)), 1)
    peer.sack(0, done + 1, window=0)
    peer.say(1)

    def probed(seconds: float) -> None:
        """The next window probe comes within so many seconds, and is answered."""
        until = time.monotonic() + seconds
        while not peer.messages(HEARD_S):
            expect(time.monotonic() < until, True)
        peer.sack(0, done + 1, window=0)

    probed(RTT_S)
    probed(RTO_S + LATE_S)
    peer.listen(RTO_S / 2)
    reset(peer, stream=1)
    expect(len(requests(peer, RECONF, HEARD_S)), 1)
    probed(RTO_S / 2 + LATE_S)
    assert peer.states() != [INACTIVE]
    until = time.monotonic() + RTO_S / 2 + LATE_S
    while not requests(peer, RECONF, HEARD_S):
        expect(time.monotonic() < until, True)
    expect(peer.states(), [INACTIVE])


def no_probes_wait_while_the_socket_has_no_address_that_the_peer_knows() -> None:
    """RFC 5061 5.3 F1: nothing but the ASCONF for the new address leaves before that is acknowledged.

    The socket is bound to 127.0.0.1 as well, which the peer is not told: it may not remove its last address.
    """
    hosts = ["10.10.0.1", "127.0.0.1"]
    peer = Peer(hosts=hosts, failover_return="1", addip_enable="1", addip_noauth_enable="1")
    done = measured(peer)
    peer.silent = {0}
    peer.say(1)
    expect(peer.messages(RTO_S + LATE_S)[-1].path, 1)
    peer.sack(1, done + 1)
    assert len(requests(peer, HEARTBEAT, RTO_S)) > 2
    peer.sock.setsockopt(SCTP, BINDX_REMOVE, address(hosts[0], THEIRS))
    expect(peer.listen(PROBES_S), [])
    subprocess.run(["ip", "addr", "add", "10.10.0.3/24", "dev", "va0"], check=True)
    peer.sock.setsockopt(SCTP, BINDX_ADD, address("10.10.0.3", THEIRS))
    (asked,) = peer.listen(HEARD_S)
    expect(asked.chunk.kind, ASCONF)
    peer.accept(asked)
    waited = requests(peer, HEARTBEAT, HEARD_S)
    assert len(waited) <= BY_THE_CLOCK, len(waited)


def a_program_is_woken_after_it_was_told_at_a_probe_what_expired() -> None:
    """By the first message that it is sent next; it waits for events, not for what is there to read."""
    peer = Peer(failover_return="1", prsctp_enable="1")
    done = measured(peer)
    peer.silent = {0}
    peer.say(1)
    expect(peer.messages(RTO_S + LATE_S)[-1].path, 1)
    peer.sack(1, done + 1, window=0)
    peer.sock.setsockopt(SCTP, EVENTS, SEND_FAILURES)
    waiting = select.epoll()
    waiting.register(peer.sock, select.EPOLLIN | select.EPOLLET)
    peer.say(1)
    expect([one.path for one in peer.messages(HEARD_S)], [1])
    limit(peer, PR_SCTP_TTL, int(1000 * RTT_S))
    peer.say(1)
    woken = [(peer.sock.fileno(), select.EPOLLIN)]
    expect(waiting.poll(RTT_S), [])
    expect(waiting.poll(RTO_S / 2), woken)
    peer.sock.recv(65536)
    peer.data(1)
    expect(waiting.poll(HEARD_S), woken)


def a_reset_of_streams_waits_for_a_tsn_that_has_wrapped() -> None:
    """The third message of the peer is missing, whose TSN is 0 and which the reset is to come after."""
    peer = Peer(1, reconf_enable="1", first_tsn=(1 << 32) - 2)
    choose(peer.sock, 1, option_name=ENABLE_STREAM_RESET)
    for number in (0, 1, 3):
        peer.message(0, number, 100)
    peer.listen(HEARD_S)
    for result in (IN_PROGRESS, PERFORMED):
        peer.reset(0, messages=3)
        (answered,) = requests(peer, RECONF, HEARD_S)
        expect(struct.unpack_from("!8xI", answered.chunk.body), (result,))
        peer.message(0, 2, 100)
        peer.listen(HEARD_S)


def a_forward_tsn_tells_of_tsns_that_have_wrapped() -> None:
    """RFC 3758 3.5 C2; the peer, asked to reset the TSNs, has the first message numbered 2^32 - 2."""
    peer = Peer(1, prsctp_enable="1", reconf_enable="1")
    measured(peer)
    choose(peer.sock, OF_TSNS, option_name=ENABLE_STREAM_RESET)
    peer.sock.setsockopt(SCTP, RESET_ASSOC, struct.pack("=i", 0))
    (asked,) = requests(peer, RECONF, HEARD_S)
    peer.first = (1 << 32) - 2
    peer.answer(asked, PERFORMED, (FIRST_TSN, peer.first))
    limit(peer, PR_SCTP_TTL, int(1000 * RTT_S))
    peer.say(4)
    expect([one.chunk.tsn for one in peer.messages(RTT_S)], [peer.first, peer.first + 1, 0, 1])
    told = requests(peer, FORWARD_TSN, RTO_S + LATE_S)
    expect([one.chunk.tsn for one in told], [1])


CASES: list[Callable[[], None]] = [
    a_stream_reset_that_is_denied_is_not_asked_for_again,
    a_stream_reset_in_progress_does_not_end_the_association,
    a_stream_reset_that_waits_is_sent_to_a_peer_that_has_restarted,
    a_stream_reset_that_was_sent_is_sent_again_to_a_peer_that_has_restarted,
    a_stream_reset_without_an_answer_is_an_error_although_a_window_probe_has_one,
    no_probes_wait_while_the_socket_has_no_address_that_the_peer_knows,
    a_program_is_woken_after_it_was_told_at_a_probe_what_expired,
    a_reset_of_streams_waits_for_a_tsn_that_has_wrapped,
    a_forward_tsn_tells_of_tsns_that_have_wrapped,
]
