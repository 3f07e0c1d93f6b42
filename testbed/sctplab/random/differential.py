# SPDX-License-Identifier: GPL-2.0
"""Random runs that a stock kernel makes as well; oracle/differential.py asks what two kernels do differently.

One to three paths and one or two associations, whose programs (kind sctp-acts) do what programs do: they do
not read for a while, close, abort, come back from the same port, take addresses out and put them in. Nothing
here is of the series, so the runs of two kernels differ in the kernel and in nothing else.

A kind of thing that a run may meet is an ingredient; ingredients() names those of a run.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from sctplab.random.choice import Draw, Generated, names, run_spec
from sctplab.random.cmt import DATA, I_DATA, SACK, authenticated, interleaving
from sctplab.spec import outages
from sctplab.spec.model import Act, Direction, Event, Flow, Limits, Path, RunSpec, Topology
from sctplab.spec.scenario import Choice

NAME = "differential"
QUESTION = "Does the series do what stock does while it is off? (drawn from the seed, not a file)"
RATE_MBIT = (0.3, 20.0)
DELAY_MS = (0.5, 150.0)
QUEUE_MS = (5.0, 300.0)
SECONDS = (0.3, 15.0)  # the transfer would take, if nothing else happened
MOST_MB, MOST_MESSAGES = 2.5, 2500
FULL_B = 1514
BUFFERS_KB = (8, 16, 32, 64, 256, 1024)
WINDOWS = 6  # receive buffers that are sent at least where the program pauses
PAUSE_S = (1.0, 60.0)
BEFORE_WAKE_UP_S = (0.01, 8.0)  # how long before LATE_S after a program reads again a cut begins
LATE_S = 0.3
AT_WAKE_UP_S = (0.1, 20.0)  # how long the cut lasts
LIMITS = Limits(virtual_s=600.0, wall_s=240.0)
ENDS = ("sender", "receiver")
DEFAULT_PRINFO, ENABLE_STREAM_RESET = 114, 118
# Policies of PR-SCTP with values: a lifetime in ms, retransmissions, a priority.
PARTIAL = {"ttl": (0x10, (20, 100, 500, 2000)), "rtx": (0x20, (0, 1, 3)), "prio": (0x30, (1,))}
STREAM_RESETS = 1
# Settings of stock kernels; in this order, since some bound each other.
SETTINGS: dict[str, tuple[Any, ...]] = {
    "rto_max": (2000, 10000, 60000, 60000),
    "rto_min": (100, 300, 1000, 1000),
    "rto_initial": (1000, 3000),
    "path_max_retrans": (1, 2, 5, 5),
    "pf_enable": (0, 1, 1),
    "pf_retrans": (0, 0, 1, 2),
    "hb_interval": (1000, 5000, 30000, 30000),
    "max_burst": (4, 4, 4, 0, 1),
}


def spec(seed: int, kernel: str, choice: Choice) -> RunSpec:
    """The run with SEED."""
    draw = Draw(NAME, seed)
    topology = draw_topology(draw)
    total_mbit = sum(path.forward.rate_mbit for path in topology.paths)
    seconds = min(draw.between("seconds", *SECONDS), MOST_MB * 8 / total_mbit)
    flows = [
        flow(draw, number, topology, seconds) for number in range(1, draw.one("flows", (1, 1, 1, 2)) + 1)
    ]
    events = (*broken(draw, topology, seconds), *changed(draw, topology, seconds))
    events += woken(draw, topology, flows[0]) + restarting(topology, flows[0])
    made = run_spec(draw, QUESTION, kernel, choice, topology, flows, apart(events), settings(draw), "default")
    return replace(made, limits=LIMITS)


def draw_topology(draw: Draw) -> Topology:
    several = draw.one("addresses", KINDS["addresses"])
    count = draw.one("paths", (2, 3) if several else (1, 2, 2, 2, 3))
    families = draw.one("families", ("ipv4", "ipv4", "ipv6", "mixed"))
    return Topology(tuple(path(draw, number, families) for number in range(1, count + 1)))


def path(draw: Draw, number: int, families: str) -> Path:
    """Both ways alike, or the way back with a delay and losses of its own."""
    rate_mbit = draw.between(f"rate {number}", *RATE_MBIT)
    forward = direction(draw, f"{number}", rate_mbit)
    alike = draw.one(f"alike {number}", (True, True, False))
    family = (
        draw.one(f"family {number}", ("ipv4", "ipv6")) if families == "mixed" and number > 1 else families
    )
    return Path(
        f"path{number}",
        forward=forward,
        reverse=forward if alike else direction(draw, f"{number} reverse", rate_mbit),
        family="ipv4" if family == "mixed" else family,
    )


def direction(draw: Draw, name: str, rate_mbit: float) -> Direction:
    delay_ms = draw.between(f"delay {name}", *DELAY_MS)
    waiting_ms = draw.between(f"queue {name}", *QUEUE_MS)
    return Direction(
        rate_mbit,
        delay_ms,
        jitter_ms=round(delay_ms * draw.one(f"jitter {name}", (0.0, 0.0, 0.0, 0.3)), 3),
        loss_pct=draw.one(f"loss {name}", (*(0.0,) * 6, 0.5, 2.0, 6.0)),
        reorder_pct=draw.one(f"reorder {name}", (*(0.0,) * 6, 2.0, 10.0)),
        queue_pkts=4 + math.ceil((delay_ms + waiting_ms) * rate_mbit * 1000 / (FULL_B * 8)),
    )


# How often each kind of thing is drawn, as the values that Draw.one() chooses from.
KINDS: dict[str, tuple[Any, ...]] = {
    "addresses": (False,) * 7 + (True,),
    "outages": (False, False, False, True, True),
    "change": (False, False, False, False, True),
    "pause": (False, False, False, True, True),
    "wake-up": ("", "path1", "path1", "all"),
    "end": ("",) * 7 + ("abort", "close", "restart", "peer-abort"),
    "primary": (False,) * 8 + (True,),
    "reset": (False,) * 8 + (True,),
    "partial": ("",) * 8 + ("ttl", "rtx", "prio"),
    "interleaving": (False, False, False, False, True),
    "auth": (False,) * 7 + (True,),
    "ecn": (0, 0, 0, 1),
}


def settings(draw: Draw) -> dict[str, Any]:
    """A part of the seeds has stock's own timers; what both ends must agree on is for both."""
    found = draw.each(SETTINGS) if draw.one("settings", (False, True)) else {}
    found["ecn_enable"] = draw.one("ecn", KINDS["ecn"])
    found["intl_enable"] = int(draw.one("interleaving", KINDS["interleaving"]))
    found["auth_enable"] = int(draw.one("auth", KINDS["auth"]))
    if draw.one("addresses", KINDS["addresses"]):
        found |= {"addip_enable": 1, "addip_noauth_enable": 1}
    if draw.one("reset", KINDS["reset"]):
        found["reconf_enable"] = 1
    return found


