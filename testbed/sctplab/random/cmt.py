# SPDX-License-Identifier: GPL-2.0
"""Random topologies, schedules, messages and options for concurrent multipath transfer.

A topology without outages whose flows are bulk is run once more over each single path that may be the best
one: a path that another one beats or equals in everything (rate, delay, loss, reordering, queue) is left out.
judge.py says which runs are not as they should be. The factor losses repeats a seed with other random losses.

PR-SCTP is not drawn: its messages may be lost by design, and then nothing is left to check. A cut path has no
ECN, since netem would go on marking what it ought to lose. UDP encapsulation goes without GSO: stock kernels
deliver nothing of a super-packet in UDP.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from sctplab.plan import expected_gap
from sctplab.random.choice import Draw, Generated, end_s, most_timeouts, names, run_spec
from sctplab.spec import outages
from sctplab.spec.model import Direction, Flow, Path, RunSpec, Topology, derive_seed
from sctplab.spec.scenario import Choice

NAME = "cmt-random"
QUESTION = "Is CMT whole, awake and never behind the best path, whatever the paths? (drawn from the seed)"
SHORT = "cmt-random-short"  # a scenario of its own, so that the seeds of the other are what they were
ALL_PATHS = "all-paths"  # the variant; the others bear the name of their path
RATE_MBIT = (0.5, 20.0)
DELAY_MS = (1.0, 150.0)
QUEUE_MS = (20.0, 300.0)  # of full packets, on top of those on their way
# How long the transfer would take if the paths did nothing else.
SECONDS = {NAME: (2.0, 20.0), SHORT: (0.05, 2.0)}
MOST_MB = 16.0
MOST_MESSAGES = 20000
FULL_B = 1514  # of a full packet, as netem counts
ENCAPSULATION_PORT = 9899
MAX_RETRANS = 10  # the kernel's own
# Settings of stock kernels, then those that the series adds; in this order, since some bound each other.
STOCK_SETTINGS: dict[str, tuple[Any, ...]] = {
    "rto_max": (2000, 5000, 10000),
    "rto_min": (200, 500, 1000),
    "rto_initial": (1000,),
    "path_max_retrans": (1, 2, 5),
    "pf_enable": (0, 1, 1, 1),
    "pf_retrans": (0, 0, 0, 1),
    "hb_interval": (1000, 5000, 30000),
    "max_burst": (4, 4, 4, 0),
    "ecn_enable": (0, 1),
}
PATCHED_SETTINGS: dict[str, tuple[Any, ...]] = {
    "path_max_retrans": (0, 1, 2, 5),
    "failover_heartbeat": (0, 1),
    "dormant_policy": ("kernel", "hop", "primary", "last"),
    "rtx_policy": (
        *("kernel",) * 4,
        *("same", "alternate", "fr-same-rto-alt"),
        *("ssthresh", "cwnd", "asap", "lossrate"),
    ),
    "multiple_fast_rtx": (0, 1),
    "cmt": (1,),
    "cmt_scheduler": ("lowest-rtt", "lowest-rtt", "primary-first", "round-robin"),
    "cmt_sack": ("standard", "delayed", "per-path"),
}
FRAGMENT_INTERLEAVE, AUTH_CHUNK, STREAM_SCHEDULER, INTERLEAVING = 18, 21, 123, 125  # socket options
DATA, SACK, I_DATA = 0, 3, 64  # chunks to authenticate
STREAM_SCHEDULERS = range(5)  # first come, priority, round robin, fair capacity, weighted fair queueing
OLD_STREAM_SCHEDULERS = {"6.1": range(3)}  # fair capacity and the like came with Linux 6.4


def runs(seed: int, kernel: str, choice: Choice, cell: dict[str, Any], name: str = NAME) -> list[RunSpec]:
    """The run over all paths and those that it has to stand beside."""
    whole = with_losses(spec(seed, kernel, choice, name), cell["losses"])
    return [whole, *(alone(whole, path.name) for path in rivals(whole))]


def spec(seed: int, kernel: str, choice: Choice, name: str = NAME) -> RunSpec:
    """The run with SEED over all paths; kernels differ in the settings they know and in nothing else."""
    draw = Draw(name, seed)
    broken = draw.one("outages", (False, False, False, True, True))
    options = draw_options(draw)
    topology = draw_topology(draw, broken, options)
    total_mbit = sum(path.forward.rate_mbit for path in topology.paths)
    seconds = min(draw.between("seconds", *SECONDS[name]), MOST_MB * 8 / total_mbit)
    drawn = outages.schedule(names(topology), seconds, True, draw.source("schedule")) if broken else []
    flows = [
        flow(draw, f"flow{i}", total_mbit, seconds, options, choice.base)
        for i in range(1, draw.one("flows", (1, 1, 1, 2)) + 1)
    ]
    known = STOCK_SETTINGS if kernel == "stock" else {**STOCK_SETTINGS, **PATCHED_SETTINGS}
    settings = {**draw.each(known), **option_settings(options)}
    made = run_spec(
        draw, QUESTION, kernel, choice, topology, flows, outages.events(drawn), settings, ALL_PATHS
    )
    if not expected_gap.blind_moments(made):
        return made
    never = most_timeouts(len(topology.paths), end_s(drawn), settings["rto_min"])
    return with_setting(made, "association_max_retrans", max(MAX_RETRANS, never))


def draw_topology(draw: Draw, broken: bool, options: dict[str, bool]) -> Topology:
    count = draw.one("paths", (1, 2, 2, 2, 3, 3, 4, 5, 6, 8))
    families = draw.one("families", ("ipv4", "ipv6", "mixed"))
    marks = draw.one("marks", (False, True)) and not broken
    return Topology(
        tuple(path(draw, number, families, marks) for number in range(1, count + 1)),
        offload="none" if options["encapsulation"] else draw.one("offload", ("none", "host")),
    )


def path(draw: Draw, number: int, families: str, marks: bool) -> Path:
    """Both ways alike, or with delays and losses of their own. A mixed association starts with IPv4."""
    rate_mbit = draw.between(f"rate {number}", *RATE_MBIT)
    forward = direction(draw, f"{number}", rate_mbit, marks)
    alike = draw.one(f"alike {number}", (True, True, False))
    mixed = "ipv4" if number == 1 else draw.one(f"family {number}", ("ipv4", "ipv6"))
    return Path(
        f"path{number}",
        forward=forward,
        reverse=forward if alike else direction(draw, f"{number} reverse", rate_mbit, marks),
        family=mixed if families == "mixed" else families,
    )


def direction(draw: Draw, name: str, rate_mbit: float, marks: bool) -> Direction:
    delay_ms = draw.between(f"delay {name}", *DELAY_MS)
    waiting_ms = draw.between(f"queue {name}", *QUEUE_MS)
    loss_pct = draw.one(f"loss {name}", (0.0, 0.0, 0.0, 0.1, 0.5, 1.0, 3.0))
    return Direction(
        rate_mbit,
        delay_ms,
        jitter_ms=round(delay_ms * draw.one(f"jitter {name}", (0.0, 0.0, 0.1, 0.5)), 3),
        loss_pct=loss_pct,
        reorder_pct=draw.one(f"reorder {name}", (0.0, 0.0, 0.0, 1.0, 5.0)),
        queue_pkts=10 + math.ceil((delay_ms + waiting_ms) * rate_mbit * 1000 / (FULL_B * 8)),
        ecn=(marks and loss_pct > 0) or None,
    )


def draw_options(draw: Draw) -> dict[str, bool]:
    """Options that both ends must agree on, as option -> on or off."""
    return {
        "interleaving": draw.one("interleaving", (False, False, True)),
        "auth": draw.one("auth", (False, False, False, True)),
        "encapsulation": draw.one("encapsulation", (False, False, False, True)),
    }


def option_settings(options: dict[str, bool]) -> dict[str, int]:
    found = {"intl_enable": int(options["interleaving"]), "auth_enable": int(options["auth"])}
    if options["encapsulation"]:
        found |= {"udp_port": ENCAPSULATION_PORT, "encap_port": ENCAPSULATION_PORT}
    return found


def flow(
    draw: Draw, name: str, total_mbit: float, seconds: float, options: dict[str, bool], base: str
) -> Flow:
    """As fast as the socket takes it, or at a steady pace; as much as the paths carry in SECONDS at most."""
    buffers_kb = (64, 256, 1024, 16384)
    sndbuf_kb, rcvbuf_kb = (draw.one(f"{name} {which}", buffers_kb) for which in ("sndbuf", "rcvbuf"))
    if draw.one(f"{name} equal buffers", (True, True, False)):
        sndbuf_kb = rcvbuf_kb
    most_b = min(sndbuf_kb, rcvbuf_kb) * 1024 // 4
    message_b = min(most_b, draw.one(f"{name} message", (100, 1400, 1400, 5000, 20000, 60000)))
    streams = draw.one(f"{name} streams", (1, 1, 2, 10))
    if options["interleaving"]:  # all streams' messages are under way at once
        streams = min(streams, 2 * most_b // message_b)
    return Flow(
        name,
        **amount(draw, name, message_b, total_mbit, seconds),
        message_b=message_b,
        sndbuf_kb=sndbuf_kb,
        rcvbuf_kb=rcvbuf_kb,
        streams=streams,
        reverse=draw.one(f"{name} reverse", (False, True)),
        unordered=draw.one(f"{name} unordered", (False, False, True)),
        nodelay=draw.one(f"{name} nodelay", (False, True)),
        sack_delay_ms=draw.one(f"{name} sack delay", (0, 40, 200, 200)),
        sack_freq=draw.one(f"{name} sack freq", (1, 2, 2, 4)),
        sockopts=tuple(sender_options(draw, name, streams, options, base)) or None,
        receiver_sockopts=tuple(receiver_options(options)) or None,
    )


def amount(draw: Draw, name: str, message_b: int, total_mbit: float, seconds: float) -> dict[str, Any]:
    """Keys of Flow that say how much is sent, and when."""
    if not draw.one(f"{name} paced", (False, False, False, True)):
        return {"size_mb": round(min(total_mbit * seconds / 8, MOST_MESSAGES * message_b / 1e6), 3)}
    share = draw.between(f"{name} share", 0.02, 0.7)
    interval_ms = round(max(5.0, message_b * 8 / (share * total_mbit * 1000)), 3)
    return {"interval_ms": interval_ms, "messages": math.ceil(seconds * 1000 / interval_ms) + 1}


def sender_options(draw: Draw, name: str, streams: int, options: dict[str, bool], base: str) -> Iterator[str]:
    if options["interleaving"]:
        yield from interleaving()
    if options["auth"]:
        yield authenticated(SACK)
    if streams > 1:
        known = OLD_STREAM_SCHEDULERS.get(base, STREAM_SCHEDULERS)
        yield association(STREAM_SCHEDULER, draw.one(f"{name} scheduler", tuple(known)))


def receiver_options(options: dict[str, bool]) -> Iterator[str]:
    if options["interleaving"]:
        yield from interleaving()
    if options["auth"]:
        yield from map(authenticated, (DATA, I_DATA))


def interleaving() -> Iterator[str]:
    yield f"sctp:{FRAGMENT_INTERLEAVE}:{struct.pack('=i', 1).hex()}"
    yield association(INTERLEAVING, 1)


def association(option: int, value: int) -> str:
    """An option that takes a struct sctp_assoc_value."""
    return f"sctp:{option}:{struct.pack('=iI', 0, value).hex()}"


def authenticated(chunk: int) -> str:
    """Take such chunks only if they are authenticated."""
    return f"sctp:{AUTH_CHUNK}:{chunk:02x}"


def with_setting(made: RunSpec, name: str, value: int) -> RunSpec:
    hosts = {
        host: {**getattr(made.sysctl, host), f"net.sctp.{name}": str(value)} for host in ("host1", "host2")
    }
    return replace(made, sysctl=replace(made.sysctl, **hosts))


def with_losses(made: RunSpec, losses: int) -> RunSpec:
    """The same run with series LOSSES of random losses, jitter and reordering; 0: as in any scenario."""
    paths = tuple(
        replace(
            path,
            forward=reseeded(path.forward, made.seed, losses, path.name, "forward"),
            reverse=reseeded(path.reverse, made.seed, losses, path.name, "reverse"),
        )
        for path in made.topology.paths
    )
    return replace(made, factors={"losses": losses}, topology=replace(made.topology, paths=paths))


def reseeded(one: Direction, seed: int, losses: int, *purpose: str) -> Direction:
    return replace(one, seed=derive_seed(seed, NAME, str(losses), *purpose) if losses else None)


def alone(whole: RunSpec, path_name: str) -> RunSpec:
    """The same transfer over one of the paths."""
    flows = tuple(replace(flow, paths=(path_name,)) for flow in whole.flows)
    return replace(whole, variant=path_name, flows=flows)


def rivals(whole: RunSpec) -> list[Path]:
    """The paths, each of which may be the best one by itself; [] where this is no race."""
    paths = whole.topology.paths
    bulk = all(flow.interval_ms == 0 for flow in whole.flows)
    if len(paths) == 1 or whole.events or not bulk:
        return []
    if whole.scenario == SHORT:  # set up over the first path, which takes much of the time
        return [paths[0]]
    return [path for path in paths if not any(beats(other, path, paths) for other in paths)]


def beats(a: Path, b: Path, paths: tuple[Path, ...]) -> bool:
    """Whether A is better than B, or as good and before it."""
    return a != b and as_good(a, b) and (not as_good(b, a) or paths.index(a) < paths.index(b))


def as_good(a: Path, b: Path) -> bool:
    """Whether A is no worse than B in anything."""
    headers = {"ipv4": 20, "ipv6": 40}
    ways = ((a.forward, b.forward), (a.reverse, b.reverse))
    return headers[a.family] <= headers[b.family] and all(
        one.rate_mbit >= other.rate_mbit
        and one.queue_pkts >= other.queue_pkts
        and all(
            getattr(one, key) <= getattr(other, key)
            for key in ("delay_ms", "jitter_ms", "loss_pct", "reorder_pct")
        )
        for one, other in ways
    )


SCENARIO = Generated(NAME, QUESTION, repeat=40, runs=runs, factors={"losses": (0,)})
SHORT_SCENARIO = replace(SCENARIO, name=SHORT, runs=partial(runs, name=SHORT))
