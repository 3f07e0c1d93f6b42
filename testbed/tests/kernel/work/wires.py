# SPDX-License-Identifier: GPL-2.0
"""A transfer to a peer whose paths have a rate and a round trip each. Standard library only."""

import heapq
import time
from collections.abc import Sequence
from dataclasses import dataclass

from peer import DATA, Heard, Peer

OVERHEAD = 34  # bytes of a packet that are no SCTP: Ethernet and IPv4
HEADER = 16  # of a DATA chunk, bytes


@dataclass
class Wire:
    """A path: its rate in bytes per second, its shortest round trip, and its queue's length in seconds."""

    rate: float
    rtt_s: float
    queue_s: float = 60.0
    free_at: float = 0.0  # when the queue before it is empty

    def answers_at(self, size: int, now: float) -> float | None:
        """When the SACK for a packet of SIZE bytes that is sent now leaves the peer; None: it is dropped."""
        if self.free_at - now > self.queue_s:
            return None
        self.free_at = max(self.free_at, now) + size / self.rate
        return self.free_at + self.rtt_s


class Receiver:
    """State and SACKs of a receiver: messages are numbered from 1 and delivered in the order of SSNs."""

    def __init__(self, peer: Peer, done: int) -> None:
        self.peer = peer
        self.cumulative = done  # all up to this one have come
        self.handed_on = done  # SSNs, from 1
        self.sizes: dict[int, int] = {}  # SSN -> of what waits for its turn
        self.beyond: set[int] = set()  # numbers above cumulative

    def take(self, heard: Heard) -> None:
        number, ssn = self.peer.number(heard), heard.chunk.ssn + 1
        if number <= self.cumulative or number in self.beyond:
            return
        self.beyond.add(number)
        self.sizes[ssn] = len(heard.chunk.body) + 4 - HEADER
        while self.cumulative + 1 in self.beyond:
            self.cumulative += 1
            self.beyond.remove(self.cumulative)
        while self.handed_on + 1 in self.sizes:
            self.handed_on += 1
            del self.sizes[self.handed_on]

    def blocks(self) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        for number in sorted(self.beyond):
            if found and number == found[-1][1] + 1:
                found[-1] = (found[-1][0], number)
            else:
                found.append((number, number))
        return found

    def sack(self, path: int) -> None:
        room = max(self.peer.window - sum(self.sizes.values()), 0)
        self.peer.sack(path, self.cumulative, *self.blocks(), window=room)


class Line:
    """The way between a socket and a peer; DONE: messages before it."""

    def __init__(self, peer: Peer, done: int, wires: Sequence[Wire]) -> None:
        self.peer, self.wires = peer, wires
        self.receiver = Receiver(peer, done)
        self.waiting: list[tuple[float, int, list[Heard]]] = []  # SACK at, path, what it is for

    def wait(self, until: float) -> list[Heard]:
        """DATA chunks that the socket sends until the next event, a SACK or a packet; at the latest UNTIL."""
        if self.waiting and self.waiting[0][0] <= time.monotonic():
            _, path, packet = heapq.heappop(self.waiting)
            for one in packet:
                self.receiver.take(one)
            self.receiver.sack(path)
            return []
        sent: list[Heard] = []
        next_s = min([until, *(at for at, _, _ in self.waiting[:1])])
        for chunks in self.peer.packets(next_s - time.monotonic()):
            packet = [one for one in chunks if one.chunk.kind == DATA]
            if packet:
                sent += packet
                length = OVERHEAD + sum(len(one.chunk.packed()) for one in packet)
                at = self.wires[packet[0].path].answers_at(length, time.monotonic())
                if at is not None:
                    heapq.heappush(self.waiting, (at, packet[0].path, packet))
        return sent

    def transfer(self, size: int, seconds: float) -> list[Heard]:
        """DATA chunks of a socket that always has messages of SIZE bytes to send."""
        sent: list[Heard] = []
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.peer.fill(size)
            sent += self.wait(until)
        return sent

    def burst(self, messages: int, size: int, pause_s: float) -> list[Heard]:
        """DATA chunks of a socket that gets so many messages at once, and then none for PAUSE_S."""
        sent: list[Heard] = []
        until = time.monotonic() + pause_s
        self.peer.say(messages, size)
        while time.monotonic() < until:
            sent += self.wait(until)
        return sent
