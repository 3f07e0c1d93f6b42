# SPDX-License-Identifier: GPL-2.0
"""The facts of a host: settings, interfaces, associations, routes between their addresses, packet filters."""

from __future__ import annotations

import ctypes
import ipaddress
import json
import os
import re
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path as File
from typing import Any

from pathview.stock import usual

from doctor import expected, filters, sockets
from doctor.host import Module, bans, environment, module_on_disk, output, point_release, text_of
from doctor.probe import Echo, echoes

# States of a path in /proc/net/sctp/remaddr.
INACTIVE, POTENTIALLY_FAILED, ACTIVE, UNCONFIRMED = range(4)
ESTABLISHED = 3  # state of an association in /proc/net/sctp/assocs
# Interfaces that lead to containers and virtual machines of this host. Names tell, kinds do not: the bridge
# br0 may be a host's way out, and so may a container's veth.
INNER = re.compile(r"(docker|virbr|cni|flannel|cali|lxc|lxd|podman|veth)\S*|br-[0-9a-f]{12}")
OTHERS = ("net.core.rmem_max", "net.core.wmem_max", "net.ipv4.ip_no_pmtu_disc")
SYSCTL_D = tuple(File(name) for name in ("/usr/lib/sysctl.d", "/run/sysctl.d", "/etc/sysctl.d"))
MOST_ROUTES = 256  # asked for at most; a host has a few addresses
MOST_ECHOES = 16
# Kinds of interfaces that share the network card of their parent.
ON_A_CARD = ("vlan", "macvlan", "ipvlan")
NONE = Module()
TIME_ERROR = 5  # adjtimex(2): the clock is not synchronized


@dataclass(frozen=True)
class Link:
    """An interface. UP: administratively up and with a carrier; RP_FILTER: in force, 0 to 2.

    CARD: itself, or the interface below a VLAN; SPEED: in Mbit/s, 0 if not known; DUPLICATES: addresses that
    another host has, too. OTHERS: addresses that no router knows. ROUTED: packets of its addresses take other
    interfaces, as those of lo.
    """

    name: str
    up: bool
    addresses: tuple[str, ...]
    networks: tuple[str, ...]
    rp_filter: int
    card: str = ""
    mtu: int = 1500
    speed: int = 0
    duplicates: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    routed: bool = False

    @property
    def inner(self) -> bool:
        """Whether it leads into this host and no further."""
        return bool(INNER.fullmatch(self.name))


@dataclass(frozen=True)
class Path:
    """An address of the peer. STATE: see above.

    RTO: in ticks of the kernel, 0 if not known; MAX_RETRANS: its Path.Max.Retrans, -1 if not known.
    """

    address: str
    state: int
    rto: int = 0
    max_retrans: int = -1


@dataclass(frozen=True)
class Association:
    """IDENTITY: as /proc/net/sctp/assocs has it, "given" for addresses that the user gave.

    MAX_RETRANS: Association.Max.Retrans; RTX: chunks that were sent again; BUFFERS: of the socket, in bytes,
    to send and to receive; HEARTBEAT: their interval in ticks; PORTS: ours, the peer's. All of them are 0 if
    not known.
    """

    identity: str
    local: tuple[str, ...]
    paths: tuple[Path, ...]
    established: bool = True
    max_retrans: int = 0
    rtx: int = 0
    buffers: tuple[int, int] = (0, 0)
    heartbeat: int = 0
    ports: tuple[int, int] = (0, 0)

    @property
    def live(self) -> bool:
        """Whether the kernel has it."""
        return self.identity != "given"


@dataclass(frozen=True)
class Route:
    """The way to a peer's address. LOCAL: the source that is asked for, "" for any, which is then SOURCE.

    DEVICE: "" where there is no way; MTU: of the route, 0 if it has none of its own.
    """

    local: str
    remote: str
    device: str
    source: str = ""
    mtu: int = 0


