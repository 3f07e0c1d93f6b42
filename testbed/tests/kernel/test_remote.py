# SPDX-License-Identifier: GPL-2.0
"""Place remote from check to restored machines, which are namespaces here; what is killed in between."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.remote_run import INVENTORY, LAB, left_over, on_site

pytestmark = pytest.mark.kernel

REMOTE = "--place remote --inventory /run/inventory"
# Everything that a run can set and take back: sysctls, qdiscs, offloads, MTU, a carrier and an address.
EVERYTHING = """# Is all taken back?
[[topology.paths]]
name = "path1"
rate_mbit = 20
delay_ms = 10
mtu = 1400

[[topology.paths]]
name = "path2"
rate_mbit = 20
delay_ms = 10

[[flows]]
duration_s = 6
message_log = true
message_b = 1000
interval_ms = 10

{events}
[sysctl]
"net.sctp.rto_min" = 300

[measure]
sample_ms = 500
"""
EVENT = '[[events]]\nat_s = {}\naction = "{}"\npath = "{}"\n'
MISHAPS = [
    (1, "cut", "path1"),
    (2, "heal", "path1"),
    (3, "carrier-down", "path1"),
    (4, "carrier-up", "path1"),
    (3.5, "address-del", "path2"),
    (5, "address-add", "path2"),
]


@pytest.fixture
def everything(tmp_path: Path) -> Path:
    file = tmp_path / "everything.toml"
    file.write_text(EVERYTHING.format(events="".join(EVENT.format(*one) for one in MISHAPS)))
    return file


def records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted((folder / "records").glob("*.json"))]


def test_a_run_leaves_the_machines_as_they_were(tmp_path: Path, everything: Path) -> None:
    run = f"{LAB} run {everything} {REMOTE} --pcap --out {tmp_path}/out"
    done = on_site([f"{LAB} check /run/inventory", run], tmp_path)
    checked, ran = done["ended"]
    assert checked["exit"] == 0, checked
    assert "ok   path 2 ipv4: 1500 bytes pass unfragmented" in checked["output"]
    assert ran["exit"] == 0, ran
    assert left_over(done) == []
    (record,) = records(tmp_path / "out")
    assert [event["label"].split()[0] for event in record["events"]] == [one[1] for one in sorted(MISHAPS)]
    assert record["flows"][0]["receiver"]["content"] == "ok"
    assert 0.2 < record["metrics"]["failover_s"] < 1.5
    assert record["sysctls"]["host1"]["net.sctp.rto_min"] == "300"
    assert record["kernel"]["host2"]["flavour"] == "patched"
    assert record["series"]["wire_mbit.path1"] and record["paths"][0]["forward"]["drops"] > 0
    assert {path.name for path in (tmp_path / "out/pcap").glob("*/*")} >= {"host1.path1.pcap"}


def test_without_a_router_the_hosts_shape_what_they_receive(tmp_path: Path) -> None:
    """Path 1 is cut after 0.5 s: what was neither through it by then nor in its queue went over path 2."""
    size_mb, cut_s, message_b = 8, 0.5, 1400
    words = f"demo-cut --set size_mb={size_mb} --set cut_s={cut_s} {REMOTE} --out {tmp_path}/out"
    done = on_site([f"{LAB} run {words}"], tmp_path, inventory=INVENTORY)
    assert done["ended"][0]["exit"] == 0, done["ended"]
    assert left_over(done) == []
    for record in records(tmp_path / "out"):
        first, second = (path["forward"] for path in record["paths"])
        through_b = first["rate_mbit"] * 1e6 / 8 * cut_s
        assert first["drops"] > 0
        assert second["tx_packets"] > (size_mb * 1e6 - through_b) / message_b - first["queue_pkts"]


def test_a_conductor_that_is_silent_is_given_up(tmp_path: Path, everything: Path) -> None:
    """As when its network is gone: stopped, with all connections open."""
    conductor = "$(pgrep -f '[s]ctplab.remote.conduct')"
    script = (
        f"{LAB} run {everything} {REMOTE} --out {tmp_path}/out &"
        " until ip -n mid-path1 link | grep -q 'to-host1.*DOWN'; do sleep 0.1; done;"
        f" kill -STOP {conductor}; sleep 8; tc -n mid-path1 qdisc;"
        f" sleep 4; echo now; tc -n mid-path1 qdisc; kill -KILL $! {conductor}"
    )
    done = on_site([script], tmp_path)
    before, _, now = done["ended"][0]["output"].partition("now")
    assert "netem" in before and "netem" not in now
    assert left_over(done) == []


VICTIMS = {
    "laboratory": "$!",
    "conductor": "$(pgrep -f '[s]ctplab.remote.conduct')",
    "agent": "$(pgrep -o -f '[a]gent/machine.py')",
}


@pytest.mark.parametrize("victim", VICTIMS)
def test_whoever_is_killed_the_machines_are_restored(tmp_path: Path, everything: Path, victim: str) -> None:
    """In the middle of the mishaps: path1's carrier and path2's address are gone."""
    scripts = [
        f"{LAB} run {everything} {REMOTE} --out {tmp_path}/out &"
        " until ip -n mid-path1 link | grep -q 'to-host1.*DOWN'; do sleep 0.1; done; sleep 0.7;"
        f" tc -n mid-path1 qdisc; ip -n host1 addr; kill -KILL {VICTIMS[victim]}",
        "sleep 15; pgrep -af '[s]ctplab|[m]achine.py'",
    ]
    done = on_site(scripts, tmp_path)
    middle = done["ended"][0]["output"]
    assert "netem" in middle and "10.2.1.1" not in middle
    assert done["ended"][1]["output"] == ""
    assert left_over(done) == []
