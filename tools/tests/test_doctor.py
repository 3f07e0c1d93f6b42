# SPDX-License-Identifier: GPL-2.0
"""sctp-multipath doctor: what it reads, and what it makes of facts that no namespace here has."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path as File

import pytest
from doctor import cli, expected, facts, filters, host, probe, sockets
from doctor.facts import ACTIVE, Association, Facts, Link, Path, Route
from doctor.findings import CHECKS, Finding, findings, in_force, life_s
from failover.settings import Settings
from pathview import model
from sctpkernel.errors import Problem

DEFAULTS = {
    "sack_timeout": "200", "rto_min": "1000", "rto_max": "60000", "path_max_retrans": "5", "pf_enable": "1",
    "association_max_retrans": "10", "hb_interval": "30000",
}  # fmt: skip
LINKS = tuple(Link(f"eth{n}", True, (f"10.{n}.0.1",), (f"10.{n}.0.0/24",), 0) for n in (1, 2))
PATHS = tuple(Path(f"10.{n}.0.2", ACTIVE) for n in (1, 2))
LOCAL = ("10.1.0.1", "10.2.0.1")
WAYS = tuple(
    Route(local, f"10.{n}.0.2", f"eth{n}", local or f"10.{n}.0.1") for n in (1, 2) for local in ("", *LOCAL)
)
HEALTHY = Facts(settings=DEFAULTS, links=LINKS, associations=(Association("1", LOCAL, PATHS),), routes=WAYS)
ASSOCS = """\
 ASSOC SOCK STY SST ST HBKT ASSOC-ID TX_QUEUE RX_QUEUE UID INODE LPORT RPORT LADDRS <-> RADDRS HBINT INS
