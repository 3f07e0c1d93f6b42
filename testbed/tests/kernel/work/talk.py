# SPDX-License-Identifier: GPL-2.0
"""Sockets of several addresses with options that matter to failover. Standard library only."""

import socket
import struct
import time
from collections.abc import Sequence

SCTP = 132
ASSOCINFO, NODELAY, PEER_ADDR_PARAMS, BINDX_ADD = 1, 3, 9, 100
HEARTBEATS_ON, HEARTBEATS_OFF = 1, 2
PORT = 5000


def sockaddr(address: str, port: int) -> bytes:
    if ":" in address:
        head = struct.pack("=HHI", socket.AF_INET6, socket.htons(port), 0)
        return head + socket.inet_pton(socket.AF_INET6, address) + b"\0" * 4
    return struct.pack("=HH", socket.AF_INET, socket.htons(port)) + socket.inet_aton(address) + b"\0" * 8


def opened(bound: Sequence[str], port: int, buffers: int, nodelay: bool = True) -> socket.socket:
    """A socket of these addresses, none for all of the host, with buffers of this size if it is not 0."""
    family = socket.AF_INET6 if any(":" in address for address in bound) else socket.AF_INET
    one = socket.socket(family, socket.SOCK_STREAM, SCTP)
    one.setsockopt(SCTP, NODELAY, nodelay)
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF) if buffers else ():
        one.setsockopt(socket.SOL_SOCKET, option, buffers)
    if bound:
        one.setsockopt(SCTP, BINDX_ADD, b"".join(sockaddr(address, port) for address in bound))
    elif port:
        one.bind(("", port))
    return one


def listen(bound: Sequence[str], buffers: int = 0) -> socket.socket:
    one = opened(bound, PORT, buffers)
    one.listen()
    return one


def heartbeats(one: socket.socket, interval_ms: int) -> None:
    """Set the interval of all paths; 0: no HEARTBEATs."""
    flag = HEARTBEATS_ON if interval_ms else HEARTBEATS_OFF
    one.setsockopt(
        SCTP, PEER_ADDR_PARAMS, struct.pack("=i128sIHIIIIBx", 0, b"", interval_ms, 0, 0, 0, flag, 0, 0)
    )


def connect(
    remote: str,
    bound: Sequence[str],
    buffers: int = 0,
    limit: int = 0,
    interval_ms: int = -1,
    nodelay: bool = True,
) -> socket.socket:
    """LIMIT: Association.Max.Retrans; INTERVAL_MS: of HEARTBEATs, -1 for the default."""
    one = opened(bound, 0, buffers, nodelay)
    if limit:
        one.setsockopt(SCTP, ASSOCINFO, struct.pack("=iHHIII", 0, limit, 0, 0, 0, 0))
    if interval_ms >= 0:
        heartbeats(one, interval_ms)
    mapped = one.family == socket.AF_INET6 and ":" not in remote
    one.connect((f"::ffff:{remote}" if mapped else remote, PORT))
    return one


def speak(one: socket.socket, seconds: int) -> None:
    """Each second some messages at once, which are acknowledged at once, and then one that is not."""
    for _ in range(seconds):
        for _ in range(4):
            one.send(b"x" * 100)
        time.sleep(0.5)
        one.send(b"x")
        time.sleep(0.5)
