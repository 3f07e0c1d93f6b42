# SPDX-License-Identifier: GPL-2.0
"""Findings about machines from their survey, one line each. Pure.

bad: no run starts. note: something that may change the measurements. ok: checked and right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sctplab.plan import capabilities
from sctplab.remote.facts import Survey, questions
from sctplab.remote.inventory import Cable
from sctplab.spec.model import HOSTS, RunSpec

CLOCK_ERROR_S = 0.02  # of the offset between two clocks, measured over the control connection
STEADY_CLOCKS = ("tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page")


@dataclass(frozen=True)
class Finding:
    level: str  # ok, note, bad
    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.level:5}{self.where}: {self.text}"


def findings(seen: Survey) -> list[Finding]:
    """All of them, machine by machine and then path by path."""
    found: list[Finding] = []
    for name in seen.facts:
        found += [*kernel(seen, name), *control(seen, name), *filters(seen, name), *clocks(seen, name)]
    for number, family in questions(seen.inventory):
        found += path(seen, number, family)
    return [*found, *distinct(seen)]


def bad(seen: Survey) -> Iterator[Finding]:
    return (one for one in findings(seen) if one.level == "bad")


def kernel(seen: Survey, name: str) -> Iterator[Finding]:
    probe = seen.probes[name]
    if name in HOSTS:
        if not probe["settings"]:
            yield Finding("bad", name, capabilities.no_sctp(dict(probe)))
        else:
            kind = f"{capabilities.flavour(dict(probe))}, {len(probe['settings'])} settings net.sctp"
            yield Finding("ok", name, f"kernel {probe['release']}, sctp is there, {kind}")
    shapes = name not in HOSTS or not seen.inventory.routers
    if shapes:
        for lack in capabilities.middle_lacks(dict(probe), []):
            yield Finding("bad", name, lack)
        if not probe["netem_seed"]:
            yield Finding(
                "note", name, f"netem of {probe['release']} or its tc takes no seed, so no random losses"
            )
    if shapes and name in HOSTS and not probe["ifb"]:
        yield Finding("bad", name, f"the kernel {probe['release']} has no ifb, which shapes received packets")
    if probe["clocksource"] not in STEADY_CLOCKS:
        yield Finding("note", name, f"the clock source is {probe['clocksource'] or 'unknown'}, slow to read")


def control(seen: Survey, name: str) -> Iterator[Finding]:
    """The connection that directs the run must not go through what the run shapes and cuts."""
    facts = seen.facts[name]
    if not facts["ssh"]:
        return
    server = facts["ssh"][2]
    over = [dev for dev, one in facts["interfaces"].items() if server in one["addresses"]]
    over.append(facts["way_back"].get("dev", ""))
    tested = {dev for dev in tested_interfaces(seen, name) if dev in over}
    if tested:
        text = f"the connection to {server} runs over the tested interface {', '.join(sorted(tested))}"
        yield Finding("bad", name, f"{text}; reach the machine by another address")
    else:
        yield Finding("ok", name, f"reached over {over[0] or 'no tested interface'}, which is not tested")


def tested_interfaces(seen: Survey, name: str) -> set[str]:
    """The machine's interfaces that a run shapes, cuts or sends over."""
    found = set()
    for number, family in questions(seen.inventory):
        cable = seen.inventory.cables[number]
        if name in HOSTS:
            found.add(seen.interface(name, cable, family))
        elif name == cable.router:
            found |= {seen.toward(cable, number, host, family) for host in HOSTS}
    return found - {""}


def filters(seen: Survey, name: str) -> Iterator[Finding]:
    facts = seen.facts[name]
    dropping = [line for line in facts["filters"] if "policy drop" in line]
    if facts["filters"]:
        how = f"{len(facts['filters'])} chains, {len(dropping)} of them drop packets that no rule accepts"
        yield Finding("note", name, f"a packet filter is active ({how}); it must pass SCTP, protocol 132")
    if facts["conntrack"]:
        text = "connection tracking is on; it may drop SCTP that changes its path, see nf_conntrack_sctp"
        yield Finding("note", name, text)


