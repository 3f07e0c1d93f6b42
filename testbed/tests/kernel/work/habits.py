# SPDX-License-Identifier: GPL-2.0
"""How long programs with changing habits take: bulk, bursts, requests, pauses. Standard library only.

A client on host1 does what is drawn from a seed, and in the end waits for an answer; the server on host2
answers requests. Each seed has an association of its own.
"""

import random
import socket
import threading
import time
from dataclasses import dataclass
from typing import Any

from commands import inside, remember_home, run_all
from links import await_links
from options import SCTP, write
from talk import NODELAY

PORT, LARGEST_B = 6000, 1 << 17
DATA, REQUEST, ANSWER = b"D", b"R", b"ok"
BEFORE_S, AFTER_S = 0.5, 0.3  # until each path has answered a HEARTBEAT; until the association has ended


@dataclass(frozen=True)
class Step:
    """COUNT messages of SIZE bytes, PAUSE_S after each; REQUESTS: the next one after the answer."""

    count: int
    size: int
    pause_s: float = 0
    requests: bool = False


def step(draw: random.Random) -> Step:
    match draw.choice(("small", "bulk", "burst", "pause", "requests")):
        case "small":
            return Step(draw.randint(1, 40), draw.randint(1, 300), draw.choice((0, 0.005, 0.02, 0.1)))
        case "bulk":
            return Step(draw.randint(50, 2500), draw.choice((500, 1400, 1452, 8000)))
        case "burst":
            return Step(draw.randint(3, 30), draw.randint(1000, 60000), draw.choice((0.02, 0.1, 0.3)))
        case "pause":
            return Step(1, 1, draw.choice((0.05, 0.3, 1, 3)))
        case _:
            return Step(draw.randint(5, 40), draw.randint(10, 3000), requests=True)


def habits(seed: int) -> tuple[list[Step], bool]:
    """The steps of the client of SEED, and whether it sets SCTP_NODELAY."""
    draw = random.Random(seed)
    return [step(draw) for _ in range(draw.randint(2, 6))], draw.random() < 0.5


def serve(listening: socket.socket) -> None:
    while True:
        peer = listening.accept()[0]
        while message := peer.recv(LARGEST_B):
            if message.startswith(REQUEST):
                peer.send(ANSWER)
        peer.close()


def ask(client: socket.socket, size: int) -> None:
    client.send(REQUEST + bytes(size))
    assert client.recv(LARGEST_B) == ANSWER


def took_s(address: str, seed: int) -> float:
    steps, nodelay = habits(seed)
    with inside("host1"), socket.socket(socket.AF_INET, socket.SOCK_STREAM, SCTP) as client:
        client.setsockopt(SCTP, NODELAY, nodelay)
        client.connect((address, PORT))
        time.sleep(BEFORE_S)
        began = time.monotonic()
        for one in steps:
            for _ in range(one.count):
                if one.requests:
                    ask(client, one.size)
                else:
                    client.send(DATA + bytes(one.size))
                if one.pause_s:
                    time.sleep(one.pause_s)
        ask(client, 1)
        return time.monotonic() - began


def carry_out(plan: dict[str, Any]) -> dict[str, Any]:
    """PLAN: "setup", "settings" of "hosts", "server", the first address, "seeds"."""
    remember_home()
    run_all(plan["setup"])
    await_links(plan["setup"])
    for host in plan["hosts"]:
        with inside(host):
            for name, value in plan["settings"].items():
                write(name, value)
    with inside("host2"):
        server = socket.socket(socket.AF_INET, socket.SOCK_STREAM, SCTP)
    server.bind(("0.0.0.0", PORT))
    server.listen()
    threading.Thread(target=serve, args=(server,), daemon=True).start()
    took = {}
    for seed in plan["seeds"]:
        took[seed] = took_s(plan["server"], seed)
        time.sleep(AFTER_S)
    return {"status": "ok", "took_s": took}
