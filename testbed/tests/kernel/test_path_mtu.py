# SPDX-License-Identifier: GPL-2.0
"""A router whose MTU is smaller than that of its neighbours, with and without the ICMP that says so.

Hosts have a routing table for each of their addresses, as an operator of multihomed hosts has them.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from sctplab.measure import capture
from sctplab.measure.capture import Chunk
from sctplab.plan import run_plan
from sctplab.spec.model import Topology
from tests.cmt_run import bulk, path, spec
from tests.kernel_run import linux, run_work

pytestmark = pytest.mark.kernel
WALL_S = 300
MESSAGES = 5000
TO_HOST2 = ("dev", "to-host2")
SMALL_MTU = ["ip", "link", "set", *TO_HOST2, "mtu", "1300"]
# Larger packets than its bucket holds a token bucket drops without a word.
SILENT = [
    "tc",
    "qdisc",
    "replace",
    *TO_HOST2,
    "root",
    "tbf",
    "rate",
    "20mbit",
    "burst",
    "1300",
    "limit",
    "1000000",
]
TIMEOUTS = "SctpT3RtxExpireds"


def carry_out(
    folder: Path, topology: Topology, router: list[str], settings: dict[str, str]
) -> tuple[dict[str, int], list[Chunk]]:
    """Counters of the sender, and the DATA that left it, when the last path has ROUTER."""
    one = spec(topology, bulk(1), settings, pcap=True)
    made = run_plan.as_json(run_plan.make(one, "mpflow"))
    made["setup"].append({"where": f"mid-{topology.paths[-1].name}", "argv": router})
    addresses = [[f"10.{number}.{host}.1" for number in range(1, len(topology.paths) + 1)] for host in (1, 2)]
    result = run_work(
        "transfer", linux("patched"), folder, WALL_S, **made, case="one_way", addresses=addresses
    )
    if result["said"]:
        pytest.fail(result["said"], pytrace=False)
    chunks = capture.chunks(folder, topology, "host1")
    data = [one for one in chunks if (one.kind, one.direction) == ("DATA", "forward")]
    return result["counters"]["host1"], data


def test_what_a_router_says_reaches_the_route_of_the_path(tmp_path: Path) -> None:
    """On the only path, with settings off: every full packet is lost until it does."""
    counters, data = carry_out(tmp_path, Topology((path(1, 10, 20),)), SMALL_MTU, {"cmt": "0"})
    assert counters[TIMEOUTS] == 0
    assert len(data) < 1.01 * MESSAGES


@pytest.mark.parametrize(
    "settings", [{"cmt": "1"}, {"cmt": "1", "failover_heartbeat": "1"}], ids=["cmt", "both"]
)
def test_a_path_that_loses_full_packets_is_asked_for_data_less_and_less(
    settings: dict[str, str], tmp_path: Path
) -> None:
    topology = Topology((path(1, 10, 2), path(2, 10, 20)))
    counters, data = carry_out(tmp_path, topology, SILENT, settings)
    tried = [one.time_ns for one in data if one.path == "path2"]
    turns = [later - one for one, later in pairwise(tried) if later - one > 0.9e9]
    assert len(turns) >= 2
    assert all(later > 1.3 * one for one, later in pairwise(turns[1:]))
    assert counters[TIMEOUTS] <= 6
