# SPDX-License-Identifier: GPL-2.0
"""From a plan in the laboratory's words to one in those of machines, and each machine's part of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sctplab.paths import AGENT
from sctplab.plan.link_commands import Command
from sctplab.plan.run_plan import Plan
from sctplab.plan.site import Address, Site
from sctplab.plan.traffic import Load, Process

Links = tuple[tuple[str, str], ...]
UDP = str(AGENT / "udp.py")


@dataclass(frozen=True)
class Names:
    """Names on the machines.

    WHERE: namespace of the laboratory -> machine. WORDS: namespace -> word -> word there; those of "" hold in
    all. A word of a command is looked up as a whole, then each part between its commas.
    """

    where: Mapping[str, str]
    words: Mapping[str, Mapping[str, str]]

    def word(self, where: str, word: str) -> str:
        known = {**self.words.get("", {}), **self.words.get(where, {})}
        return known.get(word) or ",".join(known.get(part, part) for part in word.split(","))

    def command(self, one: Command) -> Command:
        argv = tuple(self.word(one.where, word) for word in one.argv)
        return Command(self.where[one.where], argv)

    def process(self, one: Process) -> Process:
        argv = tuple(self.word(one.where, word) for word in one.argv)
        return Process(self.where[one.where], argv, one.ready)

    def load(self, one: Load) -> Load:
        return replace(one, receiver=self.process(one.receiver), sender=self.process(one.sender), setup=())


def placed(
    plan: Plan, names: Names, machines: tuple[Address, ...], mpflow: str, links: Links | None = None
) -> Plan:
    """PLAN on machines. Its commands outside of all namespaces are left out: a machine is one namespace.

    LINKS: the plan's links under the laboratory's names, if the machines use others.
    """
    programs = {name: path for name, path in (("mpflow", mpflow), ("mpflow-usrsctp", f"{mpflow}-usrsctp"))
                if any(path in (one.receiver.argv[0], one.sender.argv[0]) for one in plan.flows)}  # fmt: skip
    common = {**{path: f"./{name}" for name, path in programs.items()}, UDP: "agent/udp.py"}
    names = replace(names, words={**names.words, "": {**names.words.get("", {}), **common}})
    inverse = {
        host: {there: here for here, there in names.words.get(host, {}).items()} for host in plan.hosts
    }
    hosts = {host: names.where[host] for host in plan.hosts}
    return replace(
        plan,
        setup=tuple(names.command(one) for one in plan.setup if one.where),
        captures=tuple(
            replace(one, where=names.where[one.where], argv=names.command(Command(one.where, one.argv)).argv)
            for one in plan.captures
        ),
        flows=tuple(names.load(one) for one in plan.flows),
        events=tuple(
            replace(event, commands=tuple(names.command(one) for one in event.commands))
            for event in plan.events
        ),
        links=tuple((names.where[where], names.word(where, interface)) for where, interface in plan.links),
        site=Site(machines, hosts, links or plan.links, inverse, programs),
    )


def without_seeds(plan: Plan) -> Plan:
    """For what depends on no chance: older kernels and tools know no seed of netem."""

    def seedless(one: Command) -> Command:
        if one.argv[:2] != ("tc", "qdisc") or "seed" not in one.argv:
            return one
        at = one.argv.index("seed")
        return replace(one, argv=one.argv[:at] + one.argv[at + 2 :])

    return replace(
        plan,
        setup=tuple(map(seedless, plan.setup)),
        events=tuple(replace(event, commands=tuple(map(seedless, event.commands))) for event in plan.events),
    )


def part(plan: Mapping[str, Any], machine: str) -> dict[str, Any]:
    """MACHINE's part of PLAN (JSON). Both hosts read their state at every event; other machines do not."""
    is_host = machine in plan["site"]["hosts"].values()

    def here(one: Mapping[str, Any]) -> bool:
        return bool(one["where"] == machine)

    def at_home(one: Mapping[str, Any]) -> dict[str, Any]:
        return {**one, "where": ""}

    def ends(flow: Mapping[str, Any]) -> dict[str, Any]:
        return {role: at_home(flow[role]) if here(flow[role]) else None for role in ("receiver", "sender")}

    flows = [{**flow, **ends(flow)} for flow in plan["flows"]]
    events = [{**event, "commands": [at_home(one) for one in event["commands"] if here(one)]}
              for event in plan["events"]]  # fmt: skip
    return {
        "hosts": [""] if is_host else [],
        "captures": [at_home(one) for one in plan["captures"] if here(one)],
        "flows": [flow for flow in flows if flow["receiver"] or flow["sender"]],
        "events": [event for event in events if is_host or event["commands"]],
        "links": [("", interface) for where, interface in plan["links"] if where == machine],
        "sample_ms": plan["sample_ms"] if is_host else 0,
    }


