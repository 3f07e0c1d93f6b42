# SPDX-License-Identifier: GPL-2.0
"""From a RunSpec to the plan that the agent in the place carries out: every command, in order. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sctplab.plan.link_commands import (
    Command,
    build_commands,
    cable,
    command,
    egress,
    ends,
    hole,
    host_address,
    interfaces,
    namespaces,
    netem,
    pasteable,
    subnet,
    up,
)
from sctplab.plan.site import Site
from sctplab.plan.traffic import Load, Means, common_commands, loads
from sctplab.spec.model import HOSTS, Direction, Event, Path, RunSpec, changed, derive_seed, directions
from sctplab.spec.schema import At, plain

PLAN_FORMAT = 1
TCPDUMP = "tcpdump --immediate-mode --time-stamp-precision=nano -U -Z root -w -"


@dataclass(frozen=True)
class TimedCommands:
    """Commands for one event, at_s seconds after the first flow's start."""

    at_s: float
    label: str
    commands: tuple[Command, ...]


@dataclass(frozen=True)
class Capture:
    """A command whose output goes to FILE of the run's folder (tcpdump's own file would change owner)."""

    where: str
    argv: tuple[str, ...]
    file: str


@dataclass(frozen=True)
class Plan:
    """The input of the agent, written as plan.json."""

    format: int
    setup: tuple[Command, ...]
    hosts: tuple[str, ...]
    captures: tuple[Capture, ...]
    flows: tuple[Load, ...]
    events: tuple[TimedCommands, ...]
    links: tuple[tuple[str, str], ...]
    sample_ms: int
    virtual_limit_s: float
    start_every_ns: int = 0  # the first flow starts at a multiple of this; 0: as soon as all is ready
    site: Site | None = None

    @property
    def steady(self) -> bool:
        """Whether all programs sleep when they wait, so that virtual time may ignore CPU use."""
        return all(flow.steady for flow in self.flows)


def make(spec: RunSpec, tool: str) -> Plan:
    """The plan of one run; TOOL is the path of mpflow."""
    topology = spec.topology
    means = Means(tool, derive_seed(spec.seed, "payload"), spec.measure.sample_ms)
    flows = tuple(one for i, flow in enumerate(spec.flows) for one in loads(flow, topology, i, means))
    setup = [*build_commands(topology, spec.seed), *common_commands(), *sysctls(spec)]
    for flow in flows:
        setup += flow.setup
    return Plan(
        format=PLAN_FORMAT,
        setup=tuple(setup),
        hosts=tuple(namespaces(topology)[:2]),
        captures=tuple(capture(*end) for end in captured(spec)),
        flows=flows,
        events=tuple(events(spec)),
        links=tuple(egress(one, way) for one in topology.shaped for way in directions("both")),
        sample_ms=spec.measure.sample_ms,
        virtual_limit_s=spec.limits.virtual_s,
    )


def sysctls(spec: RunSpec) -> list[Command]:
    """In the order of the scenario: some keys bound each other (raise rto_max before rto_min)."""
    return [
        Command(host, ("sysctl", "-q", "-w", f"{key}={value}"))
        for host in HOSTS
        for key, value in getattr(spec.sysctl, host).items()
    ]


def captured(spec: RunSpec) -> list[tuple[str, str]]:
    """(namespace, interface) of the captures: all that were asked for, or what the metric return_s needs."""
    if spec.pcap:
        return interfaces(spec.topology)
    if spec.measures_return:
        return [(spec.measured_flow.hosts[0], path.name) for path in spec.topology.paths]
    return []


def file_name(where: str, interface: str) -> str:
    """Of the capture of one interface."""
    return f"{where}.{interface}.pcap"


def capture(where: str, interface: str) -> Capture:
    """Everything on one interface, into WHERE.INTERFACE.pcap."""
    return Capture(where, (*TCPDUMP.split(), "-i", interface), file_name(where, interface))


def events(spec: RunSpec) -> Iterator[TimedCommands]:
    """Events in time order; a direction's values are carried along: a change starts from the last ones."""
    now = {(path.name, one): getattr(path, one) for path in spec.topology.paths for one in directions("both")}
    ordered = sorted(enumerate(spec.events, 1), key=lambda item: item[1].at_s)
    for number, event in ordered:
        path = spec.topology.path(event.path)
        label = f"{event.action} {event.path} {event.direction if event.action in SHAPING else event.host}"
        if event.action in SHAPING:
            commands = list(reshape(spec, event, path, now, number))
        else:
            commands = HOST_ACTIONS[event.action](spec, event, path)
        yield TimedCommands(event.at_s, label, tuple(commands))


SHAPING = ("cut", "heal", "change")


def reshape(
    spec: RunSpec, event: Event, path: Path, now: dict[tuple[str, str], Direction], number: int
) -> Iterator[Command]:
    """One netem change per direction, and its hole; packets already in the netem are still delivered."""
    for one in directions(event.direction):
        old = now[path.name, one]
        if event.action == "change":
            now[path.name, one] = old = changed(old, event.values, At(spec.scenario, f"events {number}"))
        values = changed(old, {"loss_pct": 100.0}, At("", "")) if event.action == "cut" else old
        yield netem("change", path, one, values, spec.seed, f"event{number}")
        if event.values and event.values.get("hole_b"):
            yield hole(path, one, event.values["hole_b"])


def carrier_down(spec: RunSpec, event: Event, path: Path) -> list[Command]:
    """The other end goes down, so the host sees its carrier go; what waits in that end's queue is lost."""
    where, interface = cable(spec.topology, path, event.host)
    return [command(where, f"ip link set {interface} down")]


def carrier_up(spec: RunSpec, event: Event, path: Path) -> list[Command]:
    near, far = ends(spec.topology, path, event.host)
    where, interface = cable(spec.topology, path, event.host)
    if where != far.where:
        return [command(where, f"ip link set {interface} up")]
    return list(up(spec.topology, path, far, near, event.host))


def address_del(spec: RunSpec, event: Event, path: Path) -> list[Command]:
    near = ends(spec.topology, path, event.host)[0]
    length = subnet(spec.topology, path, event.host)[1]
    return [command(event.host, f"ip addr del {near.address}/{length} dev {near.interface}")]


def address_add(spec: RunSpec, event: Event, path: Path) -> list[Command]:
    return host_address(spec.topology, path, event.host)


HOST_ACTIONS = {
    "carrier-down": carrier_down,
    "carrier-up": carrier_up,
    "address-del": address_del,
    "address-add": address_add,
}


def as_json(plan: Plan) -> dict[str, Any]:
    return {**plain(plan), "steady": plan.steady}


def listing(plan: Plan) -> Iterator[str]:
    """The plan as lines to read and to paste, for --dry-run."""
    for one in plan.setup:
        yield pasteable(one)
    for capture in plan.captures:
        yield f"{pasteable(Command(capture.where, capture.argv))} > {capture.file} &"
    for flow in plan.flows:
        yield f"# flow {flow.name}, start at {flow.start_s:g} s"
        for process in (flow.receiver, flow.sender):
            yield pasteable(Command(process.where, process.argv)) + " &"
    for event in plan.events:
        yield f"# at {event.at_s:g} s: {event.label}"
        for one in event.commands:
            yield pasteable(one)
