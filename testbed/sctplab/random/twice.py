# SPDX-License-Identifier: GPL-2.0
"""Messages that go out over two random paths at once (redundant_bytes), beside the same over the first alone.

A run is behind if it delivers less than that: of bulk its goodput counts, of messages with a lifetime
(RFC 3758, timed) how many arrive. Those may be lost by design, and a record is then not ok.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sctplab.random.choice import Draw, Generated, run_spec
from sctplab.spec.model import Direction, Flow, GeModel, HostSettings, Path, RunSpec, Topology
from sctplab.spec.scenario import Choice

NAME = "sent-twice"
QUESTION = "Is what goes out over two paths at once behind one path? (drawn from the seed)"
TWICE, ALONE = "twice", "path1"  # variants
SETTINGS = {"redundant_bytes": 1500}
STOCK_SETTINGS = {"association_max_retrans": 100}  # a burst may last as long as many retransmissions
RATE_MBIT = (2.0, 30.0)
DELAY_MS = (2.0, 60.0)
QUEUE_PKTS = (40.0, 300.0)
LOSS_PCT = (0.0, 0.3, 0.6, 1.0, 1.5, 2.5, 4.0)
BURST = {"p": (0.1, 0.8), "r": (12.0, 40.0), "one_h": (60.0, 100.0)}  # of a GeModel, per cent
BUFFERS_KB = (64, 128, 256, 1024)
MESSAGES_B = (100, 400, 900, 1300, 1400)
SECONDS = (3.0, 8.0)  # of bulk, if path 1 lost nothing
MOST_MESSAGES = 10000
LIFETIME_MS = (60.0, 300.0)
PACED = 4000  # messages with a lifetime
LOAD = (0.05, 0.5)  # of path 1, by these
DEFAULT_PRINFO, TIMED = 114, 0x10  # SCTP_DEFAULT_PRINFO, SCTP_PR_SCTP_TTL
TOLERANCE = 0.98  # a run of a few seconds begins and ends with a part of a round trip


def runs(seed: int, kernel: str, choice: Choice, cell: dict[str, Any]) -> list[RunSpec]:
    whole = spec(seed, kernel, choice)
    return [whole, alone(whole)]


def spec(seed: int, kernel: str, choice: Choice) -> RunSpec:
    draw = Draw(NAME, seed)
    bursts = draw.one("bursts", (False, False, True))
    first = path(draw, 1, bursts)
    equal = draw.one("equal", (True, True, False))
    other = replace(first, name="path2") if equal else path(draw, 2, bursts)
    flow = timed(draw, first) if draw.one("timed", (False, True)) else bulk(draw, first)
    topology, settings = Topology((first, other)), {**STOCK_SETTINGS, **SETTINGS}
    return run_spec(draw, QUESTION, kernel, choice, topology, [flow], (), settings, variant=TWICE)


def path(draw: Draw, number: int, bursts: bool) -> Path:
    rate_mbit = draw.between(f"rate {number}", *RATE_MBIT)
    burst = GeModel(**{name: draw.between(f"{name} {number}", *ends) for name, ends in BURST.items()})
    forward = Direction(
        rate_mbit,
        draw.between(f"delay {number}", *DELAY_MS),
        loss_pct=0.0 if bursts else draw.one(f"loss {number}", LOSS_PCT),
        gemodel=burst if bursts else None,
        queue_pkts=int(draw.between(f"queue {number}", *QUEUE_PKTS)),
    )
    return Path(f"path{number}", forward=forward, reverse=forward)


def bulk(draw: Draw, first: Path) -> Flow:
    message_b = draw.one("message", MESSAGES_B)
    size_mb = min(
        first.forward.rate_mbit * draw.between("seconds", *SECONDS) / 8, MOST_MESSAGES * message_b / 1e6
    )
    return Flow("main", size_mb=round(size_mb, 3), message_b=message_b, **buffers(draw))


def timed(draw: Draw, first: Path) -> Flow:
    """A steady pace that path 1 carries, each message given up after a time."""
    message_b = draw.one("message", MESSAGES_B)
    load_mbit = first.forward.rate_mbit * draw.between("load", *LOAD)
    lifetime_ms = int(draw.between("lifetime", *LIFETIME_MS))
    prinfo = struct.pack("=iIH2x", 0, lifetime_ms, TIMED).hex()
    return Flow(
        "main",
        messages=PACED,
        message_b=message_b,
        interval_ms=round(max(1.0, message_b * 8 / (load_mbit * 1000)), 3),
        nodelay=True,
        unordered=draw.one("unordered", (False, True)),
        sockopts=(f"sctp:{DEFAULT_PRINFO}:{prinfo}",),
        **buffers(draw),
    )


def buffers(draw: Draw) -> dict[str, Any]:
    size = draw.one("buffer", BUFFERS_KB)
    return {"sndbuf_kb": size, "rcvbuf_kb": size}


def alone(whole: RunSpec) -> RunSpec:
    """The same over path 1, as stock has it."""
    off = {f"net.sctp.{name}": str(value) for name, value in STOCK_SETTINGS.items()}
    flows = tuple(replace(flow, paths=("path1",)) for flow in whole.flows)
    return replace(whole, variant=ALONE, sysctl=HostSettings(off, off), flows=flows)


def brought(record: Mapping[str, Any]) -> float:
    """Messages with a lifetime that arrived, or Mbit/s."""
    if record["spec"]["flows"][0]["interval_ms"]:
        return float(record["flows"][0]["receiver"]["messages"])
    return float(record["metrics"]["goodput_mbit"])


def share(both: Mapping[str, Any], one: Mapping[str, Any]) -> float:
    """Of what came over one path alone, as much came over both."""
    return brought(both) / brought(one)


SCENARIO = Generated(NAME, QUESTION, repeat=30, runs=runs, one_file=False)
