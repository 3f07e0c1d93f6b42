# SPDX-License-Identifier: GPL-2.0
"""The facts of a host: settings, interfaces, associations, routes between their addresses, packet filters."""

from __future__ import annotations

import ipaddress
import json
import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path as File
from typing import Any

# States of a path in /proc/net/sctp/remaddr.
INACTIVE, POTENTIALLY_FAILED, ACTIVE, UNCONFIRMED = range(4)
ESTABLISHED = 3  # state of an association in /proc/net/sctp/assocs
# Interfaces that lead to containers and virtual machines of this host. Names tell, kinds do not: the bridge
# br0 may be a host's way out, and so may a container's veth.
INNER = re.compile(r"(docker|virbr|cni|flannel|cali|lxc|lxd|podman|veth)\S*|br-[0-9a-f]{12}")
OTHERS = ("net.core.rmem_max", "net.core.wmem_max", "net.ipv4.ip_no_pmtu_disc")
SYSCTL_D = tuple(File(name) for name in ("/usr/lib/sysctl.d", "/run/sysctl.d", "/etc/sysctl.d"))
MOST_ROUTES = 256  # asked for at most; a host has a few addresses


@dataclass(frozen=True)
class Link:
    """An interface. UP: administratively up and with a carrier; RP_FILTER: in force, 0 to 2."""

    name: str
    up: bool
    addresses: tuple[str, ...]
    networks: tuple[str, ...]
    rp_filter: int

    @property
    def inner(self) -> bool:
        """Whether it leads into this host and no further."""
        return bool(INNER.fullmatch(self.name))


@dataclass(frozen=True)
class Path:
    """An address of the peer. STATE: see above; HEARTBEATS: whether the program lets them be sent."""

    address: str
    state: int
    heartbeats: bool = True


@dataclass(frozen=True)
class Association:
    """IDENTITY: as /proc/net/sctp/assocs has it, "given" for addresses that the user gave."""

    identity: str
    local: tuple[str, ...]
    paths: tuple[Path, ...]
    established: bool = True


@dataclass(frozen=True)
class Route:
    """The way to a peer's address. LOCAL: the source that is asked for, "" for any, which is then SOURCE.

    DEVICE: "" where there is no way.
    """

    local: str
    remote: str
    device: str
    source: str = ""


