# SPDX-License-Identifier: GPL-2.0
"""Consequences of the facts for failover and for several paths. Pure.

A finding says in one line each what was found, why it matters and what to do. Each check is a function of the
facts; CHECKS lists them in the order of the output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from ipaddress import ip_address, ip_network
from itertools import combinations

from failover.cli import INTERVAL_MS, RTT_MS
from failover.predict import predict
from failover.settings import KEYS, PROC, Settings, changed
from failover.situation import Situation

from doctor.facts import (
    ACTIVE,
    INACTIVE,
    POTENTIALLY_FAILED,
    UNCONFIRMED,
    Association,
    Facts,
    version,
)
from doctor.filters import concerns
from doctor.host import newer

SHORT_LIFE_S = 5.0  # an outage of all networks that an association should survive
LIVES = 3  # predicted ones, of which the middle one is told
LONG_HEARTBEAT_MS = 60_000
SMALL_BUFFER = 1 << 20  # bytes; Linux's default is 212992
LARGE_BUFFER = 32 << 20  # bytes; advice never exceeds it
LONGEST_SACK_DELAY_MS = 500  # RFC 9260, 6.2
MANY_RETRANSMISSIONS = 10  # chunks, and of a hundred sent by all associations:
RETRANSMITTED_PERCENT = 2
PRIVATE = tuple(map(ip_network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")))  # sctp_v4_scope()


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


def round_trip_ms(facts: Facts, one: Association) -> float:
    """The longest that was measured on a path of the association, 0 if none was."""
    ends = {path.address for path in one.paths}
    return max((echo.small_ms or 0 for echo in facts.echoes if echo.remote in ends), default=0)


def sack_delay(facts: Facts) -> Iterator[Finding]:
    if not facts.settings:
        return
    delay, least = facts.number("sack_timeout"), facts.number("rto_min")
    longest = max((round_trip_ms(facts, one) for one in facts.associations), default=0)
    if least <= delay + longest:
        trip = f", the round trip {longest:.0f} ms" if longest else ""
        room = least - longest
        lower = (
            f"sysctl net.sctp.sack_timeout={max(int(room // 5), 1)} on both hosts, or " if room > 5 else ""
        )
        yield Finding(
            "sack-delay",
            f"net.sctp.rto_min is {least} ms, net.sctp.sack_timeout {delay} ms{trip}",
            "a peer with this delay answers a lone message after RTO.Min: spurious timeouts",
            f"{lower}raise rto_min above the sum of both",
        )


def peer_sack_delay(facts: Facts) -> Iterator[Finding]:
    """Retransmissions although all paths work, with an RTO that a delayed SACK may exceed."""
    for one in facts.associations:
        rtos = [path.rto * 1000 // facts.hz for path in one.paths if facts.hz and path.rto]
        works = all(path.state == ACTIVE for path in one.paths)
        many = max(MANY_RETRANSMISSIONS, facts.sent * RETRANSMITTED_PERCENT // 100)
        if works and one.rtx >= many and rtos and min(rtos) < LONGEST_SACK_DELAY_MS:
            yield Finding(
                "peer-sack-delay",
                f"association {one.identity}: {one.rtx} chunks sent again, no path failed, "
                f"RTO {min(rtos)} ms",
                "the peer may delay SACKs for longer than the RTO; if it does not, a path loses packets",
                "lower the peer's SACK delay (Linux: 200 ms) below RTO.Min here, or raise net.sctp.rto_min",
            )


def in_force(facts: Facts) -> Settings:
    """The settings that decide a failover; keys that the kernel lacks keep stock's behaviour."""
    present = {key: facts.settings[key] for key in KEYS if key in facts.settings}
    return changed(Settings(), present, str(PROC), strict=True)