def clocks(seen: Survey, name: str) -> Iterator[Finding]:
    ahead, error = seen.clocks[name]
    kept = "synchronised by a daemon" if seen.facts[name]["clock"]["kept"] else "not synchronised"
    text = f"clock {ahead * 1e3:+.3f} ms from ours, error {error * 1e3:.3f} ms, {kept}"
    if name in HOSTS and error > CLOCK_ERROR_S:
        yield Finding("bad", name, f"{text}; expected {CLOCK_ERROR_S * 1e3:g} ms at most")
    else:
        yield Finding("ok" if seen.facts[name]["clock"]["kept"] else "note", name, text)


def path(seen: Survey, number: int, family: str) -> Iterator[Finding]:
    cable = seen.inventory.cables[number]
    label = f"path {number + 1} {family}"
    missing = [host for host in HOSTS if not seen.interface(host, cable, family)]
    for host in missing:
        yield Finding("bad", label, no_address(seen, host, cable, family))
    if missing:
        return
    here = seen.interface("host1", cable, family)
    if here != cable.interface:
        address = cable.address("host1", family)
        yield Finding("bad", label, f"host1 has {address} on {here}, not on {cable.interface} as NETIF says")
    for host in HOSTS:
        yield from host_end(seen, number, family, host, label)
    if cable.router:
        yield from router_ends(seen, number, family, label)
    yield answer(seen, number, family, label)


def no_address(seen: Survey, host: str, cable: Cable, family: str) -> str:
    address = cable.address(host, family)
    if host == "host1" and cable.interface not in seen.facts[host]["interfaces"]:
        return f"host1 has no interface {cable.interface}; see: ip link"
    dev = cable.interface if host == "host1" else "INTERFACE"
    return f"{host} has no address {address}; add it: ip addr add {address}/LENGTH dev {dev}"


def host_end(seen: Survey, number: int, family: str, host: str, label: str) -> Iterator[Finding]:
    """The routes from a host to the other, and the interface."""
    cable = seen.inventory.cables[number]
    dev = seen.interface(host, cable, family)
    near = cable.address(host, family)
    far = cable.address(HOSTS[1 - HOSTS.index(host)], family)
    ways = seen.facts[host]["paths"][questions(seen.inventory).index((number, family))]
    bound, free = ways["bound"].get("dev"), ways["free"].get("dev")
    table = 101 + number
    if bound != dev:
        rule = (
            f"ip rule add from {near} table {table}; ip route add default via GATEWAY dev {dev} table {table}"
        )
        text = f"{host}: packets from {near} to {far} leave by {bound or 'no interface'}, not {dev}; {rule}"
        yield Finding("bad", label, text)
    if free != dev:
        text = f"{host}: packets to {far} leave by {free or 'no interface'}, not {dev}"
        yield Finding("bad", label, f"{text}; ip route add {far} via GATEWAY dev {dev} src {near}")
    if bound == free == dev:
        yield Finding("ok", label, f"{host}: {near} reaches {far} by {dev}")
    one = seen.facts[host]["interfaces"][dev]
    yield from interface(label, host, dev, one)
    if one["rp_filter"] == "1" and family == "ipv4":
        text = f"{host}: rp_filter of {dev} is strict and drops packets from another path's interface"
        yield Finding("note", label, f"{text}; sysctl net.ipv4.conf.{dev}.rp_filter=2")


def interface(label: str, name: str, dev: str, one: Mapping[str, Any]) -> Iterator[Finding]:
    if one["state"] not in ("UP", "UNKNOWN"):
        yield Finding("bad", label, f"{name}: {dev} is {one['state']}; plug it in, or: ip link set {dev} up")
    if one["qdiscs"] and set(one["qdiscs"]) & {"netem", "ingress", "clsact", "htb", "tbf"}:
        text = f"{name}: {dev} has its own qdisc ({', '.join(one['qdiscs'])})"
        yield Finding("bad", label, f"{text}; remove it: tc qdisc del dev {dev} root")
    driver = f"driver {one['driver']}" if one["driver"] else "no driver of a card"
    if one["offloads"]:
        text = f"{name}: {dev}, {driver}: offloads that a run may turn off: {', '.join(one['offloads'])}"
        yield Finding("note", label, text)


