# SPDX-License-Identifier: GPL-2.0
"""Associations and their paths as they are shown; None for what this kernel does not tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

STATES = ("inactive", "potentially-failed", "active", "unconfirmed")  # enum sctp_spinfo_state
ASSOCIATION_STATES = (
    *("closed", "cookie-wait", "cookie-echoed", "established"),
    *("shutdown-pending", "shutdown-sent", "shutdown-received", "shutdown-ack-sent"),
)
REASONS = (
    *("set-up", "t3-rtx", "heartbeat", "timer", "heartbeat-ack", "data-acked", "other"),
    *("admin", "overdue", "losses", "init", "link", "icmp"),
)
EVENTS = ("state", "added", "removed")


def word(words: tuple[str, ...], number: int) -> str:
    """A name, or the number that a later kernel has a name for."""
    return words[number] if number < len(words) else str(number)


@dataclass(frozen=True)
class Path:
    """One address of the peer. The names are those of --json; times ago and RTO are in milliseconds."""

    address: str
    state: str
    source: str | None = None
    marks: tuple[str, ...] | None = None  # primary, active, retransmission
    reason: str | None = None
    struck_t3: int | None = None
    struck_heartbeat: int | None = None
    state_ms: int | None = None
    heard_ms: int | None = None
    sent_ms: int | None = None
    errors: int | None = None
    error_limit: int | None = None
    pf_limit: int | None = None
    rto_ms: int | None = None
    srtt_us: int | None = None
    rttvar_us: int | None = None
    rtt_min_us: int | None = None
    pmtu: int | None = None
    cwnd: int | None = None
    ssthresh: int | None = None
    flight: int | None = None
    t3_timeouts: int | None = None
    fast_retransmissions: int | None = None
    heartbeats_sent: int | None = None
    heartbeats_acked: int | None = None
    out_packets: int | None = None
    out_bytes: int | None = None
    out_chunks: int | None = None
    in_packets: int | None = None
    in_bytes: int | None = None
    in_chunks: int | None = None


@dataclass(frozen=True)
class Waits:
    """How long messages waited until the program had read them, US microseconds together.

    COUNTS: how many for less than 256 us, then each for less than twice the time of the one before; the
    last has the rest.
    """

    us: int
    counts: tuple[int, ...]


WAIT_LIMITS_US = tuple(256 << n for n in range(15))  # of all counts but the last


@dataclass(frozen=True)
class Association:
    """PATH_COUNT: all that it has, of which PATHS may be the first ones.

    UNREAD_WAITS: None if it does not count them.
    """

    assoc_id: int
    local_port: int
    peer_port: int
    state: str
    path_count: int
    paths: tuple[Path, ...]
    outstanding: int | None = None
    queued: int | None = None
    peer_rwnd: int | None = None
    rwnd: int | None = None
    unread: int | None = None
    incomplete: int | None = None
    errors: int | None = None
    error_limit: int | None = None
    unread_waits: Waits | None = None


@dataclass(frozen=True)
class Event:
    """A path has got another state, or has come or gone. TIME_NS: of CLOCK_MONOTONIC."""

    time_ns: int
    assoc_id: int
    local_port: int
    peer_port: int
    old_state: str
    path: Path
    kind: str = "state"  # of EVENTS


@dataclass(frozen=True)
class Part:
    """Some of TOTAL associations. STATES: how many paths all of them have in which state."""

    associations: tuple[Association, ...]
    total: int
    states: Mapping[str, int]
