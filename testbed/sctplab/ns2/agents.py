# SPDX-License-Identifier: GPL-2.0
"""Which agents of ns-2 follow a spec, and its settings as their variables. Pure.

A spec with net.sctp.cmt = 1 is followed by Agent/SCTP/CMT, a flow of kind sctp-striped by one Agent/SCTP per
path, all others by the agents of Caro's experiments. A spec must set the behaviour that its class always has;
a spec that the class cannot follow is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sctplab.errors import LabError
from sctplab.spec.model import Direction, RunSpec

CARO = ("MfrHbAfterRto", "MultipleFastRtx", "MultipleFastRtx:mtu_=1532")
CHUNK_HEADER, PACKET_HEADERS = 16, 32
QUIET_RTOS = 3  # without data for so many of the longest timeouts, a transfer is over
NEVER = 1000000

Number = Callable[[str], Any]
Variables = Mapping[str, tuple[str, Number | Mapping[str, int]]]  # sysctl -> variable, how a value is written


def seconds(value: str) -> float:
    return int(value) / 1000


TIMERS: Variables = {
    "net.sctp.path_max_retrans": ("pathMaxRetrans_", int),
    "net.sctp.association_max_retrans": ("associationMaxRetrans_", int),
    "net.sctp.rto_initial": ("initialRto_", seconds),
    "net.sctp.rto_min": ("minRto_", seconds),
    "net.sctp.rto_max": ("maxRto_", seconds),
    "net.sctp.hb_interval": ("heartbeatInterval_", lambda value: round(seconds(value))),
}
POLICIES: Variables = {
    "net.sctp.rtx_policy": ("rtxToAlt_", {"same": 0, "alternate": 1, "fr-same-rto-alt": 2}),
    "net.sctp.dormant_policy": ("dormantAction_", {"hop": 0, "primary": 1, "last": 2}),
}
CMT_POLICIES: Variables = {
    "net.sctp.rtx_policy": (
        "eCmtRtxPolicy_",
        {"asap": 0, "same": 1, "ssthresh": 2, "lossrate": 3, "cwnd": 4},
    ),
}
SACKS: Variables = {"net.sctp.sack_timeout": ("sackDelay_", seconds)}
CMT_SACKS: Variables = {"net.sctp.cmt_sack": ("useCmtDelAck_", {"standard": 0, "delayed": 1})}
DEFAULTS = {"net.sctp.multiple_fast_rtx": "0"}


@dataclass(frozen=True)
class Rules:
    """Settings that a class implies; the variables for sysctls of the sender and of both ends."""

    always: Mapping[str, str]
    sender: Variables
    both: Variables = field(default_factory=lambda: SACKS)
    fixed: Mapping[str, int] = field(default_factory=dict)  # both ends
    first: Mapping[str, int] = field(default_factory=dict)  # the sender
    receiver: str = ""
    counters: bool = False  # whether what it prints of its counters can be read


ONE_PATH = Rules({"net.sctp.multiple_fast_rtx": "0", "net.sctp.pf_enable": "0"}, TIMERS)
CMT = Rules(
    {"net.sctp.cmt": "1", **ONE_PATH.always},
    {**TIMERS, **CMT_POLICIES},
    {**SACKS, **CMT_SACKS},
    fixed={"useCmtReordering_": 1, "useCmtCwnd_": 1, "useCmtPF_": 0},
    receiver="CMT",
)
FAILOVER = Rules(
    {"net.sctp.multiple_fast_rtx": "1", "net.sctp.failover_heartbeat": "1", "net.sctp.pf_enable": "0"},
    {**TIMERS, **POLICIES},
    first={"initialCwnd_": 4},
    counters=True,
)
RULES = {"": ONE_PATH, "CMT": CMT}  # all other classes: FAILOVER


@dataclass(frozen=True)
class Agent:
    """A class below Agent/SCTP, or itself; variables of the sender in place of those that a spec gives."""

    name: str
    changes: tuple[tuple[str, str], ...] = ()

    @property
    def rules(self) -> Rules:
        return RULES.get(self.name, FAILOVER)

    @property
    def source(self) -> str:
        """The source of its figures in a reference file: "ns-2", the class, the changes."""
        changes = (f"{name}={value}" for name, value in self.changes)
        return " ".join(["ns-2", self.name or "AppStripe", *changes])


def agent(text: str) -> Agent:
    """CLASS[:VARIABLE=VALUE[,VARIABLE=VALUE]]; raises LabError."""
    change = r"[A-Za-z]+_=[-+.0-9A-Za-z]+"
    if not re.fullmatch(rf"[A-Za-z][A-Za-z0-9]*(:{change}(,{change})*)?", text):
        raise LabError(f"--agent: got {text!r}, expected CLASS or CLASS:VARIABLE=VALUE such as {CARO[2]}")
    name, _, changes = text.partition(":")
    pairs = (word.partition("=") for word in changes.split(",") if word)
    return Agent(name, tuple((variable, value) for variable, _, value in pairs))


def agents(spec: RunSpec) -> tuple[Agent, ...]:
    """Those that follow the spec when the user names none."""
    if striped(spec):
        return (Agent(""),)
    return (Agent("CMT"),) if shares(spec) else tuple(map(agent, CARO))


def striped(spec: RunSpec) -> bool:
    return spec.flows[0].kind == "sctp-striped"


def shares(spec: RunSpec) -> bool:
    """Whether the flow is to use its paths at the same time: its figures then belong to its variant alone."""
    return striped(spec) or spec.sysctl.host1.get("net.sctp.cmt") == "1"


@dataclass(frozen=True)
class Association:
    """One of those that make a flow, as a spec of its own; FIRST: the number of its first path in it."""

    spec: RunSpec
    first: int = 0


def associations(spec: RunSpec) -> list[Association]:
    """One per path where the flow is striped, else one."""
    if not striped(spec):
        return [Association(spec)]
    flow = replace(spec.flows[0], kind="sctp")
    return [
        Association(replace(spec, flows=(flow,), topology=replace(spec.topology, paths=(path,))), number)
        for number, path in enumerate(spec.topology.paths)
    ]


def parameters(one: Association, agent: Agent) -> dict[str, Any]:
    """The arguments of transfer.tcl by name; raises LabError for a spec that ns-2 cannot follow."""
    spec = one.spec
    check(spec, agent.rules)
    flow = spec.flows[0]
    assert flow.size_mb is not None
    mtu = min(path.mtu for path in spec.topology.paths)
    both: dict[str, object] = {
        "mtu_": mtu,
        "dataChunkSize_": flow.message_b + CHUNK_HEADER,
        "initialRwnd_": flow.rcvbuf_kb * 1024,
        **agent.rules.fixed,
        **variables(spec, spec.sysctl.host2, agent.rules.both),
    }
    if flow.sack_freq is not None:
        both["useDelayedSacks_"] = int(flow.sack_freq > 1)
    sender: dict[str, object] = {
        "changePrimaryThresh_": NEVER,
        "initialSsthresh_": flow.rcvbuf_kb * 1024,
        **agent.rules.first,
        **variables(spec, spec.sysctl.host1, agent.rules.sender),
        **dict(agent.changes),
    }
    return {
        "seed": spec.seed,
        "streams": 2 * one.first,
        "agent": "/".join(filter(None, ("SCTP", agent.name))),
        "receiver": "/".join(filter(None, ("SCTP", agent.rules.receiver))),
        "counters": int(agent.rules.counters),
        "bytes": round(flow.size_mb * 1e6),
        "message": flow.message_b,
        "idle_s": QUIET_RTOS * float(str(sender["maxRto_"])),
        "idle_bytes": 2 * mtu,
        "limit_s": spec.limits.virtual_s,
        "both": both,
        "sender": sender,
        "paths": [
            {way: link(spec, getattr(path, way)) for way in ("forward", "reverse")}
            for path in spec.topology.paths
        ],
    }


def check(spec: RunSpec, rules: Rules) -> None:
    """Raises LabError for what no agent, or none of these rules, can follow."""
    if spec.events or len(spec.flows) != 1:
        raise refused(spec, "events or several flows", "one flow and no event")
    if spec.topology.shared:
        raise refused(spec, f"bottleneck {spec.topology.shared[0].name}", "paths that share nothing")
    flow = spec.flows[0]
    mtu = min(path.mtu for path in spec.topology.paths)
    if flow.primary not in (None, spec.topology.paths[0].name):
        raise refused(spec, f"primary = {flow.primary}", "the first path")
    if flow.kind != "sctp" or flow.size_mb is None or flow.paths:
        raise refused(spec, f"flow {flow.name}", "an sctp flow of size_mb over all paths")
    if flow.sack_freq not in (None, 1, 2):
        raise refused(spec, f"sack_freq = {flow.sack_freq}", "1 or 2")
    if flow.message_b % 4 or flow.message_b + CHUNK_HEADER > mtu - PACKET_HEADERS:
        raise refused(
            spec, f"message_b = {flow.message_b}", "a multiple of 4 that fills no more than a packet"
        )
    for key, value in rules.always.items():
        found = spec.sysctl.host1.get(key, DEFAULTS.get(key, "default"))
        if found != value:
            raise refused(spec, f"{key} = {found}", f"{value}, as ns-2 does")


def variables(spec: RunSpec, settings: Mapping[str, str], known: Variables) -> dict[str, object]:
    """A host's sysctls as variables of ns-2; each must be set, since ns-2's defaults are its own."""
    found: dict[str, object] = {}
    for key, (name, convert) in known.items():
        value = settings.get(key, "default")
        if isinstance(convert, Mapping):
            if value not in convert:
                raise refused(spec, f"{key} = {value}", "one of " + ", ".join(convert))
            found[name] = convert[value]
        elif value == "default":
            raise refused(spec, f"{key} at its default", "a value in [sysctl]")
        else:
            found[name] = convert(value)
    return found


def link(spec: RunSpec, direction: Direction) -> dict[str, float]:
    if direction.gemodel or direction.jitter_ms or direction.reorder_pct:
        raise refused(spec, "gemodel, jitter_ms or reorder_pct", "loss_pct, delay_ms and rate_mbit only")
    names = ("rate_mbit", "delay_ms", "queue_pkts", "loss_pct")
    return {name: getattr(direction, name) for name in names}


def refused(spec: RunSpec, got: str, expected: str) -> LabError:
    return LabError(f"{spec.scenario}, {spec.variant}: ns-2 cannot follow {got}; expected {expected}")
