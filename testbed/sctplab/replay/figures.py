# SPDX-License-Identifier: GPL-2.0
"""Figures of each path and of the timers, derived from a story; each has the reason for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from sctplab.replay.outages import Outage, outages
from sctplab.replay.sender import Sender, Timeout
from sctplab.replay.story import FAR_NS, Story
from sctplab.replay.way import Way

ASSUMED_DELAY_MS = 10.0
ASSUMED_MBIT = 100.0  # of a path that was never full
ROOM = 10  # times the largest rate seen, at least
NICE = 0.07  # a timer so near to a round number is that
FAR_ABOVE = 3  # round trips: a timeout after more was RTO.Min's
USUAL_MTU = 1500
LEAST_MS = 0.001  # of a delay in a scenario, beside none
WAYS = ("forward", "reverse")
DEFAULTS = {
    "rto_min": 1000,
    "hb_interval": 30000,
    "sack_timeout": 200,
    "path_max_retrans": 5,
    "pf_enable": 1,
}


@dataclass(frozen=True)
class Figure:
    """WHY: where it came from; it begins with "assumed" where nothing told it."""

    value: float
    why: str

    @property
    def assumed(self) -> bool:
        return self.why.startswith("assumed")


@dataclass(frozen=True)
class WayFigures:
    rate_mbit: Figure
    delay_ms: Figure
    loss_pct: Figure
    reorder_pct: Figure | None
    queue_pkts: Figure | None


@dataclass(frozen=True)
class PathFigures:
    addresses: tuple[str, str]
    ways: dict[str, WayFigures]


@dataclass(frozen=True)
class Figures:
    """All that a scenario says. SETTINGS: by names of net.sctp, without it."""

    story: Story
    paths: list[PathFigures]
    outages: list[Outage]
    settings: dict[str, Figure]
    timeouts: list[Timeout]
    failover_s: Figure | None


def figures(story: Story) -> Figures:
    delays = {(path, way): delay(story, path, way) for path in range(len(story.paths)) for way in WAYS}
    delay_ns = {key: round(one.value * 1e6) for key, one in delays.items()}
    found = outages(story, delay_ns)
    paths = [
        PathFigures(
            addresses, {way: way_figures(story, number, way, delays[number, way], found) for way in WAYS}
        )
        for number, addresses in enumerate(story.paths)
    ]
    timeouts = own(story).timeouts if own(story) else []
    return Figures(story, paths, found, settings(story), timeouts, failover(story, found, delay_ns))


def own(story: Story, host: str = "host1") -> Sender:
    """The sender's DATA as its own capture has it, else as it arrived."""
    for at in (host, "host2" if host == "host1" else "host1"):
        if (host, at) in story.senders:
            return story.senders[host, at]
    return Sender(lambda ask, passed: None)


def delay(story: Story, path: int, way: str) -> Figure:
    """One way, as both captures tell it; half of the least round trip; or assumed."""
    one = story.ways.get((path, way))
    if one and one.delay.time_ns is not None:
        took = one.delay.time_ns - on_the_wire(one, one.delay.length)
        return Figure(max(took, 0) / 1e6, "least time from one capture to the other")
    trips = [*round_trips(story, path)]
    if trips:
        took, length, what = min(trips)
        took -= sum(on_the_wire(story.ways.get((path, each)), length) for each in WAYS[:1])
        return Figure(took / 2e6, f"half of the least round trip, {took / 1e6:.3f} ms from {what}")
    others = [trip for number in range(len(story.paths)) for trip in round_trips(story, number)]
    if others:
        return Figure(
            min(others)[0] / 2e6, "assumed as of the other path: no request was answered on this one"
        )
    return Figure(ASSUMED_DELAY_MS, "assumed: no request was answered in the capture")


def on_the_wire(way: Way | None, length: int) -> int:
    """How long a packet takes at the rate of a path that was full, which is known."""
    mbit = full_mbit(way) if way else 0
    return round(length * 8000 / mbit) if mbit else 0


