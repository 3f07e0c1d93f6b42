# SPDX-License-Identifier: GPL-2.0
"""Links that take a moment to come up: what is sent before is lost. Standard library only."""

import fcntl
import socket
import struct
import time

from commands import Command, CommandFailed, inside

SIOCGIFFLAGS = 0x8913
IFF_UP, IFF_RUNNING = 0x1, 0x40
LINK_UP_S, POLL_S = 8, 0.01


def coming_up() -> set[str]:
    """The interfaces of this namespace that somebody has set up, but that are not."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        return {
            name for _, name in socket.if_nameindex() if flags(sock, name) & (IFF_UP | IFF_RUNNING) == IFF_UP
        }


def flags(sock: socket.socket, name: str) -> int:
    try:
        found = fcntl.ioctl(sock, SIOCGIFFLAGS, struct.pack("16sH14x", name.encode(), 0))
    except OSError:  # gone since it was listed
        return 0
    return int(struct.unpack("16sH14x", found)[1])


def await_links(commands: list[Command]) -> None:
    """Until the interfaces that COMMANDS name have come up, each in its namespace; raises CommandFailed."""
    names: dict[str, set[str]] = {}
    for one in commands:
        names.setdefault(one["where"], set()).update(one["argv"])
    until = time.monotonic() + LINK_UP_S
    for where, words in names.items():
        with inside(where):
            while waiting := coming_up() & words:
                if time.monotonic() > until:
                    raise CommandFailed(f"{min(waiting)}: no carrier after {LINK_UP_S} s; plug it in")
                time.sleep(POLL_S)
