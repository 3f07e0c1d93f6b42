# SPDX-License-Identifier: GPL-2.0
"""From both ends of a program that people run to metrics. Pure.

sent, received          messages, where the program tells single ones
doubled, missing        those received again, those sent and not received
max_message_delay_s     longest wait of a message or answer; where it tells bytes only, longest time without
wait_N_s                the same among those sent from the Nth cut of a path to the next
median_message_delay_s
troubles                lines of its log, at either end, that mean trouble; an end before its time counts, too
active_paths            paths in state ACTIVE at the first cut: the fewer of both ends
t3_timeouts             how often the T3 timer expired, both ends
"""

from __future__ import annotations

from itertools import pairwise
from statistics import median
from typing import Any

from sctplab.spec.model import RunSpec

ACTIVE = "2"  # in /proc/net/sctp/remaddr
LOOPBACK = "127."
T3 = "SctpT3RtxExpireds"


def metrics(
    spec: RunSpec,
    ends: tuple[dict[str, Any], dict[str, Any]],
    messages: list[dict[str, Any]],
    result: dict[str, Any],
    counters: dict[str, dict[str, int]],
) -> dict[str, float]:
    """ENDS: results of client and server; MESSAGES as the end that counts them told."""
    client, server = ends
    counting = next((end for end in (server, client) if "received" in end), None)
    found: dict[str, float] = {
        "troubles": sum(len(end.get(key, [])) for end in ends for key in ("trouble", "early")),
        "t3_timeouts": sum(host.get(T3, 0) for host in counters.values()),
    }
    if counting:
        sent, received = client.get("sent", 0), counting["received"]
        found |= {"sent": sent, "received": received, "missing": sent - received}
        found["doubled"] = counting["doubled"]
    if messages:
        found |= waits(spec, messages, result["start_t"])
    if cut := next((one for one in result["events"] if one["label"].startswith("cut ")), None):
        found["active_paths"] = min(active(rows) for rows in cut["paths"].values())
    return found


def waits(spec: RunSpec, messages: list[dict[str, Any]], start_t: float) -> dict[str, float]:
    delays = [one["delay_us"] / 1e6 for one in messages]
    found = {"max_message_delay_s": max(delays), "median_message_delay_s": median(delays)}
    cuts = [event.at_s for event in spec.events if event.action == "cut"]
    for number, (begin, end) in enumerate(pairwise([*cuts, float("inf")]), 1):
        # A message sent just before a cut is lost in it, too.
        own = [one["delay_us"] / 1e6 for one in messages if begin - 1 <= one["sent"] - start_t < end - 1]
        if own:
            found[f"wait_{number}_s"] = max(own)
    return found


def active(rows: list[dict[str, str]]) -> int:
    """Of the paths of one end to the other."""
    return sum(row["STATE"] == ACTIVE and not row["ADDR"].startswith(LOOPBACK) for row in rows)
