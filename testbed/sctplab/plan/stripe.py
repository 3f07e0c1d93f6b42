# SPDX-License-Identifier: GPL-2.0
"""A flow striped over several associations, one per path: what they have achieved together. Pure.

As Iyengar, Amer and Stewart define AppStripe: each association transfers all of the data, and the transfer
ends at the moment at which the data that they have received in order sums up to all of it. No way of
dividing the data among the same associations ends sooner. Each association's clock starts with its first
message, as that of a single association does, so a handshake that lost a packet costs neither of them.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import Any

from sctplab.spec.model import Flow

Part = tuple[dict[str, Any], dict[str, Any], Iterable[dict[str, Any]]]  # both results, events of progress
Progress = Iterable[tuple[float, int]]  # (s after the first message, bytes in order so far), in order of time
SUMMED = ("rtx_chunks", "sacks_in")  # of association_stats


def size_b(flow: Flow) -> int | None:
    """Bytes that are to arrive; None for a flow that lasts for a time instead."""
    if flow.size_mb is not None:
        return round(flow.size_mb * 1e6)
    return None if flow.messages is None else flow.messages * flow.message_b


def moment(parts: Sequence[Progress], wanted: int | None) -> tuple[float, int]:
    """(when the parts' bytes first sum up to WANTED, that sum); the last arrival where they never do."""
    so_far = [0] * len(parts)
    last = 0.0
    arrivals = heapq.merge(*([(t, i, b) for t, b in part] for i, part in enumerate(parts)))
    for t, part, received in arrivals:
        last = t
        so_far[part] = received
        if wanted is not None and sum(so_far) >= wanted:
            break
    return last, sum(so_far)


def progress(send: dict[str, Any], recv: dict[str, Any], events: Iterable[dict[str, Any]]) -> Progress:
    """The arrivals of one association, from its receiver's EVENTS of progress and its result."""
    for event in [*events, {**recv, "t": recv["last_t"]}]:
        yield event["t"] - send["first_t"], event["bytes"]


def merged(flow: Flow, parts: Sequence[Part]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(sender's, receiver's) result of the whole flow; two empty ones when a part has none."""
    if not all("first_t" in send and "last_t" in recv for send, recv, _ in parts):
        return {}, {}
    wanted = size_b(flow)
    seconds, received = moment([list(progress(*part)) for part in parts], wanted)
    start = min(send["first_t"] for send, _, _ in parts)
    stats = [send["association_stats"] for send, _, _ in parts if "association_stats" in send]
    send = {
        "first_t": start,
        "association_stats": {name: sum(one[name] for one in stats) for name in SUMMED},
    }
    return send, {"last_t": start + seconds, "bytes": received if wanted is None else min(wanted, received)}