@dataclass(frozen=True)
class Facts:
    """All that findings.py knows.

    SETTINGS: names without net.sctp.; OTHERS: some of net.core and net.ipv4, by their whole names.
    CONFIGURED: (file, name without net.sctp.) of sysctl.d(5). BANS: lines of modprobe.d(5).
    INVALID, NAT, ICMP: rules of packet filters. ECHOES: only if asked for. HZ: ticks per second, 0 if not
    known. SENT: DATA chunks that left here, of all associations, without those sent again. POINT: point
    release of the kernel. DISK: module to be loaded; LOADED: version of the loaded one. EXPECTED: peers of
    sctp_expect. BALANCED: the first SCTP service of IPVS, unless that takes any packet. WAITING: (identity,
    bytes of a message) of associations whose sockets wait to fill a packet.
    """

    settings: Mapping[str, str] = field(default_factory=dict)
    others: Mapping[str, str] = field(default_factory=dict)
    configured: tuple[tuple[str, str], ...] = ()
    bans: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    associations: tuple[Association, ...] = ()
    routes: tuple[Route, ...] = ()
    invalid: tuple[str, ...] = ()
    nat: tuple[str, ...] = ()
    icmp: tuple[str, ...] = ()
    echoes: tuple[Echo, ...] = ()
    synchronized: bool = True
    hz: int = 0
    sent: int = 0
    point: str = ""
    disk: Module = NONE
    loaded: str = ""
    expected: tuple[expected.Peer, ...] = ()
    balanced: str = ""
    waiting: tuple[tuple[str, int], ...] = ()

    def number(self, name: str) -> int:
        """A setting that is a number."""
        return int(self.settings[name])

    def link_of(self, address: str) -> Link | None:
        """The interface with an address."""
        return self.link_by_address.get(address)

    @cached_property
    def link_by_address(self) -> dict[str, Link]:
        """For many associations; of interfaces with the same address, the first, unless a scope names one."""
        return {
            key: link
            for link in reversed(self.links)
            for address in (*link.addresses, *link.others)
            for key in (address, f"{address}%{link.name}")
        }

    def route(self, local: str, remote: str) -> Route | None:
        return self.route_by_ends.get((local, remote))

    @cached_property
    def route_by_ends(self) -> dict[tuple[str, str], Route]:
        """For many associations."""
        return {(one.local, one.remote): one for one in self.routes}

    def way(self, one: Association, remote: str) -> Route:
        """The route that a path takes, as sctp_v4_get_dst() chooses; without a device if there is none.

        The route for any source, if that is one of the association's; else that of a source on its interface.
        """
        any_source = self.route("", remote)
        if any_source and any_source.device and any_source.source in one.local:
            return any_source
        ways = [way for local in one.local if (way := self.route(local, remote)) and way.device]
        own = [way for way in ways if (link := self.link_of(way.local)) and link.name == way.device]
        return (own or ways or [Route("", remote, "")])[0]


def links(text: str, rp_filters: Mapping[str, int], speeds: Mapping[str, int]) -> tuple[Link, ...]:
    """From `ip -json -details address`."""
    found = []
    for one in json.loads(text or "[]"):
        every = one.get("addr_info", [])
        globals_ = [a for a in every if a.get("scope") == "global"]
        name = one["ifname"]
        kind = one.get("linkinfo", {}).get("info_kind", "")
        routed = one.get("link_type") == "loopback" or kind == "dummy"
        found.append(
            Link(
                name,
                {"UP", "LOWER_UP"} <= set(one.get("flags", [])),
                tuple(a["local"] for a in globals_),
                () if routed else tuple(network(a) for a in globals_),
                max(rp_filters.get("all", 0), rp_filters.get(name, 0)),
                one.get("link", name) if kind in ON_A_CARD else name,
                one.get("mtu", 1500),
                max(speeds.get(name, 0), 0),
                tuple(a["local"] for a in globals_ if a.get("dadfailed")),
                tuple(a["local"] for a in every if a not in globals_),
                routed,
            )
        )
    return tuple(found)


def network(address: Mapping[str, Any]) -> str:
    """'10.1.0.0/16' of an entry of addr_info."""
    return str(ipaddress.ip_network(f"{address['local']}/{address['prefixlen']}", strict=False))


