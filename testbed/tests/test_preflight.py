# SPDX-License-Identifier: GPL-2.0
"""Checks of machines: a good site without complaints, and each fault that it may have."""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sctplab.remote import inventory, preflight
from sctplab.remote.facts import Survey
from sctplab.spec import scenario
from sctplab.spec.model import RunSpec

FILE = """
LOCAL_TYPE=ssh
LOCAL_ARGS=root@a
REMOTE_TYPE=ssh
REMOTE_ARGS=root@b
ROUTER_TYPE=ssh
ROUTER_ARGS=root@r
NETIF=eth1
LOCAL_V4=10.1.1.1
REMOTE_V4=10.1.2.1
NETIF_2=eth2
LOCAL_V4_2=10.2.1.1
REMOTE_V4_2=10.2.2.1
"""
PROBE: dict[str, Any] = {
    "release": "6.12.90",
    "settings": ["cmt", "rto_min", "rtx_policy"],
    "module": "/lib/sctp.ko",
    "netem": True,
    "netem_seed": True,
    "ifb": True,
    "mptcp": True,
    "clocksource": "tsc",
}
CARDS = {
    "host1": {"eth0": "192.168.0.1", "eth1": "10.1.1.1", "eth2": "10.2.1.1"},
    "host2": {"eth0": "192.168.0.2", "eth1": "10.1.2.1", "eth2": "10.2.2.1"},
    "router": {f"to{p}{h}": f"10.{p}.{h}.254" for p in (1, 2) for h in (1, 2)} | {"eth0": "192.168.0.3"},
}
Break = Callable[[Survey], None]


def card(address: str) -> dict[str, Any]:
    return {
        "mtu": 1500,
        "state": "UP",
        "addresses": {address: 24},
        "driver": "igb",
        "qdiscs": [],
        "offloads": [],
        "rp_filter": "0",
        "forwarding": "1",
        "forwarding6": "1",
    }


def ways(host: str) -> list[dict[str, Any]]:
    """Of both paths, as seen from there."""
    if host == "router":
        return [{"bound": {}, "free": {"dev": f"to{p}2"}, "back": {"dev": f"to{p}1"}} for p in (1, 2)]
    return [{"bound": {"dev": f"eth{p}"}, "free": {"dev": f"eth{p}"}, "back": {}} for p in (1, 2)]


def facts(host: str) -> dict[str, Any]:
    return {
        "paths": ways(host),
        "interfaces": {name: card(address) for name, address in CARDS[host].items()},
        "filters": [],
        "conntrack": False,
        "clock": {"kept": True},
        "ssh": ["192.168.0.9", "5000", CARDS[host]["eth0"], "22"],
        "way_back": {"dev": "eth0"},
    }


def good(file: str = FILE) -> Survey:
    machines = inventory.parse("hosts", file.splitlines())
    names = [one.name for one in machines.machines]
    return Survey(
        machines,
        {name: copy.deepcopy(PROBE) for name in names},
        {name: facts(name) for name in names},
        dict.fromkeys(names, (0.0, 0.001)),
        {(0, "ipv4"): (1500, 0.3), (1, "ipv4"): (1500, 0.3)},
    )


def said(seen: Survey, level: str) -> list[str]:
    return [str(one) for one in preflight.findings(seen) if one.level == level]


def test_a_good_site_has_nothing_to_complain_of() -> None:
    seen = good()
    assert not said(seen, "bad") and not said(seen, "note")
    assert "ok   path 2 ipv4: host2: 10.2.2.1 reaches 10.2.1.1 by eth2" in said(seen, "ok")


def put(*keys: Any, value: Any) -> Break:
    """A change of one fact: machine, then the keys below it."""

    def change(seen: Survey) -> None:
        at: Any = seen.facts
        for key in keys[:-1]:
            at = at[key]
        at[keys[-1]] = value

    return change


def probe(host: str, **values: Any) -> Break:
    return lambda seen: seen.probes[host].update(values)  # type: ignore[attr-defined]


