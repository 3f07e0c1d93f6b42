# SPDX-License-Identifier: GPL-2.0
"""Hosts, sockets with all their addresses, and numbered messages that are checked. Standard library only."""

import socket
import struct
from collections import defaultdict
from collections.abc import Iterable
from itertools import groupby
from typing import Any

from commands import inside, run_all
from options import SCTP, one_to_many, one_to_one
from thresholds import address

BINDX_ADD, BINDX_REM, CONNECTX, RECVRCVINFO = 100, 101, 110, 32
SNDINFO, RCVINFO, PRINFO = 2, 3, 5  # ancillary data
SNDBUFFORCE, RCVBUFFORCE = 32, 33
PR_TTL, ADDR_OVER, MSG_EOR = 0x10, 2, 0x80
BUFFER_B = 8 << 20  # so that a case can send all it has and then receive
PATTERN = bytes(range(251)) * 100


class Hosts:
    """The plan's two hosts: addresses of each, and what is to happen to their paths."""

    def __init__(self, addresses: list[list[str]], events: list[dict[str, Any]]) -> None:
        self.addresses = addresses
        self.moments = groupby(events, key=lambda event: event["at_s"])

    def next_event(self) -> None:
        """Let what is to happen at the next moment happen now."""
        for event in next(self.moments)[1]:
            run_all(event["commands"])

    def bound(self, number: int, many: bool = False, port: int = 0, paths: int = 8) -> socket.socket:
        """Bound to the first so many addresses of host NUMBER (1 or 2)."""
        first, *others = self.addresses[number - 1][:paths]
        with inside(f"host{number}"):
            sock = one_to_many() if many else one_to_one()
        for option in (SNDBUFFORCE, RCVBUFFORCE):
            sock.setsockopt(socket.SOL_SOCKET, option, BUFFER_B)
        sock.setsockopt(SCTP, RECVRCVINFO, struct.pack("i", 1))
        sock.bind((first, port))
        for other in others:
            self.bindx(sock, BINDX_ADD, other)
        return sock

    def bindx(self, sock: socket.socket, option: int, host: str) -> None:
        sock.setsockopt(SCTP, option, address(host, sock.getsockname()[1]))

    def connect(self, client: socket.socket, server: socket.socket) -> None:
        """To the first address, which makes it the primary path."""
        client.connect((self.addresses[1][0], server.getsockname()[1]))

    def connect_anywhere(self, client: socket.socket, server: socket.socket) -> None:
        """To all addresses, the first of which is the primary path."""
        port = server.getsockname()[1]
        client.setsockopt(SCTP, CONNECTX, b"".join(address(host, port) for host in self.addresses[1]))

    def listening(self, many: bool = False, paths: int = 8) -> socket.socket:
        """At host 2."""
        server = self.bound(2, many, paths=paths)
        server.listen()
        return server


def content(stream: int, number: int, size: int) -> bytes:
    start = (stream + number) % 251
    return struct.pack("!HII", stream, number, size) + PATTERN[start : start + size - 10]


def send(
    sock: socket.socket,
    numbers: Iterable[int],
    size: int = 1400,
    streams: int = 1,
    assoc: int = 0,
    to: tuple[str, int] | None = None,
    life_ms: int = 0,
) -> None:
    """Messages with these numbers, number N on stream N modulo STREAMS; to an address when TO says so."""
    for number in numbers:
        stream = number % streams
        info = struct.pack("HHIIi", stream, ADDR_OVER if to else 0, 0, 0, assoc)
        extra = [(SCTP, SNDINFO, info)]
        if life_ms:
            extra.append((SCTP, PRINFO, struct.pack("HxxI", PR_TTL, life_ms)))
        sock.sendmsg([content(stream, number, size)], extra, 0, *([to] if to else []))


class Inbox:
    """Received messages: their numbers by (association, stream), in the order of arrival."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[int, int], list[int]] = defaultdict(list)
        self.parts: dict[tuple[int, int], bytes] = defaultdict(bytes)

    def receive(self, sock: socket.socket, messages: int) -> None:
        """So many more."""
        while messages:
            complete = self.one(sock)
            assert complete is not None, f"the end, and {messages} messages are missing"
            messages -= complete

    def receive_all(self, sock: socket.socket) -> None:
        """Until the peer has shut down."""
        while self.one(sock) is not None:
            pass

    def one(self, sock: socket.socket) -> bool | None:
        """Take a message, or a part of one: whether it is complete now. None at the end."""
        data, extra, flags, _ = sock.recvmsg(1 << 20, 256)
        if not data:
            return None
        info = next(value for level, kind, value in extra if (level, kind) == (SCTP, RCVINFO))
        key = struct.unpack_from("=24xi", info)[0], struct.unpack_from("H", info)[0]
        self.parts[key] += data
        complete = bool(flags & MSG_EOR)
        if complete:
            self.check(key, self.parts.pop(key))
        return complete

    def check(self, key: tuple[int, int], message: bytes) -> None:
        _, number, size = struct.unpack_from("!HII", message)
        assert message == content(key[1], number, size), f"content of message {number} of {key}"
        self.numbers[key].append(number)

    def by_stream(self) -> dict[int, list[int]]:
        """Of one association."""
        assert len({assoc for assoc, _ in self.numbers}) <= 1
        return {stream: numbers for (_, stream), numbers in self.numbers.items()}
