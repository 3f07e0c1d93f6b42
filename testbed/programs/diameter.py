# SPDX-License-Identifier: GPL-2.0
"""A Diameter peer of the daemon on this host, which connects to it by TCP (RFC 6733). Standard library only.

    python3 diameter.py ask OWN_NAME ITS_NAME     # each line of its input is a request to ITS_NAME
    python3 diameter.py answer OWN_NAME

ask prints the line of each request that is answered. Ends with "ended: WHY" on errors.
"""

import os
import select
import socket
import struct
import sys
from collections.abc import Iterator

PORT = 3870
REALM = "example"
REQUEST, PROXIABLE = 0x80, 0x40
CAPABILITIES, ACCOUNTING, WATCHDOG, DISCONNECT = 257, 271, 280, 282
USER_NAME, HOST_ADDRESS, AUTH, ACCT, SESSION, ORIGIN_HOST, VENDOR, RESULT = (
    1,
    257,
    258,
    259,
    263,
    264,
    266,
    268,
)
PRODUCT, DESTINATION_REALM, DESTINATION_HOST, ORIGIN_REALM, RECORD_TYPE, RECORD_NUMBER = (
    269,
    283,
    293,
    296,
    480,
    485,
)
RELAY, BASE_ACCOUNTING, SUCCESS, EVENT = 0xFFFFFFFF, 3, 2001, 1
HEAD = struct.Struct("!IIIII")  # version and size, flags and code, application, two identifiers


def avp(code: int, value: bytes | str | int) -> bytes:
    if isinstance(value, int):
        value = struct.pack("!I", value)
    elif isinstance(value, str):
        value = value.encode()
    flags = 0 if code == PRODUCT else 0x40
    return struct.pack("!II", code, flags << 24 | 8 + len(value)) + value + bytes(-len(value) % 4)


def message(flags: int, code: int, application: int, numbers: tuple[int, int], *avps: bytes) -> bytes:
    body = b"".join(avps)
    return HEAD.pack(1 << 24 | HEAD.size + len(body), flags << 24 | code, application, *numbers) + body


def avps(body: bytes) -> dict[int, bytes]:
    found = {}
    while len(body) >= 8:
        code, size = struct.unpack_from("!II", body)
        size &= 0xFFFFFF
        found[code] = body[8:size]
        body = body[size + -size % 4 :]
    return found


class Peer:
    def __init__(self, daemon: socket.socket, name: str, target: str) -> None:
        self.daemon, self.name, self.target = daemon, name, target
        self.heard = self.rest = b""
        self.asked = 0
        self.ready = False

    def own(self) -> tuple[bytes, bytes]:
        return avp(ORIGIN_HOST, self.name), avp(ORIGIN_REALM, REALM)

    def messages(self) -> Iterator[tuple[int, int, int, tuple[int, int], bytes]]:
        """Flags, code, application, identifiers and body of each that has come."""
        given = self.daemon.recv(1 << 16)
        if not given:
            raise SystemExit("ended: by the daemon")
        self.heard += given
        while len(self.heard) >= HEAD.size:
            size, code, application, *numbers = HEAD.unpack_from(self.heard)
            size &= 0xFFFFFF
            if len(self.heard) < size:
                return
            body, self.heard = self.heard[HEAD.size : size], self.heard[size:]
            yield code >> 24, code & 0xFFFFFF, application, (numbers[0], numbers[1]), body

    def take(self) -> None:
        for flags, code, application, numbers, body in self.messages():
            if not flags & REQUEST:
                line = avps(body).get(USER_NAME, b"without a name")
                result = struct.unpack("!I", avps(body).get(RESULT, b"\0\0\0\0"))[0]
                print(line.decode() if result == SUCCESS else f"ended: result {result}", flush=True)
                continue
            self.daemon.sendall(
                message(flags & PROXIABLE, code, application, numbers, *self.answer(code, body))
            )
            self.ready |= code == CAPABILITIES

    def answer(self, code: int, body: bytes) -> tuple[bytes, ...]:
        common = (avp(RESULT, SUCCESS), *self.own())
        if code == CAPABILITIES:
            address = struct.pack("!H4s", 1, socket.inet_aton("127.0.0.1"))
            return (
                *common,
                avp(HOST_ADDRESS, address),
                avp(VENDOR, 0),
                avp(PRODUCT, "line"),
                avp(AUTH, RELAY),
            )
        if code == ACCOUNTING:
            asked = avps(body)
            same = (avp(one, asked[one]) for one in (RECORD_TYPE, RECORD_NUMBER, ACCT, USER_NAME))
            return (avp(SESSION, asked[SESSION]), *common, *same)
        return common

    def ask(self) -> bool:
        """A request for each line of the input; False at its end."""
        *lines, self.rest = (self.rest + (given := os.read(0, 1 << 16))).split(b"\n")
        for line in lines:
            self.asked += 1
            whole = (
                *(avp(SESSION, f"{self.name};{self.asked}"), *self.own()),
                *(avp(DESTINATION_REALM, REALM), avp(DESTINATION_HOST, self.target)),
                *(avp(RECORD_TYPE, EVENT), avp(RECORD_NUMBER, self.asked)),
                *(avp(ACCT, BASE_ACCOUNTING), avp(USER_NAME, line)),
            )
            numbers = (self.asked, self.asked)
            self.daemon.sendall(message(REQUEST | PROXIABLE, ACCOUNTING, BASE_ACCOUNTING, numbers, *whole))
        return bool(given)

    def run(self, asks: bool) -> None:
        while True:
            ready, _, _ = select.select([self.daemon.fileno(), *([0] if asks and self.ready else [])], [], [])
            if 0 in ready:
                asks = self.ask()
            if self.daemon.fileno() in ready:
                self.take()


def main() -> None:
    role, name, *target = sys.argv[1:]
    try:
        with socket.create_server(("127.0.0.1", PORT)) as ear:
            daemon, _ = ear.accept()
            daemon.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            Peer(daemon, name, *target, *([] if target else [""])).run(role == "ask")
    except OSError as error:
        raise SystemExit(f"ended: {error}") from error


main()
