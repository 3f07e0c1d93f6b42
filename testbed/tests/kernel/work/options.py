# SPDX-License-Identifier: GPL-2.0
"""Sysctls, sockets and socket options of SCTP as the cases need them. Standard library only."""

import ctypes
import errno
import os
import socket
import struct
import subprocess
from collections.abc import Callable

from commands import LIBC

SCTP = 132  # protocol and level of its options
RTX_POLICY, PEELOFF, ASSOC_IDS = 0x1280, 102, 29
FUTURE, CURRENT, ALL = 0, 1, 2
CLONE_NEWNET = 0x40000000
LOOPBACK = {socket.AF_INET: "127.0.0.1", socket.AF_INET6: "::1"}


def expect(found: object, wanted: object) -> None:
    assert found == wanted, f"{found!r} instead of {wanted!r}"


def refused(number: int, call: Callable[..., object], *arguments: object) -> None:
    """The call has to fail with this error."""
    try:
        call(*arguments)
    except OSError as error:
        assert error.errno == number, f"{arguments[1:]}: {error}"
    else:
        raise AssertionError(f"{arguments[1:]} was taken")


def namespace() -> None:
    """Go to a new network namespace."""
    assert LIBC.unshare(CLONE_NEWNET) == 0
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def path(name: str) -> str:
    return f"/proc/sys/net/sctp/{name}"


def setting(name: str) -> str:
    with open(path(name), encoding="ascii") as source:
        return source.read().removesuffix("\n")


def write(name: str, value: str) -> None:
    """In one write, as sysctl does."""
    handle = os.open(path(name), os.O_WRONLY)
    try:
        os.write(handle, value.encode())
    finally:
        os.close(handle)


def shown_counters() -> dict[str, int]:
    """SCTP's, of the namespace."""
    with open("/proc/net/sctp/snmp", encoding="ascii") as table:
        return {name: int(value) for name, value in (line.split() for line in table)}


def option(sock: socket.socket, name: int, value: bytes, size: int | None = None) -> bytes:
    """getsockopt() with VALUE in the buffer, said to have SIZE bytes; the socket module cannot do that."""
    buffer = ctypes.create_string_buffer(value, max(len(value), 1))
    length = ctypes.c_uint(len(value) if size is None else size)
    if LIBC.getsockopt(sock.fileno(), SCTP, name, buffer, ctypes.byref(length)) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return buffer.raw[: length.value]


def choose(sock: socket.socket, value: int, assoc: int = FUTURE, option_name: int = RTX_POLICY) -> None:
    """Set an option of struct sctp_assoc_value."""
    sock.setsockopt(SCTP, option_name, struct.pack("iI", assoc, value))


def chosen(sock: socket.socket, assoc: int = FUTURE, option_name: int = RTX_POLICY) -> int:
    answer = option(sock, option_name, struct.pack("iI", assoc, 99))
    assert len(answer) == 8
    value: int = struct.unpack("iI", answer)[1]
    return value


def one_to_one(family: int = socket.AF_INET) -> socket.socket:
    return socket.socket(family, socket.SOCK_STREAM, SCTP)


def one_to_many(family: int = socket.AF_INET) -> socket.socket:
    return socket.socket(family, socket.SOCK_SEQPACKET, SCTP)


def aborts(sock: socket.socket) -> None:
    """Let close() end its associations by ABORT."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def listening(sock: socket.socket) -> socket.socket:
    sock.bind((LOOPBACK[socket.AddressFamily(sock.family)], 0))
    sock.listen()
    return sock


def associations(sock: socket.socket) -> list[int]:
    """Ids of a one-to-many socket's associations, oldest first."""
    answer = option(sock, ASSOC_IDS, bytes(400))
    count = struct.unpack_from("I", answer)[0]
    return sorted(struct.unpack_from(f"{count}i", answer, 4))


def connect(server: socket.socket) -> socket.socket:
    """A one-to-one socket with an association to SERVER, which knows of it, too."""
    client = one_to_one(server.family)
    client.connect(server.getsockname())
    if server.type == socket.SOCK_SEQPACKET:
        client.send(b"here")
        server.recv(10)
    return client


def peel_off(sock: socket.socket, assoc: int) -> socket.socket:
    return socket.socket(fileno=struct.unpack("ii", option(sock, PEELOFF, struct.pack("ii", assoc, 0)))[1])


def off_by_default_and_0_or_1(name: str, option_name: int) -> None:
    """A switch: its socket option, and its sysctl, which a new socket takes it from."""
    for sock in (one_to_one(), one_to_many()):
        expect(chosen(sock, option_name=option_name), 0)
        choose(sock, 1, option_name=option_name)
        expect(chosen(sock, option_name=option_name), 1)
        refused(errno.EINVAL, choose, sock, 2, 0, option_name)
    for kept in ("1", "0"):
        write(name, kept)
        expect(chosen(one_to_one(), option_name=option_name), int(kept))
        for text in ("2", "-1", "256", "x"):
            refused(errno.EINVAL, write, name, text)
