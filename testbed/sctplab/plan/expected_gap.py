# SPDX-License-Identifier: GPL-2.0
"""How long a receiver may have waited for the next message: what a run's own specification explains. Pure.

A gap is explained by the sum of
- the pace of the sender and the time that a message takes over the slowest path, window by window: base_s;
- random losses: timeouts in a row, each twice as long as the one before, as many as a chunk may need that is
  lost again and again (one loss more is less likely than CHANCE), and no more than the sender counted;
- each outage that overlaps it, until the sender has turned away from the path: one timeout, or where PF is
  off or late (pf_enable, pf_retrans) as many as Path.Max.Retrans allows, each twice as long as the last;
- blind moments: no path is up that the sender can know of, since the one that is up has only just come back
  and has yet to answer a heartbeat.

RTO is bounded by what RFC 9260 makes of the shortest and the longest round trip, which end in an empty and in
full queues. All times in seconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from sctplab.plan.traffic import payload_share
from sctplab.spec.model import Direction, Flow, Path, RunSpec
from sctplab.spec.outages import Interval, Outage, all_down, of_events

CHANCE = 1e-3
LEAST_LOSS = 0.001  # full queues lose as well
LATE = 1.1  # timers of the kernel and of heartbeats are not exact
FULL_BITS = 1514 * 8
INITIAL_WINDOW_B = 4380
DEFAULTS = {
    "rto_initial": 3000,
    "rto_min": 1000,
    "rto_max": 60000,
    "path_max_retrans": 5,
    "pf_enable": 1,
    "pf_retrans": 0,
    "hb_interval": 30000,
    "failover_heartbeat": 0,
    "intl_enable": 0,
}


def setting(spec: RunSpec, name: str) -> int:
    """Of the sending host; both have the same."""
    return int(spec.sysctl.host1.get(f"net.sctp.{name}", DEFAULTS[name]))


def seconds(spec: RunSpec, name: str) -> float:
    return setting(spec, name) / 1000


def used(spec: RunSpec, flow: Flow) -> list[Path]:
    return [spec.topology.path(name) for name in flow.paths] or list(spec.topology.paths)


def ways(path: Path, flow: Flow) -> tuple[Direction, Direction]:
    """(that of data, that of SACKs)."""
    return (path.reverse, path.forward) if flow.reverse else (path.forward, path.reverse)


def fastest(one: Direction) -> float:
    return (one.delay_ms - one.jitter_ms) / 1000


def unhindered(one: Direction) -> float:
    """A full packet that finds an empty queue; SACKs do."""
    return (one.delay_ms + one.jitter_ms) / 1000 + FULL_BITS / one.rate_mbit / 1e6


def slowest(one: Direction) -> float:
    """Behind a full queue, whose limit counts the packets on their way as well."""
    return max(unhindered(one), one.jitter_ms / 1000 + one.queue_pkts * FULL_BITS / one.rate_mbit / 1e6)


def round_trips(spec: RunSpec, flow: Flow, path: Path) -> tuple[float, float]:
    """(shortest, longest) of data on PATH; its SACK may come over any path, and after the SACK delay."""
    back = [ways(other, flow)[1] for other in used(spec, flow)]
    busy = any(other.reverse != flow.reverse for other in spec.flows)
    wait = (flow.sack_delay_ms if flow.sack_delay_ms is not None else 200) / 1000
    data = ways(path, flow)[0]
    return (
        fastest(data) + min(map(fastest, back)),
        slowest(data) + max(map(slowest if busy else unhindered, back)) + wait,
    )


def longest_trip(spec: RunSpec, flow: Flow) -> float:
    return max(round_trips(spec, flow, path)[1] for path in used(spec, flow))


def rto(spec: RunSpec, flow: Flow, path: Path) -> float:
    """The largest that can have been measured: RFC 9260, 6.3.1."""
    short, long = round_trips(spec, flow, path)
    measured = max(3 * short, long + 4 * (long - short))
    floor = max(seconds(spec, "rto_min"), seconds(spec, "rto_initial"))
    return max(floor, min(measured, seconds(spec, "rto_max")))


def backed_off(spec: RunSpec, first: float, timeouts: int) -> float:
    """So many timeouts in a row."""
    most = max(first, seconds(spec, "rto_max"))
    return sum(min(most, first * 2.0**n) for n in range(timeouts)) * LATE


def timeouts_until_left(spec: RunSpec) -> int:
    """How many timeouts on a path until it gets no more data: potentially failed, or inactive."""
    most = setting(spec, "path_max_retrans")
    return 1 + (min(most, setting(spec, "pf_retrans")) if setting(spec, "pf_enable") else most)


def base_s(spec: RunSpec, flow: Flow) -> float:
    """Without timeouts: the pace, and the messages under way, in windows that double from the initial one.

    A loss costs a round trip more.
    """
    rate = min(
        ways(path, flow)[0].rate_mbit * payload_share("sctp", path, flow.message_b)
        for path in used(spec, flow)
    )
    under_way_b = flow.message_b * (flow.streams if setting(spec, "intl_enable") else 1)
    windows = 1 + losses_in_a_row(spec, flow) + math.log2(max(1.0, under_way_b / INITIAL_WINDOW_B))
    return flow.interval_ms / 1000 + under_way_b * 8e-6 / rate + windows * longest_trip(spec, flow)


def packets(flow: Flow) -> float:
    """About how many full packets the flow takes."""
    if flow.size_mb is not None:
        return flow.size_mb * 1e6 / 1400
    return (flow.messages or 1) * max(1.0, flow.message_b / 1400)


def losses_in_a_row(spec: RunSpec, flow: Flow) -> int:
    """How often a chunk may be lost: one more time is less likely than CHANCE, whatever the path."""
    share = max(one.loss_pct for path in used(spec, flow) for one in ways(path, flow)) / 100
    return math.floor(math.log(CHANCE / packets(flow)) / math.log(max(share, LEAST_LOSS)))


def losses_s(spec: RunSpec, flow: Flow, timeouts: int) -> float:
    """Seconds that losses explain: timeouts in a row, one per loss of a chunk, TIMEOUTS at most."""
    worst = max(rto(spec, flow, path) for path in used(spec, flow))
    return backed_off(spec, worst, min(timeouts, losses_in_a_row(spec, flow)))


def outage_s(spec: RunSpec, flow: Flow, outage: Outage) -> float:
    """Seconds that one outage costs at most: a round trip, then the timeouts until the path is left."""
    path = spec.topology.path(outage.path)
    return longest_trip(spec, flow) + backed_off(spec, rto(spec, flow, path), timeouts_until_left(spec))


def outages_of(spec: RunSpec, flow: Flow) -> list[Outage]:
    known = {path.name for path in used(spec, flow)}
    return [outage for outage in of_events(spec.events) if outage.path in known]


def return_s(spec: RunSpec) -> float:
    """Until a path that is back has answered a heartbeat."""
    rto_max = seconds(spec, "rto_max")
    wait = 1.5 * rto_max + (0 if setting(spec, "failover_heartbeat") else seconds(spec, "hb_interval"))
    return wait * LATE + max(longest_trip(spec, flow) for flow in spec.flows)


def blind_moments(spec: RunSpec) -> list[Interval]:
    """When no path is up that the sender can know of."""
    late = return_s(spec)
    seen = [Outage(one.path, one.start_s, one.end_s + late, one.kind) for one in of_events(spec.events)]
    return all_down(seen, [path.name for path in spec.topology.paths])


def overlap(a: Interval, b: Interval) -> bool:
    return a[0] < b[1] and b[0] < a[1]


def reasons(spec: RunSpec, flow: Flow, gap: Interval, timeouts: int) -> Iterator[tuple[str, float]]:
    """(reason, seconds) that explain a GAP in what FLOW's receiver got; TIMEOUTS: the sending host's T3."""
    yield "pace and round trips", base_s(spec, flow)
    yield "losses", losses_s(spec, flow, timeouts)
    for outage in outages_of(spec, flow):
        cost = outage_s(spec, flow, outage)
        if overlap(gap, (outage.start_s, outage.end_s + cost)):
            yield f"{outage.path} down at {outage.start_s:g} s", cost
    for start, end in blind_moments(spec):
        if overlap(gap, (start, end)):
            yield f"no path known to be up from {start:g} s on", end - start