def merged(plan: Mapping[str, Any], parts: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The machines' results as one agent's, in the laboratory's words. PARTS: by machine."""
    site = plan["site"]
    hosts = {host: parts[machine] for host, machine in site["hosts"].items()}
    queues = {name: iter(found["links"]) for name, found in parts.items()}
    return {
        "flows": [flow_of(flow["name"], parts) for flow in plan["flows"]],
        "events": [event_of(number, hosts) for number in range(common(hosts, "events"))],
        "samples": [sample_of(n, hosts, site["interfaces"]) for n in range(common(hosts, "samples"))],
        "before": {host: found["before"][""] for host, found in hosts.items()},
        "after": {host: found["after"][""] for host, found in hosts.items()},
        "sysctls": {host: found["sysctls"][""] for host, found in hosts.items()},
        "links": [
            {**next(queues[machine]), "where": where, "interface": interface}
            for (where, interface), (machine, _) in zip(site["links"], plan["links"], strict=True)
        ],
        "left_behind": {f"{name} {kind}": n for name, found in parts.items()
                        for kind, n in found["left_behind"].items()},
        "warnings": [f"{name}: {line}" for name, found in parts.items() for line in found["warnings"]],
        "kernel_log": [f"{name}: {line}" for name, found in parts.items() for line in found["kernel_log"]],
        "hz": hosts["host1"]["hz"],
    }  # fmt: skip


def common(hosts: Mapping[str, Mapping[str, Any]], what: str) -> int:
    """How many of them both hosts have: a run may end between one's and the other's."""
    return min(len(found[what]) for found in hosts.values())


def flow_of(name: str, parts: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Both ends of a flow, from wherever they were."""
    ends = [flow for found in parts.values() for flow in found["flows"] if flow["name"] == name]
    return {
        "name": name,
        **{role: next((end[role] for end in ends if end[role]), {}) for role in ("sender", "receiver")},
    }


def event_of(number: int, hosts: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """An event with the path states and T3 counters that each host read at it. NUMBER: from 0."""
    seen = {host: found["events"][number] for host, found in hosts.items()}
    first = seen["host1"]
    return {
        "t": first["t"],
        "label": first["label"],
        "paths": {host: one["paths"][""] for host, one in seen.items()},
        "t3": {host: one["t3"][""] for host, one in seen.items()},
    }


def sample_of(
    number: int, hosts: Mapping[str, Mapping[str, Any]], interfaces: Mapping[str, Mapping[str, str]]
) -> dict[str, Any]:
    """One look at both hosts, which each took at the same moment of the timetable."""
    seen = {host: found["samples"][number] for host, found in hosts.items()}
    return {
        "t": max(one["t"] for one in seen.values()),
        "rx_bytes": {
            host: {interfaces[host].get(name, name): n for name, n in one["rx_bytes"][""].items()}
            for host, one in seen.items()
        },
        "paths": {host: one["paths"][""] for host, one in seen.items() if "" in one["paths"]},
    }
