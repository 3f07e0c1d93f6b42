# SPDX-License-Identifier: GPL-2.0
"""Rules of packet filters, as `nft list ruleset` and `iptables-save` print them, that harm SCTP. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

PROTOCOL = r"(meta l4proto|ip protocol|ip6 nexthdr)"
DROPS = r"(drop|reject( with .*)?)"
COUNTER = re.compile(r"counter packets \d+ bytes \d+ ?|log( prefix \S+| level \S+)* ?| comment \".*\"$")
# These accept SCTP between all addresses, so the rules behind them do not see it.
SCTP_ACCEPTED = re.compile(
    rf"({PROTOCOL} (sctp|132|\{{[^}}]*\bsctp\b[^}}]*\}}) ?)?(sctp [sd]port ([^{{ ]\S*|\{{[^}}]*\}}) ?)*accept"
)
SCTP_ACCEPTED_IPTABLES = re.compile(r"-A \S+ -p sctp( -m sctp( --[sd]ports? \S+)*)? -j ACCEPT")
INVALID = re.compile(r"ct state (\S*,)?\s*\{?[^}]*\binvalid\b.*\b(drop|reject)\b")
INVALID_IPTABLES = re.compile(r"--(ct)?state \S*INVALID\S* .*-j (DROP|REJECT)")
# "related" is the state of an ICMP error about a known connection.
RELATED_ACCEPTED = re.compile(
    r"ct state (\S*,)?(\{[^}]*)?\brelated\b.*\baccept|--(ct)?state \S*RELATED\S* -j ACCEPT"
)
ICMP = re.compile(
    rf"({PROTOCOL} (icmp|icmpv6|ipv6-icmp|\{{[^}}]*\bicmp\S*[^}}]*\}})"
    rf"|icmp type (destination-unreachable|\{{[^}}]*destination-unreachable[^}}]*\}})"
    rf"|icmpv6 type (packet-too-big|\{{[^}}]*packet-too-big[^}}]*\}})) {DROPS}"
)
ICMP_IPTABLES = re.compile(
    r"-A \S+ -p (icmp|ipv6-icmp|icmpv6)"
    r"( -m icmp6? --icmp(v6)?-type (3|3/4|2|destination-unreachable|fragmentation-needed|packet-too-big))?"
    r" -j (DROP|REJECT.*)"
)
NAT = re.compile(r"\b(masquerade|snat( ip6?)? to)\b|-j (MASQUERADE|SNAT)\b")
OTHER_PROTOCOL = re.compile(
    rf"{PROTOCOL} (!= (sctp|132)\b|(tcp|udp|icmp\S*)\b|\{{(?![^}}]*\bsctp\b)[^}}]*\}})|\b(tcp|udp) [sd]port\b"
    r"|-p (tcp|udp|icmp)\b|! -p (sctp|132)\b"
)
SOURCE = re.compile(r"(?:ip6? saddr|-s) (?!!)(\S+)")


@dataclass(frozen=True)
class Rule:
    """CHAIN: table and chain; HOOK: where it sees packets, "" for a chain that others jump to."""

    chain: str
    hook: str
    text: str


def rules(nft: str, iptables: str) -> tuple[Rule, ...]:
    """In the order of the listings."""
    return (*of_nft(nft), *of_iptables(iptables))


def of_nft(listing: str) -> Iterator[Rule]:
    table = chain = hook = ""
    for line in map(str.strip, listing.splitlines()):
        if match := re.match(r"table (\S+ \S+) \{", line):
            table = match[1]
        elif match := re.match(r"(chain|set|map|flowtable|counter) (\S+) \{", line):
            chain, hook = (f"{table} {match[2]}", "") if match[1] == "chain" else ("", "")
        elif match := re.match(r"type \S+ hook (\S+)", line):
            hook = match[1]
        elif chain and line not in ("", "}"):
            yield Rule(chain, hook, line)


def of_iptables(listing: str) -> Iterator[Rule]:
    table = ""
    for line in map(str.strip, listing.splitlines()):
        if line.startswith("*"):
            table = line[1:]
        elif match := re.match(r"-A (\S+)", line):
            yield Rule(f"{table} {match[1]}", match[1].lower(), line)


def plain(rule: Rule) -> str:
    """The rule without counters, logging and comments."""
    return COUNTER.sub("", rule.text).strip()


def behind(found: Sequence[Rule], accepted: tuple[re.Pattern[str], ...]) -> Iterator[Rule]:
    """The rules that packets reach which no earlier rule of the same chain accepts."""
    done = set()
    for rule in found:
        if any(pattern.fullmatch(plain(rule)) for pattern in accepted):
            done.add(rule.chain)
        elif rule.chain not in done:
            yield rule


def invalid(found: Sequence[Rule]) -> tuple[str, ...]:
    """Those that drop SCTP packets which connection tracking calls INVALID."""
    reached = behind(found, (SCTP_ACCEPTED, SCTP_ACCEPTED_IPTABLES))
    return tuple(
        rule.text for rule in reached if INVALID.search(rule.text) or INVALID_IPTABLES.search(rule.text)
    )


def icmp(found: Sequence[Rule]) -> tuple[str, ...]:
    """Those that drop the ICMP messages of path MTU discovery on their way in."""
    related = {rule.chain for rule in found if RELATED_ACCEPTED.search(rule.text)}
    return tuple(
        rule.text
        for rule in found
        if rule.hook != "output" and rule.chain not in related
        if ICMP.fullmatch(plain(rule)) or ICMP_IPTABLES.fullmatch(plain(rule))
    )


def nat(found: Sequence[Rule]) -> tuple[str, ...]:
    """Those that change the source addresses of SCTP packets that leave."""
    return tuple(
        rule.text for rule in found if NAT.search(rule.text) and not OTHER_PROTOCOL.search(rule.text)
    )


def concerns(rule: str, addresses: Sequence[str]) -> bool:
    """Whether a rule of nat() is for packets from one of these addresses; one without a source is for all."""
    match = SOURCE.search(rule)
    if not match:
        return True
    try:
        network = ipaddress.ip_network(match[1], strict=False)
    except ValueError:
        return False  # a set: container software keeps its own addresses in them
    return any(ipaddress.ip_address(address) in network for address in addresses)
