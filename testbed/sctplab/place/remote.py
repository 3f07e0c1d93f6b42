# SPDX-License-Identifier: GPL-2.0
"""Machines that are there: an inventory says how they are reached, and their addresses.

A run does not change addresses, routes, rules and forwarding; they have to be there, and checks report what
is missing. It sets netem, offloads, sysctls, and MTUs larger than the scenario's, and restores them. A router
shapes; without one a host shapes, on an ifb, the packets that it receives, not those that it sends.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

from sctplab.errors import LabError
from sctplab.paths import MODULES
from sctplab.place.base import Kernel
from sctplab.plan import capabilities, placement
from sctplab.plan.link_commands import REDIRECT, Command, command, ends, middle, subnet
from sctplab.plan.run_plan import Plan, TimedCommands, address_del, carrier_down, make
from sctplab.programs import Tools
from sctplab.remote import inventory, preflight
from sctplab.remote.facts import Survey, survey
from sctplab.spec.model import HOSTS, RunSpec
from sctplab.spec.model import Path as LinkPath

TAKES = {"carrier-up": carrier_down, "address-add": address_del}
MEASURED_BY = ("net.sctp.", "net.ipv4.tcp_")  # what a run may set on a machine


class Remote:
    deterministic = False

    def __init__(self) -> None:
        self.seen: dict[str, Survey] = {}

    def surveyed(self, file: str | None) -> Survey:
        """The survey of the inventory's machines, made once; raises LabError for a finding that is bad."""
        if not file:
            raise LabError("--inventory: expected an inventory file with --place remote")
        if file not in self.seen:
            found = survey(inventory.read(file))
            for one in preflight.bad(found):
                raise LabError(f"{file}: {one.where}: {one.text}")
            self.seen[file] = found
        return self.seen[file]

    def here(self, file: str | None) -> tuple[tuple[str, ...], str]:
        probe = dict(self.surveyed(file).probes["host1"])
        return (capabilities.flavour(probe),), capabilities.base(probe)

    def refuse(self, specs: list[RunSpec]) -> None:
        for spec in specs:
            for lack in preflight.unfit(self.surveyed(spec.inventory), spec):
                raise LabError(f"{spec.scenario}: {spec.inventory}: {lack}")

    def kernel(self, spec: RunSpec) -> Kernel:
        """Host1's, and host2's beside it."""
        probes = self.surveyed(spec.inventory).probes
        near, far = (capabilities.info(dict(probes[host])) for host in HOSTS)
        return Kernel(Path("/"), {**near, "key": f"{near['key']} to {far['key']}", "host2": far})

    def ready(self, spec: RunSpec, kernel: Kernel) -> None:
        pass

    def close(self) -> None:
        pass

    def plan(self, spec: RunSpec, mpflow: str) -> Plan:
        seen = self.surveyed(spec.inventory)
        made = make(spec, mpflow)
        setup = [*mtu_commands(spec, seen), *shaping(spec, seen), *filter(measures, made.setup)]
        links = made.links
        made = replace(made, setup=tuple(setup), events=tuple(undoing(spec, event) for event in made.events))
        if not seen.inventory.routers:
            made = without_middles(made)
        if not any(capabilities.random(one) for one in capabilities.shaped(spec)):
            made = placement.without_seeds(made)
        return placement.placed(made, names(spec, seen), seen.inventory.machines, mpflow, links)

    def command(self, spec: RunSpec, steady: bool, linux: str, folder: str) -> list[str]:
        return ["setpriv", "--pdeathsig", "KILL", sys.executable, "-m", "sctplab.remote.conduct", folder]

    def environment(self, tools: Tools, folder: Path) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": MODULES}


def measures(one: Command) -> bool:
    """Whether the machines need this of the laboratory's setup: all else is theirs."""
    if one.argv[0] == "sysctl":
        return bool(one.where) and one.argv[-1].startswith(MEASURED_BY)
    return one.argv[0] in ("tc", "ethtool") or one.argv[:2] == ("ip", "mptcp")


