# SPDX-License-Identifier: GPL-2.0
"""sctp-multipath doctor on hosts with a planted fault: namespaces of one kernel, one after the other."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest
from sctplab.paths import ROOT
from tests.kernel_run import linux, run_work

pytestmark = pytest.mark.kernel
WALL_S = 400
GIVEN = "--local 10.1.0.1 10.2.0.1 --peer 10.1.0.2 10.2.0.2"
FAR = "--local 10.1.0.1 10.2.0.1 --peer 10.1.9.1 10.2.9.1"
SIX = "--local fd00:1::1 fd00:2::1 --peer fd00:1::2 fd00:2::2"
# Two hosts, two networks between them.
HOSTS = """
ip -batch - <<END
netns add a
netns add b
link add p1 netns a type veth peer name q1 netns b
link add p2 netns a type veth peer name q2 netns b
END
ip -n a -batch - <<END
link set lo up
address add 10.1.0.1/24 dev p1
address add 10.2.0.1/24 dev p2
link set p1 up
link set p2 up
END
ip -n b -batch - <<END
link set lo up
address add 10.1.0.2/24 dev q1
address add 10.2.0.2/24 dev q2
link set q1 up
link set q2 up
END
"""
DEFAULT = "ip -n a route add default via 10.1.0.2 dev p1"
RULES = """
for n in 1 2; do
	ip -n a rule add from 10.$n.0.1 table $n
	ip -n a route add default via 10.$n.0.2 dev p$n table $n
	ip -n a route add 10.$n.9.0/24 via 10.$n.0.2 dev p$n
done
"""
DOCKER = """
ip -n a link add docker0 type veth peer name inside netns b
ip -n b link set inside up
ip -n a link set docker0 up
ip -n a address add 172.17.0.1/16 dev docker0
"""
VLANS = """
for n in 3 4; do
	ip -n a link add link p1 name p1.$n type vlan id $n
	ip -n b link add link q1 name q1.$n type vlan id $n
	ip -n a address add 10.$n.0.1/24 dev p1.$n
	ip -n b address add 10.$n.0.2/24 dev q1.$n
	ip -n a link set p1.$n up
	ip -n b link set q1.$n up
done
"""
# A router on each path, and a narrow link behind that of the second.
ROUTER = (
    RULES
    + """
ip -batch - <<END
netns add far
link add s1 netns b type veth peer name t1 netns far
link add s2 netns b mtu 1400 type veth peer name t2 mtu 1400 netns far
END
for n in 1 2; do
	ip -n b address add 10.$n.9.254/24 dev s$n
	ip -n far address add 10.$n.9.1/24 dev t$n
	ip -n b link set s$n up
	ip -n far link set t$n up
	ip -n far route add 10.$n.0.0/24 via 10.$n.9.254
done
ip netns exec b sysctl -q net.ipv4.ip_forward=1
"""
)
LARGE = "sysctl -q net.core.rmem_max=67108864 net.core.wmem_max=67108864\n"
USUAL = "sysctl -q net.core.rmem_max=212992 net.core.wmem_max=212992"
# A host behind a translator: b knows its public address, and is told of the others.
BEHIND = """
ip netns add c
ip netns add r
ip link add x1 netns c type veth peer name y1 netns r
ip link add z1 netns r type veth peer name q3 netns b
ip -n c address add 192.168.1.1/24 dev x1
ip -n c address add 192.168.2.1/24 dev x1
ip -n r address add 192.168.1.254/24 dev y1
ip -n r address add 198.51.100.1/24 dev z1
ip -n b address add 198.51.100.2/24 dev q3
ip -n c link set x1 up
ip -n r link set y1 up
ip -n r link set z1 up
ip -n b link set q3 up
ip -n c route add default via 192.168.1.254
ip netns exec r sysctl -q net.ipv4.ip_forward=1
for host in b c; do ip netns exec $host sysctl -q net.sctp.addr_scope_policy=0; done
"""


def set_to(**settings: int) -> str:
    return "\n".join(f"ip netns exec a sysctl -q net.sctp.{name}={value}" for name, value in settings.items())


def rules(host: str, chain: str, *lines: str) -> str:
    words = "\n".join(lines)
    table = f"table inet t {{\nchain c {{\ntype {chain};\n{words}\n}}\n}}"
    return f"ip netns exec {host} nft -f - <<'END'\n{table}\nEND\n"


FILTER = "filter hook input priority 0"
NAT = "nat hook postrouting priority 100"
# The kernel's configuration, which doctor reads for the length of a tick.
BOOT = "mount -t tmpfs none /boot\ncp $CONFIG /boot/config-$(uname -r)\n"


def loss(device: str) -> str:
    return f"ip netns exec b tc qdisc add dev {device} root netem loss 100%\n"


def delay(milliseconds: int) -> str:
    return f"for n in 1 2; do ip netns exec b tc qdisc add dev q$n root netem delay {milliseconds}ms; done\n"


def modinfo(**fields: str) -> str:
    """A program of this name that prints these fields."""
    text = "\n".join(f"{name}: {value}" for name, value in fields.items())
    return f"""mkdir -p /run/bin