0000 1111 2 1 3 0 17 0 0 0 5 42 5000  *10.1.0.1 10.2.0.1 <-> *10.1.0.2 10.2.0.2 30 9 9 10 0 0 7 1 0 1000 2000
0000 2222 2 1 1 0 18 0 0 0 5012 42101 5000  10.1.0.1 <-> *fd00:0000:0000:0000:0000:0000:0000:0002 \t   3000 10
"""
REMADDR = """\
ADDR ASSOC_ID HB_ACT RTO MAX_PATH_RTX REM_ADDR_RTX START STATE
10.1.0.2  17 1 1000 5 0 0 2
10.2.0.2  17 1 3000 5 0 0 3
"""


def names(changed: Facts) -> list[str]:
    return [one.name for one in findings(changed)]


def test_a_healthy_host() -> None:
    assert findings(HEALTHY) == []
    assert cli.text([]) == "nothing found"


def test_an_address_that_both_ends_announce() -> None:
    """As of virtual machines behind NAT; an association within this host has all of them twice."""
    shared = "10.0.2.15"
    links = (*LINKS, Link("eth0", True, (shared,), ("10.0.2.0/24",), 0))
    paths = (*PATHS, Path(shared, ACTIVE))
    wild = replace(HEALTHY, links=links, associations=(Association("1", (*LOCAL, shared), paths),))
    assert "address-on-both-ends" in names(wild)
    inside = Association("1", LOCAL, tuple(Path(address, ACTIVE) for address in LOCAL))
    assert "address-on-both-ends" not in names(replace(HEALTHY, associations=(inside,)))


def test_associations_are_read() -> None:
    first, second = facts.associations(ASSOCS, REMADDR)
    assert first == Association(
        "17",
        LOCAL,
        (Path("10.1.0.2", 2, 1000, 5), Path("10.2.0.2", 3, 3000, 5)),
        True,
        10,
        7,
        (1000, 2000),
        30,
        (42, 5000),
    )
    other = Path("fd00::2", ACTIVE)
    assert second == Association("18", LOCAL[:1], (other,), False, heartbeat=3000, ports=(42101, 5000))
    assert facts.associations("", "") == ()


SERVICE = "198.51.100.1"  # on lo, and its networks are routed


def test_interfaces_are_read() -> None:
    shown = [
        {
            "ifname": "lo",
            "link_type": "loopback",
            "flags": ["UP", "LOWER_UP"],
            "mtu": 65536,
            "addr_info": [
                {"local": "127.0.0.1", "prefixlen": 8, "scope": "host"},
                {"local": SERVICE, "prefixlen": 32, "scope": "global"},
            ],
        },
        {
            "ifname": "eth1",
            "flags": ["UP", "LOWER_UP"],
            "mtu": 1400,
            "addr_info": [
                {"local": "10.1.0.1", "prefixlen": 24, "scope": "global", "dadfailed": True},
                {"local": "fe80::1", "prefixlen": 64, "scope": "link"},
            ],
        },
        {
            "ifname": "eth2.7",
            "link": "eth2",
            "flags": ["UP", "NO-CARRIER"],
            "linkinfo": {"info_kind": "vlan"},
            "addr_info": [],
        },
    ]
    found = facts.links(json.dumps(shown), {"all": 0, "eth1": 1}, {"eth1": 1000})
    assert found == (
        Link("lo", True, (SERVICE,), (), 0, "lo", 65536, others=("127.0.0.1",), routed=True),
        Link(
            "eth1", True, ("10.1.0.1",), ("10.1.0.0/24",), 1, "eth1", 1400, 1000, ("10.1.0.1",), ("fe80::1",)
        ),
        Link("eth2.7", False, (), (), 0, "eth2"),
    )


def test_addresses_of_lo_and_of_a_link_are_here() -> None:
    lo = Link("lo", True, (SERVICE,), (), 0, others=("127.0.0.1",), routed=True)
    local = (SERVICE, "fe80::1%eth2", "fe80::1")
    here = replace(
        HEALTHY,
        links=(lo, LINKS[0], replace(LINKS[1], others=("fe80::1",))),
        associations=(Association("1", local, (*PATHS, Path("fe80::2", ACTIVE))),),
        routes=(*(replace(way, local=SERVICE) for way in WAYS), Route("fe80::1", "fe80::2", "eth1")),
    )
    assert names(here) == []
    gone = replace(here.associations[0], local=(*local, "fe80::1%eth1"))
    assert names(replace(here, associations=(gone,))) == ["address-gone"]
    assert facts.question("fe80::1%eth2", "fe80::2%eth2") == "route get fe80::2 from fe80::1 oif eth2"
    assert facts.question("", "10.1.0.2") == "route get 10.1.0.2"


def test_all_addresses_of_a_connection_to_itself_are_here() -> None:
    lo = Link("lo", True, (), (), 0, others=("127.0.0.1",), routed=True)
    inside = Association("1", LOCAL, tuple(Path(address, ACTIVE) for address in (*LOCAL, "127.0.0.1")))
    found = replace(HEALTHY, links=(*LINKS, lo), associations=(inside,))
    assert "address-on-both-ends" not in names(found)


@pytest.mark.parametrize(
    ("name", "inner"),
    [
        *[(name, True) for name in ("docker0", "br-0123456789ab", "virbr0", "veth12ab", "cni0", "lxdbr0")],
        *[(name, False) for name in ("br0", "eth0", "ens3", "bond0", "vlan7", "br-lan", "tun0")],
    ],
)
def test_names_of_interfaces_to_containers(name: str, inner: bool) -> None:
    assert Link(name, True, (), (), 0).inner is inner


NFT = "table inet t {{\n\tchain c {{\n\t\ttype {hook}; policy accept;\n\t\t{lines}\n\t}}\n}}\n"


def rules(*lines: str, hook: str = "filter hook input priority filter") -> tuple[filters.Rule, ...]:
    """As nft lists them, or iptables-save."""
    if lines[0].startswith("-A"):
        return filters.rules("", "\n".join(("*filter", ":INPUT ACCEPT [0:0]", *lines, "COMMIT")))
    return filters.rules(NFT.format(hook=hook, lines="\n\t\t".join(lines)), "")


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("ct state invalid drop", True),
        ("ct state { invalid } counter packets 0 bytes 0 drop", True),
        ("ct state invalid,untracked counter packets 0 bytes 0 reject", True),
        ("ct state vmap { established : accept, related : accept, invalid : drop }", True),
        ("-A INPUT -m conntrack --ctstate INVALID -j DROP", True),
        ("-A INPUT -m state --state INVALID,UNTRACKED -j REJECT --reject-with icmp-port-unreachable", True),
        ("ct state established,related accept", False),
        ("ct state invalid accept", False),
        ("-A INPUT -m conntrack --ctstate ESTABLISHED -j ACCEPT", False),
    ],
)
def test_rules_that_drop_what_is_invalid(line: str, found: bool) -> None:
    lines = filters.invalid(rules(line))
    assert lines == ((line,) if found else ())
    assert names(replace(HEALTHY, invalid=lines)) == ["conntrack-invalid"] * found


@pytest.mark.parametrize(
    ("line", "passes"),
    [
        ("meta l4proto sctp accept", True),
        ("meta l4proto sctp counter packets 4 bytes 200 accept", True),
        ("ip protocol { tcp, sctp } accept", True),
        ("sctp dport 5000 accept", True),
        ("sctp dport { 2905, 3868 } accept", True),
        ("accept", True),
        ("ip saddr 10.1.0.2 meta l4proto sctp accept", False),
        ("sctp dport 5000 drop", False),
        ("tcp dport 22 accept", False),
    ],
)
def test_rules_in_front_of_those(line: str, passes: bool) -> None:
    assert filters.invalid(rules(line, "ct state invalid drop")) == (
        () if passes else ("ct state invalid drop",)
    )


def test_rules_of_iptables_in_front_of_those() -> None:
    drop = "-A INPUT -m conntrack --ctstate INVALID -j DROP"
    for line, passes in (
        ("-A INPUT -p sctp -j ACCEPT", True),
        ("-A INPUT -p sctp -m sctp --dport 5000 -j ACCEPT", True),
        ("-A INPUT -s 10.1.0.2/32 -p sctp -j ACCEPT", False),
        ("-A OTHER -p sctp -j ACCEPT", False),
    ):
        assert filters.invalid(rules(line, drop)) == (() if passes else (drop,))


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("icmp type destination-unreachable drop", True),
        ("icmp type { destination-unreachable, echo-request } counter packets 0 bytes 0 drop", True),
        ("icmpv6 type packet-too-big reject", True),
        ("meta l4proto { icmp, ipv6-icmp } drop", True),
        ("ip protocol icmp drop", True),
        ("-A INPUT -p icmp -j DROP", True),
        ("-A INPUT -p icmp -m icmp --icmp-type 3/4 -j DROP", True),
        ("icmp type echo-request drop", False),
        ("-A INPUT -p icmp -m icmp --icmp-type 8 -j DROP", False),
        ("ip saddr 10.9.0.0/16 meta l4proto icmp drop", False),
    ],
)
def test_rules_that_drop_icmp(line: str, found: bool) -> None:
    lines = filters.icmp(rules(line))
    assert lines == ((line,) if found else ())
    assert names(replace(HEALTHY, icmp=lines)) == ["icmp-dropped"] * found
    related = "-A INPUT -m state --state RELATED -j ACCEPT" if line[0] == "-" else "ct state related accept"
    assert filters.icmp(rules(related, line)) == ()
    if line[0] != "-":
        assert filters.icmp(rules(line, hook="filter hook output priority 0")) == ()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('oifname "eth1" masquerade', True),
        ("snat ip to 192.0.2.1", True),
        ("ip saddr 10.0.0.0/8 masquerade", True),
        ("-A POSTROUTING -o eth1 -j MASQUERADE", True),
        ("-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE", False),
        ("ip saddr 10.88.0.0/16 masquerade", False),
        ("ip saddr @containers masquerade", False),
        ("meta l4proto != sctp masquerade", False),
        ("meta l4proto { tcp, udp } masquerade", False),
        ("meta l4proto { sctp, udp } masquerade", True),
        ("tcp dport 80 masquerade", False),
        ("-A POSTROUTING -p tcp -j MASQUERADE", False),
        ('oifname "eth1" accept', False),
    ],
)
def test_rules_that_change_addresses(line: str, found: bool) -> None:
    lines = filters.nat(rules(line, hook="nat hook postrouting priority srcnat"))
    assert names(replace(HEALTHY, nat=lines)) == ["nat"] * found


def test_answers_of_ip() -> None:
    pairs = (("", "10.1.0.2"), ("10.1.0.1", "10.9.0.2"), ("10.2.0.1", "10.2.0.2"))
    shown = (
        '[{"dst":"10.1.0.2","dev":"eth1","prefsrc":"10.1.0.1"}]\n'
        '[{"dst":"10.2.0.2","from":"10.2.0.1","dev":"eth2","metrics":[{"mtu":1400}]}]\n\n'
    )
    complaints = "RTNETLINK answers: Network is unreachable\nCommand failed -:2\n"
    assert facts.answered(pairs, shown, complaints) == (
        Route("", "10.1.0.2", "eth1", "10.1.0.1"),
        Route("10.1.0.1", "10.9.0.2", "", "10.1.0.1"),
        Route("10.2.0.1", "10.2.0.2", "eth2", "10.2.0.1", 1400),
    )


def test_the_length_of_a_tick(tmp_path: File) -> None:
    (tmp_path / "config-6.12").write_text("CONFIG_HZ_250=y\nCONFIG_HZ=250\n")
    assert (facts.ticks("6.12", tmp_path), facts.ticks("6.1", tmp_path)) == (250, 0)


def test_retransmissions_are_compared_with_what_was_sent() -> None:
    counters = "SctpCurrEstab 1\nSctpOutOrderChunks \t 4000\nSctpOutUnorderChunks 1000\nSctpOutCtrlChunks 9\n"
    assert facts.sent(counters) == 5000
    paths = tuple(replace(path, rto=50, max_retrans=5) for path in PATHS)
    one = Association("1", LOCAL, paths, rtx=100)
    for sent, named in ((5000, True), (5050, False)):
        seen = replace(HEALTHY, associations=(one,), hz=250, sent=sent)
        assert names(seen) == ["peer-sack-delay"] * named
    assert names(replace(HEALTHY, associations=(replace(one, rtx=9),), hz=250)) == []


def test_an_echo_request() -> None:
    packet = probe.request(probe.KINDS[4], 7, 1, 1500)
    assert len(packet) == 1480 and probe.checksum(packet) == 0
    assert len(probe.request(probe.KINDS[6], 7, 1, 1500)) == 1460


def test_files_of_settings(tmp_path: File) -> None:
    (tmp_path / "a.conf").write_text("# net.sctp.x = 1\nnet.sctp.rto_min = 300\n-net/sctp/max_sack_gap=1\n")
    file = str(tmp_path / "a.conf")
    assert facts.configured([tmp_path]) == ((file, "rto_min"), (file, "max_sack_gap"))


def test_lines_against_the_module() -> None:
    text = "blacklist sctp\ninstall sctp_diag /bin/false\nblacklist sctpx\nalias sctp foo\n"
    assert host.bans(text, "sctp", "sctp_diag") == ("blacklist sctp", "install sctp_diag /bin/false")


def test_a_host_without_sctp() -> None:
    assert names(Facts()) == ["not-loaded"]


def test_peers_of_another_family_are_no_paths() -> None:
    other = Association("1", LOCAL[:1], (PATHS[0], Path("fd00::2", ACTIVE)))
    assert names(replace(HEALTHY, associations=(other,))) == ["one-path"]


def test_addresses_that_a_peer_should_announce(tmp_path: File) -> None:
    file = tmp_path / "sctp_expect"
    file.write_text("# peers\n2905 10.1.0.2 10.2.0.2 10.3.0.2\n2906 10.9.0.2 fe80:0::1%eth0  # another\n")
    peers = expected.peers(file)
    assert [one.port for one in peers] == [2905, 2906] and peers[1].addresses == {"10.9.0.2", "fe80::1"}
    one = replace(HEALTHY.associations[0], ports=(40000, 2905))
    found = findings(replace(HEALTHY, associations=(one,), expected=peers))
    assert [(one.name, one.found) for one in found] == [
        ("unexpected-addresses", "association 1: the peer announces 2 addresses, without 10.3.0.2")
    ]
    assert f"{file}:2" in found[0].remedy
    for ports in ((40000, 2906), (40000, 5000)):
        assert names(replace(HEALTHY, associations=(replace(one, ports=ports),), expected=peers)) == []


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("10.1.0.2 2905", "got '10.1.0.2', expected a port"),
        ("70000 10.1.0.2", "got '70000', expected a port"),
        ("\u00b2905 10.1.0.2", "got '\u00b2905', expected a port"),
        ("2905", "got no address"),
        ("2905 ten", "got 'ten', expected an IPv4 or IPv6 address"),
    ],
)
def test_lines_that_expect_nothing(
    line: str, complaint: str, tmp_path: File, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "sctp_expect"
    file.write_text(f"\n{line}\n")
    with pytest.raises(SystemExit) as ended:
        cli.main(["--expect", str(file)])
    assert ended.value.code == 2 and f"{file}:2: {complaint}" in capsys.readouterr().err


def test_a_file_that_is_asked_for_has_to_be_there(tmp_path: File) -> None:
    with pytest.raises(Problem, match="none: No such file"):
        expected.peers(tmp_path / "none")


def test_a_service_of_ipvs(tmp_path: File) -> None:
    (tmp_path / "sys/net/ipv4/vs").mkdir(parents=True)
    (tmp_path / "net").mkdir()
    (tmp_path / "net/ip_vs").write_text(
        "IP Virtual Server version 1.2.1 (size=4096)\nProt LocalAddress:Port Scheduler Flags\n"
        "  -> RemoteAddress:Port Forward Weight ActiveConn InActConn\nSCTP  0A010001:0B59 rr\n"
    )
    assert facts.balanced(tmp_path) == ""
    for value, found in (("1", ""), ("0", "0A010001:0B59")):
        (tmp_path / "sys/net/ipv4/vs/sloppy_sctp").write_text(f"{value}\n")
        assert facts.balanced(tmp_path) == found
    assert names(replace(HEALTHY, balanced="0A010001:0B59")) == ["ipvs"]


def test_small_messages_without_nodelay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lone messages of 100 bytes; two with the option and two that fill packets are none."""
    lone = model.Path("10.1.0.2", "active", out_packets=10, out_chunks=10, out_bytes=10 * (12 + 16 + 100))
    bundled = replace(lone, out_packets=2)
    found = [
        (model.Association(number, 1, 2, "established", 1, (path,)), number)
        for number, path in enumerate((lone, bundled, lone), start=1)
    ]
    monkeypatch.setattr(sockets.live, "associations", lambda: found)
    monkeypatch.setattr(sockets.live, "options_of", lambda inode, _: {"nodelay": int(inode == 3)})
    assert sockets.waiting() == (("1", 100),)
    assert names(replace(HEALTHY, waiting=sockets.waiting())) == ["nagle"]