def one_retransmission(facts: Facts) -> Iterator[Finding]:
    s = in_force(facts)
    if facts.settings and s.never_pf:
        remedy = "pf_retrans=0"
        if s.path_max_retrans == 1:
            remedy = f"path_max_retrans={s.pf_retrans + 2}, or 0 with the patched module"
        yield Finding(
            "path-max-retrans-1",
            f"net.sctp.path_max_retrans is {s.path_max_retrans}, pf_retrans {s.pf_retrans}",
            "no path becomes Potentially Failed, so data leaves a failed path after "
            f"{s.path_max_retrans + 1} timeouts",
            f"sysctl net.sctp.{remedy}",
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


def association_limits(facts: Facts) -> Iterator[Finding]:
    """As association_limit(), by the values in force of an association whose program has changed them."""
    for one in facts.associations:
        each = sorted(path.max_retrans for path in one.paths if path.max_retrans >= 0)[:2]
        if one.live and one.max_retrans and len(each) == 2 and one.max_retrans < sum(each):
            yield Finding(
                "association-limit",
                f"association {one.identity}: Association.Max.Retrans is {one.max_retrans}, "
                f"Path.Max.Retrans {each[0]} and {each[1]}",
                "the association may end while one of two paths has not failed yet",
                f"have the program set sasoc_asocmaxrxt (SCTP_ASSOCINFO) to {sum(each)}, or leave it",
            )


@cache
def life_s(settings: Settings) -> float | None:
    """How long an association with two paths lives without any answer, as failover-time --both predicts."""
    found = predict(settings, Situation(RTT_MS, RTT_MS, INTERVAL_MS, settings.sack_timeout, both=True), LIVES)
    return found.lost_s.typical if found.lost_s else None


def short_life(facts: Facts) -> Iterator[Finding]:
    if facts.settings and (life := life_s(in_force(facts))) and life < SHORT_LIFE_S:
        yield Finding(
            "short-life",
            f"an association ends after {life:.1f} s without any answer",
            "a short outage of all networks, such as a switch that restarts, ends every association",
            "raise net.sctp.association_max_retrans or rto_max; see failover-time --from-sysctl --both",
        )


def heartbeats(facts: Facts) -> Iterator[Finding]:
    """By the setting, and by associations whose program has another interval."""
    usual = facts.number("hb_interval") if facts.settings else 0
    own = {
        f"association {one.identity}: HEARTBEATs": interval
        for one in facts.associations
        if facts.hz and (interval := one.heartbeat * 1000 // facts.hz) != usual
    }
    for name, interval in ({"net.sctp.hb_interval": usual} | own).items():
        if interval > LONG_HEARTBEAT_MS:
            yield Finding(
                "slow-heartbeats",
                f"{name}: one each {interval / 1000:g} s",
                "a path without data that has failed is noticed by HEARTBEATs only, and so is its return",
                "sysctl net.sctp.hb_interval=30000, or spp_hbinterval in the program",
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
        elif address in link.duplicates:
            yield Finding(
                "duplicate-address",
                f"{address} on {link.name} belongs to another host, too: its test for duplicates failed",
                "the kernel does not use the address, so its path does not exist",
                f"another address for one of the hosts, then: ip address del {address}/... dev {link.name}",
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


def scope(facts: Facts) -> Iterator[Finding]:
    """sctp_in_scope(): to a public address only public ones are announced. The first one is connected to."""
    for one in facts.associations:
        ours = [*one.local, *(path.address for path in one.paths)]
        hidden = [address for address in ours if private(address)]
        public = one.paths and not private(one.paths[0].address)
        if not one.live and hidden and public and facts.settings.get("addr_scope_policy") == "1":
            yield Finding(
                "address-scope",
                f"{one.paths[0].address} is a public address, {', '.join(hidden)} private",
                "in an association with a public address, private ones are neither announced nor taken",
                "sysctl net.sctp.addr_scope_policy=0 on both hosts, or connect to a private address first",
            )


def both_ends(facts: Facts) -> Iterator[Finding]:
    """Not of an association of two programs of this host, whose addresses are all ours; a link-local one is
    of a link.
    """
    for one in facts.associations:
        theirs = [path.address for path in one.paths]
        if all(map(facts.link_of, theirs)):
            continue
        for address in theirs:
            if facts.link_of(address) and not ip_address(address).is_link_local:
                yield Finding(
                    "address-on-both-ends",
                    f"{address} is an address of the peer and of this host",
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
            if not own or not own.up or own.inner or own.routed or local not in own.addresses:
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
    """All paths through one interface, or through VLANs of one card."""
    cards = {link.name: link.card or link.name for link in facts.links}
    for one in facts.associations:
        used = sorted({facts.way(one, path.address).device for path in one.paths})
        if len(one.paths) < 2 or not all(used):
            continue
        if len(used) == 1:
            yield Finding(
                "one-interface",
                f"all {len(one.paths)} addresses of the peer are reached through {used[0]}",
                "a fault of this interface or its network takes all paths at once",
                "routes to each address of the peer through an interface of its own",
            )
        elif len(card := {cards.get(name, name) for name in used}) == 1:
            yield Finding(
                "one-card",
                f"{', '.join(used)} are all on {card.pop()}",
                "a fault of this card, its cable or its switch takes all paths at once",
                "a network card for each path",
            )


def announced(facts: Facts) -> Iterator[Finding]:
    """Peers of sctp_expect that have announced other addresses than it says."""
    for one, peer in ((one, peer) for one in facts.associations for peer in facts.expected):
        here = {path.address for path in one.paths}
        if not peer.is_it(one.ports, here) or here == peer.addresses:
            continue
        missing, more = sorted(peer.addresses - here), sorted(here - peer.addresses)
        told = [f"without {', '.join(missing)}"] if missing else []
        told += [f"with {', '.join(more)}"] if more else []
        yield Finding(
            "unexpected-addresses",
            f"association {one.identity}: the peer announces {len(here)} addresses, {' and '.join(told)}",
            "a path that is missing is none to fail over to; one that is not planned may lead anywhere",
            f"have the peer's program bind its addresses with sctp_bindx(), or correct {peer.where}",
        )


def nagle(facts: Facts) -> Iterator[Finding]:
    for identity, size_b in facts.waiting:
        yield Finding(
            "nagle",
            f"association {identity}: messages of about {size_b} bytes, and SCTP_NODELAY is off",
            "a message waits until those before it are acknowledged: after a cut, for the whole failover",
            "have the program set SCTP_NODELAY, or start it by: sctp-multipath run --nodelay",
        )


def states(facts: Facts) -> Iterator[Finding]:
    for one in facts.associations:
        left = sum(path.state == ACTIVE for path in one.paths)
        last = ("no path is active: data waits", "one more fault ends the association's data flow")
        why = last[left] if left < len(last) else f"data has {left} active paths left"
        for path in one.paths:
            if one.established and path.state == UNCONFIRMED:
                yield Finding(
                    "unconfirmed",
                    f"association {one.identity}: {path.address} has never answered a HEARTBEAT",
                    "the path carries no data, and is none to fail over to",
                    "check its route and firewalls, and that the program leaves SPP_HB_ENABLE on",
                )
            if path.state in (INACTIVE, POTENTIALLY_FAILED):
                state = "inactive" if path.state == INACTIVE else "potentially failed"
                yield Finding(
                    "path-failed",
                    f"association {one.identity}: {path.address} is {state}",
                    why,
                    "check the network of this path",
                )


def private(address: str) -> bool:
    """Whether an address is one that hosts in different networks may have."""
    return any(ip_address(address) in network for network in PRIVATE)


def translated_between(facts: Facts) -> Iterator[Finding]:
    """A private address announced by a peer that is reached at a public one, or the other way around."""
    for one in facts.associations:
        never = [path.address for path in one.paths if path.state == UNCONFIRMED]
        heard = [path.address for path in one.paths if path.state != UNCONFIRMED]
        if heard and any(private(address) != private(heard[0]) for address in never):
            yield Finding(
                "nat-between",
                f"association {one.identity}: the peer answers at {heard[0]}, not at {', '.join(never)}",
                "an address translator is likely between: the peer announces addresses of its own network",
                "a way without translation (a tunnel), or one association per pair of addresses",
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
                "have both programs bind an address of each network, of the same families; no NAT between",
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
    mine = [address for one in facts.associations for address in one.local]
    mine = mine or [address for link in facts.links if not link.inner for address in link.addresses]
    for line in facts.nat:
        if concerns(line, mine):
            yield Finding(
                "nat",
                f"a packet filter changes source addresses: {line}",
                "the peer sees an address that the association does not have, and answers nothing",
                "leave SCTP out of this rule: nft ... meta l4proto != sctp",
            )


def balanced(facts: Facts) -> Iterator[Finding]:
    if facts.balanced:
        yield Finding(
            "ipvs",
            f"IPVS has the SCTP service {facts.balanced}, and net.ipv4.vs.sloppy_sctp is 0",
            "a connection begins with an INIT only: after a change of directors, or over a path that IPVS "
            "has not seen, packets are dropped",
            "sysctl net.ipv4.vs.sloppy_sctp=1",
        )


def icmp_dropped(facts: Facts) -> Iterator[Finding]:
    for line in facts.icmp:
        yield Finding(
            "icmp-dropped",
            f"a packet filter has: {line}",
            "routers tell of a smaller MTU by ICMP; without it, full packets are lost while HEARTBEATs pass",
            "accept ICMP destination-unreachable and ICMPv6 packet-too-big before this rule",
        )


def mtu_hole(facts: Facts) -> Iterator[Finding]:
    for echo in facts.echoes:
        if echo.small_ms is not None and not echo.full:
            yield Finding(
                "path-mtu-hole",
                f"{echo.remote} answers {echo.local} with small packets, not with {echo.size} bytes",
                "the path stays active by its HEARTBEATs and loses full packets, so nothing fails over",
                f"let the router there send ICMP, or: ip route change {echo.remote} ... mtu N",
            )


def no_echo(facts: Facts) -> Iterator[Finding]:
    """A path of several that answers nothing; where none answers, echo requests are filtered."""
    for one in facts.associations:
        ends = {path.address for path in one.paths}
        asked = [echo for echo in facts.echoes if echo.remote in ends and echo.local in one.local]
        heard = {echo.remote for echo in asked if echo.small_ms is not None}
        dead = {echo.remote: echo for echo in asked if echo.remote not in heard}
        for echo in dead.values() if heard else ():
            yield Finding(
                "no-echo",
                f"{echo.remote} does not answer {echo.local}; {', '.join(sorted(heard))} does",
                "the path is cut, or leads to another network",
                f"check cables, VLANs and routes: ping -I {echo.local} {echo.remote}",
            )


def banned(facts: Facts) -> Iterator[Finding]:
    for line in facts.bans:
        yield Finding(
            "module-banned",
            f"modprobe.d(5) has: {line}",
            "after the next start SCTP is not there, or ss does not show its associations",
            "remove the line if this host is to use SCTP",
        )


def old_module(facts: Facts) -> Iterator[Finding]:
    if facts.disk.source and newer(facts.point, facts.disk.source):
        yield Finding(
            "old-module",
            f"the module has the SCTP of Linux {facts.disk.source}, this kernel is {facts.point}",
            "fixes of SCTP between the two releases are missing",
            "look for a newer package, or build one of the newer source: make deb",
        )
    built_in = facts.disk.filename == "(builtin)"
    if facts.settings and facts.disk.version and not built_in and facts.loaded != facts.disk.version:
        yield Finding(
            "another-module",
            f"the loaded SCTP is {facts.loaded or 'the stock one'}, the one on disk {facts.disk.version}",
            "a loaded SCTP cannot be unloaded, so the one on disk is not in use",
            "restart the host",
        )


def clock(facts: Facts) -> Iterator[Finding]:
    if not facts.synchronized:
        yield Finding(
            "clock",
            "nothing keeps the clock of this host right (adjtimex(2) says so)",
            "a jump while an association opens makes its cookie stale; logs of both ends do not match",
            "run an NTP client, for example: apt-get install systemd-timesyncd",
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
                f"sysctl {name}={LARGE_BUFFER}, and SO_RCVBUF and SO_SNDBUF in the program",
            )


def needed(facts: Facts, one: Association) -> int:
    """Bytes that all paths carry in the longest round trip; SMALL_BUFFER if that was not measured."""
    devices = {facts.way(one, path.address).device for path in one.paths}
    rate = sum(link.speed for link in facts.links if link.name in devices) * 1_000_000 / 8
    product = rate * round_trip_ms(facts, one) / 1000
    return min(int(product), LARGE_BUFFER) if product else SMALL_BUFFER


def small_socket_buffers(facts: Facts) -> Iterator[Finding]:
    """Of live associations; a socket's buffers are those that the program set."""
    if facts.settings.get("cmt") != "1":
        return
    for one in facts.associations:
        for name, size in zip(("SO_SNDBUF", "SO_RCVBUF"), one.buffers, strict=True):
            if len(one.paths) > 1 and 0 < size < needed(facts, one):
                yield Finding(
                    "small-socket-buffers",
                    f"association {one.identity}: {name} {size} bytes, the paths need {needed(facts, one)}",
                    "a buffer below the sum of the rates times the longest round trip makes paths wait",
                    f"have the program set {name}, up to net.core.{'wr'[name == 'SO_RCVBUF']}mem_max",
                )


def path_mtu(facts: Facts) -> Iterator[Finding]:
    if facts.others.get("net.ipv4.ip_no_pmtu_disc", "0") not in ("0", ""):
        yield Finding(
            "no-path-mtu-discovery",
            f"net.ipv4.ip_no_pmtu_disc is {facts.others['net.ipv4.ip_no_pmtu_disc']}",
            "a path with a smaller MTU answers HEARTBEATs and loses full packets",
            "sysctl net.ipv4.ip_no_pmtu_disc=0",
        )


CHECKS: tuple[Callable[[Facts], Iterator[Finding]], ...] = (
    unknown,
    banned,
    old_module,
    unknown_keys,
    clock,
    sack_delay,
    peer_sack_delay,
    one_retransmission,
    no_potentially_failed,
    association_limit,
    association_limits,
    short_life,
    heartbeats,
    small_buffers,
    small_socket_buffers,
    path_mtu,
    addresses,
    offered,
    same_network,
    scope,
    both_ends,
    reachable,
    strays,
    one_card,
    single,
    announced,
    states,
    nagle,
    tracked,
    translated,
    balanced,
    translated_between,
    icmp_dropped,
    mtu_hole,
    no_echo,
)


def findings(facts: Facts) -> list[Finding]:
    """All of them, in the order of CHECKS."""
    return [one for check in CHECKS for one in check(facts)]
