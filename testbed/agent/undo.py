# SPDX-License-Identifier: GPL-2.0
"""The way back of a command, looked up before it is carried out. Standard library only.

On a machine that is not thrown away afterwards, only commands with a known way back are carried out.
A way back may be gone when it is needed (a device that was removed), so each command of it may fail.
"""

import json
import re
import subprocess
from collections.abc import Callable
from typing import Any

from commands import CommandFailed

Argv = list[str]
Finder = Callable[[re.Match[str]], list[Argv]]
DEFAULT_QDISC = "0:"  # the handle of what the kernel puts there by itself


def way_back(argv: Argv) -> list[Argv]:
    """Commands that undo ARGV, in order; raises CommandFailed where none is known."""
    line = " ".join(argv)
    for pattern, finder in FINDERS:
        if found := re.fullmatch(pattern, line):
            return finder(found)
    raise CommandFailed(f"{line}: no way back is known, so it is not carried out on this machine")


def output(argv: Argv) -> str:
    """The output of a command; "" if it fails, for example for a device that does not exist."""
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return "" if done.returncode else done.stdout


def rows(argv: Argv) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(output(argv) or "[]")
    return [row for row in found if row]


def nothing(_: re.Match[str]) -> list[Argv]:
    return []


def sysctl(found: re.Match[str]) -> list[Argv]:
    name = found["key"]
    try:
        with open("/proc/sys/" + name.replace(".", "/"), encoding="ascii") as setting:
            value = " ".join(setting.read().split())
    except OSError as error:
        raise CommandFailed(f"sysctl {name}: {error.strerror}") from error
    return [["sysctl", "-q", "-w", f"{name}={value}"]]


def root_qdisc(found: re.Match[str]) -> list[Argv]:
    """Deleting the new one brings the kernel's own back; anything else there is somebody's, and stays."""
    return new_qdisc(
        found["dev"], "root", lambda row: bool(row.get("root") and row["handle"] != DEFAULT_QDISC)
    )


def ingress_qdisc(found: re.Match[str]) -> list[Argv]:
    return new_qdisc(found["dev"], "ingress", lambda row: row["kind"] in ("ingress", "clsact"))


def new_qdisc(dev: str, place: str, taken: Callable[[dict[str, Any]], bool]) -> list[Argv]:
    """The way back to no qdisc; raises CommandFailed where there is one that would be lost."""
    delete = ["tc", "qdisc", "del", "dev", dev, place]
    for row in filter(taken, rows(["tc", "-j", "qdisc", "show", "dev", dev])):
        raise CommandFailed(f"{dev}: has a qdisc already, {row['kind']}; remove it: {' '.join(delete)}")
    return [delete]


def offloads(found: re.Match[str]) -> list[Argv]:
    """All features that can be set, as they are now: one word of ethtool -K stands for several."""
    lines = output(["ethtool", "-k", found["dev"]]).splitlines()[1:]
    single = [line for line, below in zip(lines, [*lines[1:], ""], strict=True)
              if line.startswith("\t") or not below.startswith("\t")]  # fmt: skip
    features = [line.split() for line in single if line and "[fixed]" not in line]
    # "off [requested on]": another one has to be on for it
    words = [word for name, *state in features for word in (name.rstrip(":"), state[-1].rstrip("]"))]
    return [["ethtool", "-K", found["dev"], *words]] if words else []


def link(dev: str) -> dict[str, Any]:
    found = rows(["ip", "-j", "link", "show", "dev", dev])
    if not found:
        raise CommandFailed(f"{dev}: no such interface")
    return found[0]


def mtu(found: re.Match[str]) -> list[Argv]:
    return [["ip", "link", "set", found["dev"], "mtu", str(link(found["dev"])["mtu"])]]


def link_state(found: re.Match[str]) -> list[Argv]:
    """An interface that goes down loses what it has but its IPv4 addresses."""
    state = "up" if "UP" in link(found["dev"])["flags"] else "down"
    back = [["ip", "link", "set", found["dev"], state]]
    return [*back, *possessions(found["dev"])] if state == "up" else back


def possessions(dev: str) -> list[Argv]:
    """Commands that give DEV what it has now and may lose: addresses, neighbours, routes."""
    return [*addresses_of(dev), *neighbours_of(dev), *routes_of(dev)]


def addresses_of(dev: str) -> list[Argv]:
    """Commands that give DEV the addresses which it has now."""
    infos = [info for row in rows(["ip", "-j", "addr", "show", "dev", dev]) for info in row["addr_info"]]
    return [
        ["ip", "addr", "replace", f"{info['local']}/{info['prefixlen']}", "dev", dev]
        + (["nodad"] if info["family"] == "inet6" else [])
        for info in infos
        if info["scope"] != "link"
    ]


