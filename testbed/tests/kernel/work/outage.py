# SPDX-License-Identifier: GPL-2.0
"""Outages as the exporter of host a sees them: a dump each 15 s. Standard library only.

Host a has two associations with b over both networks, with the kernel's own timers: one that sends, one that
is idle. Each outage has hosts of its own.
"""

import contextlib
import socket
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from commands import inside, remember_home
from paths import PORT, hosts, network, pair
from pathview import selection

SCRAPE_S, BREATH_S = 15, 0.1
EACH, SIZE = 5, 1000  # messages per breath, bytes
Step = tuple[float, Callable[[], None]]


def cut(*numbers: int, loss: str = "loss 100%", works: bool = False) -> Callable[[], None]:
    def deed() -> None:
        for number in numbers:
            network(number, works, loss)

    return deed


def mend(*numbers: int) -> Callable[[], None]:
    return cut(*numbers, works=True)


# Name -> how long it is watched, and its steps: seconds from the beginning, deed.
OUTAGES: dict[str, tuple[float, list[Step]]] = {
    "healthy": (180, []),
    "cut": (360, [(60, cut(1)), (240, mend(1))]),
    "flaps": (660, [step for n in range(4) for step in ((60 + 100 * n, cut(1)), (80 + 100 * n, mend(1)))]),
    "loss": (510, [(60, cut(1, loss="loss 4%")), (180, mend(1))]),
    "both": (210, [(62, cut(1, 2)), (85, mend(1, 2))]),
}


def look() -> list[dict[str, Any]]:
    with inside("a"):
        found, missing = selection.look()
    assert not missing, missing
    return [asdict(one) for one in found]


def traffic(client: socket.socket, peer: socket.socket) -> None:
    """Send up to EACH messages, as many as the socket buffer takes, and read all that has arrived."""
    with contextlib.suppress(BlockingIOError):
        for _ in range(EACH):
            client.send(bytes(SIZE))
    with contextlib.suppress(BlockingIOError):
        while peer.recv(SIZE):
            pass


def watched(lasts: float, steps: list[Step]) -> list[list[dict[str, Any]]]:
    """All associations of a, each time."""
    busy, idle = pair(PORT), pair(PORT + 1)
    for sock in busy:
        sock.setblocking(False)
    began, looks = time.monotonic(), []
    while len(looks) * SCRAPE_S <= lasts:
        passed = time.monotonic() - began
        while steps and steps[0][0] <= passed:
            steps.pop(0)[1]()
        if passed >= len(looks) * SCRAPE_S:
            looks.append(look())
        traffic(*busy)
        time.sleep(BREATH_S)
    for sock in (*busy, *idle):
        sock.close()
    return looks


def carry_out(plan: dict[str, Any]) -> dict[str, Any]:
    """The looks of each outage."""
    remember_home()
    found = {}
    for name, (lasts, steps) in OUTAGES.items():
        with hosts({}):
            found[name] = watched(lasts, list(steps))
    return {"status": "ok", "outages": found}
