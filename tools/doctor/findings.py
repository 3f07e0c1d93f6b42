# SPDX-License-Identifier: GPL-2.0
"""What the facts mean for failover and for several paths. Pure.

A finding says in one line each what was found, why it matters and what to do. Each check is a function of the
facts; CHECKS lists them in the order of the output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations

from doctor.facts import INACTIVE, POTENTIALLY_FAILED, UNCONFIRMED, Association, Facts, version

SHORT_LIFE_S = 5.0  # an outage of all networks that an association should survive
LONG_HEARTBEAT_MS = 60_000
SMALL_BUFFER = 1 << 20  # bytes; Linux's default is 212992


@dataclass(frozen=True)
class Finding:
    """NAME is stable, for programs; the others are for people."""

    name: str
    found: str
    why: str
    remedy: str


def unknown(facts: Facts) -> Iterator[Finding]:
    if not facts.settings:
        yield Finding(
            "not-loaded",
            "SCTP is not loaded: there are no net.sctp settings",
            "nothing can be said of timers and associations",
            "modprobe sctp, then run this again; `sctp-multipath` says what is in the way",
        )


def sack_delay(facts: Facts) -> Iterator[Finding]:
    if not facts.settings:
        return
    delay, least = facts.number("sack_timeout"), facts.number("rto_min")
    if least <= delay:
        yield Finding(
            "sack-delay",
            f"net.sctp.rto_min is {least} ms, net.sctp.sack_timeout {delay} ms",
            "a peer with this delay answers a lone message after RTO.Min: spurious timeouts",
            f"sysctl net.sctp.sack_timeout={max(least // 5, 1)} on both hosts, or raise rto_min",
        )


def one_retransmission(facts: Facts) -> Iterator[Finding]:
    if facts.settings.get("path_max_retrans") == "1" and facts.settings.get("pf_enable") == "1":
        yield Finding(
            "path-max-retrans-1",
            "net.sctp.path_max_retrans is 1",
            "no path becomes Potentially Failed, so data leaves a failed path after two timeouts",
            "sysctl net.sctp.path_max_retrans=2, or 0 with the patched module",
        )


def no_potentially_failed(facts: Facts) -> Iterator[Finding]:
    if facts.settings.get("pf_enable") == "0" and facts.number("path_max_retrans") > 0:
        yield Finding(
            "pf-off",
            "net.sctp.pf_enable is 0",
            f"data leaves a failed path after {facts.number('path_max_retrans') + 1} timeouts, not after one",
            "sysctl net.sctp.pf_enable=1",
        )


def association_limit(facts: Facts) -> Iterator[Finding]:
    """RFC 9260, 8.1 and 8.2, for the least number of paths that makes sense, two."""
    if not facts.settings:
        return
    limit, each = facts.number("association_max_retrans"), facts.number("path_max_retrans")
    if limit < 2 * each:
        yield Finding(
            "association-limit",
            f"net.sctp.association_max_retrans is {limit}, path_max_retrans {each}",
            "the association may end while one of two paths has not failed yet",
            f"sysctl net.sctp.association_max_retrans={2 * each}, or lower path_max_retrans",
        )


def life_s(facts: Facts) -> float:
    """The time of association_max_retrans + 1 timeouts in a row, from RTO.Min on; RFC 9260, 6.3.3 E2."""
    rto, most = facts.number("rto_min"), facts.number("rto_max")
    total = 0
    for _ in range(facts.number("association_max_retrans") + 1):
        total += min(rto, most)
        rto = min(2 * rto, most)
    return total / 1000


def short_life(facts: Facts) -> Iterator[Finding]:
    if facts.settings and (life := life_s(facts)) < SHORT_LIFE_S:
        yield Finding(
            "short-life",
            f"an association ends after {life:.1f} s without any answer",
            "a short outage of all networks, such as a switch that restarts, ends every association",
            "raise net.sctp.association_max_retrans or rto_max",
        )


def heartbeats(facts: Facts) -> Iterator[Finding]:
    if facts.settings and facts.number("hb_interval") > LONG_HEARTBEAT_MS:
        yield Finding(
            "slow-heartbeats",
            f"net.sctp.hb_interval is {facts.number('hb_interval') / 1000:g} s",
            "a path without data that has failed is noticed by HEARTBEATs only, and so is its return",
            "sysctl net.sctp.hb_interval=30000",
        )


def addresses(facts: Facts) -> Iterator[Finding]:
    """Local addresses that are gone, down, inside the host, or in one network."""
    for address in sorted({local for one in facts.associations for local in one.local}):
        link = facts.link_of(address)
        if not link:
            yield Finding(
                "address-gone",
                f"{address} is on no interface of this host",
                "packets from it cannot leave; the peer goes on sending to it",
                f"ip address add {address}/... dev ..., or have the program remove the address",
            )
        elif not link.up:
            yield Finding(
                "link-down",
                f"{address}: {link.name} is down or has no carrier",
                "its path is lost until T3-rtx or a HEARTBEAT finds out",
                f"ip link set {link.name} up; check the cable and the switch",
            )
        elif link.inner:
            yield Finding(
                "inner-address",
                f"{address} is on {link.name}, which leads to containers or virtual machines of this host",
                "the peer is told of it and cannot reach it, or reaches another host with the same address",
                "have the program bind the addresses that it means, with sctp_bindx()",
            )


def offered(facts: Facts) -> Iterator[Finding]:
    """Without an association to look at: what a program that binds the wildcard would announce."""
    if facts.associations:
        return
    for link in facts.links:
        if link.inner and link.addresses:
            yield Finding(
                "inner-address",
                f"{link.name} has {link.addresses[0]}, for containers or virtual machines of this host",
                "a program that binds the wildcard announces it; two hosts with it abort associations",
                "have programs bind the addresses that they mean, with sctp_bindx()",
            )


def same_network(facts: Facts) -> Iterator[Finding]:
    used = {local for one in facts.associations for local in one.local}
    pairs = combinations([link for link in facts.links if used & set(link.addresses)], 2)
    for one, other in pairs:
        for shared in sorted(set(one.networks) & set(other.networks)):
            yield Finding(
                "same-network",
                f"{one.name} and {other.name} are both in {shared}",
                "one route serves both, so both paths may leave through one interface",
                "put the interfaces into networks of their own",
            )


def both_ends(facts: Facts) -> Iterator[Finding]:
    mine = {address for link in facts.links for address in link.addresses}
    for one in facts.associations:
        for path in one.paths:
            if path.address in mine and path.address not in one.local:
                yield Finding(
                    "address-on-both-ends",
                    f"{path.address} is an address of the peer and of this host",
                    "what is sent there comes back to this host, which aborts the association",
                    "have the peer's program bind the addresses that it means, with sctp_bindx()",
                )


def reachable(facts: Facts) -> Iterator[Finding]:
    """Routes by source address."""
    for one in facts.associations:
        for path in one.paths:
            ways = [way for local in one.local if (way := facts.route(local, path.address)) is not None]
            if ways and not any(way.device for way in ways):
                yield Finding(
                    "no-route",
                    f"{path.address}: no route from {', '.join(way.local for way in ways)}",
                    "the path never works",
                    f"ip route add {path.address} via ...",
                )


def strays(facts: Facts) -> Iterator[Finding]:
    """A source address that leaves through an interface which is not its own."""
    told = set()
    for one in facts.associations:
        for local in one.local:
            own = facts.link_of(local)
            if not own or not own.up:
                continue
            ways = [way for path in one.paths if (way := facts.route(local, path.address)) and way.device]
            if not ways or any(way.device == own.name for way in ways) or local in told:
                continue
            told.add(local)
            yield Finding(
                "wrong-interface",
                f"{local} is on {own.name}; packets to {ways[0].remote} leave through {ways[0].device}",
                "both paths share a network, and a router or the peer may drop a source that is not of it",
                f"a routing table per address: ip rule add from {local} table N; "
                f"ip route add default via GATEWAY dev {own.name} table N",
            )
            if own.rp_filter == 1:
                yield Finding(
                    "rp-filter",
                    f"rp_filter of {own.name} is 1 (strict)",
                    f"packets to {local} arrive there and are dropped, as the way back leaves elsewhere",
                    f"a routing table per address, or sysctl net.ipv4.conf.{own.name}.rp_filter=2",
                )


def one_card(facts: Facts) -> Iterator[Finding]:
    """All paths through one interface, though the addresses are on several."""
    for one in facts.associations:
        cards = {link.name for local in one.local if (link := facts.link_of(local)) and link.up}
        used = {device_of(facts, one, path.address) for path in one.paths} - {""}
        if len(cards) > 1 and len(one.paths) > 1 and len(used) == 1:
            yield Finding(
                "one-interface",
                f"all {len(one.paths)} addresses of the peer are reached through {used.pop()}",
                "a fault of this interface or its network takes all paths at once",
                "routes to each address of the peer through an interface of its own",
            )


def device_of(facts: Facts, one: Association, remote: str) -> str:
    """The interface that a path takes, as sctp_v4_get_dst() chooses.

    The route for any source, if that is one of the association's; else that of a source on its own interface.
    """
    usual = facts.route("", remote)
    if usual and usual.device and usual.source in one.local:
        return usual.device
    ways = [way for local in one.local if (way := facts.route(local, remote)) and way.device]
    own = [way for way in ways if (link := facts.link_of(way.local)) and link.name == way.device]
    return (own or ways)[0].device if ways else ""


def states(facts: Facts) -> Iterator[Finding]:
    for one in facts.associations:
        for path in one.paths:
            if one.established and path.state == UNCONFIRMED:
                yield Finding(
                    "unconfirmed",
                    f"association {one.identity}: {path.address} has never answered a HEARTBEAT",
                    "the path carries no data, and is none to fail over to",
                    "check its route and firewalls, or have the peer's program not announce it",
                )
            if path.state in (INACTIVE, POTENTIALLY_FAILED):
                state = "inactive" if path.state == INACTIVE else "potentially failed"
                yield Finding(
                    "path-failed",
                    f"association {one.identity}: {path.address} is {state}",
                    "one more fault ends the association's data flow",
                    "check the network of this path",
                )


def single(facts: Facts) -> Iterator[Finding]:
    for one in facts.associations:
        local = {version(address) for address in one.local}
        usable = [path for path in one.paths if version(path.address) in local]
        if one.paths and len(usable) < 2:
            yield Finding(
                "one-path",
                f"association {one.identity}: only {len(usable)} address of the peer is of use",
                "there is no path to fail over to",
                "have both programs bind an address of each network (sctp_bindx()), of the same families",
            )


def tracked(facts: Facts) -> Iterator[Finding]:
    for line in facts.invalid:
        yield Finding(
            "conntrack-invalid",
            f"a packet filter has: {line}",
            "connection tracking may call the HEARTBEAT that opens a second path invalid",
            "accept SCTP before this rule, between the addresses of the peers",
        )


def translated(facts: Facts) -> Iterator[Finding]:
    for line in facts.nat:
        yield Finding(
            "nat",
            f"a packet filter changes source addresses: {line}",
            "the peer sees an address that the association does not have, and answers nothing",
            "leave SCTP out of this rule: nft ... meta l4proto != sctp",
        )


def banned(facts: Facts) -> Iterator[Finding]:
    for line in facts.bans:
        yield Finding(
            "module-banned",
            f"modprobe.d(5) has: {line}",
            "after the next start SCTP is not there, or ss does not show its associations",
            "remove the line if this host is to use SCTP",
        )


def unknown_keys(facts: Facts) -> Iterator[Finding]:
    for file, name in facts.configured:
        if facts.settings and name not in facts.settings:
            yield Finding(
                "unknown-setting",
                f"{file} has net.sctp.{name}, which this kernel does not know",
                "the line does nothing: some guides name settings that never existed",
                f"remove the line, or load the module that has net.sctp.{name}",
            )


def small_buffers(facts: Facts) -> Iterator[Finding]:
    if facts.settings.get("cmt") != "1":
        return
    for name in ("net.core.rmem_max", "net.core.wmem_max"):
        size = int(facts.others.get(name) or SMALL_BUFFER)
        if size < SMALL_BUFFER:
            yield Finding(
                "small-buffers",
                f"net.sctp.cmt is 1, and {name} is {size} bytes",
                "beyond a local network, buffers that are too small make one path wait for another",
                f"sysctl {name}=33554432, and SO_RCVBUF and SO_SNDBUF in the program",
            )


def path_mtu(facts: Facts) -> Iterator[Finding]:
    if facts.others.get("net.ipv4.ip_no_pmtu_disc", "0") not in ("0", ""):
        yield Finding(
            "no-path-mtu-discovery",
            f"net.ipv4.ip_no_pmtu_disc is {facts.others['net.ipv4.ip_no_pmtu_disc']}",
            "a path with a smaller MTU answers HEARTBEATs and loses full packets",
            "sysctl net.ipv4.ip_no_pmtu_disc=0",
        )


def silent(facts: Facts) -> Iterator[Finding]:
    for one in facts.associations:
        off = [path.address for path in one.paths if not path.heartbeats]
        if off and len(one.paths) > 1:
            yield Finding(
                "heartbeats-off",
                f"association {one.identity}: no HEARTBEATs to {', '.join(off)}",
                "a fault of a path without data is not noticed, and a path that failed does not come back",
                "have the program leave SPP_HB_ENABLE on",
            )


CHECKS: tuple[Callable[[Facts], Iterator[Finding]], ...] = (
    unknown,
    banned,
    unknown_keys,
    sack_delay,
    one_retransmission,
    no_potentially_failed,
    association_limit,
    short_life,
    heartbeats,
    small_buffers,
    path_mtu,
    addresses,
    offered,
    same_network,
    both_ends,
    reachable,
    strays,
    one_card,
    single,
    states,
    silent,
    tracked,
    translated,
)


def findings(facts: Facts) -> list[Finding]:
    """All of them, in the order of CHECKS."""
    return [one for check in CHECKS for one in check(facts)]
