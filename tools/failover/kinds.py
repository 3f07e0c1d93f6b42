# SPDX-License-Identifier: GPL-2.0
"""One line per kind of failure: how long it takes, and the rule of the kernel that says so."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from failover.clock import Clock
from failover.predict import TRIALS, WHEEL, Prediction, Range, predict, spread
from failover.settings import Settings
from failover.situation import Situation

OUTAGE_S = 5.0  # of a path whose return nobody asked about
INIT_DELAY_MS = 250  # SCTP_MP_INIT_DELAY
LOSSES = 3  # SCTP_MP_USELESS
PROBE_S = 0.22  # from one probe of failover_return to the next, at most
FEWER = 11  # trials of a failure beside the one that was asked about


@dataclass(frozen=True)
class Kind:
    """Seconds, None: it does not happen; MEASURE: from when to when."""

    failure: str
    measure: str
    seconds: Range | None
    rule: str


def kinds(settings: Settings, situation: Situation, found: Prediction) -> list[Kind]:
    """FOUND: the prediction for a silent cut of the primary path."""
    back = replace(situation, heal_s=situation.heal_s or OUTAGE_S)
    healed = found if situation.heal_s else predict(settings, back, FEWER)
    ends = predict(settings, replace(situation, both=True, heal_s=None), FEWER)
    return [
        silent_cut(settings, found),
        carrier_lost(settings, situation, found),
        dead_at_connect(settings, situation),
        hole(settings, situation, found),
        way_back(settings, back, healed),
        Kind("both paths cut", "until the association ends", ends.lost_s, end_rule(settings, ends)),
    ]


def silent_cut(s: Settings, found: Prediction) -> Kind:
    rule = suspect_rule(found) if s.failover_suspect and found.wait_ms else timeout_rule(s, found)
    return Kind("silent cut", "longest wait of a message", found.max_message_delay_s, rule)


def suspect_rule(found: Prediction) -> str:
    return (
        f"failover_suspect: copied when overdue, after {found.answer_ms:.0f} + max("
        f"4 x {found.answer_var_ms:.0f}, {found.answer_ms / 4:.0f}, 2) = "
        f"{found.wait_ms:.0f} ms; path left after as long again"
    )


def timeouts(s: Settings) -> int:
    """After how many of them new messages leave a path."""
    reaches_pf = s.pf_enable and s.pf_retrans + 1 < s.path_max_retrans
    return s.pf_retrans + 1 if reaches_pf else s.path_max_retrans + 1


def timeout_rule(s: Settings, found: Prediction) -> str:
    count = timeouts(s)
    first = f"the first timeout, RTO {found.rto_ms:g} ms, leaves the path"
    sum_of = f"{count} timeouts, RTO {found.rto_ms:g} ms doubled each time, leave the path"
    return first if count == 1 else sum_of


def carrier_lost(s: Settings, situation: Situation, found: Prediction) -> Kind:
    """At this host; the peer's loss of its own is a silent cut."""
    measure = "longest wait of a message"
    if not s.failover_link:
        rule = "failover_link 0: as a silent cut"
        return Kind("carrier lost here", measure, found.max_message_delay_s, rule)
    one_way_s = situation.alternate_rtt_ms / 2000
    seconds = Range(one_way_s, one_way_s, one_way_s + 1 / situation.hz)
    rule = "failover_link: left at once, and sent again over the other path; 0.2 s later if it flaps"
    return Kind("carrier lost here", measure, seconds, rule)


def dead_at_connect(s: Settings, situation: Situation) -> Kind:
    """INIT to the first address is lost."""
    early = bool(s.init_alternate) and s.rto_initial > INIT_DELAY_MS
    wait_ms = INIT_DELAY_MS if early else s.rto_initial
    random = Random(0)
    found: list[float | None] = []
    for _ in range(TRIALS):
        clock = Clock(situation.hz, random.random(), random.randrange(WHEEL) + WHEEL)
        found.append(clock.fires(0.0, clock.from_ms(wait_ms)) + 2 * situation.alternate_rtt_ms / 1000)
    name = "init_alternate" if early else "T1-init, rto_initial"
    rule = f"{name}: INIT to the next address after {wait_ms} ms, then two round trips"
    return Kind("first path dead", "until the association is up", spread(found), rule)


def hole(s: Settings, situation: Situation, found: Prediction) -> Kind:
    """The path brings HEARTBEATs and small messages, and loses what is large."""
    one_way_s, rtt_s = situation.alternate_rtt_ms / 2000, situation.rtt_ms / 1000
    measure = "longest wait of a large message"
    if s.failover_suspect and found.wait_ms:
        wait_s = found.wait_ms / 1000
        rule = f"failover_suspect: each large message is copied when overdue, after {found.wait_ms:.0f} ms"
        seconds = Range(wait_s + one_way_s, wait_s + one_way_s, 2 * wait_s + one_way_s)
        return Kind("MTU hole", measure, seconds, rule)
    if not s.failover_useless:
        rule = "failover_useless 0: answers to HEARTBEATs and small messages keep the path in use"
        return Kind("MTU hole", "until large messages leave the path", None, rule)
    count = min(timeouts(s), LOSSES)
    total_s = sum(min(found.rto_ms * 2**number, s.rto_max) for number in range(count)) / 1000
    rule = f"failover_useless: left after {losses(count)}; sooner if small messages tell of {LOSSES} losses"
    # A timer of 63 ticks and more fires up to an eighth late.
    seconds = Range(1.5 * rtt_s + one_way_s, total_s + one_way_s, total_s * 9 / 8 + one_way_s)
    return Kind("MTU hole", measure, seconds, rule)


def losses(count: int) -> str:
    return "the first timeout" if count == 1 else f"{count} timeouts"


def way_back(s: Settings, situation: Situation, found: Prediction) -> Kind:
    heal_s = situation.heal_s or 0.0
    outage = f"outage of {heal_s:g} s"
    measure = f"until the path is used again, {outage}"
    if s.failover_return:
        rule = "failover_return: asked every 200 to 220 ms, then a round trip and the next message"
    elif s.failover_heartbeat:
        rule = "failover_heartbeat: asked at once, then after 0.5 to 1.5 RTO, doubled up to hb_interval"
    else:
        rule = "HEARTBEATs: while PF after 0.5 to 1.5 RTO, which doubles; while INACTIVE hb_interval later"
    seconds = found.returns_s and since(found.returns_s, heal_s)
    if seconds and s.failover_return:  # the repair may fall anywhere between two probes and two messages
        rtt_s = situation.rtt_ms / 1000
        longest_s = PROBE_S + rtt_s + situation.interval_ms / 1000 + 2 / situation.hz
        seconds = Range(min(rtt_s, seconds.low), seconds.typical, max(longest_s, seconds.high))
    return Kind("way back", measure, seconds, rule)


def since(found: Range, moment_s: float) -> Range:
    low, typical, high = (max(0.0, t - moment_s) for t in (found.low, found.typical, found.high))
    return Range(low, typical, high)


def end_rule(s: Settings, found: Prediction) -> str:
    late = "" if found.lost_s else "; not within an hour"
    return (
        f"association_max_retrans {s.association_max_retrans}: so many timeouts in a row, RTO at most "
        f"{s.rto_max / 1000:g} s; dormant_policy {s.dormant_policy}{late}"
    )
