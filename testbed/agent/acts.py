# SPDX-License-Identifier: GPL-2.0
"""A program of a flow with acts: acts.py send|recv PLAN. PLAN is JSON; standard library only.

    bind, to, port, from_port   own addresses, the receiver's, its port, the sender's
    many                        a one-to-many socket
    options                     [level, option, hex] before connect or listen
    messages, sizes, interval_s, streams, unordered     message n has size n and stream n, each in turn
    acts                        [seconds after the start, action, address] of this end; the receiver starts
                                when the first association comes
    open_s                      the sender does not close before; an act `close` ends that
    until_s, end_s              when no act of either end is left to come; when to give up

The sender closes when the socket has taken everything, after the acts that need an association, and ends when
the association has. The receiver ends
when no association is left and none is to come. Both say what they saw and end with 0, however the
association ended: whether that is right is for others to judge.

Nothing polls: virtual time stands still while anything runs. The socket is watched for edges, since poll may
call an SCTP socket writable that refuses a message.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import struct
import sys
import time
from collections.abc import Callable
from typing import Any

SCTP = 132  # protocol and level of its options
SETPEERPRIM, PRIMARY_ADDR, BINDX_ADD, BINDX_REM, CONNECTX = 5, 6, 100, 101, 110
RESET_STREAMS, EVENT, RECVRCVINFO = 119, 127, 32
SNDINFO, RCVINFO = 2, 3  # ancillary data
UNORDERED, ABORT, EOF = 1, 4, 0x200
NOTIFICATION, RECORD_END = 0x8000, 0x80
ASSOC_CHANGE, COMM_UP, COMM_LOST, SHUTDOWN_COMP, CANT_START = 0x8001, 0, 1, 3, 4
RESET_OUTGOING = 2
HEADER = struct.Struct("!IQ")  # number of the message, when it was due (ns)
PIECE_B = 1 << 16
STORAGE_B = 128


def sockaddr(host: str, port: int) -> bytes:
    if ":" in host:
        return struct.pack("=H", socket.AF_INET6) + struct.pack(
            "!HI16sI", port, 0, socket.inet_pton(socket.AF_INET6, host), 0
        )
    return struct.pack("=H", socket.AF_INET) + struct.pack("!H4s8x", port, socket.inet_aton(host))


def say(**words: object) -> None:
    print(json.dumps(words), flush=True)


class End:
    """The common part of both ends: sockets, the timetable, associations that come and go."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan
        self.acts: list[tuple[float, str, str]] = []
        self.epoll = select.epoll()
        self.socks: dict[int, socket.socket] = {}
        self.assocs: set[int] = set()
        self.ended = 0  # associations that are over
        self.refused: list[str] = []  # acts that the kernel did not take

    def begin(self) -> float:
        """Now is the start."""
        start = time.monotonic()
        self.acts = [(start + at_s, action, host) for at_s, action, host in self.plan["acts"]]
        return start

    def bound(self, port: int) -> socket.socket:
        """Bound to all own addresses; one of IPv6 takes those of IPv4 too."""
        hosts = self.plan["bind"]
        family = socket.AF_INET6 if any(":" in host for host in hosts) else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_SEQPACKET if self.plan["many"] else socket.SOCK_STREAM, SCTP)
        for level, option, value in self.plan["options"]:
            sock.setsockopt(level, option, bytes.fromhex(value))
        sock.setsockopt(SCTP, EVENT, struct.pack("=IHBx", 0, ASSOC_CHANGE, 1))
        sock.setsockopt(SCTP, RECVRCVINFO, 1)
        for host in hosts:
            sock.setsockopt(SCTP, BINDX_ADD, sockaddr(host, port))
        sock.setblocking(False)
        return sock

    def watch(self, sock: socket.socket, events: int) -> None:
        self.socks[sock.fileno()] = sock
        self.epoll.register(sock, events | select.EPOLLET)

    def forget(self, sock: socket.socket) -> None:
        del self.socks[sock.fileno()]
        self.epoll.unregister(sock)
        sock.close()

    def turn(self, until: float) -> list[int]:
        """Sleep until something happens or UNTIL; the acts that are due are done. Sockets with news."""
        moments = [until, *(at for at, _, _ in self.acts[:1])]
        wait = min(moments) - time.monotonic()
        found = [number for number, _ in self.epoll.poll(max(0.0, wait))]
        while self.acts and self.acts[0][0] <= time.monotonic():
            _, action, host = self.acts.pop(0)
            try:
                getattr(self, action.replace("-", "_"))(host)
            except OSError as error:
                self.refused.append(f"{action}: {error.strerror}")
        return found

    def read(self, sock: socket.socket) -> tuple[bytes, bool, tuple[int, int, int]] | None:
        """A piece of data, whether it ends a message, and (association, stream, order); None: no more now.

        Raises EOFError at the end of a one-to-one association, and keeps what notifications tell.
        """
        while True:
            try:
                data, extra, flags, _ = sock.recvmsg(PIECE_B, 256)
            except BlockingIOError:
                return None
            except OSError:
                raise EOFError from None
            if flags & NOTIFICATION:
                self.note(data)
            elif not data:
                raise EOFError
            else:
                info = next((value for level, kind, value in extra if (level, kind) == (SCTP, RCVINFO)), b"")
                where = struct.unpack_from("=i", info, 24)[0], *struct.unpack_from("=H2xH", info)
                return data, bool(flags & RECORD_END), (where[0], where[1], where[2] & UNORDERED)

    def note(self, data: bytes) -> None:
        if struct.unpack_from("=H", data)[0] != ASSOC_CHANGE:
            return
        state, assoc = struct.unpack_from("=8xH6xi", data)
        if state == COMM_UP:
            self.assocs.add(assoc)
        elif state in (COMM_LOST, SHUTDOWN_COMP, CANT_START):
            self.assocs.discard(assoc)
            self.ended += 1

    def each(self, change: Callable[[socket.socket, int], None]) -> None:
        """For each association with its socket; 0 stands for the one of a one-to-one socket."""
        for sock in list(self.socks.values()):
            for assoc in sorted(self.assocs) if self.plan["many"] else [0]:
                change(sock, assoc)

    def address_del(self, host: str) -> None:
        for sock in self.socks.values():
            sock.setsockopt(SCTP, BINDX_REM, sockaddr(host, self.own_port()))

    def address_add(self, host: str) -> None:
        for sock in self.socks.values():
            sock.setsockopt(SCTP, BINDX_ADD, sockaddr(host, self.own_port()))

    def primary(self, host: str) -> None:
        """HOST is the peer's."""
        self.primary_option(PRIMARY_ADDR, host, self.peer_port())

    def peer_primary(self, host: str) -> None:
        """Ask the peer to make the own address HOST its primary."""
        self.primary_option(SETPEERPRIM, host, self.own_port())

    def primary_option(self, option: int, host: str, port: int) -> None:
        where = sockaddr(host, port).ljust(STORAGE_B, b"\0")
        self.each(lambda sock, assoc: sock.setsockopt(SCTP, option, struct.pack("=i", assoc) + where))

    def reset_streams(self, _: str) -> None:
        """All outgoing ones."""
        self.each(
            lambda sock, assoc: sock.setsockopt(
                SCTP, RESET_STREAMS, struct.pack("=iHH", assoc, RESET_OUTGOING, 0)
            )
        )

    def abort(self, _: str) -> None:
        self.each(self.abort_one)

    def abort_one(self, sock: socket.socket, assoc: int) -> None:
        if self.plan["many"]:
            sock.sendmsg([b""], [(SCTP, SNDINFO, struct.pack("=HHIIi", 0, ABORT, 0, 0, assoc))])
            self.assocs.discard(assoc)
            self.ended += 1
            return
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.forget(sock)
        self.assocs.clear()
        self.ended += 1

    def own_port(self) -> int:
        raise NotImplementedError

    def peer_port(self) -> int:
        raise NotImplementedError


