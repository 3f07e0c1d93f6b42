# SPDX-License-Identifier: GPL-2.0
"""The paths of associations by sock_diag(7): the request, and what the answers say.

The numbers are those of include/uapi/linux/sctp_diag.h, which the series adds, and of linux/inet_diag.h.
"""

from __future__ import annotations

import heapq
import ipaddress
import socket
import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pathview import netlink
from pathview.model import (
    ASSOCIATION_STATES,
    EVENTS,
    REASONS,
    STATES,
    WAIT_LIMITS_US,
    Association,
    Event,
    Part,
    Path,
    Waits,
    word,
)

SCTP = 132
BY_FAMILY = 20
LOCALS, PEERS = 12, 13  # of a stock kernel's answer, and of no other to our request
PATHS = 0x1280  # in the request, and in the answer
A_ASSOC, A_PATH, A_EVENT, A_WAITS = 1, 2, 4, 5
FAMILY, GROUP = "sctp_paths", "state"  # of generic netlink
MARKS = ("primary", "active", "retransmission")  # by bit
NOT_LISTENING = 0xFFF & ~(1 << 10)
NEVER = (1 << 64) - 1
REQUEST = struct.Struct("=BBBBI48s")  # struct inet_diag_req_v2
ANSWER = struct.Struct("=BBBBHH")  # struct inet_diag_msg, the beginning
ANSWER_SIZE = 72
ASSOC = struct.Struct("=i9I")  # struct sctp_diag_assoc
FILTER = struct.Struct("=IHH16s")  # struct sctp_diag_filter
PATH = struct.Struct("=HBBI16s16sIHH3Q16I6Q")  # struct sctp_diag_path
EVENT = struct.Struct("=QiHHB7x")  # struct sctp_diag_event
WAITS = struct.Struct(f"={2 + len(WAIT_LIMITS_US)}Q")  # struct sctp_diag_waits
IDENTITY, STATE_AT = struct.Struct("=i"), 4 + 2  # where both are in the attributes


@dataclass(frozen=True)
class Filter:
    """The paths that the kernel shows: all of it has to hold. None, empty: any."""

    states: tuple[str, ...] = ()
    port: int | None = None  # of either end
    address: str | None = None  # of either end

    def packed(self) -> bytes:
        states = sum(1 << STATES.index(one) for one in self.states)
        family, address = 0, b""
        if self.address:
            parsed = ipaddress.ip_address(self.address.partition("%")[0])
            family = socket.AF_INET if parsed.version == 4 else socket.AF_INET6
            address = parsed.packed
        return FILTER.pack(states, self.port or 0, family, address)


ALL = Filter()


def request(family: int, wanted: Filter = ALL) -> bytes:
    """For the associations of the network namespace whose sockets are of this family."""
    header = REQUEST.pack(family, SCTP, 0, 0, NOT_LISTENING, bytes(48))
    return netlink.request(BY_FAMILY, netlink.DUMP, header + netlink.attribute(PATHS, wanted.packed()))


def address(family: int, packed: bytes, scope: int = 0) -> str | None:
    """None: there is none."""
    if not any(packed):
        return None
    if family == socket.AF_INET6:
        text = str(ipaddress.IPv6Address(packed))
        return f"{text}%{scope}" if scope else text
    return str(ipaddress.IPv4Address(packed[:4]))


def path(data: bytes) -> Path | None:
    """Of SCTP_DIAG_A_PATH; None when it is shorter than it ever was."""
    if len(data) < PATH.size:
        return None
    family, state, reason, flags, dst, src, scope, struck_t3, struck_hb, *rest = PATH.unpack_from(data)
    since, heard, sent, *numbers = rest
    errors, error_limit, pf_limit, rto, srtt, rttvar, rtt_min, pmtu, *numbers = numbers
    cwnd, ssthresh, flight, t3, fast, hb_sent, hb_acked, _, *counts = numbers
    return Path(
        address=address(family, dst, scope) or "",
        state=word(STATES, state),
        source=address(family, src),
        marks=tuple(name for bit, name in enumerate(MARKS) if flags & 1 << bit),
        reason=word(REASONS, reason),
        struck_t3=struck_t3,
        struck_heartbeat=struck_hb,
        state_ms=since,
        heard_ms=None if heard == NEVER else heard,
        sent_ms=None if sent == NEVER else sent,
        errors=errors,
        error_limit=error_limit,
        pf_limit=pf_limit,
        rto_ms=rto,
        srtt_us=srtt or None,
        rttvar_us=rttvar if srtt else None,
        rtt_min_us=rtt_min or None,
        pmtu=pmtu,
        cwnd=cwnd,
        ssthresh=ssthresh,
        flight=flight,
        t3_timeouts=t3,
        fast_retransmissions=fast,
        heartbeats_sent=hb_sent,
        heartbeats_acked=hb_acked,
        out_packets=counts[0],
        out_bytes=counts[1],
        out_chunks=counts[2],
        in_packets=counts[3],
        in_bytes=counts[4],
        in_chunks=counts[5],
    )


def waits(data: bytes) -> Waits | None:
    """Of SCTP_DIAG_A_WAITS; None when it is shorter than it ever was."""
    if len(data) < WAITS.size:
        return None
    us, *counts = WAITS.unpack_from(data)
    return Waits(us, tuple(counts))