def round_trips(story: Story, path: int) -> Iterable[tuple[int, int, str]]:
    for host in ("host1", "host2"):
        sender = story.senders.get((host, host))
        least = sender.trips.get(path) if sender else None
        if least and least.time_ns:
            yield least.time_ns, least.length, "DATA to its SACK"
        asked = story.trips.get((host, path))
        if asked and asked.time_ns and asked.time_ns > FAR_NS:
            yield asked.time_ns, asked.length, "HEARTBEAT, or set-up, to its answer"


def full_mbit(way: Way) -> float:
    if way.meter.queue_mbit:
        return way.meter.queue_mbit
    return way.meter.mbit if way.meter.steady else 0.0


def way_figures(story: Story, path: int, way: str, took: Figure, found: list[Outage]) -> WayFigures:
    one = story.ways.get((path, way)) or Way()
    return WayFigures(rate(one), took, loss(story, path, way, one, found), reorder(one, took), queue(one))


def reorder(way: Way, took: Figure) -> Figure | None:
    """Packets that overtook others; netem lets them skip delay and rate."""
    if not way.overtook or took.value < LEAST_MS:
        return None
    return Figure(
        percent(way.overtook, way.settled), f"{way.overtook} of {way.settled} packets overtook others"
    )


def rate(way: Way) -> Figure:
    full = full_mbit(way)
    if full:
        return Figure(significant(full, 4), "the path was full: packets waited, and left at this rate")
    seen = way.meter.mbit
    if seen:
        return Figure(
            significant(max(ASSUMED_MBIT, ROOM * seen), 4),
            f"assumed: the path was never full; it carried {seen:.3g} Mbit/s, which is a lower bound",
        )
    return Figure(ASSUMED_MBIT, "assumed: too few packets to tell a rate")


def queue(way: Way) -> Figure | None:
    """The length in packets of a queue that dropped some; None if unknown or without drops."""
    full, least = full_mbit(way), way.delay.time_ns
    if least is None or not way.dropped:
        return None
    held = round(way.longest_ns * full / 8000 / way.meter.largest_b)
    return Figure(held, "the longest delay of a packet at that rate, with what is on its way")


def loss(story: Story, path: int, way: str, one: Way, found: list[Outage]) -> Figure:
    """Packets lost one by one, outages and full queues apart."""
    in_cuts = sum(
        run.lost for run in one.runs if any(inside(run.first_ns, run.last_ns, cut, story) for cut in found
                                            if cut.path == path and cut.way in (way, "both"))
    )  # fmt: skip
    lost, asked = one.lost - in_cuts, one.settled - in_cuts
    if story.both:
        dropped = min(one.dropped, lost)
        by_queue = f"; {dropped} more did not, which a full queue dropped" if dropped else ""
        return Figure(
            percent(lost - dropped, asked), f"{lost - dropped} of {asked} packets did not arrive{by_queue}"
        )
    if way == "forward" and story.survey.at("host1") and asked:
        if full_mbit(one):
            return Figure(
                0.0, f"assumed: {lost} of {asked} requests were sent again, taken for drops of the full queue"
            )
        return Figure(
            percent(lost, asked), f"estimate: {lost} of {asked} packets with requests were sent again"
        )
    if way == "forward" and story.survey.at("host2"):
        again = own(story).again
        if any(full_mbit(other) for other in story.ways.values()):
            return Figure(
                0.0, f"assumed: {again} chunks came out of order or twice, taken for drops of a full queue"
            )
        return Figure(
            percent(again, own(story).chunks) if path == max(story.first_path, 0) else 0.0,
            f"estimate: {again} chunks of all paths came out of order or twice",
        )
    return Figure(0.0, "assumed: one end's capture does not tell what the other end sent")


def inside(first: int, last: int, cut: Outage, story: Story) -> bool:
    return first <= (cut.end[1] if cut.end else story.end_ns) and last >= cut.start[0]


def percent(part: int, whole: int) -> float:
    return round(100 * part / whole, 3) if whole else 0.0


