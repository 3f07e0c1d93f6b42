# SPDX-License-Identifier: GPL-2.0
"""An application server process behind a transfer point of this host (RFC 4666). Standard library only.

    python3 m3ua.py hear|say PORT STP_PORT POINT_CODE

say: sends each line of its input to point code 0.0.4. hear: prints what comes.
Ends with "ended: WHY" on errors.
"""

import os
import select
import socket
import struct
import sys

SCTP, DEFAULT_SEND_PARAM, NODELAY = 132, 10, 3
PROTOCOL_M3UA = 3  # payload protocol identifier
TRANSFER, STATE, TRAFFIC = 1, 3, 4  # message classes
UP, ALIVE, UP_ACK, ALIVE_ACK = 1, 3, 4, 6
ACTIVE, ACTIVE_ACK = 1, 3
PROTOCOL_DATA = 0x0210
HEAD = struct.Struct("!BBBBI")
SCCP, NATIONAL = 3, 0
TARGET = "0.0.4"


def point_code(text: str) -> int:
    """3-8-3 bits."""
    zone, area, point = map(int, text.split("."))
    return zone << 11 | area << 3 | point


def parameter(kind: int, content: bytes) -> bytes:
    return struct.pack("!HH", kind, 4 + len(content)) + content + bytes(-len(content) % 4)


def message(kind: int, number: int, content: bytes = b"") -> bytes:
    return HEAD.pack(1, 0, kind, number, HEAD.size + len(content)) + content


def data(origin: int, target: int, content: bytes) -> bytes:
    label = struct.pack("!IIBBBB", origin, target, SCCP, NATIONAL, 0, 0)
    return message(TRANSFER, 1, parameter(PROTOCOL_DATA, label + content))


def content_of(body: bytes) -> bytes:
    """Of DATA: what the user sent."""
    while len(body) >= 4:
        kind, size = struct.unpack_from("!HH", body)
        if kind == PROTOCOL_DATA:
            return body[16:size]
        body = body[size + -size % 4 :]
    return b""


def connected(port: int, stp_port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, SCTP)
    made.setsockopt(SCTP, NODELAY, 1)
    made.setsockopt(
        SCTP,
        DEFAULT_SEND_PARAM,
        struct.pack("=HHHxxIIIIIi", 1, 0, 0, socket.htonl(PROTOCOL_M3UA), 0, 0, 0, 0, 0),
    )
    made.bind(("127.0.0.1", port))
    made.connect(("127.0.0.1", stp_port))
    return made


class Process:
    def __init__(self, stp: socket.socket, own: int) -> None:
        self.stp, self.own, self.active, self.rest = stp, own, False, b""

    def take(self) -> None:
        """One message of the transfer point."""
        packet = self.stp.recv(65536)
        if not packet:
            raise SystemExit("ended: by the transfer point")
        _, _, kind, number, size = HEAD.unpack_from(packet)
        body = packet[HEAD.size : size]
        if (kind, number) == (STATE, UP_ACK):
            self.stp.send(message(TRAFFIC, ACTIVE))
        elif (kind, number) == (TRAFFIC, ACTIVE_ACK):
            self.active = True
        elif (kind, number) == (STATE, ALIVE):
            self.stp.send(message(STATE, ALIVE_ACK, body))
        elif kind == TRANSFER:
            print(content_of(body).decode(errors="replace").rstrip("\0"), flush=True)

    def say(self) -> bool:
        """Lines of the input; False at its end."""
        *lines, self.rest = (self.rest + (given := os.read(0, 1 << 16))).split(b"\n")
        for line in lines:
            self.stp.send(data(self.own, point_code(TARGET), line))
        return bool(given)

    def run(self, says: bool) -> None:
        self.stp.send(message(STATE, UP))
        while True:
            heard = [self.stp.fileno(), *([0] if says and self.active else [])]
            ready, _, _ = select.select(heard, [], [])
            if 0 in ready:
                says = self.say()
            if self.stp.fileno() in ready:
                self.take()


def main() -> None:
    role, port, stp_port, own = sys.argv[1:]
    try:
        Process(connected(int(port), int(stp_port)), point_code(own)).run(role == "say")
    except OSError as error:
        raise SystemExit(f"ended: {error}") from error


main()
