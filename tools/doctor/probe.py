# SPDX-License-Identifier: GPL-2.0
"""Echo requests between the addresses of an association: small ones, and such as fill the MTU."""

from __future__ import annotations

import errno
import os
import select
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

IP_MTU_DISCOVER, IPV6_MTU_DISCOVER, IPV6_DONTFRAG, PROBE = 10, 23, 62, 3  # of linux/in.h and in6.h
SMALL = 64
TRIES = 3
WAIT_S = 1.0
HEADER = struct.Struct("!BBHHH")


@dataclass(frozen=True)
class Echo:
    """SMALL_MS: round trip of a small packet, None if none was answered; FULL: whether one of SIZE bytes was.

    A router that answers a packet of SIZE bytes with its smaller MTU is as good as an answer.
    """

    local: str
    remote: str
    size: int
    small_ms: float | None
    full: bool


class Kind(NamedTuple):
    """Of an address family: number of ICMP, types of request and reply, length of the IP header, options."""

    family: socket.AddressFamily
    protocol: int
    request: int
    reply: int
    header: int
    options: tuple[tuple[int, int, int], ...]


KINDS = {
    4: Kind(socket.AF_INET, socket.IPPROTO_ICMP, 8, 0, 20, ((socket.IPPROTO_IP, IP_MTU_DISCOVER, PROBE),)),
    6: Kind(
        socket.AF_INET6,
        socket.IPPROTO_ICMPV6,
        128,
        129,
        40,
        (
            (socket.IPPROTO_IPV6, IPV6_MTU_DISCOVER, PROBE),
            (socket.IPPROTO_IPV6, IPV6_DONTFRAG, 1),
        ),
    ),
}


def checksum(data: bytes) -> int:
    """RFC 1071; the kernel does it for ICMPv6 only."""
    padded = data + b"\0" * (len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return 0xFFFF - total


def request(kind: Kind, identity: int, number: int, size: int) -> bytes:
    """An echo request that makes an IP packet of SIZE bytes."""
    body = b"\0" * (size - kind.header - HEADER.size)
    head = HEADER.pack(kind.request, 0, 0, identity, number)
    if kind.family == socket.AF_INET:
        head = HEADER.pack(kind.request, 0, checksum(head + body), identity, number)
    return head + body


def replies(one: socket.socket, kind: Kind, until: float) -> Iterator[tuple[int, int] | None]:
    """Identity and number of the replies that arrive until then; None where a router tells of its MTU."""
    while (left := until - time.monotonic()) > 0 and select.select([one], [], [], left)[0]:
        try:
            packet = one.recv(65535)
        except OSError as error:
            if error.errno == errno.EMSGSIZE:
                yield None
            continue
        skip = (packet[0] & 15) * 4 if kind.family == socket.AF_INET else 0
        if len(packet) >= skip + HEADER.size and packet[skip] == kind.reply:
            yield HEADER.unpack_from(packet, skip)[3:]


def ask(one: socket.socket, kind: Kind, size: int) -> tuple[float | None, bool]:
    """The round trip of an answered packet of SIZE bytes in ms, and whether a router told of its MTU."""
    identity = os.getpid() & 0xFFFF
    for number in range(TRIES):
        sent = time.monotonic()
        try:
            one.send(request(kind, identity, number, size))
        except OSError:
            continue  # no way there, or an error that an earlier packet met
        for reply in replies(one, kind, sent + WAIT_S):
            if reply is None:
                return None, True
            if reply == (identity, number):
                return (time.monotonic() - sent) * 1000, False
    return None, False


def echo(version: int, local: str, remote: str, size: int) -> Echo | None:
    """The answers to small and full echo requests; None if this user or host cannot send them."""
    kind = KINDS[version]
    try:
        with socket.socket(kind.family, socket.SOCK_RAW, kind.protocol) as one:
            for option in kind.options:
                one.setsockopt(*option)
            one.bind((local, 0))
            one.connect((remote, 0))
            small_ms, _ = ask(one, kind, SMALL)
            answered = small_ms is not None and ask(one, kind, size) != (None, False)
    except OSError:
        return None
    return Echo(local, remote, size, small_ms, answered)


def echoes(pairs: Sequence[tuple[int, str, str, int]]) -> tuple[Echo, ...]:
    """Of (version, local, remote, size)."""
    return tuple(found for pair in pairs if (found := echo(*pair)))
