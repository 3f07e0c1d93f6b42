# SPDX-License-Identifier: GPL-2.0
"""Paths through one queue: commands, refusals, capacity."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path as File
from typing import Any

import pytest
from sctplab.errors import LabError
from sctplab.measure import collect
from sctplab.ns2 import agents
from sctplab.place import qemu
from sctplab.plan import capabilities, run_plan
from sctplab.plan.link_commands import build_commands, egress, namespaces, pasteable
from sctplab.spec import scenario
from sctplab.spec.model import Bottleneck, Direction, Event, Flow, Path, RunSpec, Topology
from sctplab.spec.schema import At, build, plain
from tests.lab_run import small_spec

GOLDEN = File(__file__).parent / "golden" / "build-bottleneck.txt"
WIDE, NARROW = Direction(rate_mbit=100, delay_ms=25), Direction(rate_mbit=10, queue_pkts=20)
QUEUE = Bottleneck("shared", ("path1", "path2"), NARROW, NARROW)
FILE = """# Which paths share a queue?
[factors]
share = [1]
[[topology.paths]]
name = "path1"
rate_mbit = 100
delay_ms = 20
[[topology.paths]]
name = "path2"
rate_mbit = 100
delay_ms = 10
reverse = { delay_ms = 5 }
[[topology.bottlenecks]]
name = "shared"
paths = ["path1", "path2"]
rate_mbit = 20
queue_bdp = "{share}"
[[flows]]
duration_s = 9
"""


def topology(*shared: Bottleneck, third: str = "ipv4") -> Topology:
    families = ("ipv4", "ipv6", third)
    paths = tuple(Path(f"path{i}", WIDE, WIDE, family=family) for i, family in enumerate(families, 1))
    return Topology(paths, bottlenecks=shared or None)


def shared_spec(**changes: Any) -> RunSpec:
    paths = topology().paths[:2]
    return small_spec(**{"topology": Topology(paths, bottlenecks=(QUEUE,)), **changes})


def loaded(tmp_path: File, text: str = FILE, **given: tuple[Any, ...]) -> RunSpec:
    file = tmp_path / "one.toml"
    file.write_text(text)
    choice = scenario.Choice(kernels=("stock",), repeat=1)
    return scenario.expand(scenario.load(file), given, choice)[0]


def test_commands_are_golden() -> None:
    lines = [pasteable(one) for one in build_commands(topology(QUEUE), seed=1)]
    assert lines == GOLDEN.read_text().splitlines()


def test_a_path_beside_a_bottleneck_is_built_as_without_one() -> None:
    without = {pasteable(one) for one in build_commands(topology(), seed=1)}
    with_one = {pasteable(one) for one in build_commands(topology(QUEUE), seed=1)}
    cables = ("link add path1 netns host2", "link add path2 netns host2")
    assert without - with_one == {line for line in without if any(cable in line for cable in cables)}
    assert all("neck-shared" in line for line in with_one - without)


def test_a_topology_without_bottlenecks_has_no_word_of_them() -> None:
    assert "bottlenecks" not in plain(small_spec())["topology"]
    assert [one for one in namespaces(topology()) if one.startswith("neck")] == []


def test_a_spec_with_one_is_read_as_it_was_written() -> None:
    spec = shared_spec()
    assert build(RunSpec, json.loads(json.dumps(plain(spec))), At("file", "")) == spec


def test_both_queues_are_counted() -> None:
    links = run_plan.make(shared_spec(), "mpflow").links
    assert links[-2:] == (("neck-shared", "forward"), ("neck-shared", "reverse"))
    assert egress(QUEUE, "reverse") == links[-1]


def test_events_act_on_the_path_and_on_the_cable_of_its_host() -> None:
    cables = [("carrier-down", "host2"), ("carrier-up", "host2"), ("carrier-down", "host1")]
    events = [Event(i, action, "path2", host=host) for i, (action, host) in enumerate(cables)]
    spec = shared_spec(events=(*events, Event(3, "cut", "path2")))
    made = [[pasteable(one) for one in event.commands] for event in run_plan.events(spec)]
    assert made[:3] == [
        ["ip netns exec neck-shared ip link set path2-2 down"],
        ["ip netns exec neck-shared ip link set path2-2 up"],
        ["ip netns exec mid-path2 ip link set to-host1 down"],
    ]
    assert all(line.startswith("ip netns exec mid-path2 tc qdisc change") for line in made[3])


@pytest.mark.parametrize(("share", "packets"), [(0.2, 13), (1, 66), (5, 330), (0.01, 1)])
def test_a_queue_in_bdp_is_of_the_longest_round_trip(tmp_path: File, share: float, packets: int) -> None:
    """20 Mbit/s x 40 ms / 1514 bytes; the second path has 15 ms."""
    (made,) = loaded(tmp_path, share=(share,)).topology.shared
    assert (made.forward.queue_pkts, made.reverse.queue_pkts) == (packets, packets)


def test_a_queue_in_bdp_leaves_room_for_what_is_on_its_way(tmp_path: File) -> None:
    text = FILE.replace('queue_bdp = "{share}"', 'queue_bdp = "{share}"\nforward = { delay_ms = 10 }')
    (made,) = loaded(tmp_path, text).topology.shared
    assert (made.forward.queue_pkts, made.reverse.queue_pkts) == (83 + 17, 83)  # 50 ms, and 10 ms


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('paths = ["path1", "path2"]', 'paths = ["path1", "path3"]', "got 'path3', expected one of"),
        ('paths = ["path1", "path2"]', "paths = []", r"got \[\], expected at least one path"),
        ('paths = ["path1", "path2"]', 'paths = ["path1", "path1"]', "expected names that differ"),
        ('name = "shared"', 'name = "path1"', "got 'path1', expected names that differ"),
        ("rate_mbit = 20", "", "rate_mbit: got None, expected a value"),
        ("rate_mbit = 20", "rate_mbit = 20\nqueue = 5", "got 'queue', expected one of the keys name, paths"),
        ("rate_mbit = 20", "rate_mbit = 20\nqueue_pkts = 5", "expected queue_bdp or queue_pkts; remove one"),
        (
            "[[flows]]\nduration_s",
            '[[topology.bottlenecks]]\nname = "b"\npaths = ["path1"]\nrate_mbit = 1\n[[flows]]\nduration_s',
            "expected a path in one bottleneck at most",
        ),
        ('queue_bdp = "{share}"', "queue_bdp = 0.001", "queue_bdp: got 0.001, expected a number"),
    ],
)
def test_one_clear_line(tmp_path: File, old: str, new: str, words: str) -> None:
    with pytest.raises(LabError, match=words) as caught:
        loaded(tmp_path, FILE.replace(old, new, 1))
    assert "\n" not in str(caught.value)


def test_places_whose_middles_are_machines_refuse_one() -> None:
    spec = shared_spec(place="qemu")
    with pytest.raises(LabError, match="bottleneck shared: got place qemu, expected uml or netns"):
        qemu.PLACE.refuse([spec])
    assert list(capabilities.no_bottleneck(small_spec())) == []


def test_ns2_refuses_one() -> None:
    spec = shared_spec(flows=(Flow("main", size_mb=1, message_b=1200),))
    with pytest.raises(LabError, match="ns-2 cannot follow bottleneck shared"):
        agents.check(spec, agents.agents(spec)[0].rules)


def test_random_losses_in_a_bottleneck_need_a_netem_with_seeds() -> None:
    lossy = replace(QUEUE, forward=Direction(rate_mbit=1, loss_pct=1))
    assert any(map(capabilities.random, capabilities.shaped(shared_spec(topology=topology(lossy)))))


def test_paths_through_a_bottleneck_have_its_capacity() -> None:
    flow = Flow("f", kind="tcp", messages=1)
    share = 1448 / 1514
    assert collect.capacity_mbit(shared_spec(), flow) == pytest.approx(10 * share)
    assert collect.capacity_mbit(shared_spec(topology=topology(QUEUE)), flow) == pytest.approx(110 * share)
    wide = replace(QUEUE, forward=Direction(rate_mbit=1000))
    ipv4 = Topology(tuple(Path(f"path{i}", WIDE, WIDE) for i in (1, 2)), bottlenecks=(wide,))
    assert collect.capacity_mbit(shared_spec(topology=ipv4), flow) == pytest.approx(200 * share)
