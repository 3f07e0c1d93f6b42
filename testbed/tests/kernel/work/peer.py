# SPDX-License-Identifier: GPL-2.0
"""A peer that a case leads by the hand: it makes its packets itself and only answers HEARTBEATs unasked.

Path N joins interface vaN of the socket, 10.1N.0.1, with pbN, where no kernel listens for 10.1N.0.2. Standard
library only.
"""

from __future__ import annotations

import fcntl
import select
import socket
import struct
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from options import SCTP, aborts, one_to_many, one_to_one, write
from thresholds import BINDX_ADD, addr_info, address, info

DATA, INIT, INIT_ACK, SACK, HEARTBEAT, HEARTBEAT_ACK, ABORT, COOKIE_ECHO, COOKIE_ACK = (
    0,
    1,
    2,
    3,
    4,
    5,
    6,
    10,
    11,
)
ASCONF, ASCONF_ACK, REMOVE = 0xC1, 0x80, 0xC002
SHUTDOWN, ECNE, FORWARD_TSN = 7, 12, 0xC0
RECONF, RECONF_REQUEST, RECONF_ANSWER = 0x82, 13, 16
AUTH, RANDOM, CHUNKS, HMACS, HMAC_SHA1 = 0x0F, 0x8002, 0x8003, 0x8004, 1
ECN_CAPABLE, SUPPORTED_EXTENSIONS = 0x8000, 0x8008
EXTENSIONS = {  # sysctl -> chunks
    "addip_enable": (ASCONF, ASCONF_ACK),
    "reconf_enable": (RECONF,),
    "auth_enable": (AUTH,),  # the socket authenticates its DATA, and the peer does not look
}
IMMEDIATE = 8  # flag of DATA: the I bit
OURS, THEIRS = 6000, 5000  # ports of the peer and of the socket
TAG, FIRST_TSN, COOKIE, IPV4 = 0x5A5A5A5A, 1000, 7, 5
ALL_PACKETS, IP_PROTOCOL, ICMP = 3, 0x0800, 1
AUTOCLOSE, NODELAY, PRIMARY_ADDR, SNDBUFFORCE, RCVBUFFORCE = 4, 3, 6, 32, 33
GET_FLAGS, RUNNING = 0x8913, 1 << 6  # SIOCGIFFLAGS, IFF_RUNNING
DEFAULT_PRINFO = 114
PR_SCTP_NONE, PR_SCTP_TTL, PR_SCTP_RTX, PR_SCTP_PRIO = 0, 0x10, 0x20, 0x30
RTT_S = 0.02


def crc_table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