def significant(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")


def settings(story: Story) -> dict[str, Figure]:
    """Timers and thresholds that were seen, by their sysctl names."""
    found = {
        "rto_min": rto_min(story),
        "sack_timeout": sack_timeout(story),
        "hb_interval": hb_interval(story),
    }
    found |= thresholds(own(story))
    return {name: one for name, one in found.items() if one}


def round_timer(value_ms: float) -> int:
    """The round number of which a timer falls short by a tick or exceeds by its granularity."""
    near = significant(value_ms, 1)
    return round(near if abs(near - value_ms) <= NICE * value_ms else significant(value_ms, 2))


def rto_min(story: Story) -> Figure | None:
    """The least first timeout; a bound from above."""
    sender = own(story)
    first = [one.rto_ns / 1e6 for one in sender.timeouts if one.number == 1]
    trip = max((one.time_ns or 0 for one in sender.trips.values()), default=0) / 1e6
    if not first:
        return rto_of_silence(story)
    least = min(first)
    if least < FAR_ABOVE * trip:
        return None  # the round trip and its variation decided
    return Figure(round_timer(least), f"T3 first expired after {least:.0f} ms, far above the round trip")


def rto_of_silence(story: Story) -> Figure | None:
    """At the receiver alone: the timer began when the last SACK reached the sender."""
    trips = [trip for path in range(len(story.paths)) for trip in round_trips(story, path)]
    if not story.switches or not trips:
        return None
    least = (min(one.since_ns for one in story.switches) - min(trips)[0]) / 1e6
    return Figure(
        round_timer(max(least, 1)), f"estimate: data came another way after {least:.0f} ms and a round trip"
    )


def sack_timeout(story: Story) -> Figure | None:
    """At the receiver, SACKs by the timer; at the sender, those of a single chunk. RFC 9260 allows 500 ms."""
    far, near = story.senders.get(("host1", "host2")), story.senders.get(("host1", "host1"))
    for waits in (far.timed_ns if far else [], near.alone_ns if near else []):
        late = [t / 1e6 for t in waits if 15_000_000 <= t <= 550_000_000]
        if late:
            took = median(late)
            return Figure(
                min(round_timer(took), 500),
                f"{len(late)} SACKs of chunks without a second, after {took:.0f} ms",
            )
    return None


def hb_interval(story: Story) -> Figure | None:
    """Time between HEARTBEATs of an idle path, less the RTO, which Linux adds to it, with jitter."""
    every = [t / 1e6 for beats in story.beats.values() for t in beats.between_ns if t > 10**9]
    if not every:
        return None
    rto = (rto_min(story) or Figure(DEFAULTS["rto_min"], "")).value
    value = round_timer(max(median(every) - rto, 1))
    return Figure(
        value, f"{len(every)} times between HEARTBEATs, {median(every):.0f} ms by the median, less the RTO"
    )


def thresholds(sender: Sender) -> dict[str, Figure]:
    """After how many timeouts new data took another path."""
    if not sender.moved:
        return {}
    times = max(count for _, count in sender.moved)
    if times == 1:
        return {}
    why = f"new data left the path after {times} timeouts in a row"
    return {"pf_enable": Figure(0, why), "path_max_retrans": Figure(times - 1, why)}


def failover(story: Story, found: list[Outage], delay_ns: dict[tuple[int, str], int]) -> Figure | None:
    """From the first outage that data met to the arrival of the first chunk that was lost in it."""
    arrivals = [
        (
            one.path,
            one.time_ns,
            one.delivered_ns - (0 if story.both else delay_ns.get((one.target, "reverse"), 0)),
        )
        for one in own(story).timeouts
        if one.delivered_ns
    ] + [(one.path, one.time_ns, one.time_ns) for one in story.switches]
    for cut in found:
        until = cut.end[1] if cut.end else story.end_ns
        for path, time_ns, delivered_ns in arrivals:
            if path == cut.path and cut.start[0] <= time_ns <= until:
                took = (delivered_ns - cut.start_ns) / 1e9
                return Figure(took, "from the outage to the arrival of the first chunk lost in it")
    return None