def undoing(spec: RunSpec, event: TimedCommands) -> TimedCommands:
    """EVENT; for carrier-up and address-add, its commands undo those of carrier-down and address-del."""
    action, name, _ = event.label.split()
    if action not in TAKES:
        return event
    one = next(one for one in spec.events if (one.action, one.path) == (action, name))
    taken = TAKES[action](spec, one, spec.topology.path(name))
    return replace(event, commands=tuple(replace(each, argv=("back", *each.argv)) for each in taken))


def mtu_commands(spec: RunSpec, seen: Survey) -> list[Command]:
    """Interfaces that would take larger packets than the scenario's paths."""
    found = []
    for number, path in enumerate(spec.topology.paths):
        cable = seen.inventory.cables[number]
        for host in HOSTS:
            near, far = ends(spec.topology, path, host)
            there = [(near, seen.facts[host], seen.interface(host, cable, path.family))]
            if cable.router:
                toward = seen.toward(cable, number, host, path.family)
                there.append((far, seen.facts[cable.router], toward))
            found += [
                command(end.where, f"ip link set {end.interface} mtu {path.mtu}")
                for end, facts, interface in there
                if facts["interfaces"][interface]["mtu"] != path.mtu
            ]
    return found


def shaping(spec: RunSpec, seen: Survey) -> list[Command]:
    """Without a router: what a host receives goes through an ifb first, named as the middle's interface."""
    found = []
    for path in spec.topology.paths if not seen.inventory.routers else ():
        for host in HOSTS:
            where, ifb = middle(path), f"to-{host}"
            found += [
                command(where, f"ip link add {ifb} type ifb"),
                command(where, f"ip link set {ifb} mtu {path.mtu}"),
                command(where, f"ip link set {ifb} up"),
                command(host, f"tc qdisc add dev {path.name} ingress"),
                command(host, f"tc filter add dev {path.name} ingress matchall {REDIRECT} ifb-{path.name}"),
            ]
    return found


def without_middles(plan: Plan) -> Plan:
    """Each end of a middle becomes an ifb of the host that it leads to."""

    def moved(one: Command) -> Command:
        if not one.where.startswith("mid-"):
            return one
        host = next(host for host in HOSTS if f"to-{host}" in one.argv)
        ifb = f"ifb-{one.where.removeprefix('mid-')}"
        return Command(host, tuple(ifb if word == f"to-{host}" else word for word in one.argv))

    links = [moved(Command(where, (interface,))) for where, interface in plan.links]
    return replace(
        plan,
        setup=tuple(moved(one) for one in plan.setup if is_there(one)),
        events=tuple(replace(event, commands=tuple(map(moved, event.commands))) for event in plan.events),
        captures=tuple(one for one in plan.captures if one.where in HOSTS),
        links=tuple((one.where, one.argv[0]) for one in links),
    )


def is_there(one: Command) -> bool:
    """A middle that is no machine has no card whose offloads matter."""
    return not (one.where.startswith("mid-") and one.argv[0] == "ethtool")


def names(spec: RunSpec, seen: Survey) -> placement.Names:
    """The names on the machines of the laboratory's namespaces, interfaces and addresses."""
    where = {host: host for host in HOSTS}
    words: dict[str, dict[str, str]] = {"": {}, **{host: {} for host in HOSTS}}
    for number, path in enumerate(spec.topology.paths):
        cable = seen.inventory.cables[number]
        if cable.router:
            where[middle(path)] = cable.router
            words[middle(path)] = {
                f"to-{host}": seen.toward(cable, number, host, path.family) for host in HOSTS
            }
        for host in HOSTS:
            words[host][path.name] = seen.interface(host, cable, path.family)
            words[""] |= addresses(spec, path, seen, host, number)
    return placement.Names(where, words)


def addresses(spec: RunSpec, path: LinkPath, seen: Survey, host: str, number: int) -> dict[str, str]:
    """A host's address on a path, with and without the length of its prefix."""
    cable = seen.inventory.cables[number]
    here = ends(spec.topology, path, host)[0].address
    there = str(cable.address(host, path.family))
    interface = seen.facts[host]["interfaces"][seen.interface(host, cable, path.family)]
    length = subnet(spec.topology, path, host)[1]
    return {here: there, f"{here}/{length}": f"{there}/{interface['addresses'][there]}"}


PLACE = Remote()
