# SPDX-License-Identifier: GPL-2.0
"""sctp-multipath doctor on healthy hosts: random topologies, where it may find nothing."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sctplab.paths import ROOT
from tests.kernel.test_doctor import Case, named

pytestmark = pytest.mark.kernel
TOPOLOGIES = 100
PROFILES = ("00-off", "10-signalling", "20-bulk", "25-cmt")
LARGE = 40 << 20  # bytes, for CMT
# Filters that let SCTP pass; a host has none, one or more.
FILTERS = (
    ("filter hook input priority 0", "meta l4proto sctp accept", "ct state invalid drop"),
    ("filter hook input priority 0", "ct state established,related accept", "meta l4proto icmp drop"),
    ("filter hook input priority 0", "icmp type echo-request accept", "tcp dport 22 accept"),
    ("filter hook forward priority 0", "ct state invalid accept", "meta l4proto udp drop"),
    ("nat hook postrouting priority 100", "ip saddr 172.17.0.0/16 masquerade"),
    ("nat hook postrouting priority 100", "meta l4proto { tcp, udp } masquerade"),
)


@dataclass(frozen=True)
class Network:
    """One path: between two hosts, or with a router at the side of host b; NUMBER is that of the path."""

    number: int
    six: bool
    routed: bool
    mtu: int
    delay_ms: int

    def address(self, segment: int, host: int) -> str:
        return f"fd00:{self.number}:{segment}::{host}" if self.six else f"10.{self.number}.{segment}.{host}"

    def length(self) -> int:
        return 64 if self.six else 24

    @property
    def local(self) -> str:
        return self.address(0, 1)

    @property
    def remote(self) -> str:
        return self.address(1, 2) if self.routed else self.address(0, 2)


def on(host: str, *lines: str) -> list[dict[str, Any]]:
    """Commands for work/diagnosis.py."""
    return [{"where": host, "argv": line.split()} for line in lines]


def batch(command: dict[str, Any]) -> tuple[str, list[str]]:
    """One process runs all that have the same: links first, since they are made outside of the namespaces."""
    words: list[str] = command["argv"]
    return command["where"], words[: 2 if words[1] == "-6" else 1]


def drawn(rng: random.Random) -> list[Network]:
    """Two to four networks. The program connects by the first: private ones are not told to a public one."""
    kinds = rng.choice(((False,), (False,), (True,), (False, True)))
    return [
        Network(
            number,
            rng.choice(kinds[: 1 if number == 1 else None]),
            rng.random() < 0.4,
            rng.choice((1280, 1400, 1500, 1500, 9000)),
            rng.choice((0, 0, 5, 20)),
        )
        for number in range(1, rng.choice((2, 2, 2, 3, 4)) + 1)
    ]


def joined(net: Network) -> list[dict[str, Any]]:
    """Its links and addresses, with a router r1, r2 ... if there is one."""
    n, length, mtu, far = net.number, net.length(), f"mtu {net.mtu}", "t" if net.routed else "q"
    ends = [("a", f"p{n}", net.local), ("b", f"{far}{n}", net.remote)]
    commands = []
    if net.routed:
        commands += on("", f"ip netns add r{n}")
        commands += on("", f"ip link add s{n} {mtu} netns r{n} type veth peer name t{n} {mtu} netns b")
        ends += [(f"r{n}", f"q{n}", net.address(0, 9)), (f"r{n}", f"s{n}", net.address(1, 9))]
    middle = f"r{n}" if net.routed else "b"
    commands += on("", f"ip link add p{n} {mtu} netns a type veth peer name q{n} {mtu} netns {middle}")
    for host, device, address in ends:
        nodad = " nodad" if net.six else ""
        commands += on(host, f"ip address add {address}/{length} dev {device}{nodad}")
        commands += on(host, f"ip link set {device} up")
    if net.routed:
        commands += on(middle, "sysctl net.ipv4.ip_forward=1", "sysctl net.ipv6.conf.all.forwarding=1")
    if net.delay_ms:
        commands += on("b", f"tc qdisc add dev {far}{n} root netem delay {net.delay_ms}ms")
    return commands


def routed(nets: list[Network], rng: random.Random) -> list[dict[str, Any]]:
    """A table for each source address where there is a router, or routes to the networks behind it."""
    commands = []
    rules = rng.random() < 0.6
    for net in (net for net in nets if net.routed):
        n, six = net.number, "-6 " if net.six else ""
        for host, device, source, gateway, target in (
            ("a", f"p{n}", net.local, net.address(0, 9), net.address(1, 0)),
            ("b", f"t{n}", net.remote, net.address(1, 9), net.address(0, 0)),
        ):
            if rules:
                commands += on(host, f"ip {six}rule add from {source} table {n}")
                commands += on(host, f"ip {six}route add default via {gateway} dev {device} table {n}")
            commands += on(host, f"ip {six}route add {target}/{net.length()} via {gateway} dev {device}")
    return commands


def loaded(profile: str) -> list[dict[str, Any]]:
    lines = (ROOT / "sysctl" / f"{profile}.conf").read_text().splitlines()
    pairs = [line.replace(" ", "") for line in lines if "=" in line and line[0] != "#"]
    return [one for host in ("a", "b") for one in on(host, *(f"sysctl {pair}" for pair in pairs))]


def filtered(chosen: list[tuple[str, ...]]) -> str:
    chains = [
        f"chain c{number} {{\ntype {kind};\n" + "\n".join(lines) + "\n}"
        for number, (kind, *lines) in enumerate(chosen)
    ]
    words = "\n".join(chains)
    return f"ip netns exec a nft -f - <<'END'\ntable inet t {{\n{words}\n}}\nEND\n" if chosen else ""


def topology(seed: int) -> Case:
    """A host that a careful operator has set up."""
    rng = random.Random(seed)
    nets = drawn(rng)
    profile = rng.choice(PROFILES)
    cmt = profile == "25-cmt"
    commands = on("", "ip netns add a", "ip netns add b")
    for net in nets:
        commands += joined(net)
    commands += routed(nets, rng) + on("a", "ip link set lo up") + on("b", "ip link set lo up")
    commands += loaded(profile) + on("a", f"sysctl net.ipv4.conf.all.rp_filter={rng.choice((0, 0, 1, 2))}")
    commands += on("", f"sysctl net.core.rmem_max={LARGE}", f"sysctl net.core.wmem_max={LARGE}")
    if rng.random() < 0.3:
        docker = (
            "link add docker0 type dummy",
            "address add 172.17.0.1/16 dev docker0",
            "link set docker0 up",
        )
        commands += on("a", *(f"ip {line}" for line in docker))
    local, remote = [net.local for net in nets], [net.remote for net in nets]
    live = rng.random() < 0.7
    asked = "" if live else f"--local {' '.join(local)} --peer {' '.join(remote)}"
    buffers = LARGE if cmt else 0
    return Case(
        filtered(rng.sample(FILTERS, rng.choice((0, 0, 1, 2)))),
        f"{asked} {rng.choice(('', '--probe'))}",
        programs=(
            {"host": "b", "bound": remote, "buffers": buffers},
            {"host": "a", "remote": remote[0], "bound": local, "buffers": buffers},
        )
        if live
        else (),
        speak_s=rng.choice((0, 5)),
        commands=tuple(sorted(commands, key=batch)),
    )


def test_nothing_is_found_on_healthy_hosts(tmp_path: Path) -> None:
    cases = {str(seed): topology(seed) for seed in range(TOPOLOGIES)}
    assert named(cases, tmp_path) == {seed: [] for seed in cases}
