# SPDX-License-Identifier: GPL-2.0
"""failover_return: how often a failed path is asked, in jiffies (net/sctp/multipath/failover.c)."""

from __future__ import annotations

from random import Random

PER_SECOND = 5
PROBES = 3000  # at that pace; then the time doubles
SHIFT = 10


def wait(hz: int, probes: int, hb_interval: int) -> int:
    """From one probe of a path to the next (sctp_mp_return_wait)."""
    least = hz // PER_SECOND
    longest = least << min(probes - PROBES + 1, SHIFT) if probes >= PROBES else least
    return min(max(hb_interval, least), longest)


def until_next(hz: int, probes: int, hb_interval: int, due_in: int, random: Random) -> int:
    """Until the next probe, or the HEARTBEAT by the clock that is due (sctp_mp_return_next)."""
    found = wait(hz, probes, hb_interval)
    found += random.randrange(found // 10 + 1)
    return found if found < due_in else max(due_in, hz // PER_SECOND)
