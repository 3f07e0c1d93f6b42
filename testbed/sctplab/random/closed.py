# SPDX-License-Identifier: GPL-2.0
"""A program that does not read for a while, and a path that is cut about the time when it does again.

The receiver's window is closed until then, and the sender probes it at longer and longer intervals. All that
is on its way when the path is cut is lost: a probe, its answer, the report that the window is open, or the
data behind it. The timer that has to find that is one that no loss has backed off. max_gap_s, the longest
time between two arrivals, is the longest wait after the wake-up: nothing arrives before it.

A seed is run on the stock kernel, and on the patched one with everything off and with each profile for its
traffic in sysctl/.
"""

from __future__ import annotations

from sctplab.random.choice import Draw, Generated, run_spec
from sctplab.spec.model import Direction, Event, Flow, Path, RunSpec, Topology
from sctplab.spec.profiles import settings_of
from sctplab.spec.scenario import Choice

NAME = "closed-window"
QUESTION = "How long is the wait after a program has not read, and a path is cut? (drawn from the seed)"
OFF = "off"
PROFILES = {"signalling": "10-signalling", "bulk": "20-bulk", "cmt": "25-cmt"}
CLOSED_S = (5.0, 600.0)
BEFORE_S, AFTER_S = (0.01, 20.0), (0.001, 2.0)  # the cut, from the wake-up on
CUT_S = (0.2, 10.0)
HANDSHAKE = 3  # one-way delays until the receiver's association is up
MESSAGES = 600


def runs(seed: int, kernel: str, choice: Choice) -> list[RunSpec]:
    """The stock kernel has one variant."""
    if kernel == "stock":
        return [spec(seed, kernel, choice, OFF)]
    return [spec(seed, kernel, choice, variant) for variant in (OFF, *PROFILES)]


def spec(seed: int, kernel: str, choice: Choice, variant: str) -> RunSpec:
    draw = Draw(NAME, seed)
    topology = Topology(tuple(path(draw, number) for number in range(1, draw.one("paths", (2, 2, 2, 3)) + 1)))
    closed_s = draw.between("closed", *CLOSED_S)
    up_s = HANDSHAKE * topology.paths[0].forward.delay_ms / 1000
    settings = settings_of(PROFILES[variant]) if variant != OFF else {}
    return run_spec(
        draw,
        QUESTION,
        kernel,
        choice,
        topology,
        [flow(draw, closed_s)],
        events(draw, topology, up_s + closed_s),
        {name.removeprefix("net.sctp."): value for name, value in settings.items()},
        variant,
    )


def path(draw: Draw, number: int) -> Path:
    one = Direction(
        rate_mbit=draw.one(f"rate {number}", (5.0, 10.0, 50.0)),
        delay_ms=draw.between(f"delay {number}", 2, 100),
    )
    return Path(f"path{number}", forward=one, reverse=one)


def flow(draw: Draw, closed_s: float) -> Flow:
    """More than any of these windows holds."""
    return Flow(
        "flow1",
        messages=MESSAGES,
        message_b=draw.one("message", (400, 1000, 1400)),
        rcvbuf_kb=draw.one("rcvbuf", (8, 16, 32, 64)),
        reader_sleeps_s=closed_s,
        nodelay=draw.one("nodelay", (False, True)),
    )


def events(draw: Draw, topology: Topology, wakes_s: float) -> tuple[Event, ...]:
    """A cut before, at or after the wake-up, for good or for a while, mostly of the first path."""
    name = draw.one("cut", ("path1", "path1", "path1", "path2"))
    way = draw.one("direction", ("both", "both", "both", "forward", "reverse"))
    at_s = wakes_s
    if (when := draw.one("when", ("before", "before", "at", "after"))) == "before":
        at_s -= min(draw.between("before", *BEFORE_S), wakes_s / 2)
    elif when == "after":
        at_s += draw.between("after", *AFTER_S)
    cut = Event(round(at_s, 6), "cut", name, way)
    if draw.one("for good", (True, False)):
        return (cut,)
    return (cut, Event(round(at_s + draw.between("lasts", *CUT_S), 6), "heal", name, way))


SCENARIO = Generated(
    NAME,
    QUESTION,
    repeat=200,
    runs=lambda seed, kernel, choice, _: runs(seed, kernel, choice),
    one_file=False,
)