def flow(draw: Draw, number: int, topology: Topology, seconds: float) -> Flow:
    """The first flow has the acts; another one is beside it."""
    name = f"flow{number}"
    sndbuf_kb, rcvbuf_kb = (draw.one(f"{name} {which}", BUFFERS_KB) for which in ("sndbuf", "rcvbuf"))
    closes = number == 1 and draw.one("pause", KINDS["pause"])  # the window, while nobody reads
    if closes:
        rcvbuf_kb = draw.one("pause rcvbuf", BUFFERS_KB[:4])
    most_b = min(sndbuf_kb, rcvbuf_kb) * 1024 // 4
    message_b = min(most_b, draw.one(f"{name} message", (60, 300, 1200, 1400, 1452, 5000, 20000)))
    total_mbit = sum(path.forward.rate_mbit for path in topology.paths)
    sent = amount(draw, name, message_b, total_mbit, seconds)
    if closes:
        least = math.ceil(WINDOWS * rcvbuf_kb * 1024 / message_b)
        sent = {"messages": min(MOST_MESSAGES, max(sent["messages"], least))}
    return Flow(
        name,
        kind="sctp-acts",
        **sent,
        message_b=message_b,
        mixed=draw.one(f"{name} mixed", (None, None, True)),
        many=draw.one(f"{name} many", (None, None, True)),
        sndbuf_kb=sndbuf_kb,
        rcvbuf_kb=rcvbuf_kb,
        streams=draw.one(f"{name} streams", (1, 1, 2, 7)),
        reverse=number > 1 and draw.one(f"{name} reverse", (False, True)),
        unordered=draw.one(f"{name} unordered", (False, False, True)),
        nodelay=draw.one(f"{name} nodelay", (False, True)),
        sack_delay_ms=draw.one(f"{name} sack delay", (None, None, 0, 50, 500)),
        sack_freq=draw.one(f"{name} sack freq", (None, None, 1, 4)),
        sockopts=tuple(sender_options(draw)) or None,
        receiver_sockopts=tuple(receiver_options(draw)) or None,
        acts=(tuple(acts(draw, topology, seconds)) or None) if number == 1 else None,
    )