def test_how_long_an_association_lives() -> None:
    """As measured: 53 to 100 s with the defaults. The timeouts of all paths and HEARTBEATs count."""
    usual = life_s(in_force(HEALTHY))
    assert usual is not None and 34 < usual < 101
    quick = {"rto_min": "200", "rto_max": "400", "sack_timeout": "20"}
    limits = {"association_max_retrans": "16", "path_max_retrans": "8"}
    (one,) = findings(replace(HEALTHY, settings={**DEFAULTS, **quick, **limits}))
    assert one.name == "short-life" and "ends after 3." in one.found
    assert life_s(Settings(rto_max=60000, association_max_retrans=10_000)) is None


@pytest.mark.parametrize(
    ("most", "pf", "remedy"),
    [
        ("1", "0", "sysctl net.sctp.path_max_retrans=2, or 0 with the patched module"),
        ("1", "3", "sysctl net.sctp.path_max_retrans=5, or 0 with the patched module"),
        ("5", "4", "sysctl net.sctp.pf_retrans=0"),
        ("5", "3", ""),
        ("0", "0", ""),
    ],
)
def test_limits_without_potentially_failed_between(most: str, pf: str, remedy: str) -> None:
    found = findings(replace(HEALTHY, settings={**DEFAULTS, "path_max_retrans": most, "pf_retrans": pf}))
    assert [(one.name, one.remedy) for one in found] == [("path-max-retrans-1", remedy)] * bool(remedy)


