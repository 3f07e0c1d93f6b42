# SPDX-License-Identifier: GPL-2.0
"""The machines of place remote: a file of KEY=VALUE lines, as the kernel's drivers/net selftests have it.

    REMOTE_TYPE=ssh             how host2 is reached: ssh, netns (a namespace here) or local (this machine)
    REMOTE_ARGS=root@hostb      words for ssh, or the namespace's name
    LOCAL_TYPE=local            host1 likewise; without it host1 is this machine
    LOCAL_ARGS=
    ROUTER_TYPE=ssh             the router in between, which shapes; without it hosts shape what they receive
    ROUTER_ARGS=root@router     ROUTER_TYPE_2, ROUTER_ARGS_2: a router of its own for path 2
    NETIF=eth1                  path 1: host1's interface
    LOCAL_V4=192.0.2.1          its address, LOCAL_V6 too; at least one family
    REMOTE_V4=198.51.100.1      host2's
    NETIF_2=eth2                path 2, and so on up to NETIF_8
    LOCAL_V4_2=203.0.113.1
    REMOTE_V4_2=203.0.113.130

LOCAL is host1, REMOTE host2. Values may be quoted; # starts a comment.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from pathlib import Path

from sctplab.errors import LabError
from sctplab.plan.site import Address
from sctplab.remote.connection import TRANSPORTS
from sctplab.spec.schema import nearest

MOST_PATHS = 8
PER_PATH = ("NETIF", "LOCAL_V4", "REMOTE_V4", "LOCAL_V6", "REMOTE_V6", "ROUTER_TYPE", "ROUTER_ARGS")
ONCE = ("LOCAL_TYPE", "LOCAL_ARGS", "REMOTE_TYPE", "REMOTE_ARGS")
KEYS = (*ONCE, *PER_PATH, *(f"{key}_{n}" for n in range(2, MOST_PATHS + 1) for key in PER_PATH))
FAMILIES = {"V4": IPv4Address, "V6": IPv6Address}
HOST_KEYS = {"host1": "LOCAL", "host2": "REMOTE"}


@dataclass(frozen=True)
class Cable:
    """A path: host1's interface, both hosts' addresses by family (ipv4, ipv6), its router's name or ""."""

    interface: str
    local: Mapping[str, str]
    remote: Mapping[str, str]
    router: str

    def address(self, host: str, family: str) -> str | None:
        return (self.local if host == "host1" else self.remote).get(family)


@dataclass(frozen=True)
class Inventory:
    """MACHINES: host1, host2 and the routers, each once, by the names that messages use."""

    file: str
    machines: tuple[Address, ...]
    cables: tuple[Cable, ...]

    @property
    def routers(self) -> list[str]:
        return [one.name for one in self.machines if one.name not in HOST_KEYS]


def read(file: str) -> Inventory:
    """Raises LabError, one line with file and key, for whatever is wrong."""
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise LabError(f"--inventory {file}: cannot be read: {error}") from error
    return parse(file, lines)


def parse(file: str, lines: list[str]) -> Inventory:
    found = values(file, lines)
    hosts = [address(file, found, host, HOST_KEYS[host]) for host in HOST_KEYS]
    routers: dict[tuple[str, ...], Address] = {}
    cables = []
    for number in range(1, MOST_PATHS + 1):
        suffix = f"_{number}" if number > 1 else ""
        if f"NETIF{suffix}" in found:
            cables.append(cable(file, found, suffix, router(file, found, suffix, routers)))
        elif extra := next((key for key in found if number > 1 and key.endswith(suffix)), None):
            raise LabError(f"{file}: {extra}: got a path without NETIF{suffix}; add NETIF{suffix}=...")
    if not cables:
        raise LabError(f"{file}: NETIF: got none, expected host1's interface of path 1; add NETIF=...")
    return Inventory(file, (*hosts, *routers.values()), tuple(cables))


def values(file: str, lines: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if not line.split("#")[0].strip():
            continue
        match = re.fullmatch(r"\s*([A-Z0-9_]+)=(.*)", line)
        if not match:
            raise LabError(f"{file}: line {number}: got {line.strip()!r}, expected KEY=VALUE")
        key = match[1]
        if key not in KEYS:
            raise LabError(f"{file}: line {number}: got {key!r}, expected a known key; {nearest(key, KEYS)}")
        try:
            words = shlex.split(match[2], comments=True)
        except ValueError as error:
            raise LabError(f"{file}: {key}: got {match[2]!r}: {error}; close the quotes") from error
        if key in found:
            raise LabError(f"{file}: line {number}: {key} is given twice; remove one")
        found[key] = " ".join(words)
    return {key: value for key, value in found.items() if value}


def address(file: str, found: Mapping[str, str], name: str, key: str, suffix: str = "") -> Address:
    """How a machine is reached, by KEY_TYPE and KEY_ARGS."""
    kind = found.get(f"{key}_TYPE{suffix}", "local" if name == "host1" else "")
    if kind not in TRANSPORTS:
        expected = ", ".join(TRANSPORTS)
        raise LabError(f"{file}: {key}_TYPE{suffix}: got {kind or 'none'}, expected one of {expected}")
    args = tuple(found.get(f"{key}_ARGS{suffix}", "").split())
    if bool(args) == (kind == "local"):
        expected = {"local": "none", "ssh": "USER@HOST", "netns": "a namespace"}[kind]
        raise LabError(f"{file}: {key}_ARGS{suffix}: got {' '.join(args) or 'none'}, expected {expected}")
    return Address(name, kind, args)


def router(file: str, found: Mapping[str, str], suffix: str, known: dict[tuple[str, ...], Address]) -> str:
    """The name of a path's router, "" for none; KNOWN, by how they are reached, gets it if it is new."""
    if f"ROUTER_TYPE{suffix}" not in found and f"ROUTER_ARGS{suffix}" not in found:
        suffix = ""
        if "ROUTER_TYPE" not in found and "ROUTER_ARGS" not in found:
            return ""
    made = address(file, found, f"router{len(known) + 1}" if known else "router", "ROUTER", suffix)
    return known.setdefault((made.transport, *made.args), made).name


def cable(file: str, found: Mapping[str, str], suffix: str, router: str) -> Cable:
    local, remote = (addresses(file, found, key, suffix) for key in ("LOCAL", "REMOTE"))
    if not set(local) & set(remote):
        raise LabError(
            f"{file}: LOCAL_V4{suffix}, REMOTE_V4{suffix}: expected addresses of one family at both ends"
            f" (or LOCAL_V6{suffix}, REMOTE_V6{suffix}); add them"
        )
    return Cable(found[f"NETIF{suffix}"], local, remote, router)


def addresses(file: str, found: Mapping[str, str], key: str, suffix: str) -> dict[str, str]:
    """One end's, by family."""
    made = {}
    for version, kind in FAMILIES.items():
        name = f"{key}_{version}{suffix}"
        if name in found:
            family = f"ip{version.lower()}"
            try:
                made[family] = str(kind(found[name]))
            except AddressValueError:
                raise LabError(f"{file}: {name}: got {found[name]!r}, expected an {family} address") from None
    return made