def neighbours_of(dev: str) -> list[Argv]:
    """Commands that give DEV the neighbours which somebody has told it."""
    lines = output(["ip", "neigh", "show", "dev", dev, "nud", "permanent"]).splitlines()
    told = [line.split() for line in lines if " lladdr " in line]
    return [["ip", "neigh", "replace", *words[:3], "dev", dev, "nud", "permanent"] for words in told]


def routes_of(dev: str) -> list[Argv]:
    """Commands that give DEV the routes which it has now, in all tables but the kernel's own."""
    found = []
    for family in ("-4", "-6"):
        for line in output(["ip", family, "route", "show", "table", "all", "dev", dev]).splitlines():
            words = re.sub(r" (linkdown|dead|expires \S+|pref \S+)\b", "", line).split()
            if words[0] in ("local", "broadcast", "multicast", "anycast", "unicast") or "kernel" in words:
                continue
            found.append(["ip", family, "route", "replace", words[0], "dev", dev, *words[1:]])
    return found


def added_link(found: re.Match[str]) -> list[Argv]:
    return [["ip", "link", "del", found["dev"]]]


def address(found: re.Match[str]) -> list[Argv]:
    """Routes with this source address go with it, and neighbours with the last address."""
    if found["address"] in [words[3] for words in addresses_of(found["dev"])]:
        return possessions(found["dev"])
    return [["ip", "addr", "del", found["address"], "dev", found["dev"]]]


def neighbour(found: re.Match[str]) -> list[Argv]:
    same = ["ip", "neigh", "show", "to", found["address"], "dev", found["dev"], "nud", "permanent"]
    if known := output(same).split():
        mac = known[known.index("lladdr") + 1]
        words = [found["address"], "lladdr", mac, "dev", found["dev"], "nud", "permanent"]
        return [["ip", "neigh", "replace", *words]]
    return [["ip", "neigh", "del", found["address"], "dev", found["dev"]]]


def route(found: re.Match[str]) -> list[Argv]:
    place = [found["to"], "table", found["table"] or "main"]
    version = "-6" if ":" in found["rest"] else "-4"
    old = output(["ip", version, "route", "show", *place]).splitlines()
    if old:
        return [["ip", version, "route", "replace", *old[0].replace(" linkdown", "").split(), *place[1:]]]
    return [["ip", version, "route", "del", *place]]


def rule(found: re.Match[str]) -> list[Argv]:
    version = ["-6"] if ":" in found["words"] else []
    return [["ip", *version, "rule", "del", *found["words"].split()]]


def mptcp_limits(_: re.Match[str]) -> list[Argv]:
    return [["ip", "mptcp", "limits", "set", *output(["ip", "mptcp", "limits", "show"]).split()]]


def mptcp_endpoint(found: re.Match[str]) -> list[Argv]:
    return [["ip", "mptcp", "endpoint", "delete", "id", found["id"]]]


DEV = r"(?P<dev>\S+)"
FINDERS: tuple[tuple[str, Finder], ...] = (
    (r"sysctl -q -w (?P<key>[^=]+)=.*", sysctl),
    (rf"tc qdisc change dev {DEV} .*", nothing),
    (rf"tc qdisc (add|replace) dev {DEV} root .*", root_qdisc),
    (rf"tc qdisc add dev {DEV} (ingress|clsact)", ingress_qdisc),
    (rf"tc filter add dev {DEV} ingress .*", nothing),
    (rf"ethtool -K {DEV} .*", offloads),
    (rf"ip link set (dev )?{DEV} mtu \d+", mtu),
    (rf"ip link set (dev )?{DEV} (up|down)", link_state),
    (rf"ip link add {DEV} type ifb", added_link),
    (rf"ip addr (add|replace|del) (?P<address>\S+) dev {DEV}( nodad)?", address),
    (rf"ip neigh replace (?P<address>\S+) lladdr \S+ dev {DEV} nud permanent", neighbour),
    (r"ip (-6 )?route replace (?P<to>\S+)(?P<rest> via \S+ dev \S+.*?)( table (?P<table>\S+))?", route),
    (r"ip (-6 )?rule add (?P<words>from \S+ table \S+)", rule),
    (r"ip mptcp limits set .*", mptcp_limits),
    (r"ip mptcp endpoint add \S+ id (?P<id>\d+) .*", mptcp_endpoint),
    (r"sleep \S+", nothing),
)
