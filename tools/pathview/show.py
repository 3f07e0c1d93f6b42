# SPDX-License-Identifier: GPL-2.0
"""Associations as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from itertools import accumulate

from pathview.model import WAIT_LIMITS_US, Association, Event, Path, Waits

FORMAT = 1  # of the JSON: raised when a field goes or means something else
HEADINGS = (
    *("path", "from", "use", "data", "state", "since", "why", "rtt", "rto", "errors", "cwnd", "flight"),
    *("mtu", "t3", "fast", "hb", "out", "in", "heard"),
)
LETTERS = {"primary": "P", "active": "A", "retransmission": "R"}
UNKNOWN = "-"


def duration(ms: int | None) -> str:
    """'250ms', '12.3s', '5m', '3h', '9d'."""
    if ms is None:
        return UNKNOWN
    if ms < 1000:
        return f"{ms}ms"
    if ms < 60_000:
        return f"{ms / 1000:.1f}s"
    for unit, size, most in (("m", 60_000, 120), ("h", 3_600_000, 48)):
        if ms < size * most:
            return f"{ms // size}{unit}"
    return f"{ms // 86_400_000}d"


def microseconds(us: int | None) -> str:
    """'0.043ms', '12.3ms', '1.2s'."""
    if us is None or us >= 1_000_000:
        return duration(us and us // 1000)
    return f"{us / 1000:.3g}ms"


def size(count: int | None) -> str:
    """'900', '12.3k', '4.5M' bytes, or chunks."""
    if count is None:
        return UNKNOWN
    for unit, factor in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if count >= factor:
            return f"{count / factor:.1f}{unit}"
    return str(count)


def number(value: int | None) -> str:
    return UNKNOWN if value is None else str(value)


def fraction(one: int | None, other: int | None) -> str:
    return UNKNOWN if one is None else f"{one}/{number(other)}"


def why(path: Path) -> str:
    """'t3-rtx 1, heartbeat 3': the strikes that led to the state, else its reason."""
    if path.reason is None:
        return UNKNOWN
    strikes = (("t3-rtx", path.struck_t3), ("heartbeat", path.struck_heartbeat))
    return ", ".join(f"{name} {count}" for name, count in strikes if count) or path.reason


def use(path: Path) -> str:
    return "".join(LETTERS[mark] for mark in path.marks or ()) or UNKNOWN


def cells(path: Path) -> tuple[str, ...]:
    """By HEADINGS."""
    rtt = path.srtt_us if path.rtt_min_us is None else path.rtt_min_us
    return (
        path.address,
        path.source or UNKNOWN,
        use(path),
        size(path.out_chunks),
        path.state,
        duration(path.state_ms),
        why(path),
        microseconds(path.srtt_us or rtt),
        duration(path.rto_ms),
        fraction(path.errors, path.error_limit),
        size(path.cwnd),
        size(path.flight),
        number(path.pmtu),
        number(path.t3_timeouts),
        number(path.fast_retransmissions),
        fraction(path.heartbeats_acked, path.heartbeats_sent),
        size(path.out_bytes),
        size(path.in_bytes),
        duration(path.heard_ms),
    )


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def heading(one: Association) -> str:
    text = f"association {one.assoc_id}, port {one.local_port} to {one.peer_port}, {one.state}"
    if one.outstanding is None:
        return text
    return (
        f"{text}: outstanding {size(one.outstanding)}, queued {size(one.queued)}, "
        f"windows {size(one.rwnd)} here, {size(one.peer_rwnd)} there, unread {size(one.unread)}, "
        f"errors {fraction(one.errors, one.error_limit)}"
    )


def below(counts: Sequence[int], share: float) -> str:
    """The least limit that this share of COUNTS is below: 'below 4.1ms', or 'over 4.2s'."""
    wanted = share * sum(counts)
    for reached, limit in zip(accumulate(counts), WAIT_LIMITS_US, strict=False):
        if reached >= wanted:
            return f"below {microseconds(limit)}"
    return f"over {microseconds(WAIT_LIMITS_US[-1])}"


def unread(waits: Waits) -> str:
    """How long messages waited to be read."""
    count = sum(waits.counts)
    if not count:
        return "unread: no message was read yet"
    return (
        f"unread: {count} messages waited {microseconds(waits.us // count)} on average, "
        f"half of them {below(waits.counts, 0.5)}, 99 % {below(waits.counts, 0.99)}, "
        f"the longest {below(waits.counts, 1)}"
    )


def text(found: Sequence[Association]) -> str:
    """Each association, its paths below it; columns that say nothing are left out."""
    rows = [HEADINGS, *(cells(path) for one in found for path in one.paths)]
    kept = [n for n in range(len(HEADINGS)) if any(row[n] != UNKNOWN for row in rows[1:])]
    lines = iter(table([[row[n] for n in kept] for row in rows])) if len(rows) > 1 else iter([""])
    first = next(lines)
    out = []
    for one in found:
        out += ["", heading(one), f"  {first}", *(f"  {next(lines)}" for _ in one.paths)]
        if one.unread_waits:
            out.append(f"  {unread(one.unread_waits)}")
        if one.path_count > len(one.paths):
            out.append(f"  {one.path_count - len(one.paths)} more")
    return "\n".join(out[1:]) or "no associations"


def as_json(found: Sequence[Association], complete: bool) -> str:
    """COMPLETE: whether the kernel tells all; else fields of what it does not tell are null."""
    content = {"format": FORMAT, "complete": complete, "associations": [asdict(one) for one in found]}
    return json.dumps(content, indent=2)


def clock(moment: float) -> str:
    """Seconds since 1970 as local time, to the millisecond."""
    return datetime.fromtimestamp(moment).astimezone().isoformat(sep=" ", timespec="milliseconds")


def event_text(one: Event, moment: float) -> str:
    """MOMENT: when it was, in seconds since 1970."""
    path = one.path
    what = f"{one.old_state} -> {path.state}" if one.kind == "state" else f"{one.kind}, {path.state}"
    return (
        f"{clock(moment)} association {one.assoc_id}, port {one.local_port} to {one.peer_port}: "
        f"{path.address} from {path.source or UNKNOWN}: {what}: {why(path)}; "
        f"errors {fraction(path.errors, path.error_limit)}, rto {duration(path.rto_ms)}, use {use(path)}"
    )


def event_json(one: Event, moment: float) -> str:
    content = {"format": FORMAT, "event": one.kind, "time": round(moment, 6), **asdict(one)}
    del content["time_ns"], content["kind"]
    return json.dumps(content)


def lost_text(moment: float) -> str:
    return f"{clock(moment)} events were lost: what is now follows"


def lost_json(moment: float, found: Sequence[Association]) -> str:
    """With all associations as they are."""
    content = {"format": FORMAT, "event": "lost", "time": round(moment, 6)}
    return json.dumps({**content, "associations": [asdict(one) for one in found]})
