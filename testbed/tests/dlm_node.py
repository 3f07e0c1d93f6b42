# SPDX-License-Identifier: GPL-2.0
"""A node with the kernel's lock manager over SCTP, and no daemon of a cluster. Standard library only.

dlm_node.py join NODE ADDRESSES...  configure this node NODE of those with ADDRESSES (a word for each, joined
                                    by commas) and create the lockspace: ends when it works
dlm_node.py start NODES             when all NODES wait in join: what dlm_controld does then
dlm_node.py own NAME...             become the master of these resources for good
dlm_node.py load NAME STOP          take and release NAME every 10 ms until there is a file STOP; prints what
                                    load returns as JSON
"""

import errno
import json
import os
import socket
import struct
import sys
import time
from pathlib import Path

SPACE = "lab"
CLUSTER = Path("/sys/kernel/config/dlm/cluster")
STATE = Path("/sys/kernel/dlm", SPACE)
SCTP = 1
INTERVAL_S = 0.01

# Of include/uapi/linux/dlm_device.h: what is written for a lock and for a lockspace, and what is read.
HEAD = "@3IBB2x"
LOCK = HEAD + "BB2xIII2Q5P32s"
CREATE = HEAD + "II"
RESULT = "@3II3PiIBP4BI"
VERSION = (6, 0, 0)
LOCK_, UNLOCK, CREATE_LOCKSPACE = 1, 2, 4
NULL, EXCLUSIVE = 0, 5
PERSISTENT = 0x80
UNLOCKED = -0x10002


def put(path: Path, *values: object) -> None:
    """Write each value on its own; the kernel takes bytes as they are."""
    for value in values:
        path.write_bytes(value if isinstance(value, bytes) else str(value).encode())


def storage(address: str) -> bytes:
    """A struct sockaddr_storage of an IPv4 address."""
    return struct.pack("@HH4s120x", socket.AF_INET, 0, socket.inet_aton(address))


def join(own: int, addresses: list[str]) -> None:
    """Ends when start has been called everywhere; raises OSError."""
    CLUSTER.mkdir()
    put(CLUSTER / "cluster_name", SPACE)
    put(CLUSTER / "protocol", SCTP)
    for node, words in enumerate(addresses, 1):
        comm = CLUSTER / "comms" / str(node)
        comm.mkdir()
        put(comm / "nodeid", node)
        put(comm / "addr", *map(storage, words.split(",")))
        put(comm / "local", int(node == own))
    request = struct.pack(CREATE, *VERSION, CREATE_LOCKSPACE, 1, 0, 0) + SPACE.encode()
    with open("/dev/dlm-control", "wb", buffering=0) as control:
        control.write(request.ljust(struct.calcsize(LOCK), b"\0"))


def start(nodes: int) -> None:
    """Name the members and let the lockspace work."""
    space = CLUSTER / "spaces" / SPACE
    space.mkdir()
    for node in range(1, nodes + 1):
        member = space / "nodes" / str(node)
        member.mkdir()
        put(member / "nodeid", node)
    put(STATE / "id", 1)
    put(STATE / "control", 1)
    put(STATE / "event_done", 0)


class Locks:
    """The locks of this process in the lockspace; they end with it, unless they are PERSISTENT."""

    def __init__(self) -> None:
        self.device = os.open(f"/dev/dlm_{SPACE}", os.O_RDWR)

    def ask(self, command: int, mode: int, flags: int, lock: int, name: str, expected: int) -> int:
        """The number of the lock when the answer has come; raises OSError unless its status is EXPECTED."""
        head = struct.pack(
            LOCK, *VERSION, command, 1, mode, len(name), flags, lock, 0, 0, 0, 0, 1, 0, 0, 1, b""
        )
        os.write(self.device, head + name.encode())
        fields = struct.unpack(RESULT, os.read(self.device, struct.calcsize(RESULT)))
        status, number = fields[7:9]
        if status != expected:
            raise OSError(-status, f"{name}: {errno.errorcode.get(-status, status)}")
        return int(number)

    def take(self, name: str, mode: int = EXCLUSIVE, flags: int = 0) -> int:
        return self.ask(LOCK_, mode, flags, 0, name, 0)

    def release(self, lock: int) -> None:
        self.ask(UNLOCK, 0, 0, lock, "", UNLOCKED)


def load(name: str, stop: Path) -> list[tuple[float, float, float]]:
    """Of each time (asked at, granted after, released after) in seconds, the first by the monotonic clock."""
    locks, times = Locks(), []
    while not stop.exists():
        asked = time.monotonic()
        lock = locks.take(name)
        granted = time.monotonic()
        locks.release(lock)
        released = time.monotonic()
        times.append((asked, granted - asked, released - granted))
        time.sleep(max(0.0, asked + INTERVAL_S - released))
    return times


if __name__ == "__main__":
    words = sys.argv[2:]
    if sys.argv[1] == "join":
        join(int(words[0]), words[1:])
    elif sys.argv[1] == "start":
        start(int(words[0]))
    elif sys.argv[1] == "own":
        for word in words:
            Locks().take(word, NULL, PERSISTENT)
    else:
        print(json.dumps(load(words[0], Path(words[1]))))