class Sender(End):
    """One association at a time."""

    sock: socket.socket | None = None
    sent = bytes_sent = 0
    first_t = last_t = 0.0
    started = begun = 0.0  # monotonic; when the first message was due
    closing = closed = False

    def run(self) -> None:
        self.connect("")
        self.started = self.begin()
        end = self.started + self.plan["end_s"]
        while (self.sock or self.acts) and time.monotonic() < end:
            self.pump()
            for number in self.turn(min(end, self.next_due())):
                self.take(number)
        if self.sock:
            self.abort("")
        say(
            event="result",
            role="send",
            proto="sctp",
            bytes=self.bytes_sent,
            messages=self.sent,
            **({"first_t": self.first_t, "last_t": self.last_t} if self.first_t else {}),
            refused=self.refused,
        )

    def connect(self, _: str) -> None:
        if self.sock:
            return
        self.closing = self.closed = False
        self.sock = self.bound(self.plan["from_port"])
        self.watch(self.sock, select.EPOLLIN | select.EPOLLOUT | select.EPOLLRDHUP)
        everywhere = b"".join(sockaddr(host, self.plan["port"]) for host in self.plan["to"])
        with contextlib.suppress(BlockingIOError):
            self.sock.setsockopt(SCTP, CONNECTX, everywhere)

    def close(self, _: str) -> None:
        """Send nothing more."""
        self.closed = True

    def take(self, number: int) -> None:
        """Notifications; a receiver sends no data."""
        if number not in self.socks:
            return
        sock, before = self.socks[number], self.ended
        try:
            while self.read(sock):
                pass
        except EOFError:
            self.ended += self.ended == before
        if self.ended > before:
            self.over()

    def over(self) -> None:
        self.last_t = time.time()
        if self.sock and self.sock.fileno() in self.socks:
            self.forget(self.sock)
        self.sock = None
        self.assocs.clear()

    def abort(self, _: str) -> None:
        super().abort("")
        if self.ended:
            self.over()

    def due(self) -> float:
        """When the next message is to be sent."""
        return self.begun + self.sent * float(self.plan["interval_s"])

    def next_due(self) -> float:
        """Of the next message or the end; infinity where only the socket can bring news."""
        if not self.begun or not self.assocs or self.closing:
            return float("inf")
        at = self.due() if self.sent < self.plan["messages"] and not self.closed else self.open_until()
        return at if at > time.monotonic() else float("inf")

    def open_until(self) -> float:
        return 0.0 if self.closed else self.started + float(self.plan["open_s"])

    def pump(self) -> None:
        """All that is due, as far as the socket takes it; then the end."""
        if not self.sock or not self.assocs or self.closing:
            return
        if not self.begun:
            self.begun, self.first_t = time.monotonic(), time.time()
        assoc = next(iter(self.assocs)) if self.plan["many"] else 0
        try:
            while self.sent < self.plan["messages"] and not self.closed:
                if self.plan["interval_s"] and self.due() > time.monotonic():
                    return
                self.send_one(assoc)
            if time.monotonic() >= self.open_until():
                self.finish(assoc)
        except BlockingIOError:
            return
        except OSError:
            return  # the association is over, and a notification says so

    def send_one(self, assoc: int) -> None:
        plan, number = self.plan, self.sent
        paced = plan["interval_s"] > 0
        due_ns = round((self.first_t + number * plan["interval_s"]) * 1e9) if paced else time.time_ns()
        size = plan["sizes"][number % len(plan["sizes"])]
        flags = UNORDERED if plan["unordered"] else 0
        info = struct.pack("=HHIIi", number % plan["streams"], flags, 0, 0, assoc)
        assert self.sock
        self.sock.sendmsg([HEADER.pack(number, due_ns).ljust(size, b".")], [(SCTP, SNDINFO, info)])
        self.sent += 1
        self.bytes_sent += size

    def finish(self, assoc: int) -> None:
        assert self.sock
        if self.plan["many"]:
            self.sock.sendmsg([b""], [(SCTP, SNDINFO, struct.pack("=HHIIi", 0, EOF, 0, 0, assoc))])
        else:
            self.sock.shutdown(socket.SHUT_WR)
        self.closing = True

    def own_port(self) -> int:
        return int(self.plan["from_port"])

    def peer_port(self) -> int:
        return int(self.plan["port"])