def amount(draw: Draw, name: str, message_b: int, total_mbit: float, seconds: float) -> dict[str, Any]:
    """Bulk, or messages at a steady pace that the paths can carry."""
    if draw.one(f"{name} paced", (False, True)):
        share = draw.between(f"{name} share", 0.01, 0.6)
        interval_ms = round(max(5.0, message_b * 8 / (share * total_mbit * 1000)), 3)
        return {
            "interval_ms": interval_ms,
            "messages": min(MOST_MESSAGES, math.ceil(seconds * 1000 / interval_ms) + 1),
        }
    messages = math.ceil(total_mbit * seconds / 8 * 1e6 / message_b)
    return {"messages": max(1, min(messages, MOST_MESSAGES))}


def sender_options(draw: Draw) -> Iterator[str]:
    yield from options_of_both(draw)
    if draw.one("auth", KINDS["auth"]):
        yield authenticated(SACK)
    partial = draw.one("partial", KINDS["partial"])
    if partial:
        policy, values = PARTIAL[partial]
        value = struct.pack("=iIHxx", 0, draw.one("partial value", values), policy)
        yield f"sctp:{DEFAULT_PRINFO}:{value.hex()}"


def receiver_options(draw: Draw) -> Iterator[str]:
    yield from options_of_both(draw)
    if draw.one("auth", KINDS["auth"]):
        yield from map(authenticated, (DATA, I_DATA))


def options_of_both(draw: Draw) -> Iterator[str]:
    if draw.one("interleaving", KINDS["interleaving"]):
        yield from interleaving()
    if draw.one("reset", KINDS["reset"]):
        yield f"sctp:{ENABLE_STREAM_RESET}:{struct.pack('=iI', 0, STREAM_RESETS).hex()}"