def associations(assocs: str, remaddr: str) -> tuple[Association, ...]:
    """From /proc/net/sctp/assocs and remaddr."""
    known: dict[tuple[str, str], Path] = {}
    for line in remaddr.splitlines()[1:]:
        words = line.split()
        if len(words) >= 8 and words[7].isdigit():
            address, identity, _, rto, most = usual(words[0]), *words[1:5]
            known[identity, address] = Path(address, int(words[7]), int(rto), int(most))
    found = []
    for line in assocs.splitlines()[1:]:
        before, arrow, after = line.partition("<->")
        words = before.split()
        if not arrow or len(words) < 14:
            continue
        identity = words[6]
        remote = [usual(word.lstrip("*")) for word in after.split() if is_address(word.lstrip("*"))]
        # HBINT INS OUTS MAXRT T1X T2X RTXC wmema wmemq sndbuf rcvbuf
        figures = [int(word) for word in after.split() if word.isdigit()]
        figures += [0] * (11 - len(figures))
        found.append(
            Association(
                identity,
                tuple(usual(word.lstrip("*")) for word in words[13:]),
                tuple(known.get((identity, address), Path(address, ACTIVE)) for address in remote),
                words[4] == str(ESTABLISHED),
                figures[3],
                figures[6],
                (figures[9], figures[10]),
                figures[0],
                (int(words[11]), int(words[12])),
            )
        )
    return tuple(found)


def is_address(word: str) -> bool:
    try:
        ipaddress.ip_address(word)
    except ValueError:
        return False
    return True


def version(address: str) -> int:
    return ipaddress.ip_address(address).version


def values(text: str) -> Iterator[Any]:
    """The JSON values in a text, one behind the other."""
    decoder, place = json.JSONDecoder(), 0
    while match := re.compile(r"\s*(?=\S)").match(text, place):
        value, place = decoder.raw_decode(text, match.end())
        yield value


def answered(pairs: Sequence[tuple[str, str]], shown: str, complaints: str) -> tuple[Route, ...]:
    """From the output of `ip -batch`: an answer for each question whose line it does not complain of."""
    failed = {int(number) for number in re.findall(r"Command failed -:(\d+)", complaints)}
    answers = values(shown)
    found = []
    for number, (local, remote) in enumerate(pairs, start=1):
        entries: list[Any] = [] if number in failed else next(answers, [])
        one = entries[0] if entries else {}
        mtu = max((metric.get("mtu", 0) for metric in one.get("metrics", [])), default=0)
        found.append(Route(local, remote, one.get("dev", ""), local or one.get("prefsrc", ""), mtu))
    return tuple(found)


def question(local: str, remote: str) -> str:
    """For `ip -batch`, which takes the scope of an address as an interface."""
    (source, _, _), (to, _, scope) = local.partition("%"), remote.partition("%")
    return f"route get {to}{f' from {source}' if source else ''}{f' oif {scope}' if scope else ''}"