@pytest.mark.parametrize(
    ("others", "why"),
    [
        ((), "no path is active: data waits"),
        (PATHS[1:], "one more fault ends the association's data flow"),
        ((PATHS[1], Path("10.2.0.3", ACTIVE)), "data has 2 active paths left"),
    ],
)
def test_paths_that_are_left_are_counted(others: tuple[Path, ...], why: str) -> None:
    paths = (replace(PATHS[0], state=facts.INACTIVE), *others)
    found = findings(replace(HEALTHY, associations=(Association("1", LOCAL, paths),)))
    assert [one.why for one in found if one.name == "path-failed"] == [why]


def test_each_check_says_three_things_in_a_line_each() -> None:
    paths = (Path("10.1.0.2", 0), Path("10.2.0.2", 3))
    broken = Facts(
        settings={**DEFAULTS, "rto_min": "100", "path_max_retrans": "1", "hb_interval": "90000", "cmt": "1"},
        others={"net.core.rmem_max": "212992", "net.ipv4.ip_no_pmtu_disc": "1"},
        configured=(("/etc/sysctl.d/sctp.conf", "max_sack_gap"), ("/etc/sysctl.d/sctp.conf", "rto_min")),
        bans=("blacklist sctp",),
        links=(replace(LINKS[0], up=False), LINKS[1]),
        associations=(Association("1", ("10.1.0.1", "10.9.0.1"), paths),),
        routes=tuple(replace(way, device="") for way in WAYS),
        invalid=("ct state invalid drop",),
        nat=("masquerade",),
    )
    found = findings(broken)
    assert [one.name for one in found] == [
        *("module-banned", "unknown-setting", "sack-delay", "path-max-retrans-1", "slow-heartbeats"),
        *("small-buffers", "no-path-mtu-discovery", "link-down", "address-gone", "no-route", "no-route"),
        *("path-failed", "unconfirmed", "conntrack-invalid", "nat"),
    ]
    assert len(CHECKS) > 20
    for one in found:
        assert all("\n" not in word and word for word in (one.name, one.found, one.why, one.remedy))
    text = cli.text(found)
    assert len(text.splitlines()) == 3 * len(found)


def test_wrong_use(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli.os, "geteuid", lambda: 1000)
    for words, complaint in (
        (["--probe"], "--probe: only root may send echo requests"),
        (["--local", "10.1.0.1"], "--local and --peer: got one of them, expected both or none"),
        (["--local", "ten", "--peer", "10.1.0.2"], "got 'ten', expected an IPv4 or IPv6 address"),
        (["--local", "fe80::1%999999"], "got 'fe80::1%999999', expected an interface of this host after %"),
    ):
        with pytest.raises(SystemExit) as ended:
            cli.main(words)
        assert ended.value.code == 2 and complaint in capsys.readouterr().err


def test_json_for_programs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(cli.os, "geteuid", lambda: 0)
    monkeypatch.setattr(cli, "look", lambda *words: asked.append(words) or Facts())
    words = ["--local", "fd00:0::1", "fe80::1%1", "--peer", "10.1.0.2", "fe80::2%lo"]
    assert cli.main(["--json", *words, "--probe"]) == 1
    assert asked == [(["fd00::1", "fe80::1%lo"], ["10.1.0.2", "fe80::2%lo"], True, ())]
    (one,) = json.loads(capsys.readouterr().out)
    assert Finding(**one).name == "not-loaded"