def association(payload: bytes) -> Association | None:
    """Of one answer; None when it is of an endpoint, or cut off."""
    if len(payload) < ANSWER_SIZE:
        return None
    _, state, _, _, sport, dport = ANSWER.unpack_from(payload)
    nested = dict(netlink.attributes(payload[ANSWER_SIZE:])).get(PATHS)
    if nested is None:
        return None
    parts = list(netlink.attributes(nested))
    about = next((data for kind, data in parts if kind == A_ASSOC and len(data) >= ASSOC.size), None)
    if about is None:
        return None
    identity, count, outstanding, queued, peer_rwnd, rwnd, unread, incomplete, errors, limit = (
        ASSOC.unpack_from(about)
    )
    found = (path(data) for kind, data in parts if kind == A_PATH)
    return Association(
        assoc_id=identity,
        local_port=socket.ntohs(sport),
        peer_port=socket.ntohs(dport),
        state=word(ASSOCIATION_STATES, state),
        path_count=count,
        paths=tuple(one for one in found if one),
        outstanding=outstanding,
        queued=queued,
        peer_rwnd=peer_rwnd,
        rwnd=rwnd,
        unread=unread,
        incomplete=incomplete,
        errors=errors,
        error_limit=limit,
        unread_waits=next((waits(data) for kind, data in parts if kind == A_WAITS), None),
    )


def requests(wanted: Filter = ALL) -> tuple[bytes, ...]:
    """For sockets of each family."""
    return request(socket.AF_INET, wanted), request(socket.AF_INET6, wanted)


def dump(wanted: Filter = ALL) -> Iterator[netlink.Message]:
    """The kernel's answers to them; raises OSError."""
    for one in requests(wanted):
        yield from netlink.dump(netlink.SOCK_DIAG, one)


def identity(one: Association) -> tuple[int, int, int, str]:
    """An association has no number before it has an answer."""
    return one.assoc_id, one.local_port, one.peer_port, one.paths[0].address if one.paths else ""


def associations(answers: Iterable[netlink.Message]) -> tuple[Association, ...] | None:
    """Of whole dumps; None when the kernel does not know the request: it has sent addresses alone.

    An association that changes during a dump may be in it twice: the last one holds.
    """
    found: dict[tuple[int, int, int, str], Association] = {}
    for message in answers:
        if message.kind != BY_FAMILY:
            continue
        if any(kind in (LOCALS, PEERS) for kind, _ in netlink.attributes(message.payload[ANSWER_SIZE:])):
            return None
        if one := association(message.payload):
            found[identity(one)] = one
    return tuple(found.values())


UNNUMBERED = 1 << 32  # above all ids: an association has none before it is set up


def outline(payload: bytes) -> tuple[int, list[int]] | None:
    """The id of an association and the states of its paths, read in a tenth of the time of association()."""
    header, at, size, end = netlink.ATTRIBUTE.unpack_from, ANSWER_SIZE, 0, len(payload)
    while at + 4 <= end:
        size, kind = header(payload, at)
        if kind & netlink.KIND == PATHS:
            break
        at += (size + 3) & ~3 or 4  # netlink.padded(), without a call for each
    else:
        return None
    end, identity, states = min(at + size, end), None, []
    at += 4
    while at + 8 <= end:
        size, kind = header(payload, at)
        if kind == A_PATH:
            states.append(payload[at + STATE_AT])
        elif kind == A_ASSOC:
            (identity,) = IDENTITY.unpack_from(payload, at + 4)
        at += (size + 3) & ~3 or 4
    return None if identity is None else (identity, states)


def oldest(answers: Iterable[netlink.Message], limit: int) -> Part | None:
    """The oldest associations of whole dumps, LIMIT at most, and how many there are of what; None as above.

    Identities are given in turn, so the oldest have the lowest.
    """
    states = bytearray()
    found: dict[int, bytes] = {}
    for message in answers:
        if message.kind != BY_FAMILY:
            continue
        if one := outline(message.payload):
            number = one[0] or UNNUMBERED + len(found)
            if number not in found:
                states.extend(one[1])
            found[number] = message.payload
        elif any(kind in (LOCALS, PEERS) for kind, _ in netlink.attributes(message.payload[ANSWER_SIZE:])):
            return None
    kept = (association(found[identity]) for identity in heapq.nsmallest(limit, found))
    counts = {word(STATES, state): count for state, count in Counter(states).items()}
    return Part(tuple(one for one in kept if one), len(found), counts)


def event(payload: bytes) -> Event | None:
    """Of a message to the multicast group; None when it is of another kind."""
    if not payload or not 0 < payload[0] <= len(EVENTS):
        return None
    parts = dict(netlink.attributes(payload[netlink.GENERIC_HEADER.size :]))
    about, changed = parts.get(A_EVENT, b""), path(parts.get(A_PATH, b""))
    if len(about) < EVENT.size or changed is None:
        return None
    time_ns, identity, local_port, peer_port, old = EVENT.unpack_from(about)
    return Event(time_ns, identity, local_port, peer_port, word(STATES, old), changed, EVENTS[payload[0] - 1])