class Receiver(End):
    """Takes all associations that come, and all that they bring."""

    listener: socket.socket
    taken = messages = 0  # bytes, messages
    first_t = last_t = gap_s = gap_t = delay_s = 0.0
    until = float("inf")
    paused = False

    def run(self) -> None:
        self.partial: set[tuple[int, int, int]] = set()  # streams with half a message
        self.listener = self.bound(self.plan["port"])
        self.listener.listen(8)
        self.epoll.register(self.listener, select.EPOLLIN | select.EPOLLET)
        if self.plan["many"]:
            self.socks[self.listener.fileno()] = self.listener
        say(event="ready")
        end = time.monotonic() + self.plan["end_s"]
        while not self.done() and time.monotonic() < end:
            for number in self.turn(min(end, self.until) if time.monotonic() < self.until else end):
                self.take(number)
        if not self.plan["many"]:
            self.abort("")
        self.tell()

    def done(self) -> bool:
        alive = self.assocs if self.plan["many"] else self.socks
        return not alive and self.ended > 0 and time.monotonic() >= self.until

    def come(self) -> None:
        """The first association is the start."""
        if self.until == float("inf"):
            self.until = self.begin() + self.plan["until_s"]

    def tell(self) -> None:
        found: dict[str, Any] = {"event": "result", "role": "recv", "proto": "sctp", "refused": self.refused}
        found |= {"bytes": self.taken, "messages": self.messages}
        if self.messages:
            found |= {"first_t": self.first_t, "last_t": self.last_t, "max_message_delay_s": self.delay_s}
        if self.gap_t:
            found |= {"max_gap_s": self.gap_s, "max_gap_t": self.gap_t}
        say(**found)

    def take(self, number: int) -> None:
        self.come()
        if number == self.listener.fileno() and not self.plan["many"]:
            self.accept()
        elif number in self.socks and not self.paused:
            self.drain(self.socks[number])

    def accept(self) -> None:
        while True:
            try:
                sock, _ = self.listener.accept()
            except BlockingIOError:
                return
            sock.setblocking(False)
            self.watch(sock, select.EPOLLIN | select.EPOLLRDHUP)
            if not self.paused:
                self.drain(sock)

    def drain(self, sock: socket.socket) -> None:
        """Read until there is no more."""
        try:
            while found := self.read(sock):
                self.arrived(*found)
        except EOFError:
            if not self.plan["many"]:
                self.forget(sock)
                self.ended += 1

    def arrived(self, data: bytes, whole: bool, where: tuple[int, int, int]) -> None:
        now = time.time()
        self.taken += len(data)
        self.messages += whole
        if self.last_t and now - self.last_t > self.gap_s:
            self.gap_s, self.gap_t = now - self.last_t, self.last_t
        self.first_t, self.last_t = self.first_t or now, now
        if where not in self.partial and len(data) >= HEADER.size:
            self.delay_s = max(self.delay_s, now - HEADER.unpack_from(data)[1] / 1e9)
        (self.partial.discard if whole else self.partial.add)(where)

    def pause(self, _: str) -> None:
        self.paused = True

    def resume(self, _: str) -> None:
        self.paused = False
        for sock in list(self.socks.values()):
            self.drain(sock)

    def own_port(self) -> int:
        return int(self.plan["port"])

    def peer_port(self) -> int:
        return int(self.plan["from_port"])


if __name__ == "__main__":
    (Sender if sys.argv[1] == "send" else Receiver)(json.loads(sys.argv[2])).run()
