# SPDX-License-Identifier: GPL-2.0
"""From losses in a row to outages: when a path carried nothing although it was asked to."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sctplab.replay.story import Story
from sctplab.replay.way import Run, Way

SHORTEST_NS = 200 * 10**6  # between packets that passed: a shorter gap is losses
FEWEST = 2  # packets lost in a row, where no others are
CHANCE = 0.01
MOST = 200  # outages in a scenario


@dataclass(frozen=True)
class Span:
    """An outage of one direction. Each moment lies between two times: 0 for one that is not known.

    EVERY: the times at which packets were lost, LOST their number.
    """

    path: int
    way: str
    low_ns: int
    first_ns: int
    last_ns: int
    high_ns: int
    lost: int
    every: tuple[int, ...]


@dataclass(frozen=True)
class Outage:
    """WAY: forward, reverse or both. ASSUMED: the other direction was not asked, so nobody knows.

    START, END: earliest and latest moment; END None: until the end of the capture.
    """

    path: int
    way: str
    start: tuple[int, int]
    end: tuple[int, int] | None
    lost: int
    assumed: bool

    @property
    def start_ns(self) -> int:
        return sum(self.start) // 2

    @property
    def end_ns(self) -> int | None:
        return sum(self.end) // 2 if self.end else None


def outages(story: Story, delay_ns: dict[tuple[int, str], int]) -> list[Outage]:
    """In order of time, the longest if there are too many. DELAY_NS: one way, of (path, direction)."""
    found = [one for path in range(len(story.paths)) for one in of_path(story, path, delay_ns)]
    found.sort(key=lambda one: (one.end_ns or story.end_ns) - one.start_ns, reverse=True)
    return sorted(found[:MOST], key=lambda one: one.start_ns)


def spans(story: Story, path: int, way: str) -> list[Span]:
    one = story.ways.get((path, way))
    if one is None:
        return []
    return [span(path, way, run) for run in one.runs if is_outage(run, one, story.end_ns)]


def is_outage(run: Run, way: Way, end_ns: int) -> bool:
    """Not if so many packets in a row may well be lost by chance."""
    lasted = (run.after_ns or end_ns) - (run.before_ns or run.first_ns)
    return lasted >= SHORTEST_NS and run.lost >= fewest(way.lost - run.lost, way.settled - run.lost)


def fewest(lost: int, asked: int) -> int:
    """Packets lost in a row that are no chance where LOST of ASKED others were: a run in 100 captures."""
    if not lost:
        return FEWEST
    share = min(lost / max(asked, 1), 0.9)
    return max(FEWEST + 1, math.ceil(math.log(CHANCE / max(asked, 1)) / math.log(share)))


def span(path: int, way: str, run: Run) -> Span:
    return Span(
        path, way, run.before_ns, run.first_ns, run.last_ns, run.after_ns, run.lost, tuple(run.times_ns)
    )


def of_path(story: Story, path: int, delay_ns: dict[tuple[int, str], int]) -> list[Outage]:
    forward, reverse = spans(story, path, "forward"), spans(story, path, "reverse")
    found = []
    for one in forward:
        other = next((two for two in reverse if overlap(one, two, story.end_ns)), None)
        if other:
            reverse.remove(other)
        found.append(outage(story, [one, other] if other else [one], delay_ns))
    return [one for one in [*found, *(outage(story, [two], delay_ns) for two in reverse)] if one]


def overlap(one: Span, two: Span, end_ns: int) -> bool:
    return one.low_ns <= (two.high_ns or end_ns) and two.low_ns <= (one.high_ns or end_ns)


def outage(story: Story, both: list[Span], delay_ns: dict[tuple[int, str], int]) -> Outage | None:
    """One way or both as they were seen; what passed the other way narrows the times if it failed, too."""
    one = both[0]
    if len(both) == 2:
        return made(story, both, "both", False, passed_around(story, both))
    other = "reverse" if one.way == "forward" else "forward"
    quiet = silence(story, one, other, delay_ns)
    if quiet is None:
        return made(story, both, one.way, False, (one.low_ns, one.high_ns))
    last_ns, next_ns = quiet
    spare = round(story.ways[one.path, other].spacing_ns)
    early, late = max(one.low_ns, last_ns), earliest(one.high_ns, next_ns)
    return made(story, both, "both", True, (early, late), spare)


def silence(
    story: Story, one: Span, other: str, delay_ns: dict[tuple[int, str], int]
) -> tuple[int, int] | None:
    """When nothing came the other way meanwhile, as times at which it was sent; None if something came.

    Neither may it have come after the first loss, unless that was a full queue's.
    """
    way = story.ways.get((one.path, other))
    end = one.high_ns or story.end_ns
    if way is None:
        return one.low_ns, one.high_ns
    found = way.silence(one.first_ns, end)
    if found is None:
        return None
    delay = delay_ns.get((one.path, other), 0)
    start, stop = found[0] - delay, found[1] - delay if found[1] else 0
    slack = 0 if story.both else 2 * delay + 2 * round(way.spacing_ns)
    if start > one.first_ns + slack and not story.ways[one.path, one.way].meter.queue_mbit:
        return None
    covered = (min(stop or end, end) - max(start, one.first_ns)) / max(end - one.first_ns, 1)
    return (start, stop) if covered > 0.5 else None


def earliest(*times: int) -> int:
    """The first of those that are known."""
    return min((t for t in times if t), default=0)


def passed_around(story: Story, both: list[Span]) -> tuple[int, int]:
    """The last packet that passed before, either way, and the first after."""
    return max(one.low_ns for one in both), earliest(*(one.high_ns for one in both))


def made(
    story: Story, both: list[Span], way: str, assumed: bool, passed: tuple[int, int], spare: int = 0
) -> Outage | None:
    """SPARE: how long after the last packet the next one would have come, if no lost one tells."""
    low, high = passed
    low = low or min(one.first_ns for one in both)
    lost = sorted(t for one in both for t in (*one.every, one.last_ns))
    first = next((t for t in lost if t >= low), 0) or low + spare
    last = max((t for t in lost if not high or t <= high), default=first)
    if high and high - low < SHORTEST_NS:
        return None
    count = sum(one.lost for one in both)
    return Outage(
        both[0].path, way, (low, max(first, low)), (max(last, low), high) if high else None, count, assumed
    )
