# SPDX-License-Identifier: GPL-2.0
"""sctp-multipath doctor on hosts with a planted fault, and on healthy ones: namespaces of one kernel."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sctplab.paths import ROOT
from tests.kernel_run import linux, run_work

pytestmark = pytest.mark.kernel
WALL_S = 120
GIVEN = "--local 10.1.0.1 10.2.0.1 --peer 10.1.0.2 10.2.0.2"
FAR = "--local 10.1.0.1 10.2.0.1 --peer 10.1.9.1 10.2.9.1"
# Two hosts, two networks between them.
HOSTS = """
set -e
for host in a b; do
	ip netns add $host
	ip -n $host link set lo up
done
for n in 1 2; do
	ip link add p$n netns a type veth peer name q$n netns b
	ip -n a address add 10.$n.0.1/24 dev p$n
	ip -n b address add 10.$n.0.2/24 dev q$n
	ip -n a link set p$n up
	ip -n b link set q$n up
done
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
ip -n a link add docker0 type veth peer name inside
ip -n a link set inside up
ip -n a link set docker0 up
ip -n a address add 172.17.0.1/16 dev docker0
"""
TALK = """
cat >/tmp/talk.py <<'END'
import socket, sys, time
SCTP = 132
one = socket.socket(socket.AF_INET, socket.SOCK_STREAM, SCTP)
if sys.argv[1] == "listen":
    one.bind(("0.0.0.0", 5000))
    one.listen()
    peer = one.accept()[0]
    while peer.recv(100):
        pass
else:
    one.connect(("10.1.0.2", 5000))
    for _ in range(10):
        one.send(b"x")
        time.sleep(1)
END
ip netns exec b /usr/bin/python3 /tmp/talk.py listen &
sleep 1
ip netns exec a /usr/bin/python3 /tmp/talk.py talk &
sleep 4
"""


def set_to(**settings: int) -> str:
    return "\n".join(f"ip netns exec a sysctl -q net.sctp.{name}={value}" for name, value in settings.items())


def named(folder: Path, fault: str, asked: str) -> list[str]:
    """What doctor names on host a after this."""
    doctor = f"PYTHONPATH={ROOT}/tools PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -m doctor --json {asked}"
    script = f"{HOSTS}{fault}\nip netns exec a env {doctor} || test $? = 1"
    (ended,) = run_work("shell", linux("patched"), folder, WALL_S, scripts=[script], environment={})["ended"]
    assert ended["exit"] == 0, ended
    return [one["name"] for one in json.loads(ended["output"])]


@pytest.mark.parametrize(
    ("fault", "asked", "names"),
    [
        ("", GIVEN, []),
        (RULES, FAR, []),
        (RULES + DEFAULT, FAR, []),
        (set_to(rto_min=300, rto_max=2000, sack_timeout=60, path_max_retrans=0), GIVEN, []),
        ("ip -n a link set p2 down", GIVEN, ["link-down", "no-route"]),
        ("ip -n b link set q2 down", GIVEN, ["link-down"]),
        ("ip -n a address del 10.2.0.1/24 dev p2", GIVEN, ["address-gone", "no-route"]),
        (DEFAULT, FAR, ["wrong-interface", "one-interface"]),
        (
            f"{DEFAULT}\nip netns exec a sysctl -q net.ipv4.conf.p2.rp_filter=1",
            FAR,
            ["wrong-interface", "rp-filter", "one-interface"],
        ),
        ("", FAR, ["no-route", "no-route"]),
        (
            DOCKER,
            "",
            ["inner-address"],
        ),
        (
            DOCKER,
            f"{GIVEN} 172.17.0.1",
            ["address-on-both-ends"],
        ),
        ("ip -n a address add 10.1.0.7/24 dev p2", GIVEN, ["same-network"]),
        ("", "--local 10.1.0.1 --peer 10.1.0.2", ["one-path"]),
        (set_to(rto_min=200), GIVEN, ["sack-delay"]),
        (set_to(path_max_retrans=1), GIVEN, ["path-max-retrans-1"]),
        (set_to(pf_enable=0), GIVEN, ["pf-off"]),
        (set_to(association_max_retrans=4), GIVEN, ["association-limit"]),
        (
            set_to(rto_min=300, rto_max=400, path_max_retrans=2, association_max_retrans=5),
            GIVEN,
            ["short-life"],
        ),
        (set_to(hb_interval=120000), GIVEN, ["slow-heartbeats"]),
    ],
)
def test_what_is_named(fault: str, asked: str, names: list[str], tmp_path: Path) -> None:
    assert named(tmp_path, fault, asked) == names


@pytest.mark.parametrize(
    ("before", "after", "names"),
    [
        ("", "", []),
        ("ip netns exec b tc qdisc add dev q2 root netem loss 100%", "", ["unconfirmed"]),
        ("", "ip netns exec b tc qdisc add dev q1 root netem loss 100%\nsleep 5", ["path-failed"]),
    ],
    ids=["healthy", "never answered", "cut"],
)
def test_an_association(before: str, after: str, names: list[str], tmp_path: Path) -> None:
    assert named(tmp_path, f"{before}{TALK}{after}", "") == names