def router_ends(seen: Survey, number: int, family: str, label: str) -> Iterator[Finding]:
    cable = seen.inventory.cables[number]
    for host in HOSTS:
        dev = seen.toward(cable, number, host, family)
        if not dev:
            text = f"{cable.router} has no route to {cable.address(host, family)} of {host}; ip route add ..."
            yield Finding("bad", label, text)
            continue
        one = seen.facts[cable.router]["interfaces"][dev]
        key = "forwarding" if family == "ipv4" else "forwarding6"
        if one[key] != "1":
            name = "net.ipv4.ip_forward" if family == "ipv4" else "net.ipv6.conf.all.forwarding"
            yield Finding("bad", label, f"{cable.router} does not forward from {dev}; sysctl -w {name}=1")
        yield from interface(label, cable.router, dev, one)


def answer(seen: Survey, number: int, family: str, label: str) -> Finding:
    size, answer = seen.pings[number, family]
    if isinstance(answer, str):
        return Finding("bad", label, f"{size} bytes, not fragmented, from host1 to host2: {answer}")
    return Finding("ok", label, f"{size} bytes pass unfragmented, round trip {answer:.3f} ms")


def distinct(seen: Survey) -> Iterator[Finding]:
    """No two paths share an interface: what one is cut by would cut the other."""
    for name in seen.facts:
        used: dict[str, int] = {}
        for number, family in questions(seen.inventory):
            cable = seen.inventory.cables[number]
            if name in HOSTS:
                ends = {seen.interface(name, cable, family)}
            elif name == cable.router:
                ends = {seen.toward(cable, number, host, family) for host in HOSTS}
            else:
                continue
            for dev in ends - {""}:
                if used.setdefault(dev, number) != number:
                    text = f"paths {used[dev] + 1} and {number + 1} share {dev}; each needs its own"
                    yield Finding("bad", name, text)


def unfit(seen: Survey, spec: RunSpec) -> Iterator[str]:
    """Why this run cannot happen on these machines."""
    have, file = len(seen.inventory.cables), seen.inventory.file
    yield from capabilities.no_bottleneck(spec)
    if len(spec.topology.paths) > have:
        yield f"{len(spec.topology.paths)} paths, but {file} has {have}; add NETIF_{have + 1}"
        return
    yield from unfit_hosts(seen, spec)
    for name in seen.inventory.routers or HOSTS:
        for lack in capabilities.middle_lacks(dict(seen.probes[name]), capabilities.shaped(spec)):
            yield f"{name}: {lack}"
    for event in spec.events:
        if event.action.startswith("carrier") and not seen.inventory.routers:
            yield f"{event.action} needs a router, whose card goes down; add ROUTER_TYPE and ROUTER_ARGS"
    for number, one in enumerate(spec.topology.paths):
        yield from unfit_path(seen, number, one.family, one.mtu)


def unfit_hosts(seen: Survey, spec: RunSpec) -> Iterator[str]:
    if spec.build != "plain":
        yield f"--build {spec.build}: the machines' running kernels are used; leave it out"
    for host, (flavour, base) in zip(HOSTS, kernels_of(spec), strict=True):
        probe = dict(seen.probes[host])
        for lack in capabilities.host_lacks(probe, spec, host, flavour):
            yield f"{host}: {lack}"
        if base != capabilities.base(probe):
            option = "--base" if host == "host1" else "--peer"
            yield f"{host}: its kernel is {probe['release']}, not {base}; set {option} accordingly"


def kernels_of(spec: RunSpec) -> tuple[tuple[str, str], tuple[str, str]]:
    """(flavour, base) of host1 and of host2."""
    near = (spec.kernel, spec.base)
    flavour, _, base = (spec.peer or "-".join(near)).partition("-")
    return near, (flavour, base)


def unfit_path(seen: Survey, number: int, family: str, mtu: int) -> Iterator[str]:
    cable = seen.inventory.cables[number]
    label = f"path {number + 1}"
    if (number, family) not in questions(seen.inventory):
        yield f"{label}: {seen.inventory.file} has no {family} addresses for it"
        return
    ends = [(host, seen.interface(host, cable, family)) for host in HOSTS]
    if cable.router:
        ends += [(cable.router, seen.toward(cable, number, host, family)) for host in HOSTS]
    for name, dev in ends:
        if (here := seen.facts[name]["interfaces"][dev]["mtu"]) < mtu:
            yield f"{label}: mtu {mtu}, but {dev} of {name} has {here}; ip link set {dev} mtu {mtu}"
