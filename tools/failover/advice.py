# SPDX-License-Identifier: GPL-2.0
"""Settings that defeat each other, each in one line: what happens, and what to set instead."""

from __future__ import annotations

from collections.abc import Iterator

from failover.estimate import Estimate, Limits
from failover.settings import LONGEST_MS, Settings
from failover.situation import Situation

SAMPLES = 64  # after which an RTO no longer changes when the round trip does not


def advice(settings: Settings, situation: Situation, peer_rto_min: int) -> list[str]:
    """All that is to be said; PEER_RTO_MIN in ms."""
    return [
        *of_timers(settings, situation, peer_rto_min),
        *of_states(settings),
        *of_return(settings, situation),
        *of_suspicion(settings, situation),
    ]


def spurious(early: int, lasted_s: float) -> list[str]:
    """The advice for EARLY timeouts without any loss in LASTED_S seconds, none for 0."""
    if not early:
        return []
    return [
        f"{early} spurious timeouts in the {lasted_s:g} s before the cut: the RTO is shorter than RTT + SACK "
        "delay; lower the peer's SACK delay or raise rto_min"
    ]


def all_at_once(settings: Settings) -> list[str]:
    """How far a prediction holds with CMT."""
    if not settings.cmt:
        return []
    return [
        "cmt 1: both paths carry data, and the prediction follows one; a message may wait for a timeout of "
        "each, one after the other, or for none"
    ]


def steady_rto(rtt_ms: float, hz: int) -> float:
    """The RTO that a round trip which never changes ends with, in ms: more than that round trip."""
    rtt = max(1, round(rtt_ms * hz / 1000))
    found = Estimate(0)
    for _ in range(SAMPLES):
        found = found.sampled(rtt, Limits(1, LONGEST_MS))
    return found.rto * 1000 / hz


def of_timers(s: Settings, situation: Situation, peer_rto_min: int) -> Iterator[str]:
    rtt = situation.rtt_ms
    floor = steady_rto(rtt, situation.hz)
    if s.rto_min > s.rto_max:
        yield f"rto_min {s.rto_min} > rto_max {s.rto_max}: the kernel refuses it; write rto_max first"
    if s.sack_timeout >= s.rto_min:
        yield (
            f"sack_timeout {s.sack_timeout} >= rto_min {s.rto_min}: with these settings at both ends a lone "
            "message can time out before it is acknowledged; lower sack_timeout together with rto_min"
        )
    if rtt + s.sack_timeout >= peer_rto_min:
        yield (
            f"RTT {rtt:g} + sack_timeout {s.sack_timeout} >= the peer's RTO.Min {peer_rto_min}: its "
            "lone messages can time out spuriously; lower sack_timeout here or raise RTO.Min there"
        )
    if s.rto_min < floor <= s.rto_max:
        yield (
            f"rto_min {s.rto_min} is never reached: at HZ {situation.hz} the RTO of a steady path of {rtt:g} "
            f"ms is {floor:g} ms, and more with a SACK delay"
        )
    if s.rto_max < floor:
        yield (
            f"rto_max {s.rto_max} is less than {floor:g} ms, the RTO of a steady path of {rtt:g} ms: "
            "messages can time out spuriously"
        )


def of_states(s: Settings) -> Iterator[str]:
    pmr, amr = s.path_max_retrans, s.association_max_retrans
    if s.never_pf:
        yield (
            f"path_max_retrans {pmr} with pf_retrans {s.pf_retrans}: no error count is between them, so the "
            "path never becomes PF, and new messages wait for it until error "
            f"{pmr + 1}; take 0, or at least {s.pf_retrans + 2}"
        )
    if not s.pf_enable and pmr:
        yield (
            f"pf_enable 0: after each of the first {pmr} timeouts new messages take the failed path again "
            "and wait for the next timeout, which takes twice as long"
        )
    if pmr and amr > 2 * pmr:
        yield (
            f"association_max_retrans {amr} > 2 paths x path_max_retrans {pmr}: if both paths fail, the "
            "association outlives them; SCTP_ASSOCINFO refuses such a value (EINVAL)"
        )
    if amr <= pmr:
        yield (
            f"association_max_retrans {amr} <= path_max_retrans {pmr}: the association can end before a path "
            "fails"
        )


def of_suspicion(s: Settings, situation: Situation) -> Iterator[str]:
    if s.failover_suspect and not situation.i_bit:
        yield (
            "failover_suspect with a peer that ignores the I bit: lone messages are copied until the wait "
            f"has grown to its SACK delay, {situation.sack_delay_ms:g} ms; lower that there"
        )


def of_return(s: Settings, situation: Situation) -> Iterator[str]:
    reaches_pf = s.pf_enable and s.pf_retrans + 1 < s.path_max_retrans
    if not situation.heartbeats and not s.uses_paths:
        yield "HEARTBEATs off (SPP_HB_DISABLE): a failed path (PF or INACTIVE) is not used again"
    elif not s.failover_heartbeat and not s.failover_return and not reaches_pf:
        yield (
            "failover_heartbeat 0: the path becomes INACTIVE, and its recovery is detected up to "
            f"hb_interval + 1.5 RTO = {s.hb_interval / 1000:g} s + 1.5 RTO later; set failover_heartbeat 1"
        )