WRONG: list[tuple[Break, str]] = [
    (probe("host1", settings=[]), "host1: sctp is not loaded; load it: modprobe sctp"),
    (
        probe("host2", settings=[], module=""),
        "host2: the kernel 6.12.90 has no module sctp; install one that belongs to it",
    ),
    (probe("router", netem=False), "router: the kernel 6.12.90 has no netem (CONFIG_NET_SCH_NETEM)"),
    (
        put("host1", "way_back", value={"dev": "eth1"}),
        "host1: the connection to 192.168.0.1 runs over the tested interface eth1; reach the machine by"
        " another address",
    ),
    (
        put("router", "ssh", value=["10.2.2.1", "5000", "10.2.2.254", "22"]),
        "router: the connection to 10.2.2.254 runs over the tested interface to22; reach the machine by"
        " another address",
    ),
    (
        put("host2", "interfaces", "eth2", "addresses", value={}),
        "path 2 ipv4: host2 has no address 10.2.2.1; add it: ip addr add 10.2.2.1/LENGTH dev INTERFACE",
    ),
    (
        put("host1", "interfaces", value={"eth2": card("10.2.1.1")}),
        "path 1 ipv4: host1 has no interface eth1; see: ip link",
    ),
    (
        put(
            "host1",
            "interfaces",
            value={
                **{n: card(a) for n, a in CARDS["host1"].items()},
                "eth1": card("x"),
                "eth9": card("10.1.1.1"),
            },
        ),
        "path 1 ipv4: host1 has 10.1.1.1 on eth9, not on eth1 as NETIF says",
    ),
    (
        put("host1", "paths", 1, "bound", value={"dev": "eth1"}),
        "path 2 ipv4: host1: packets from 10.2.1.1 to 10.2.2.1 leave by eth1, not eth2; ip rule add from"
        " 10.2.1.1 table 102; ip route add default via GATEWAY dev eth2 table 102",
    ),
    (
        put("host2", "paths", 1, "free", value={}),
        "path 2 ipv4: host2: packets to 10.2.1.1 leave by no interface, not eth2; ip route add 10.2.1.1 via"
        " GATEWAY dev eth2 src 10.2.2.1",
    ),
    (
        put("host2", "interfaces", "eth1", "state", value="DOWN"),
        "path 1 ipv4: host2: eth1 is DOWN; plug it in, or: ip link set eth1 up",
    ),
    (
        put("router", "interfaces", "to11", "qdiscs", value=["netem"]),
        "path 1 ipv4: router: to11 has its own qdisc (netem); remove it: tc qdisc del dev to11 root",
    ),
    (
        put("router", "interfaces", "to12", "forwarding", value="0"),
        "path 1 ipv4: router does not forward from to12; sysctl -w net.ipv4.ip_forward=1",
    ),
    (
        put("router", "paths", 0, "free", value={}),
        "path 1 ipv4: router has no route to 10.1.2.1 of host2; ip route add ...",
    ),
    (
        put("router", "paths", 1, "free", value={"dev": "to12"}),
        "router: paths 1 and 2 share to12; each needs its own",
    ),
    (
        lambda seen: seen.pings.update({(1, "ipv4"): (9000, "no answer")}),  # type: ignore[attr-defined]
        "path 2 ipv4: 9000 bytes, not fragmented, from host1 to host2: no answer",
    ),
    (
        lambda seen: seen.clocks.update(host2=(0.3, 0.05)),  # type: ignore[attr-defined]
        "host2: clock +300.000 ms from ours, error 50.000 ms, synchronised by a daemon; expected"
        " 20 ms at most",
    ),
]


@pytest.mark.parametrize(("damage", "complaint"), WRONG, ids=[one[1][:40] for one in WRONG])
def test_what_is_wrong_is_one_line(damage: Break, complaint: str) -> None:
    seen = good()
    damage(seen)
    found = said(seen, "bad")
    assert f"bad  {complaint}" in found
    assert all("\n" not in one for one in found)


NOTED: list[tuple[Break, str]] = [
    (put("host1", "interfaces", "eth1", "rp_filter", value="1"), "rp_filter of eth1 is strict"),
    (
        put("host1", "filters", value=["type filter hook input priority 0; policy drop;"]),
        "a packet filter is active",
    ),
    (put("host2", "conntrack", value=True), "connection tracking is on"),
    (put("host2", "clock", value={"kept": False}), "not synchronised"),
    (probe("host1", clocksource="hpet"), "the clock source is hpet, slow to read"),
    (probe("router", netem_seed=False), "takes no seed, so no random losses"),
    (put("host1", "interfaces", "eth1", "offloads", value=["gro"]), "offloads that a run may turn off"),
]


@pytest.mark.parametrize(("damage", "note"), NOTED, ids=[one[1] for one in NOTED])
def test_what_may_matter_is_noted(damage: Break, note: str) -> None:
    seen = good()
    damage(seen)
    assert not said(seen, "bad")
    assert any(note in one for one in said(seen, "note"))


def spec(name: str = "demo-cut", **changes: Any) -> RunSpec:
    found = scenario.load(scenario.find(name))
    choice = scenario.Choice(kernels=("patched",), place="remote", repeat=1)
    return replace(scenario.expand(found, {}, choice)[0], **changes)


def test_a_run_that_fits() -> None:
    assert not list(preflight.unfit(good(), spec()))


WITHOUT_ROUTER = FILE.replace("ROUTER_", "#ROUTER_")


@pytest.mark.parametrize(
    ("file", "damage", "run", "complaint"),
    [
        (FILE, probe("host1", settings=["cmt"]), spec(), "host1: the kernel 6.12.90 does not have"),
        (FILE, probe("host2", release="6.1.2"), spec(), "host2: its kernel is 6.1.2, not 6.12; set --peer"),
        (FILE, probe("host1", settings=["rtx_policy"]), spec("jungmaier"), "has no setting net.sctp."),
        (
            FILE,
            probe("router", netem_seed=False),
            spec("rtx-policy-loss"),
            "router: netem of the kernel 6.12.90 or",
        ),
        (
            FILE,
            put("host2", "interfaces", "eth2", "mtu", value=1400),
            spec(),
            "mtu 1500, but eth2 of host2 has 1400",
        ),
        (FILE, probe("router"), spec("failover-three"), "3 paths, but hosts has 2; add NETIF_3"),
        (FILE, probe("router"), spec(build="debug"), "--build debug: the machines' running kernels are used"),
        (WITHOUT_ROUTER, probe("host1"), spec("failover-carrier"), "carrier-down needs a router"),
    ],
)
def test_a_run_that_does_not_fit_is_one_line(file: str, damage: Break, run: RunSpec, complaint: str) -> None:
    seen = good(file)
    damage(seen)
    found = list(preflight.unfit(seen, run))
    assert any(complaint in one for one in found)
    assert all("\n" not in one for one in found)
