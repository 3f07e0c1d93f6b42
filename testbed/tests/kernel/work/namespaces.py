# SPDX-License-Identifier: GPL-2.0
"""How soon failover_link leaves a path while other namespaces have events, too. Standard library only."""

import fcntl
import os
import signal
import socket
import struct
import time
from typing import Any

from commands import HOME, enter, inside, remember_home
from many import connected
from options import SCTP, choose, namespace, shown_counters
from paths import PORT, hosts, pair
from thresholds import FAILOVER_LINK

GETFLAGS, SETFLAGS, UP = 0x8913, 0x8914, 1
OURS, WAIT_S, GAP_S = 5, 20.0, 0.15  # associations; at most; between two rounds of events
SETTINGS = {"hb_interval": 3_600_000}  # paths are asked once


def switch(asking: socket.socket, device: bytes, up: bool) -> None:
    """Sets a device of the namespace of ASKING up or down."""
    flags = struct.unpack("16sH22x", fcntl.ioctl(asking, GETFLAGS, struct.pack("16sH22x", device, 0)))[1]
    flags = flags | UP if up else flags & ~UP
    fcntl.ioctl(asking, SETFLAGS, struct.pack("16sH22x", device, flags))


def looped() -> tuple[socket.socket, list[socket.socket]]:
    """A new namespace with an association that has failover_link: how to reach its devices, what to keep."""
    namespace()
    server, client = (socket.socket(socket.AF_INET, socket.SOCK_STREAM, SCTP) for _ in range(2))
    server.bind(("127.0.0.1", PORT))
    server.listen()
    choose(client, 1, option_name=FAILOVER_LINK)
    client.connect(("127.0.0.1", PORT))
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM), [server, client, server.accept()[0]]


def flapping(devices: list[socket.socket]) -> int:
    """A process that sets the loopback of all of these down and up until it is ended; its number."""
    child = os.fork()
    while not child:
        for device in devices:
            for up in (False, True):
                switch(device, b"lo", up)
        time.sleep(GAP_S)
    return child


def left_after_s() -> float:
    """From the event of a device to the failure of the last path that used it."""
    with inside("a"):
        asking = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        began = time.monotonic()
        switch(asking, b"p1", False)
        while shown_counters()["SctpMpLinkFailures"] < OURS:
            assert time.monotonic() - began < WAIT_S, shown_counters()["SctpMpLinkFailures"]
            time.sleep(0.001)
        return time.monotonic() - began


def carry_out(plan: dict[str, Any]) -> dict[str, Any]:
    """PLAN: "namespaces" with events; "sockets", at either host, of associations without failover_link."""
    remember_home()
    made = [looped() for _ in range(plan["namespaces"])]
    enter(HOME)
    with hosts(SETTINGS):
        kept = connected(plan["sockets"])
        for n in range(OURS):
            client, server = pair(PORT - OURS + n)
            choose(client, 1, option_name=FAILOVER_LINK)
            kept += [client, server]
        child = flapping([asking for asking, _ in made])
        try:
            time.sleep(2)
            took_s = left_after_s()
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    return {"status": "ok", "left_s": took_s}
