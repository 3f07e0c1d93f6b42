# SPDX-License-Identifier: GPL-2.0
"""From a topology to the ip, tc, ethtool and sysctl commands that make it. Pure; golden tests.

    host1 [path1] ---- [to-host1] mid-path1 [to-host2] ---- [path1] host2
    host1 [path2] ---- [to-host1] mid-path2 [to-host2] ---- [path2] host2

Two hosts and one middle per path are network namespaces, the lines between them veth pairs. A host's
interface bears the path's name. Path p has 10.p.1.0/24 (host1, .1 and its middle, .254) and
10.p.2.0/24 (host2), or fd00:p:1::/64 and fd00:p:2::/64.

Paths through a bottleneck go on from their middles through one more namespace, which passes frames on as they
are: tc redirects what a path brings to one end of a veth pair, whose netem is the queue that all share, and
at the other end to the path whose host or middle the frame is for.

    mid-path1 [to-host2] ---- [path1-1]                    [path1-2] ---- [path1] host2
                                       [forward = reverse]                                 in neck-NAME
    mid-path2 [to-host2] ---- [path2-1]                    [path2-2] ---- [path2] host2

Decisions
- Shaping is netem on the middle's egress, never on the sender: a drop in the sender's own queue is told to
  the sender, a drop in the network is not.
- One netem does rate, delay, loss and queue. Its limit counts the packets that wait for the rate *and* those
  on the way (the delay line), so queue_pkts must exceed rate x delay by the router queue that is meant.
  Its rate counts the Ethernet header (14 bytes).
- Jitter does not reorder: a netem with a rate never lets a packet leave before the one it queued earlier.
  reorder_pct does: that share of the packets passes both the delay line and the rate.
- Segmentation offloads are off (ethtool, and gso_max_segs 1), or one netem "packet" would hold several;
  checksum offload too, so that captures hold real checksums. Topology.offload says what else may be.
- Neighbours are static, duplicate address detection is off: no packet of theirs is ever lost, or captured.
- Source-based routing: what leaves from a path's address takes that path (one table per path).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from sctplab.spec.model import HOSTS, Bottleneck, Direction, Path, Topology, derive_seed

REDIRECT = "action mirred egress redirect dev"
NETWORK_OFFLOADS = ("tx", "tso", "gso", "gro")
HOST_OFFLOADS = ("tx-sctp-segmentation",)
NO_IPV6 = ("net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")
QUIET_IPV6 = (
    "net.ipv6.conf.all.accept_dad=0",
    "net.ipv6.conf.default.accept_dad=0",
    "net.ipv6.conf.default.router_solicitations=0",
    "net.ipv6.conf.all.keep_addr_on_down=1",
)


@dataclass(frozen=True)
class Command:
    """ARGV run in the namespace WHERE ("" = outside of all)."""

    where: str
    argv: tuple[str, ...]


@dataclass(frozen=True)
class End:
    """One end of a line between a host and a middle."""

    where: str
    interface: str
    address: str
    mac: str


def command(where: str, line: str) -> Command:
    """A command from words without spaces."""
    return Command(where, tuple(line.split()))


def middle(path: Path) -> str:
    return f"mid-{path.name}"


def neck(one: Bottleneck) -> str:
    return f"neck-{one.name}"


def host_number(host: str) -> int:
    return 1 + HOSTS.index(host)


def subnet(topology: Topology, path: Path, host: str) -> tuple[str, int]:
    """(prefix that an end's number is appended to, prefix length)."""
    p, h = topology.number(path.name), host_number(host)
    return (f"10.{p}.{h}.", 24) if path.family == "ipv4" else (f"fd00:{p}:{h}::", 64)


def network(topology: Topology, path: Path, host: str) -> str:
    prefix, length = subnet(topology, path, host)
    return f"{prefix}{'0' if path.family == 'ipv4' else ''}/{length}"


def ends(topology: Topology, path: Path, host: str) -> tuple[End, End]:
    """The line between HOST and the middle of PATH: the host's end, the middle's end."""
    prefix = subnet(topology, path, host)[0]
    p, h = topology.number(path.name), host_number(host)
    return (
        End(host, path.name, f"{prefix}1", f"02:00:00:{p:02x}:{h:02x}:01"),
        End(middle(path), f"to-{host}", f"{prefix}{'254' if path.family == 'ipv4' else 'fe'}",
            f"02:00:00:{p:02x}:{h:02x}:fe"),
    )  # fmt: skip


def address(topology: Topology, host: str, path_name: str) -> str:
    """HOST's address on the path."""
    return ends(topology, topology.path(path_name), host)[0].address


def namespaces(topology: Topology) -> list[str]:
    necks = (neck(one) for one in topology.shared)
    return [*HOSTS, *(middle(path) for path in topology.paths), *necks]


def egress(path: Path | Bottleneck, direction: str) -> tuple[str, str]:
    """(namespace, interface) whose netem shapes this direction."""
    if isinstance(path, Bottleneck):
        return neck(path), direction
    return middle(path), "to-host2" if direction == "forward" else "to-host1"


def build_commands(topology: Topology, seed: int) -> list[Command]:
    """Everything from nothing to two hosts that reach each other over shaped paths."""
    commands = [command("", f"ip netns add {name}") for name in namespaces(topology)]
    commands += [one for path in topology.paths for host in HOSTS for one in line(topology, path, host)]
    for host in HOSTS:
        commands += namespace_start(topology, host)
        for path in topology.paths:
            commands += host_end(topology, path, host)
    for path in topology.paths:
        commands += namespace_start(topology, middle(path))
        commands += middle_ends(topology, path)
        for direction in ("forward", "reverse"):
            commands.append(netem("add", path, direction, getattr(path, direction), seed))
    for one in topology.shared:
        commands += neck_commands(topology, one, seed)
    return commands + holes(topology) + offload_commands(topology)


def line(topology: Topology, path: Path, host: str) -> list[Command]:
    """The veth pair between a host and a middle; two of them where a bottleneck is on host2's side."""
    near, far = ends(topology, path, host)
    here, there = f"{near.interface} netns {near.where}", f"{far.interface} netns {far.where}"
    here, there = f"{here} address {near.mac}", f"{there} address {far.mac}"
    shared = topology.bottleneck(path.name)
    if shared is None or host == HOSTS[0]:
        return [pair(topology, path.mtu, here, there)]
    ports = {end: f"{port(path, end)} netns {neck(shared)}" for end in HOSTS}
    return [pair(topology, path.mtu, here, ports[host]), pair(topology, path.mtu, ports[HOSTS[0]], there)]


def pair(topology: Topology, mtu: int, near: str, far: str) -> Command:
    """A veth pair; NEAR and FAR: name, namespace and the address of each end."""
    common = f"mtu {mtu}" + (" gso_max_segs 1" if topology.offload != "whole" else "")
    return command("", f"ip link add {near} {common} type veth peer name {far} {common}")


def port(path: Path, host: str) -> str:
    """The bottleneck's interface towards a host's end of the path."""
    return f"{path.name}-{host_number(host)}"


def cable(topology: Topology, path: Path, host: str) -> tuple[str, str]:
    """(namespace, interface) of the other end of the host's line."""
    shared = topology.bottleneck(path.name)
    if shared is None or host == HOSTS[0]:
        return middle(path), f"to-{host}"
    return neck(shared), port(path, host)


def neck_commands(topology: Topology, shared: Bottleneck, seed: int) -> list[Command]:
    """A bottleneck from its ports on: no addresses, no IP, two queues."""
    where = neck(shared)
    through = [topology.path(name) for name in shared.paths]
    mtu = max(path.mtu for path in through)
    commands = [command(where, f"sysctl -q -w {key}") for key in NO_IPV6]
    commands.append(pair(topology, mtu, f"forward netns {where}", f"reverse netns {where}"))
    names = ["forward", "reverse", *(port(path, host) for path in through for host in HOSTS)]
    for name in names:
        commands.append(command(where, f"ip link set {name} up"))
        commands.append(command(where, f"tc qdisc add dev {name} ingress"))
    for path in through:
        commands += steering(topology, path, where)
    queues = (netem("add", shared, way, getattr(shared, way), seed) for way in ("forward", "reverse"))
    return [*commands, *queues]


def steering(topology: Topology, path: Path, where: str) -> Iterator[Command]:
    """Packets of a path enter the queue of their direction; after it, the receiver's MAC selects the port."""
    near, far = ends(topology, path, HOSTS[1])
    for way, came, left, to in (("forward", HOSTS[0], HOSTS[1], near), ("reverse", HOSTS[1], HOSTS[0], far)):
        behind = "reverse" if way == "forward" else "forward"
        filters = "protocol all prio 1"
        yield command(
            where, f"tc filter add dev {port(path, came)} ingress {filters} matchall {REDIRECT} {way}"
        )
        yield command(
            where,
            f"tc filter add dev {behind} ingress {filters} flower dst_mac {to.mac}"
            f" {REDIRECT} {port(path, left)}",
        )


def namespace_start(topology: Topology, name: str) -> list[Command]:
    keys = ["net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.default.rp_filter=0"]
    if name not in HOSTS:
        keys += ["net.ipv4.ip_forward=1"]
    if all(path.family == "ipv4" for path in topology.paths):
        keys += NO_IPV6
    else:
        keys += QUIET_IPV6 + (() if name in HOSTS else ("net.ipv6.conf.all.forwarding=1",))
    return [command(name, f"sysctl -q -w {key}") for key in keys] + [command(name, "ip link set lo up")]


def up(topology: Topology, path: Path, near: End, far: End, host: str) -> Iterator[Command]:
    """Address, interface and neighbour of one end; may be repeated after the address was deleted."""
    length = subnet(topology, path, host)[1]
    nodad = "" if path.family == "ipv4" else " nodad"
    yield command(near.where, f"ip addr replace {near.address}/{length} dev {near.interface}{nodad}")
    yield command(near.where, f"ip link set {near.interface} up")
    neighbour = f"{far.address} lladdr {far.mac} dev {near.interface} nud permanent"
    yield command(near.where, f"ip neigh replace {neighbour}")


def host_end(topology: Topology, path: Path, host: str) -> list[Command]:
    """A host's end of a path with its routes and its rule."""
    near = ends(topology, path, host)[0]
    ip = "ip" if path.family == "ipv4" else "ip -6"
    rule = f"{ip} rule add from {near.address} table {100 + topology.number(path.name)}"
    return [*host_address(topology, path, host), command(host, rule)]


def host_address(topology: Topology, path: Path, host: str) -> list[Command]:
    """Commands that make a host's address on a path usable; the inverse of deleting that address."""
    near, far = ends(topology, path, host)
    other = HOSTS[1 - HOSTS.index(host)]
    table = 100 + topology.number(path.name)
    via = f"via {far.address} dev {near.interface}"
    return [
        *up(topology, path, near, far, host),
        command(host, f"ip route replace {network(topology, path, other)} {via} src {near.address}"),
        command(host, f"ip route replace default {via} src {near.address} table {table}"),
    ]


def middle_ends(topology: Topology, path: Path) -> list[Command]:
    commands: list[Command] = []
    for host in HOSTS:
        near, far = ends(topology, path, host)
        commands += up(topology, path, far, near, host)
    return commands


def netem(
    verb: str, path: Path | Bottleneck, direction: str, values: Direction, seed: int, purpose: str = "netem"
) -> Command:
    """The qdisc of one direction. `change` with all values keeps the packets that are in it."""
    where, interface = egress(path, direction)
    own = values.seed if values.seed is not None else derive_seed(seed, purpose, path.name, direction)
    words = f"tc qdisc {verb} dev {interface} root netem limit {values.queue_pkts}"
    words += f" delay {values.delay_ms:g}ms" + (f" {values.jitter_ms:g}ms" if values.jitter_ms else "")
    if values.gemodel:
        model = values.gemodel
        words += f" loss gemodel {model.p:g}% {model.r:g}% {model.one_h:g}% {model.one_k:g}%"
    else:
        words += f" loss random {values.loss_pct:g}%"
    if values.ecn:
        words += " ecn"
    if values.reorder_pct:
        words += f" reorder {values.reorder_pct:g}%"
    return command(where, f"{words} rate {round(values.rate_mbit * 1e6)}bit seed {own}")


def hole(path: Path, direction: str, longest_b: int) -> Command:
    """Packets that are longer are lost without a word, as where a router has a smaller MTU."""
    where, interface = egress(path, direction)
    rule = f"oifname {interface} meta length > {longest_b} drop"
    words = (
        f"add table inet {direction}; delete table inet {direction}; add table inet {direction};"
        f" add chain inet {direction} pass {{ type filter hook forward priority 0; }};"
        f" add rule inet {direction} pass {rule}"
    )
    return Command(where, ("nft", words))


def holes(topology: Topology) -> list[Command]:
    """Those that are there from the start."""
    found = [
        (path, way, getattr(path, way).hole_b) for path in topology.paths for way in ("forward", "reverse")
    ]
    return [hole(path, way, longest_b) for path, way, longest_b in found if longest_b is not None]


def offload_commands(topology: Topology) -> list[Command]:
    if topology.offload == "whole":
        return []
    names = NETWORK_OFFLOADS + (HOST_OFFLOADS if topology.offload == "none" else ())
    off = " ".join(f"{name} off" for name in names)
    lines = [ends(topology, path, host) for path in topology.paths for host in HOSTS]
    found = [(end.where, end.interface) for line in lines for end in line]
    for one in topology.shared:
        ports = [port(topology.path(name), host) for name in one.paths for host in HOSTS]
        found += [(neck(one), name) for name in ("forward", "reverse", *ports)]
    return [command(where, f"ethtool -K {interface} {off}") for where, interface in found]


def interfaces(topology: Topology) -> list[tuple[str, str]]:
    """(namespace, interface) of every end, for captures and counters."""
    lines = [ends(topology, path, host) for path in topology.paths for host in HOSTS]
    return [(end.where, end.interface) for line in lines for end in line]


def pasteable(one: Command) -> str:
    """The command as a person would type it."""
    prefix = ("ip", "netns", "exec", one.where) if one.where else ()
    return shlex.join((*prefix, *one.argv))
