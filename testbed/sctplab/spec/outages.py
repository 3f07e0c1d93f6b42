# SPDX-License-Identifier: GPL-2.0
"""Random outages of the paths of a topology, and which moments have no path left. Pure."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sctplab.spec.model import BREAKING, HOSTS, Event, directions

START_S = 0.5  # the association is there by then, unless its first packets were lost
GAP_S = (0.1, 10.0)  # between two outages of one path
DURATION_S = (0.05, 20.0)
MENDS = {"cut": "heal", "carrier-down": "carrier-up"}
KINDS: tuple[dict[str, Any], ...] = (
    {"action": "cut", "direction": "both"},
    {"action": "cut", "direction": "forward"},
    {"action": "cut", "direction": "reverse"},
    *({"action": "carrier-down", "host": host} for host in HOSTS),
)
Interval = tuple[float, float]  # seconds after the start; the end is the first moment after it


@dataclass(frozen=True)
class Outage:
    """From START_S until END_S, PATH does not carry packets both ways; KIND: keys of the first event."""

    path: str
    start_s: float
    end_s: float
    kind: dict[str, Any]

    def events(self) -> tuple[Event, Event]:
        mend = {**self.kind, "action": MENDS[self.kind["action"]]}
        return (
            Event(self.start_s, path=self.path, **self.kind),
            Event(self.end_s, path=self.path, **mend),
        )


def scattered(low: float, high: float, source: random.Random) -> float:
    """A number from LOW to HIGH, each order of magnitude as likely as the others."""
    return round(math.exp(source.uniform(math.log(low), math.log(high))), 3)


def candidates(path: str, until_s: float, source: random.Random) -> Iterator[Outage]:
    """Outages of one path, one after the other."""
    start = START_S + scattered(*GAP_S, source)
    while start < until_s:
        end = start + scattered(*DURATION_S, source)
        yield Outage(path, round(start, 3), round(end, 3), source.choice(KINDS))
        start = end + scattered(*GAP_S, source)


def schedule(paths: Sequence[str], until_s: float, one_stays: bool, source: random.Random) -> list[Outage]:
    """Outages that begin before UNTIL_S, in order. ONE_STAYS: at every moment at least one path is up."""
    drawn = [outage for path in paths for outage in candidates(path, until_s, source)]
    kept: list[Outage] = []
    for outage in sorted(drawn, key=lambda one: one.start_s):
        if not (one_stays and all_down([*kept, outage], paths)):
            kept.append(outage)
    return kept


def all_down(outages: Sequence[Outage], paths: Sequence[str]) -> list[Interval]:
    """The times in which no path is up."""
    down = [(0.0, math.inf)]
    for path in paths:
        own = [(outage.start_s, outage.end_s) for outage in outages if outage.path == path]
        both = ((max(a, c), min(b, d)) for a, b in down for c, d in own)
        down = [(start, end) for start, end in both if start < end]
    return down


def events(outages: Sequence[Outage]) -> tuple[Event, ...]:
    """The events that make these outages, in order of time."""
    return tuple(sorted((event for one in outages for event in one.events()), key=lambda event: event.at_s))


def of_events(happened: Sequence[Event]) -> list[Outage]:
    """The outages that such events make: each lasts until all of its path is mended, or for ever."""
    found = []
    for path in sorted({event.path for event in happened}):
        broken: set[tuple[str, str]] = set()
        start_s = 0.0
        for event in sorted((one for one in happened if one.path == path), key=lambda one: one.at_s):
            before = broken
            broken = before | parts(event) if event.action in BREAKING else before - parts(event)
            if broken and not before:
                start_s = event.at_s
            elif before and not broken:
                found.append(Outage(path, start_s, event.at_s, {}))
        if broken:
            found.append(Outage(path, start_s, math.inf, {}))
    return found


def parts(event: Event) -> set[tuple[str, str]]:
    """All that EVENT breaks or mends; a change of a direction's values ends its cut."""
    kind = event.action.partition("-")[0]
    if kind in ("carrier", "address"):
        return {(kind, event.host)}
    return {("cut", way) for way in directions(event.direction)}