CRC = crc_table()


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def ip_checksum(header: bytes) -> int:
    total = sum(struct.unpack(f"!{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def ip_header(protocol: int, size: int, source: str, target: str) -> bytes:
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + size, 0, 0, 64, protocol, 0)
    ip += socket.inet_aton(source) + socket.inet_aton(target)
    return ip[:10] + struct.pack("!H", ip_checksum(ip)) + ip[12:]


@dataclass(frozen=True)
class Chunk:
    kind: int
    flags: int
    body: bytes

    def packed(self) -> bytes:
        return struct.pack("!BBH", self.kind, self.flags, 4 + len(self.body)) + padded(self.body)

    @property
    def tsn(self) -> int:
        number: int = struct.unpack_from("!I", self.body)[0]
        return number

    @property
    def ssn(self) -> int:
        """Of DATA."""
        number: int = struct.unpack_from("!H", self.body, 6)[0]
        return number


@dataclass(frozen=True)
class Heard:
    """A chunk of the socket, when and over which path it came."""

    at_s: float
    path: int
    chunk: Chunk


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def parameter(kind: int, value: bytes) -> bytes:
    """Of INIT."""
    return padded(struct.pack("!HH", kind, 4 + len(value)) + value)


def chunks_of(packet: bytes) -> Iterator[Chunk]:
    at = 12
    while at + 4 <= len(packet):
        kind, flags, length = struct.unpack_from("!BBH", packet, at)
        yield Chunk(kind, flags, packet[at + 4 : at + length])
        at += length + -length % 4


def wait_for_carrier(interface: str) -> None:
    """The kernel may take a second to heed a carrier, and drops what is sent until then."""
    request = struct.pack("16s24x", interface.encode())
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        while not struct.unpack_from("=H", fcntl.ioctl(sock, GET_FLAGS, request), 16)[0] & RUNNING:
            time.sleep(0.01)


class Peer:
    """An established association with the socket SOCK; SETTINGS: sysctls of net.sctp before that.

    window: the receive window that the peer offers, bytes; rtts_s: what a HEARTBEAT takes over each path;
    silent: paths whose HEARTBEATs get no answer; hosts: addresses of SOCK, if not those of its interfaces:
    the peer sends to the first, over all paths; it can do what a sysctl among SETTINGS enables (EXTENSIONS);
    autoclose_s: SOCK is a one-to-many socket with that SCTP_AUTOCLOSE; first_tsn: of the peer's DATA
    """

    rtts_s: Sequence[float] = ()
    target = ""
    many = False

    def __init__(
        self,
        paths: int = 2,
        window: int = 1 << 20,
        rtts_s: Sequence[float] = (),
        silent: Sequence[int] = (),
        hosts: Sequence[str] = (),
        autoclose_s: int = 0,
        first_tsn: int = FIRST_TSN,
        **settings: str,
    ) -> None:
        for name, value in settings.items():
            write(name, value)
        self.paths = [self.join(number) for number in range(paths)]
        for number in range(paths):
            wait_for_carrier(f"va{number}")
        bound = hosts or [self.host(number) for number in range(paths)]
        self.target = hosts[0] if hosts else ""
        self.window, self.rtts_s, self.first_tsn = window, rtts_s, first_tsn
        self.silent = set(silent)
        kinds = bytes(kind for name in settings for kind in EXTENSIONS.get(name, ()))
        self.extensions = parameter(SUPPORTED_EXTENSIONS, kinds) if kinds else b""
        if "ecn_enable" in settings:
            self.extensions += parameter(ECN_CAPABLE, b"")
        if "auth_enable" in settings:
            self.extensions += parameter(RANDOM, bytes(32)) + parameter(CHUNKS, bytes([DATA]))
            self.extensions += parameter(HMACS, struct.pack("!H", HMAC_SHA1))
        self.tag = self.first = self.next_tsn = 0
        server = one_to_many() if autoclose_s else one_to_one()
        if autoclose_s:
            server.setsockopt(SCTP, AUTOCLOSE, autoclose_s)
        server.bind((bound[0], THEIRS))
        for host in bound[1:]:
            server.setsockopt(SCTP, BINDX_ADD, address(host, THEIRS))
        server.listen()
        self.shake_hands()
        self.many = bool(autoclose_s)
        self.sock = server if self.many else server.accept()[0]
        self.sock.setsockopt(SCTP, NODELAY, 1)
        aborts(self.sock)
        if not self.many:
            server.close()
        self.listen(5)  # meanwhile all addresses are confirmed

    def join(self, number: int) -> socket.socket:
        ours, theirs = f"02:00:00:00:0{number}:02", f"02:00:00:00:0{number}:01"
        script = (
            f"link add va{number} address {theirs} type veth peer name pb{number} address {ours}\n"
            f"addr add 10.1{number}.0.1/24 dev va{number}\n"
            f"link set va{number} arp off up\n"
            f"link set pb{number} arp off up\n"
        )
        subprocess.run(["ip", "-batch", "-"], input=script, text=True, check=True)
        wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PACKETS))
        wire.setsockopt(socket.SOL_SOCKET, RCVBUFFORCE, 8 << 20)
        wire.bind((f"pb{number}", ALL_PACKETS))
        return wire

    def shake_hands(self, tag: int = TAG) -> None:
        """With another tag of the peer: it restarts, and the socket begins with the same TSN as before."""
        addresses = b"".join(
            struct.pack("!HH4B", IPV4, 8, 10, 10 + number, 0, 2) for number in range(len(self.paths))
        )
        forward_tsn = struct.pack("!HH", 0xC000, 4)
        init = struct.pack("!IIHHI", tag, self.window, 10, 10, self.first_tsn)
        init += addresses + forward_tsn + self.extensions
        self.tag, self.next_tsn = 0, self.first_tsn
        self.send(0, Chunk(INIT, 0, init))
        answer = next(one.chunk for one in self.listen(0.1) if one.chunk.kind == INIT_ACK).body
        self.tag, _, _, _, self.first = struct.unpack_from("!IIHHI", answer)
        at = 16
        while struct.unpack_from("!H", answer, at)[0] != COOKIE:
            length = struct.unpack_from("!H", answer, at + 2)[0]
            at += length + -length % 4
        cookie = answer[at + 4 : at + struct.unpack_from("!H", answer, at + 2)[0]]
        self.send(0, Chunk(COOKIE_ECHO, 0, cookie))

    def send(self, path: int, *chunks: Chunk) -> None:
        """One packet."""
        content = b"".join(chunk.packed() for chunk in chunks)
        header = struct.pack("!HHI", OURS, THEIRS, self.tag)
        crc = struct.pack("<I", crc32c(header + bytes(4) + content))
        self.send_ip(path, SCTP, header + crc + content)

    def host(self, path: int) -> str:
        """Where the socket is sent packets over a path."""
        return self.target or f"10.1{path}.0.1"

    def send_ip(self, path: int, protocol: int, content: bytes) -> None:
        ethernet = bytes([2, 0, 0, 0, path, 1, 2, 0, 0, 0, path, 2]) + struct.pack("!H", IP_PROTOCOL)
        header = ip_header(protocol, len(content), f"10.1{path}.0.2", self.host(path))
        self.paths[path].send(ethernet + header + content)

    def unreachable(self, path: int, code: int, tag: int, chunk: bytes = b"") -> None:
        """An ICMP error about a packet of the socket to PATH, of which it quotes the beginning of a chunk."""
        quoted = ip_header(SCTP, 100, self.host(path), f"10.1{path}.0.2")
        quoted += struct.pack("!HHII", THEIRS, OURS, tag, 0) + chunk
        icmp = struct.pack("!BBHI", 3, code, 0, 0) + quoted
        self.send_ip(path, ICMP, icmp[:2] + struct.pack("!H", ip_checksum(icmp)) + icmp[4:])

    def data(self, path: int, size: int = 100) -> None:
        """The next message, whole."""
        self.message(path, self.next_tsn - self.first_tsn, size)
        self.next_tsn += 1

    def message(self, path: int, number: int, size: int) -> None:
        """Any message, whole; the first is 0."""
        tsn = self.first_tsn + number & 0xFFFFFFFF
        self.send(path, Chunk(DATA, 3, struct.pack("!IHHI", tsn, 0, number, 0) + bytes(size)))

    def sack(self, path: int, received: int, *blocks: tuple[int, int], **more: Any) -> None:
        self.send(path, self.sack_chunk(received, *blocks, **more))

    def sack_chunk(
        self,
        received: int,
        *blocks: tuple[int, int],
        window: int = 1 << 20,
        flags: int = 0,
        twice: tuple[int, ...] = (),
    ) -> Chunk:
        """RECEIVED messages in order, BLOCKS, and TWICE as duplicates; all count from 1, a TSN each."""
        body = struct.pack("!IIHH", self.first - 1 + received, window, len(blocks), len(twice))
        body += b"".join(struct.pack("!HH", low - received, high - received) for low, high in blocks)
        body += b"".join(struct.pack("!I", self.first - 1 + number) for number in twice)
        return Chunk(SACK, flags, body)

    def remove(self, path: int, over: int) -> None:
        """Take back the address of PATH, by ASCONF from that of the path OVER; once for each peer."""
        place = struct.Struct("!HH4B")
        body = struct.pack("!I", self.first_tsn) + place.pack(IPV4, 8, 10, 10 + over, 0, 2)
        body += struct.pack("!HHI", REMOVE, 16, 1) + place.pack(IPV4, 8, 10, 10 + path, 0, 2)
        self.send(over, Chunk(ASCONF, 0, body))

    def accept(self, request: Heard) -> None:
        """Acknowledge all of an ASCONF of the socket."""
        self.send(request.path, Chunk(ASCONF_ACK, 0, request.chunk.body[:4]))

    def reset(self, path: int, messages: int) -> None:
        """Ask to reset all streams of the peer when so many messages have come, by the same request."""
        last = self.first_tsn + messages - 1 & 0xFFFFFFFF
        body = struct.pack("!HHIII", RECONF_REQUEST, 16, self.first_tsn, self.first - 1, last)
        self.send(path, Chunk(RECONF, 0, body))

    def answer(self, request: Heard, result: int, tsns: Sequence[int] = ()) -> None:
        """To a RE-CONFIG of the socket, over the path that it took; RESULT, TSNS: RFC 6525 4.4."""
        number = struct.unpack_from("!4xI", request.chunk.body)[0]
        body = struct.pack("!HHII", RECONF_ANSWER, 12 + 4 * len(tsns), number, result)
        body += b"".join(struct.pack("!I", tsn) for tsn in tsns)
        self.send(request.path, Chunk(RECONF, 0, body))

    def number(self, heard: Heard) -> int:
        """Of a message of the socket, from 1."""
        return heard.chunk.tsn - self.first + 1

    def packets(self, seconds: float) -> list[list[Heard]]:
        """The chunks of each packet that comes within so many seconds; returns when some have."""
        found = []
        for wire in select.select(self.paths, [], [], max(seconds, 0))[0]:
            frame, sender = wire.recvfrom(65536)
            if sender[2] == socket.PACKET_OUTGOING or frame[23] != SCTP:
                continue
            path = self.paths.index(wire)
            packet = frame[34 : 14 + struct.unpack_from("!H", frame, 16)[0]]
            found.append([Heard(time.monotonic(), path, chunk) for chunk in chunks_of(packet)])
            for one in found[-1]:
                if one.chunk.kind == HEARTBEAT and path not in self.silent:
                    time.sleep(self.rtts_s[path] if self.rtts_s else 0)
                    self.send(path, Chunk(HEARTBEAT_ACK, 0, one.chunk.body))
        return found

    def listen(self, seconds: float) -> list[Heard]:
        """All chunks of the socket during so many seconds; HEARTBEATs are answered."""
        found = []
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            found += [one for packet in self.packets(left) for one in packet]
        return found

    def messages(self, seconds: float) -> list[Heard]:
        """DATA chunks of the socket."""
        return [one for one in self.listen(seconds) if one.chunk.kind == DATA]

    def say(self, number: int, size: int = 1400) -> None:
        """So many messages by the socket."""
        for _ in range(number):
            if self.many:
                self.sock.sendto(bytes(size), ("10.10.0.2", OURS))
            else:
                self.sock.send(bytes(size))

    def fill(self, size: int) -> int:
        """As many messages by the socket as its buffer takes; how many."""
        number = 0
        while True:
            try:
                self.sock.send(bytes(size), socket.MSG_DONTWAIT)
            except BlockingIOError:
                return number
            number += 1

    def buffer(self, size: int) -> None:
        """Give the socket a send buffer of so many bytes."""
        self.sock.setsockopt(socket.SOL_SOCKET, SNDBUFFORCE, size // 2)  # the kernel doubles it

    def states(self) -> list[int]:
        return [info(self.sock, f"10.1{path}.0.2")[0] for path in range(len(self.paths))]

    def cwnd(self, path: int) -> int:
        """Congestion window of a path, bytes."""
        return addr_info(self.sock, f"10.1{path}.0.2")[1]

    def prefer(self, path: int) -> None:
        """Make a path the primary one."""
        where = address(f"10.1{path}.0.2", OURS)
        self.sock.setsockopt(SCTP, PRIMARY_ADDR, struct.pack("=i128s", 0, where))


def limit(peer: Peer, policy: int, value: int) -> None:
    """PR-SCTP of the messages from now on, RFC 7496: milliseconds, retransmissions or the priority."""
    peer.sock.setsockopt(SCTP, DEFAULT_PRINFO, struct.pack("=iIH2x", 0, value, policy))


def measured(peer: Peer, messages: int = 4, rtt_s: float = RTT_S) -> int:
    """Messages that are acknowledged after a round trip, one by one; how many."""
    for number in range(1, messages + 1):
        peer.say(1)
        path = peer.messages(rtt_s)[0].path
        peer.sack(path, number)
    return messages
