# SPDX-License-Identifier: GPL-2.0
"""How a machine stands towards its part of a run: links, routes, filters, clocks. Standard library only.

    facts.py '{"paths": [{"near": ADDRESS, "far": ADDRESS}, ...]}'

Looks only, and prints one JSON object. NEAR and FAR are addresses of the hosts, neither of them a router's.
"""

import ctypes
import json
import os
import sys
from typing import Any

from probe import output, read

STA_UNSYNC = 0x0040
OFFLOADS = (
    "tx-checksumming",
    "tcp-segmentation-offload",
    "generic-segmentation-offload",
    "generic-receive-offload",
    "large-receive-offload",
    "tx-sctp-segmentation",
)
KEYS = ("rp_filter", "forwarding", "arp_ignore")


class Timex(ctypes.Structure):
    """struct timex of adjtimex(2), as far as it is read here."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_char * 256),
    )


def clock() -> dict[str, Any]:
    """Whether a daemon keeps this clock in step, and how wrong the kernel believes it to be at most, in s."""
    timex = Timex()
    failed = ctypes.CDLL(None).adjtimex(ctypes.byref(timex)) < 0
    return {"kept": not failed and not timex.status & STA_UNSYNC, "error_s": timex.maxerror / 1e6}


def rows(line: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(output(line) or "[]")
    return [row for row in found if row]


def route(far: str, near: str = "") -> dict[str, Any]:
    """{"dev", "prefsrc", "gateway"} by which a packet goes to FAR; {} for none."""
    found = rows(f"ip -j route get {far}" + (f" from {near}" if near else ""))
    return found[0] if found else {}


def path(one: dict[str, str]) -> dict[str, Any]:
    """Where packets to the far end go: from the near one, and when nothing is said of their source."""
    return {"bound": route(one["far"], one["near"]), "free": route(one["far"]), "back": route(one["near"])}


def settings(dev: str) -> dict[str, str]:
    """net.ipv4.conf of an interface; for rp_filter the stricter of its own and all's counts."""
    folder = "/proc/sys/net/ipv4/conf"
    found = {key: read(f"{folder}/{dev}/{key}") for key in KEYS}
    found["rp_filter"] = max(found["rp_filter"], read(f"{folder}/all/rp_filter"))
    found["forwarding6"] = read(f"/proc/sys/net/ipv6/conf/{dev}/forwarding")
    return found


def offloads(dev: str) -> list[str]:
    """Those of OFFLOADS that are on and can be turned off."""
    lines = [line.split() for line in output(f"ethtool -k {dev}").splitlines()[1:]]
    return [name.rstrip(":") for name, *value in lines if name.rstrip(":") in OFFLOADS and value == ["on"]]


def qdiscs(dev: str) -> list[str]:
    """Those that somebody has put there."""
    return [row["kind"] for row in rows(f"tc -j qdisc show dev {dev}") if row["handle"] != "0:"]


def driver(dev: str) -> str:
    """ "" where there is no card."""
    try:
        return os.path.basename(os.readlink(f"/sys/class/net/{dev}/device/driver"))
    except OSError:
        return ""


def interfaces() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for row in rows("ip -j addr"):
        dev = row["ifname"]
        found[dev] = {
            "mtu": row["mtu"],
            "state": row["operstate"],
            "addresses": {info["local"]: info["prefixlen"] for info in row["addr_info"]},
            "driver": driver(dev),
            "qdiscs": qdiscs(dev),
            "offloads": offloads(dev),
            **settings(dev),
        }
    return found


def filters() -> list[str]:
    """Chains that see packets come, pass or go, by nft; the other family of tools shows up here as well."""
    words = [line.strip() for line in output("nft list ruleset").splitlines()]
    return [line for line in words if line.startswith("type filter hook")]


def main() -> None:
    os.environ["PATH"] += ":/usr/local/sbin:/usr/sbin:/sbin"
    asked = json.loads(sys.argv[1])
    found: dict[str, Any] = {
        "paths": [path(one) for one in asked["paths"]],
        "interfaces": interfaces(),
        "filters": filters(),
        "conntrack": os.path.exists("/proc/sys/net/netfilter/nf_conntrack_max"),
        "clock": clock(),
        "ssh": os.environ.get("SSH_CONNECTION", "").split(),
        "way_back": {},
    }
    if found["ssh"]:
        found["way_back"] = route(found["ssh"][0], found["ssh"][2])
    print(json.dumps(found))


main()