def ask(pairs: Sequence[tuple[str, str]]) -> tuple[Route, ...]:
    """The kernel's routes, with the rules for the source address if there is one; by one program for all."""
    if not pairs:
        return ()
    lines = [question(local, remote) for local, remote in pairs]
    try:
        done = subprocess.run(
            ["ip", "-json", "-force", "-batch", "-"],
            input="\n".join(lines) + "\n",
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return ()
    return answered(pairs, done.stdout, done.stderr)


def routes(found: Sequence[Association]) -> tuple[Route, ...]:
    """From any source and from each, to all addresses of the peer, within each association and family."""
    pairs = {
        (local, path.address)
        for one in found
        for local, path in product(("", *one.local), one.paths)
        if not local or version(local) == version(path.address)
    }
    return ask(sorted(pairs)[:MOST_ROUTES])


def questions(facts: Facts) -> list[tuple[int, str, str, int]]:
    """For probe.py: each path from its source address, and its largest packet."""
    asked = set()
    for way in (facts.way(one, path.address) for one in facts.associations for path in one.paths):
        link = facts.link_of(way.source)
        if link and link.up and way.device == link.name:
            asked.add((version(way.source), way.source, way.remote, way.mtu or link.mtu))
    return sorted(asked)[:MOST_ECHOES]


def configured(folders: Sequence[File]) -> tuple[tuple[str, str], ...]:
    """The net.sctp settings in files of sysctl.d(5)."""
    key = re.compile(r"^\s*-?net[./]sctp[./](\w+)\s*=", re.MULTILINE)
    files = [file for folder in folders for file in sorted(folder.glob("*.conf"))]
    return tuple((str(file), name) for file in files for name in key.findall(text_of(file)))


def settled(proc: File, rto_s: float) -> tuple[Association, ...]:
    """The associations; those that are young are given the time to confirm their paths.

    The first HEARTBEAT of a path leaves within two initial RTOs, and has one for its answer.
    """
    until = time.monotonic() + 3 * rto_s
    while True:
        live = associations(text_of(proc / "net/sctp/assocs"), text_of(proc / "net/sctp/remaddr"))
        waiting = any(path.state == UNCONFIRMED for one in live if one.established for path in one.paths)
        if not waiting or time.monotonic() > until:
            return live
        time.sleep(0.5)


def synchronized() -> bool:
    """Whether something keeps the clock right; true if that is not known."""
    buffer = ctypes.create_string_buffer(1024)  # more than a struct timex; modes 0: read only
    try:
        return bool(ctypes.CDLL(None).adjtimex(buffer) != TIME_ERROR)
    except (OSError, AttributeError):
        return True


def ticks(release: str, boot: File = File("/boot")) -> int:
    """CONFIG_HZ of a kernel, 0 if it is not known."""
    match = re.search(r"^CONFIG_HZ=(\d+)$", text_of(boot / f"config-{release}"), re.MULTILINE)
    return int(match[1]) if match else 0


def sent(counters: str) -> int:
    """DATA chunks that left, from /proc/net/sctp/snmp."""
    return sum(map(int, re.findall(r"^SctpOut(?:Order|Unorder)Chunks\s+(\d+)$", counters, re.MULTILINE)))


def balanced(proc: File) -> str:
    """The first SCTP service in /proc/net/ip_vs, unless any packet may begin a connection there."""
    if text_of(proc / "sys/net/ipv4/vs/sloppy_sctp") != "0":
        return ""
    match = re.search(r"^SCTP\s+(\S+)", text_of(proc / "net/ip_vs"), re.MULTILINE)
    return match[1] if match else ""


def speeds(sys_folder: File) -> dict[str, int]:
    """In Mbit/s, by interface."""
    found = {one.name: text_of(one / "speed") for one in sorted((sys_folder / "class/net").glob("*"))}
    return {name: int(speed) for name, speed in found.items() if speed.isdigit()}


def packet_filters(proc: File, sys_folder: File) -> tuple[filters.Rule, ...]:
    """The rules, if there can be any: nft and iptables-save would load the modules that they look for."""
    there = (proc / "sys/net/netfilter/nf_conntrack_max", sys_folder / "module/nf_tables")
    if not any(path.exists() for path in there):
        return ()
    return filters.rules(output("nft", "list", "ruleset"), output("iptables-save"))


def given(local: Sequence[str], remote: Sequence[str]) -> tuple[Association, ...]:
    """The association that the user wants to know of, () for none."""
    if not local and not remote:
        return ()
    paths = tuple(Path(address, ACTIVE) for address in remote)
    return (Association("given", tuple(local), paths),)


def look(
    local: Sequence[str],
    remote: Sequence[str],
    probing: bool = False,
    peers: tuple[expected.Peer, ...] = (),
    proc: File = File("/proc"),
    sys_folder: File = File("/sys"),
) -> Facts:
    """Gather the facts, of these addresses beside those of all associations.

    PROBING: send echo requests. PEERS: that are expected.
    """
    conf = proc / "sys/net/ipv4/conf"
    rp_filters = {one.name: int(text_of(one / "rp_filter") or 0) for one in sorted(conf.glob("*"))}
    settings = {one.name: text_of(one) for one in sorted((proc / "sys/net/sctp").glob("*"))}
    live = settled(proc, int(settings.get("rto_initial", 0)) / 1000)
    every = (*given(local, remote), *live)
    rules, kernel = packet_filters(proc, sys_folder), os.uname()
    found = Facts(
        settings=settings,
        others={name: text_of(proc / "sys" / name.replace(".", "/")) for name in OTHERS},
        configured=configured(SYSCTL_D),
        bans=bans(output("modprobe", "--showconfig"), "sctp", "sctp_diag"),
        links=links(output("ip", "-json", "-details", "address"), rp_filters, speeds(sys_folder)),
        associations=every,
        routes=routes(every),
        invalid=filters.invalid(rules),
        nat=filters.nat(rules),
        icmp=filters.icmp(rules),
        synchronized=synchronized(),
        hz=ticks(kernel.release),
        sent=sent(text_of(proc / "net/sctp/snmp")),
        point=point_release(kernel.release, kernel.version),
        disk=module_on_disk(),
        loaded=text_of(sys_folder / "module/sctp/version"),
        expected=peers,
        balanced=balanced(proc),
        waiting=sockets.waiting() if settings else (),
    )
    return replace(found, echoes=echoes(questions(found))) if probing else found
