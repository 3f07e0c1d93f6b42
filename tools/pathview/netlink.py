# SPDX-License-Identifier: GPL-2.0
"""As much of netlink(7) as is needed: messages, attributes, a dump, a multicast group."""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterator
from typing import NamedTuple

GENERIC, SOCK_DIAG = 16, 4  # families of netlink sockets
ERROR, DONE = 2, 3  # types of messages
REQUEST, ACK, INTERRUPTED, DUMP = 0x1, 0x4, 0x10, 0x300  # flags
HEADER, ATTRIBUTE = struct.Struct("=IHHII"), struct.Struct("=HH")
KIND = 0x3FFF  # of an attribute's type, without its flags
BUFFER = 1 << 16  # the kernel fills half of it at most
CONTROL, GETFAMILY = 16, 3  # generic netlink's family of families
FAMILY_NAME, GROUPS = 2, 7  # attributes of a family
GROUP_NAME, GROUP_ID = 1, 2  # ... of its groups
GENERIC_HEADER = struct.Struct("=BBH")  # command, version
SOL_NETLINK, ADD_MEMBERSHIP = 270, 1
WAITING = 1 << 20  # bytes of messages that may wait for us, if the host allows so much


class Message(NamedTuple):
    """PAYLOAD: what follows struct nlmsghdr."""

    kind: int
    payload: bytes
    flags: int = 0


def padded(size: int) -> int:
    return (size + 3) & ~3


def attribute(kind: int, payload: bytes = b"") -> bytes:
    size = ATTRIBUTE.size + len(payload)
    return ATTRIBUTE.pack(size, kind) + payload + bytes(padded(size) - size)


def request(kind: int, flags: int, payload: bytes) -> bytes:
    return HEADER.pack(HEADER.size + len(payload), kind, REQUEST | flags, 1, 0) + payload


def messages(data: bytes) -> Iterator[Message]:
    """Those in one datagram; what is cut off is left out."""
    at, end, header = 0, len(data), HEADER.size
    while at + header <= end:
        size, kind, flags, _, _ = HEADER.unpack_from(data, at)
        if size < header or at + size > end:
            return
        yield Message(kind, data[at + header : at + size], flags)
        at += padded(size)


def attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(type, payload) of each; what is cut off is left out."""
    at = 0
    while at + ATTRIBUTE.size <= len(data):
        size, kind = ATTRIBUTE.unpack_from(data, at)
        if size < ATTRIBUTE.size or at + size > len(data):
            return
        yield kind & KIND, data[at + ATTRIBUTE.size : at + size]
        at += padded(size)


def failure(message: Message) -> None:
    """Raise what the kernel says went wrong, if it says so."""
    if message.kind in (ERROR, DONE) and len(message.payload) >= 4:
        number = -struct.unpack_from("=i", message.payload)[0]
        if number:
            raise OSError(number, os.strerror(number))


def dump(family: int, asked: bytes) -> Iterator[Message]:
    """The answers to a request with the flag DUMP, to the last; raises OSError."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, family) as sock:
        sock.send(asked)
        while True:
            data = sock.recv(BUFFER)
            if not data:
                raise OSError(errno.EPIPE, os.strerror(errno.EPIPE))
            for message in messages(data):
                failure(message)
                if message.kind == DONE:
                    return
                yield message


def group_of(answer: bytes, name: str) -> int | None:
    """The number of a multicast group in what the kernel says of its family."""
    groups = dict(attributes(answer[GENERIC_HEADER.size :])).get(GROUPS, b"")
    for _, one in attributes(groups):
        parts = dict(attributes(one))
        if parts.get(GROUP_NAME, b"").rstrip(b"\0") == name.encode():
            return int(struct.unpack_from("=I", parts[GROUP_ID])[0])
    return None


def listener(family: str, group: str) -> socket.socket:
    """A socket that gets what is sent to a multicast group of a family of generic netlink; raises OSError.

    recv() fails with ENOBUFS when messages were lost.
    """
    sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, GENERIC)
    try:
        name = attribute(FAMILY_NAME, family.encode() + b"\0")
        sock.send(request(CONTROL, 0, GENERIC_HEADER.pack(GETFAMILY, 1, 0) + name))
        number = None
        for message in messages(sock.recv(BUFFER)):
            failure(message)
            number = group_of(message.payload, group)
        if number is None:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, WAITING)
        sock.setsockopt(SOL_NETLINK, ADD_MEMBERSHIP, number)
    except OSError:
        sock.close()
        raise
    return sock
