# SPDX-License-Identifier: GPL-2.0
"""Golden command lists: what a topology and its events turn into."""

from dataclasses import replace
from pathlib import Path

import pytest
from sctplab.errors import LabError
from sctplab.plan import run_plan
from sctplab.plan.link_commands import build_commands, netem, pasteable
from sctplab.spec import scenario
from sctplab.spec.model import Direction, Event, Flow, GeModel, RunSpec, Topology
from sctplab.spec.model import Path as LinkPath
from sctplab.spec.schema import At, build, plain

GOLDEN = Path(__file__).parent / "golden"
LINK = Direction(rate_mbit=10, delay_ms=25)


def topology(*families: str) -> Topology:
    return Topology(tuple(LinkPath(f"path{i}", LINK, LINK, family=f) for i, f in enumerate(families, 1)))


@pytest.mark.parametrize("families", [("ipv4", "ipv4"), ("ipv4", "ipv6"), ("ipv4",) * 3])
def test_build_commands_are_golden(families: tuple[str, ...]) -> None:
    lines = [pasteable(one) for one in build_commands(topology(*families), seed=1)]
    golden = GOLDEN / f"build-{'-'.join(families)}.txt"
    assert lines == golden.read_text().splitlines()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (LINK, "limit 1000 delay 25ms loss random 0% rate 10000000bit seed 7"),
        (
            Direction(34.368, loss_pct=2.5),
            "limit 1000 delay 0ms loss random 2.5% rate 34368000bit seed 7",
        ),
        (
            Direction(1, 20, jitter_ms=5, queue_pkts=50),
            "limit 50 delay 20ms 5ms loss random 0% rate 1000000bit seed 7",
        ),
        (
            Direction(1, 20, gemodel=GeModel(p=1, r=30, one_h=80, one_k=0.1)),
            "limit 1000 delay 20ms loss gemodel 1% 30% 80% 0.1% rate 1000000bit seed 7",
        ),
        (
            Direction(1, 20, loss_pct=1, ecn=True),
            "limit 1000 delay 20ms loss random 1% ecn rate 1000000bit seed 7",
        ),
        (
            Direction(1, 20, reorder_pct=3),
            "limit 1000 delay 20ms loss random 0% reorder 3% rate 1000000bit seed 7",
        ),
    ],
)
def test_netem_words(values: Direction, words: str) -> None:
    seeded = Direction(**{**values.__dict__, "seed": 7})
    made = netem("add", LinkPath("path1", LINK, LINK), "forward", seeded, seed=1)
    assert made.where == "mid-path1"
    assert " ".join(made.argv) == f"tc qdisc add dev to-host2 root netem {words}"


def test_seeds_differ_by_path_direction_and_run_and_by_nothing_else() -> None:
    seen = set()
    for seed in (1, 2):
        for path in topology("ipv4", "ipv4").paths:
            for direction in ("forward", "reverse"):
                seen.add(netem("add", path, direction, LINK, seed).argv[-1])
    assert len(seen) == 8
    path = topology("ipv4").paths[0]
    assert netem("add", path, "forward", LINK, 1) == netem("add", path, "forward", LINK, 1)


@pytest.fixture
def spec() -> RunSpec:
    found = scenario.load(scenario.find("rtx-policy"))
    return scenario.expand(found, {}, scenario.Choice(repeat=1))[0]


def with_events(spec: RunSpec, *events: Event) -> list[tuple[float, list[str]]]:
    changed = RunSpec(**{**spec.__dict__, "events": events})
    return [
        (one.at_s, [pasteable(c) for c in one.commands]) for one in run_plan.make(changed, "mpflow").events
    ]


def test_cut_and_heal_restate_the_whole_qdisc(spec: RunSpec) -> None:
    made = with_events(spec, Event(9, "heal", "path1"), Event(3, "cut", "path1", "forward"))
    assert [at_s for at_s, _ in made] == [3, 9]
    assert len(made[0][1]) == 1 and len(made[1][1]) == 2
    cut, heal = made[0][1][0], made[1][1][0]
    assert (
        "tc qdisc change dev to-host2 root netem limit 1000 delay 10ms loss random 100% rate 34368000bit"
        in cut
    )
    assert "loss random 0% rate 34368000bit" in heal


def test_a_change_lasts(spec: RunSpec) -> None:
    slower = Event(1, "change", "path2", values={"delay_ms": 70, "loss_pct": 1})
    made = with_events(spec, slower, Event(2, "cut", "path2"), Event(3, "heal", "path2"))
    assert "delay 70ms loss random 1%" in made[0][1][0]
    assert "delay 70ms loss random 100%" in made[1][1][0]
    assert "delay 70ms loss random 1%" in made[2][1][0]


def test_host_events(spec: RunSpec) -> None:
    made = with_events(
        spec,
        Event(1, "carrier-down", "path1"),
        Event(2, "carrier-up", "path1"),
        Event(3, "address-del", "path2", host="host2"),
        Event(4, "address-add", "path2", host="host2"),
    )
    assert made[0][1] == ["ip netns exec mid-path1 ip link set to-host1 down"]
    assert "ip netns exec mid-path1 ip link set to-host1 up" in made[1][1]
    assert made[2][1] == ["ip netns exec host2 ip addr del 10.2.2.1/24 dev path2"]
    assert any("route replace default via 10.2.2.254" in line for line in made[3][1])


def test_a_path_whose_losses_are_marks_cannot_be_cut(spec: RunSpec) -> None:
    """tc can switch ecn on and not off again: packets would be marked in place of lost."""
    marks = replace(LINK, loss_pct=1, ecn=True)
    found = plain(
        replace(spec, topology=Topology((LinkPath("path1", marks, LINK),)), flows=(Flow("f", messages=1),))
    )
    cuts = [plain(Event(1, "cut", "path1", direction)) for direction in ("reverse", "forward")]
    build(RunSpec, {**found, "events": cuts[:1]}, At("file", ""))
    with pytest.raises(LabError, match="a path without ecn"):
        build(RunSpec, {**found, "events": cuts}, At("file", ""))


def test_impossible_directions_are_refused() -> None:
    for values, word in [
        ({"rate_mbit": 1, "loss_pct": 1, "gemodel": {"p": 1, "r": 1}}, "gemodel"),
        ({"rate_mbit": 1, "reorder_pct": 5}, "reorder_pct"),
        ({"rate_mbit": 1, "delay_ms": 5, "jitter_ms": 6}, "jitter_ms"),
        ({"rate_mbit": 1, "ecn": True}, "ecn"),
        ({"rate_mbit": 0}, "rate_mbit"),
        ({"delay_ms": 5}, "rate_mbit"),
    ]:
        with pytest.raises(LabError, match=word):
            build(Direction, values, At("file", "table"))
