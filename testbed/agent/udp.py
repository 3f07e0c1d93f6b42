# SPDX-License-Identifier: GPL-2.0
"""Background datagrams at a constant rate: udp.py send FROM TO PORT MBIT BYTES SECONDS | recv ADDRESS PORT.

Standard library only. The receiver says "ready", counts until it is terminated and then says how much came.
"""

import json
import signal
import socket
import sys
import time


def open_socket(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    made = socket.socket(family, socket.SOCK_DGRAM)
    made.bind((address, port))
    return made


def send(near: str, far: str, port: int, mbit: float, size: int, seconds: float) -> None:
    """Datagram n leaves n intervals after the start, so that a late wake-up does not lower the rate."""
    out = open_socket(near, 0)
    interval = size * 8 / (mbit * 1e6)
    start = time.monotonic()
    for n in range(int(seconds / interval)):
        time.sleep(max(0.0, start + n * interval - time.monotonic()))
        out.sendto(bytes(size), (far, port))


def receive(address: str, port: int) -> None:
    source = open_socket(address, port)
    packets = size = 0

    def report(*_: object) -> None:
        print(
            json.dumps(
                {"event": "result", "role": "recv", "proto": "udp", "bytes": size, "messages": packets}
            )
        )
        sys.exit(0)

    signal.signal(signal.SIGTERM, report)
    print('{"event":"ready"}', flush=True)
    while True:
        size += len(source.recv(65535))
        packets += 1


if sys.argv[1] == "send":
    send(sys.argv[2], sys.argv[3], int(sys.argv[4]), float(sys.argv[5]), int(sys.argv[6]), float(sys.argv[7]))
else:
    receive(sys.argv[2], int(sys.argv[3]))
