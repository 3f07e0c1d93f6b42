# SPDX-License-Identifier: GPL-2.0
"""Assumptions of a prediction beside the settings: round trips, traffic, the peer, the break."""

from __future__ import annotations

from dataclasses import dataclass, replace

IP, COMMON, CHUNK = 20, 12, 16  # header bytes: IPv4, SCTP, DATA
DENSEST_MS, PER_ROUND_TRIP = 1.0, 40  # between messages; more of them change no timer and no round trip
MOST = 6000  # messages before the cut


@dataclass(frozen=True)
class Moment:
    """When the cut falls: how many messages were sent BEFORE it, and the seconds until the next one."""

    before: int
    next_s: float


@dataclass(frozen=True)
class Situation:
    """Both directions of the primary path, or of BOTH paths, are cut at time 0, silently, and healed HEAL_S
    later (None: never).

    One message of SIZE_B bytes every INTERVAL_MS since LASTED_S. NODELAY: over a socket with SCTP_NODELAY.
    SACK_DELAY_MS is the peer's, 0: it acknowledges every packet. I_BIT: it heeds that (RFC 7053).
    A packet takes up to JITTER_MS more or less than half the round trip, and overtakes none.
    """

    rtt_ms: float
    alternate_rtt_ms: float
    interval_ms: float
    sack_delay_ms: float
    sack_freq: int = 2
    size_b: int = 100
    heal_s: float | None = None
    lasted_s: float = 60.0
    hz: int = 250
    heartbeats: bool = True
    both: bool = False
    mtu: int = 1500
    jitter_ms: float = 0.0
    i_bit: bool = True
    nodelay: bool = True

    def thinned(self) -> Situation:
        """With no more messages than a prediction follows: of bulk data a part is as good as all of it."""
        interval_ms = max(self.interval_ms, DENSEST_MS, self.rtt_ms / PER_ROUND_TRIP)
        lasted_s = min(self.lasted_s, MOST * interval_ms / 1000)
        return replace(self, interval_ms=interval_ms, lasted_s=lasted_s)

    @property
    def first_window(self) -> int:
        """RFC 9260 7.2.1, bytes."""
        return min(4 * self.mtu, max(2 * self.mtu, 4380))

    def fills(self, queued: int) -> bool:
        """Whether so many messages are enough for Nagle's algorithm (sctp_packet_can_append_data)."""
        first = CHUNK + (self.size_b + 3) // 4 * 4
        return first + (queued - 1) * self.size_b > self.mtu - IP - COMMON - CHUNK - 4

    @property
    def per_packet(self) -> int:
        """Messages that fit into one packet."""
        return max(1, (self.mtu - IP - COMMON) // (CHUNK + (self.size_b + 3) // 4 * 4))