def acts(draw: Draw, topology: Topology, seconds: float) -> list[Act]:
    """All that the programs of the first flow do, in order of time."""
    found: list[Act] = []
    if draw.one("pause", KINDS["pause"]):
        start_s = draw.between("pause start", 0.05, max(0.1, seconds))
        end_s = start_s + draw.between("pause length", *PAUSE_S)
        found += [Act(start_s, "pause", "receiver"), Act(round(end_s, 3), "resume", "receiver")]
    if not found or draw.one("pause and end", (False, False, True)):
        found += ending(draw, seconds)
    if draw.one("addresses", KINDS["addresses"]):
        end, gone = draw.one("addresses end", ENDS), draw.one("addresses path", tuple(names(topology)))
        start_s = draw.between("addresses start", 0.1, max(0.2, seconds))
        back_s = round(start_s + draw.between("addresses length", 0.05, 5.0), 3)
        found += [Act(start_s, "address-del", end, gone), Act(back_s, "address-add", end, gone)]
        if draw.one("peer primary", (False, True)):
            found.append(Act(round(back_s + 0.5, 3), "peer-primary", end, gone))
    if draw.one("primary", KINDS["primary"]):
        start_s = draw.between("primary start", 0.1, max(0.2, seconds))
        found.append(Act(start_s, "primary", path=draw.one("primary path", tuple(names(topology)))))
    if draw.one("reset", KINDS["reset"]):
        end, start_s = draw.one("reset end", ENDS), draw.between("reset start", 0.1, max(0.2, seconds))
        found.append(Act(start_s, "reset-streams", end))
    return sorted(found, key=lambda act: act.at_s)


def ending(draw: Draw, seconds: float) -> list[Act]:
    """How the association ends, if not when all is sent; see restarting() for the paths of a restart."""
    kind = draw.one("end", KINDS["end"])
    at_s = draw.between("end start", 0.2, max(0.3, seconds))
    if kind == "restart":
        again_s = round(at_s + draw.between("end again", 0.2, 3.0), 3)
        return [Act(at_s, "abort"), Act(again_s, "connect")]
    end, action = {"": ("", ""), "peer-abort": ("receiver", "abort")}.get(kind, ("sender", kind))
    return [Act(at_s, action, end)] if action else []


def restarting(topology: Topology, one: Flow) -> tuple[Event, ...]:
    """The ABORT of a restart gets lost, so that the peer knows the association still."""
    again = [act.at_s for act in one.acts or () if act.action == "connect"]
    gone = [act.at_s for act in one.acts or () if act.action == "abort" and again]
    return tuple(
        event
        for start_s, end_s in zip(gone, again, strict=True)
        for name in names(topology)
        for event in cut(name, max(0.01, start_s - 0.05), end_s - 0.05, "forward")
    )


def cut(name: str, start_s: float, end_s: float, way: str = "both") -> tuple[Event, Event]:
    return Event(round(start_s, 3), "cut", name, way), Event(round(end_s, 3), "heal", name, way)


def broken(draw: Draw, topology: Topology, seconds: float) -> tuple[Event, ...]:
    """Outages of any kind, most of which leave a path."""
    if not draw.one("outages", KINDS["outages"]):
        return ()
    one_stays = draw.one("one stays", (False, True, True))
    return outages.events(outages.schedule(names(topology), seconds, one_stays, draw.source("schedule")))


def changed(draw: Draw, topology: Topology, seconds: float) -> tuple[Event, ...]:
    """A path becomes longer, or slower, for good."""
    if not draw.one("change", KINDS["change"]):
        return ()
    name = draw.one("change path", tuple(names(topology)))
    before = topology.path(name)
    longest_ms = max(before.forward.delay_ms, before.reverse.delay_ms)
    values: dict[str, Any] = {"delay_ms": round(longest_ms + draw.between("change delay", 5.0, 300.0), 3)}
    if draw.one("change rate", (False, True)):
        values["rate_mbit"] = draw.between("change to", *RATE_MBIT)
    return (Event(draw.between("change start", 0.1, max(0.2, seconds)), "change", name, values=values),)


def woken(draw: Draw, topology: Topology, one: Flow) -> tuple[Event, ...]:
    """A cut about when a program reads again."""
    wakes = [act.at_s for act in one.acts or () if act.action == "resume"]
    where = draw.one("wake-up", KINDS["wake-up"])
    if not wakes or not where:
        return ()
    start_s = max(0.1, wakes[0] + LATE_S - draw.between("wake-up start", *BEFORE_WAKE_UP_S))
    end_s = start_s + draw.between("wake-up length", *AT_WAKE_UP_S)
    way = draw.one("wake-up way", ("both", "forward", "reverse"))
    chosen = names(topology) if where == "all" else [where]
    return tuple(event for name in chosen for event in cut(name, start_s, end_s, way))


