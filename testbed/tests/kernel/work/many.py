# SPDX-License-Identifier: GPL-2.0
"""The paths of very many associations, dumped. Standard library only."""

import socket
import struct
import time
from typing import Any

from commands import inside, remember_home
from cycles import cycles
from options import SCTP
from paths import hosts
from pathview import diag, netlink

PORT, BUFFER_B, DUMPS = 6000, 32768, 10
SETTINGS = {"hb_interval": 3_600_000}  # paths are asked once


def connected(sockets: int) -> list[socket.socket]:
    """As many one-to-many sockets at either host, each of a with an association to each of b."""
    with inside("b"):
        servers = [socket.socket(socket.AF_INET, socket.SOCK_SEQPACKET, SCTP) for _ in range(sockets)]
    with inside("a"):
        clients = [socket.socket(socket.AF_INET, socket.SOCK_SEQPACKET, SCTP) for _ in range(sockets)]
    for port, server in enumerate(servers, PORT):
        server.bind(("0.0.0.0", port))
        server.listen(sockets)
    for port, _ in enumerate(servers, PORT):
        for client in clients:
            client.sendto(b"x", ("10.1.0.2", port))
        time.sleep(0.3)  # virtual
    time.sleep(5)
    return servers + clients


def dumped() -> tuple[int, int]:
    """The cycles and the bytes of a dump, read as ss reads it."""
    buffer = bytearray(BUFFER_B)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, netlink.SOCK_DIAG) as asking:
        began, size, kind = cycles(), 0, 0
        asking.send(diag.request(socket.AF_INET))
        while kind != netlink.DONE:
            size += asking.recv_into(buffer)
            (kind,) = struct.unpack_from("=H", buffer, 4)
        return cycles() - began, size


def carry_out(plan: dict[str, Any]) -> dict[str, Any]:
    """PLAN: "sockets", at either host."""
    remember_home()
    with hosts(SETTINGS):
        kept = connected(plan["sockets"])
        with inside("a"):
            dumps = [dumped() for _ in range(DUMPS)]
            found = diag.associations(diag.dump()) or ()
        for one in kept:
            one.close()
    return {
        "status": "ok",
        "cycles": min(dumps)[0],
        "bytes": dumps[0][1],
        "associations": len(found),
        "active_paths": sum(path.state == "active" for one in found for path in one.paths),
    }