@dataclass(frozen=True)
class Facts:
    """All that findings.py knows.

    SETTINGS: names without net.sctp.; OTHERS: some of net.core and net.ipv4, by their whole names.
    CONFIGURED: (file, name without net.sctp.) of sysctl.d(5). BANS: lines of modprobe.d(5).
    INVALID, NAT: lines of packet filters.
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

    def number(self, name: str) -> int:
        """A setting that is a number."""
        return int(self.settings[name])

    def link_of(self, address: str) -> Link | None:
        """The interface with an address."""
        return next((link for link in self.links if address in link.addresses), None)

    def route(self, local: str, remote: str) -> Route | None:
        return next((one for one in self.routes if (one.local, one.remote) == (local, remote)), None)


def output(*command: str) -> str:
    """What a program prints, "" when it fails or is not there; sbin is not in everybody's PATH."""
    env = {**os.environ, "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return "" if done.returncode else done.stdout


def text_of(path: File) -> str:
    """The content of a small file, "" when it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def links(text: str, rp_filters: Mapping[str, int]) -> tuple[Link, ...]:
    """From `ip -json address`; loopback is left out."""
    found = []
    for one in json.loads(text or "[]"):
        if one.get("link_type") == "loopback":
            continue
        globals_ = [a for a in one.get("addr_info", []) if a.get("scope") == "global"]
        name = one["ifname"]
        found.append(
            Link(
                name,
                {"UP", "LOWER_UP"} <= set(one.get("flags", [])),
                tuple(a["local"] for a in globals_),
                tuple(network(a) for a in globals_),
                max(rp_filters.get("all", 0), rp_filters.get(name, 0)),
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
            known[words[1], words[0]] = Path(words[0], int(words[7]), words[2] != "0")
    found = []
    for line in assocs.splitlines()[1:]:
        before, arrow, after = line.partition("<->")
        words = before.split()
        if not arrow or len(words) < 14:
            continue
        identity = words[6]
        remote = [word.lstrip("*") for word in after.split() if is_address(word.lstrip("*"))]
        paths = tuple(known.get((identity, address), Path(address, ACTIVE)) for address in remote)
        local = tuple(word.lstrip("*") for word in words[13:])
        found.append(Association(identity, local, paths, words[4] == str(ESTABLISHED)))
    return tuple(found)


def is_address(word: str) -> bool:
    try:
        ipaddress.ip_address(word)
    except ValueError:
        return False
    return True


def version(address: str) -> int:
    return ipaddress.ip_address(address).version


def route(local: str, remote: str) -> Route:
    """What the kernel would do, with the rules for this source address if there is one."""
    source = ["from", local] if local else []
    found = json.loads(output("ip", "-json", "route", "get", remote, *source) or "[{}]")[0]
    return Route(local, remote, found.get("dev", ""), local or found.get("prefsrc", ""))


def routes(found: Sequence[Association]) -> tuple[Route, ...]:
    """From any source and from each, to all addresses of the peer, within each association and family."""
    pairs = {
        (local, path.address)
        for one in found
        for local, path in product(("", *one.local), one.paths)
        if not local or version(local) == version(path.address)
    }
    return tuple(route(*pair) for pair in sorted(pairs)[:MOST_ROUTES])


def invalid(rules: str) -> tuple[str, ...]:
    """Lines of nft and iptables-save that drop what connection tracking calls INVALID."""
    nft = re.compile(r"ct state (\S*,)?\s*\{?[^}]*\binvalid\b.*\b(drop|reject)\b")
    iptables = re.compile(r"--(ct)?state \S*INVALID\S* .*-j (DROP|REJECT)")
    return lines_of(rules, lambda line: bool(nft.search(line) or iptables.search(line)))


def lines_of(rules: str, wanted: Callable[[str], bool]) -> tuple[str, ...]:
    return tuple(line for line in map(str.strip, rules.splitlines()) if wanted(line))


def nat(rules: str) -> tuple[str, ...]:
    """Lines of nft and iptables-save that change addresses of packets that leave."""
    told = re.compile(r"\b(masquerade|snat to)\b|-j (MASQUERADE|SNAT)\b")
    # A rule for the addresses of containers does not concern the host's own.
    return lines_of(rules, lambda line: bool(told.search(line)) and not re.search(r"saddr |-s ", line))


def configured(folders: Sequence[File]) -> tuple[tuple[str, str], ...]:
    """The net.sctp settings in files of sysctl.d(5)."""
    key = re.compile(r"^\s*-?net[./]sctp[./](\w+)\s*=", re.MULTILINE)
    files = [file for folder in folders for file in sorted(folder.glob("*.conf"))]
    return tuple((str(file), name) for file in files for name in key.findall(text_of(file)))


def bans(config: str) -> tuple[str, ...]:
    """The lines in the output of `modprobe --showconfig` against SCTP and what ss needs for it."""
    pattern = re.compile(r"(blacklist|install) (sctp|sctp_diag)(\s|$)")
    return tuple(line for line in config.splitlines() if pattern.match(line))


def given(local: Sequence[str], remote: Sequence[str]) -> tuple[Association, ...]:
    """The association that the user wants to know of, () for none."""
    if not local and not remote:
        return ()
    paths = tuple(Path(address, ACTIVE) for address in remote)
    return (Association("given", tuple(local), paths),)


def look(local: Sequence[str], remote: Sequence[str], proc: File = File("/proc")) -> Facts:
    """Gather the facts, of these addresses beside those of all associations."""
    conf = proc / "sys/net/ipv4/conf"
    filters = {one.name: int(text_of(one / "rp_filter") or 0) for one in sorted(conf.glob("*"))}
    settings = {one.name: text_of(one) for one in sorted((proc / "sys/net/sctp").glob("*"))}
    live = associations(text_of(proc / "net/sctp/assocs"), text_of(proc / "net/sctp/remaddr"))
    every = (*given(local, remote), *live)
    tracked = (proc / "sys/net/netfilter/nf_conntrack_max").exists()
    rules = "\n".join((output("nft", "list", "ruleset"), output("iptables-save"))) if tracked else ""
    return Facts(
        settings=settings,
        others={name: text_of(proc / "sys" / name.replace(".", "/")) for name in OTHERS},
        configured=configured(SYSCTL_D),
        bans=bans(output("modprobe", "--showconfig")),
        links=links(output("ip", "-json", "address"), filters),
        associations=every,
        routes=routes(every),
        invalid=invalid(rules),
        nat=nat(rules),
    )