def apart(events: tuple[Event, ...]) -> tuple[Event, ...]:
    """In order of time."""
    return tuple(sorted(events, key=lambda event: event.at_s))


def ingredients(made: RunSpec) -> tuple[str, ...]:
    """The kinds of things that a run meets, in words."""
    return tuple(name for name, meets in INGREDIENTS.items() if meets(made))


def ways(made: RunSpec) -> list[Direction]:
    return [way for path in made.topology.paths for way in (path.forward, path.reverse)]


def acted(made: RunSpec) -> set[str]:
    return {act.action for flow in made.flows for act in flow.acts or ()}


def on(made: RunSpec, name: str) -> bool:
    return made.sysctl.host1.get(f"net.sctp.{name}", "0") != "0"


def has_option(made: RunSpec, start: str) -> bool:
    return any(one.startswith(start) for flow in made.flows for one in flow.sockopts or ())


INGREDIENTS: dict[str, Callable[[RunSpec], bool]] = {
    "one path": lambda made: len(made.topology.paths) == 1,
    "two paths": lambda made: len(made.topology.paths) == 2,
    "three paths": lambda made: len(made.topology.paths) == 3,
    "IPv6": lambda made: any(path.family == "ipv6" for path in made.topology.paths),
    "mixed families": lambda made: len({path.family for path in made.topology.paths}) > 1,
    "losses": lambda made: any(way.loss_pct for way in ways(made)),
    "reordering": lambda made: any(way.reorder_pct for way in ways(made)),
    "jitter": lambda made: any(way.jitter_ms for way in ways(made)),
    "cut both ways": lambda made: any((one.action, one.direction) == ("cut", "both") for one in made.events),
    "cut forward": lambda made: any((one.action, one.direction) == ("cut", "forward") for one in made.events),
    "cut backward": lambda made: any(
        (one.action, one.direction) == ("cut", "reverse") for one in made.events
    ),
    "carrier lost": lambda made: any(one.action == "carrier-down" for one in made.events),
    "path changes": lambda made: any(one.action == "change" for one in made.events),
    "small buffer": lambda made: any(min(flow.sndbuf_kb, flow.rcvbuf_kb) <= 32 for flow in made.flows),
    "no reading": lambda made: "pause" in acted(made),
    "abort": lambda made: "abort" in acted(made) and "connect" not in acted(made),
    "close": lambda made: "close" in acted(made),
    "restart": lambda made: "connect" in acted(made),
    "ASCONF": lambda made: "address-del" in acted(made),
    "primary changed": lambda made: bool({"primary", "peer-primary"} & acted(made)),
    "RE-CONFIG": lambda made: "reset-streams" in acted(made),
    "PR-SCTP": lambda made: has_option(made, f"sctp:{DEFAULT_PRINFO}:"),
    "I-DATA": lambda made: on(made, "intl_enable"),
    "AUTH": lambda made: on(made, "auth_enable"),
    "ECN": lambda made: on(made, "ecn_enable"),
    "streams": lambda made: any(flow.streams > 1 for flow in made.flows),
    "unordered": lambda made: any(flow.unordered for flow in made.flows),
    "one-to-many": lambda made: any(flow.many for flow in made.flows),
    "sizes mixed": lambda made: any(flow.mixed for flow in made.flows),
    "Nagle": lambda made: any(not flow.nodelay for flow in made.flows),
    "paced": lambda made: any(flow.interval_ms for flow in made.flows),
    "two flows": lambda made: len(made.flows) > 1,
    "own timers": lambda made: "net.sctp.rto_min" in made.sysctl.host1,
}

SCENARIO = Generated(
    NAME, QUESTION, repeat=20, runs=lambda seed, kernel, choice, _: [spec(seed, kernel, choice)]
)