echo '#!/bin/sh' >/run/bin/modinfo
echo "echo '{text}'" >>/run/bin/modinfo
chmod +x /run/bin/modinfo
"""


@dataclass(frozen=True)
class Case:
    """A fault, planted by a script, and the names of doctor's findings on host WHERE with the options ASKED.

    programs  arguments of work/talk.py, and "host"; BETWEEN is a script for the time after they have started
    speak_s   for so long the last one sends; QUIET: then it turns its HEARTBEATs off
    clock     whether an NTP client keeps it
    command   doctor is a program of its own, not a call
    commands  make other networks than the usual ones
    """

    before: str
    asked: str
    names: tuple[str, ...] = ()
    where: str = "a"
    programs: tuple[dict[str, Any], ...] = ()
    between: str = ""
    speak_s: int = 0
    quiet: bool = False
    clock: bool = True
    command: bool = False
    after: str = ""
    commands: tuple[dict[str, Any], ...] = ()


def talk(**options: Any) -> tuple[dict[str, Any], ...]:
    """An association between both hosts; OPTIONS are those of the one that opens it."""
    return (
        {"host": "b", "bound": []},
        {"host": "a", "remote": "10.1.0.2", "bound": [], **options},
    )


# No fault: nothing may be found.
HEALTHY = {
    "addresses given": Case("", GIVEN),
    "probed": Case("", f"{GIVEN} --probe"),
    "a table for each source": Case(RULES, FAR),
    "and a default route": Case(RULES + DEFAULT, FAR),
    "timers lowered together": Case(
        set_to(rto_min=300, rto_max=2000, sack_timeout=60, path_max_retrans=0), GIVEN
    ),
    "association": Case("", "--probe", programs=talk()),
    "messages acknowledged late": Case(BOOT, "", programs=talk(), speak_s=60, after="umount /boot"),
    "SCTP accepted first": Case(
        rules(
            "a",
            FILTER,
            "meta l4proto sctp accept",
            "ct state related,established accept",
            "ct state invalid drop",
            "meta l4proto icmp drop",
        ),
        GIVEN,
    ),
    "containers' addresses translated": Case(
        rules("a", NAT, "ip saddr 172.17.0.0/16 masquerade", "meta l4proto tcp masquerade"), GIVEN
    ),
    "a narrow link that tells its MTU": Case(ROUTER, f"{FAR} --probe"),
}
FAULTS = {
    "interface down": Case("ip -n a link set p2 down", GIVEN, ("link-down", "no-route")),
    "no carrier": Case("ip -n b link set q2 down", GIVEN, ("link-down",)),
    "address removed": Case("ip -n a address del 10.2.0.1/24 dev p2", GIVEN, ("address-gone", "no-route")),
    "one default route": Case(DEFAULT, FAR, ("wrong-interface", "one-interface")),
    "strict rp_filter": Case(
        f"{DEFAULT}\nip netns exec a sysctl -q net.ipv4.conf.p2.rp_filter=1",
        FAR,
        ("wrong-interface", "rp-filter", "one-interface"),
    ),
    "no route": Case("", FAR, ("no-route", "no-route")),
    "two VLANs of one card": Case(VLANS, "--local 10.3.0.1 10.4.0.1 --peer 10.3.0.2 10.4.0.2", ("one-card",)),
    "two addresses on one card": Case(
        "ip -n a address add 10.1.1.1/24 dev p1\nip -n b address add 10.1.1.2/24 dev q1",
        "--local 10.1.0.1 10.1.1.1 --peer 10.1.0.2 10.1.1.2",
        ("one-interface",),
    ),
    "docker0, nothing bound yet": Case(DOCKER, "", ("inner-address",)),
    "docker0 offered by a program": Case(DOCKER, "", ("inner-address",), programs=talk()),
    "docker0 on both ends": Case(DOCKER, f"{GIVEN} 172.17.0.1", ("address-on-both-ends",)),
    "two cards in one network": Case("ip -n a address add 10.1.0.7/24 dev p2", GIVEN, ("same-network",)),
    "IPv6 address of another host": Case(
        "for n in 1 2; do ip -n b address add fd00:$n::2/64 dev q$n nodad; done\n"
        "ip -n b address add fd00:2::1/64 dev q2 nodad\n"
        "ip -n a address add fd00:1::1/64 dev p1 nodad\nip -n a address add fd00:2::1/64 dev p2\nsleep 3",
        SIX,
        ("duplicate-address",),
    ),
    "a private address beside a public one": Case(
        "ip -n a address add 198.51.100.1/24 dev p1\nip -n b address add 198.51.100.2/24 dev q1",
        "--local 198.51.100.1 10.2.0.1 --peer 198.51.100.2 10.2.0.2",
        ("address-scope",),
    ),
    "one address": Case("", "--local 10.1.0.1 --peer 10.1.0.2", ("one-path",)),
    "RTO.Min of the SACK delay": Case(set_to(rto_min=200), GIVEN, ("sack-delay",)),
    "RTO.Min of SACK delay and round trip": Case(
        set_to(rto_min=250) + "\n" + delay(100), f"{GIVEN} --probe", ("sack-delay",)
    ),
    "SACK delay of the peer": Case(
        BOOT + set_to(rto_min=150, sack_timeout=20),
        "",
        ("peer-sack-delay",),
        programs=talk(),
        speak_s=60,
        after="umount /boot",
    ),
    "Path.Max.Retrans 1": Case(set_to(path_max_retrans=1), GIVEN, ("path-max-retrans-1",)),
    "no Potentially Failed": Case(set_to(pf_enable=0), GIVEN, ("pf-off",)),
    "Association.Max.Retrans": Case(set_to(association_max_retrans=4), GIVEN, ("association-limit",)),
    "Association.Max.Retrans of a program": Case("", "", ("association-limit",), programs=talk(limit=4)),
    "timers that end associations": Case(
        set_to(rto_min=300, rto_max=400, path_max_retrans=2, association_max_retrans=5),
        GIVEN,
        ("short-life",),
    ),
    "rare HEARTBEATs": Case(set_to(hb_interval=120000), GIVEN, ("slow-heartbeats",)),
    "rare HEARTBEATs of a program": Case(
        BOOT, "", ("slow-heartbeats",), programs=talk(interval_ms=120000), after="umount /boot"
    ),
    "a small message that waits for the one before": Case(
        "", "", ("nagle",), programs=talk(nodelay=False), speak_s=5
    ),
    "an address that the peer does not announce": Case(
        "echo 5000 10.1.0.2 10.2.0.2 10.3.0.2 >/run/expect",
        "--expect /run/expect",
        ("unexpected-addresses",),
        programs=talk(),
    ),
    "no HEARTBEATs from the start": Case("", "", ("unconfirmed",), programs=talk(interval_ms=0)),
    "path never confirmed": Case(loss("q2"), "", ("unconfirmed",), programs=talk()),
    "path failed": Case("", "", ("path-failed",), programs=talk(), between=loss("q1"), speak_s=5),
    "path that answers nothing": Case(loss("q2"), f"{GIVEN} --probe", ("no-echo",)),
    "path MTU hole": Case("ip -n b link set q2 mtu 1400", f"{GIVEN} --probe", ("path-mtu-hole",)),
    "path MTU hole at a router": Case(
        ROUTER + rules("b", "filter hook output priority 0", "icmp type destination-unreachable drop"),
        f"{FAR} --probe",
        ("path-mtu-hole",),
    ),
    "path MTU discovery off": Case(
        "ip netns exec a sysctl -q net.ipv4.ip_no_pmtu_disc=1", GIVEN, ("no-path-mtu-discovery",)
    ),
    "ICMP dropped": Case(
        rules("a", FILTER, "icmp type destination-unreachable drop"), GIVEN, ("icmp-dropped",)
    ),
    "INVALID dropped": Case(rules("a", FILTER, "ct state invalid drop"), GIVEN, ("conntrack-invalid",)),
    "INVALID dropped, first path accepted": Case(
        rules("a", FILTER, "ip saddr 10.1.0.2 meta l4proto sctp accept", "ct state invalid drop"),
        GIVEN,
        ("conntrack-invalid",),
    ),
    "addresses translated here": Case(rules("a", NAT, 'oifname "p2" masquerade'), GIVEN, ("nat",)),
    "addresses translated between": Case(
        BEHIND + rules("r", NAT, 'oifname "z1" masquerade'),
        "",
        ("no-route", "no-route", "unconfirmed", "unconfirmed", "nat-between"),
        where="b",
        programs=(
            {"host": "b", "bound": ["198.51.100.2"]},
            {"host": "c", "remote": "198.51.100.2", "bound": []},
        ),
    ),
    "small limits of buffers": Case(
        "sysctl -q net.sctp.cmt=1",
        "",
        ("small-buffers", "small-buffers"),
        where="",
        after="sysctl -q net.sctp.cmt=0",
    ),
    "small buffers of a program": Case(
        LARGE + set_to(cmt=1),
        "",
        ("small-socket-buffers", "small-socket-buffers"),
        programs=talk(buffers=100_000),
        after=USUAL,
    ),
    "buffers below rate times delay": Case(
        LARGE + set_to(cmt=1) + "\n" + delay(40),
        "--probe",
        ("small-socket-buffers", "small-socket-buffers"),
        programs=talk(buffers=2_000_000),
        command=True,
        after=USUAL,
    ),
    "SCTP blacklisted": Case(
        "mkdir -p /run/modprobe.d\necho install sctp /bin/false >/run/modprobe.d/hardened.conf",
        GIVEN,
        ("module-banned",),
        after="rm -r /run/modprobe.d",
    ),
    "a setting that does not exist": Case(
        "mkdir -p /run/sysctl.d\necho net.sctp.max_sack_gap = 1 >/run/sysctl.d/sctp.conf",
        GIVEN,
        ("unknown-setting",),
        after="rm -r /run/sysctl.d",
    ),
    "module of an older point release": Case(
        modinfo(filename="(builtin)", version="1.0", sctp_source="4.19.1"),
        GIVEN,
        ("old-module",),
        after="rm -r /run/bin",
    ),
    "module not in use": Case(
        modinfo(filename="/lib/modules/sctp.ko", version="1.0", sctp_source="99.1.1"),
        GIVEN,
        ("another-module",),
        after="rm -r /run/bin",
    ),
    "clock not kept": Case("", GIVEN, ("clock",), clock=False),
}
# Nothing on this host shows these. A peer that ignores the I bit is another: only a capture tells.
UNSEEN = {
    # /proc and sock_diag have the interval, not whether HEARTBEATs are sent.
    "HEARTBEATs turned off later": Case("", "", programs=talk(), speak_s=10, quiet=True),
}


def named(cases: dict[str, Case], folder: Path) -> dict[str, list[str]]:
    """The names of the findings of each case."""
    kernel = linux("patched", "doctor")
    plan = {
        name: {
            **asdict(case),
            "before": case.before if case.commands else f"{HOSTS}{case.before}",
        }
        for name, case in cases.items()
    }
    environment = {"CONFIG": str(Path(kernel).parent / "config")}
    result = run_work(
        "diagnosis",
        kernel,
        folder,
        WALL_S,
        cases=plan,
        environment=environment,
        tools=str(ROOT / "tools"),
    )
    return {name: [one["name"] for one in json.loads(text)] for name, text in result["shown"].items()}


def test_every_finding_has_its_fault() -> None:
    """But for those that need a kernel with SCTP as a module, and one with IPVS."""
    source = (ROOT / "tools/doctor/findings.py").read_text()
    known = set(re.findall(r'Finding\(\s*"([a-z0-9-]+)"', source))
    assert known - {name for case in FAULTS.values() for name in case.names} == {"not-loaded", "ipvs"}


def test_each_fault_is_named_and_nothing_else(tmp_path: Path) -> None:
    cases = HEALTHY | FAULTS | UNSEEN
    assert named(cases, tmp_path) == {name: list(case.names) for name, case in cases.items()}
