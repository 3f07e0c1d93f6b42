# SPDX-License-Identifier: GPL-2.0
"""A run is captured, the captures become a scenario, whose run shows the same paths, outage and failover."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from sctplab.replay.command import from_pcap
from sctplab.replay.explain import explain, tell
from sctplab.run import runner
from sctplab.spec import scenario
from sctplab.spec.model import Direction, Event, RunSpec
from sctplab.spec.model import Path as LinkPath
from tests.lab_run import small_spec

pytestmark = pytest.mark.kernel
BASE_S = 1_700_000_000  # when every run begins


@pytest.fixture(scope="module")
def bench() -> Iterator[runner.Bench]:
    with runner.bench_for([small_spec()]) as made:
        yield made


@dataclass
class Run:
    spec: RunSpec
    record: dict[str, Any]
    captures: Path


def perform(bench: runner.Bench, spec: RunSpec, folder: Path) -> Run:
    record = runner.perform(runner.Job(spec, folder / "record.json", folder / "pcap"), bench)
    assert record["status"] == "ok", record["reason"]
    return Run(spec, record, folder / "pcap")


def cell(name: str, variant: str, factors: dict[str, tuple[Any, ...]]) -> RunSpec:
    found = scenario.load(scenario.find(name))
    specs = scenario.expand(found, factors, scenario.Choice(kernels=("stock",), repeat=1, pcap=True))
    return next(spec for spec in specs if spec.variant == variant)


def unequal(spec: RunSpec) -> RunSpec:
    """Delays that differ by path and by direction."""
    ways = [(Direction(10, 15), Direction(10, 25)), (Direction(10, 40), Direction(10, 30))]
    paths = tuple(LinkPath(f"path{i}", *each) for i, each in enumerate(ways, 1))
    return replace(spec, topology=replace(spec.topology, paths=paths))


@pytest.fixture(scope="module")
def cut(bench: runner.Bench, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Messages of 100 bytes every 20 ms; the path in use is cut after 10 s."""
    folder = tmp_path_factory.mktemp("cut")
    return perform(bench, unequal(cell("failover-cut", "pf", {"pmr": (5,)})), folder)


def files(run: Run, *hosts: str) -> list[Path]:
    return sorted(path for host in hosts for path in run.captures.glob(f"{host}.*.pcap"))


def replayed(bench: runner.Bench, captures: list[Path], folder: Path, variant: str = "stock") -> Run:
    out = folder / "again.toml"
    from_pcap(captures, None, out)
    found = scenario.load(out)
    choice = scenario.Choice(kernels=("stock",), repeat=1)
    spec = next(one for one in scenario.expand(found, {}, choice) if one.variant == variant)
    return perform(bench, spec, folder)


def assert_paths(found: RunSpec, spec: RunSpec, one_way: bool) -> None:
    """Delays within 5 %: each way, or both together."""
    for got, path in zip(found.topology.paths, spec.topology.paths, strict=True):
        if one_way:
            assert got.forward.delay_ms == pytest.approx(path.forward.delay_ms, rel=0.05)
            assert got.reverse.delay_ms == pytest.approx(path.reverse.delay_ms, rel=0.05)
        trip = path.forward.delay_ms + path.reverse.delay_ms
        assert got.forward.delay_ms + got.reverse.delay_ms == pytest.approx(trip, rel=0.05)


def moments(spec: RunSpec, start: float = 0.0) -> list[tuple[str, str, float]]:
    return [(event.action, event.path, start + event.at_s) for event in spec.events]


def failover_s(run: Run) -> float:
    return float(run.record["metrics"]["failover_s"])


def test_both_ends(bench: runner.Bench, cut: Run, tmp_path: Path) -> None:
    """A message every 20 ms: an outage is known to half of that."""
    again = replayed(bench, files(cut, "host1", "host2"), tmp_path)
    assert_paths(again.spec, cut.spec, one_way=True)
    assert moments(again.spec) == [("cut", "path1", pytest.approx(10, abs=0.010))]
    assert failover_s(again) == pytest.approx(failover_s(cut), rel=0.1)
    flow = again.spec.measured_flow
    assert (flow.message_b, flow.interval_ms, flow.nodelay) == (100, pytest.approx(20, rel=0.01), True)
    assert flow.duration_s == pytest.approx(90, rel=0.01)


def test_the_wait_is_explained(cut: Run) -> None:
    """One message waits for the outage to be noticed; nothing else waits longer than two round trips."""
    lines = explain(tell(cut.captures.parent / "record.json", cut.captures)).splitlines()
    assert ": 1 waits of more than two round trips, " in lines[0]
    when, lasted, cause = lines[3].split()[:3]
    assert (float(when), cause) == (pytest.approx(10, abs=0.03), "cut")
    assert float(lasted) == pytest.approx(cut.record["metrics"]["max_gap_s"], abs=0.001)
    assert lines[-1] == "accounted for: 100.0 % of the time"


@pytest.mark.parametrize("host", ["host1", "host2"])
def test_one_end(bench: runner.Bench, cut: Run, tmp_path: Path, host: str) -> None:
    """Which way a path is longer cannot be told, and the outage to half a round trip and half an interval."""
    again = replayed(bench, files(cut, host), tmp_path)
    assert_paths(again.spec, cut.spec, one_way=False)
    assert moments(again.spec) == [("cut", "path1", pytest.approx(10, abs=0.030))]
    assert failover_s(again) == pytest.approx(failover_s(cut), rel=0.1)


def later(path: Path, folder: Path, seconds: float) -> Path:
    """A capture without what came in the first SECONDS of the run."""
    content = path.read_bytes()
    kept, at = [content[:24]], 24
    while at < len(content):
        second, nanosecond, size, _ = struct.unpack_from("<4I", content, at)
        if second - BASE_S + nanosecond / 1e9 >= seconds:
            kept.append(content[at : at + 16 + size])
        at += 16 + size
    out = folder / path.name
    out.write_bytes(b"".join(kept))
    return out


def test_an_association_older_than_its_capture(bench: runner.Bench, cut: Run, tmp_path: Path) -> None:
    began = cut.record["start_t"] - BASE_S
    captures = [later(path, tmp_path, began + 8) for path in files(cut, "host1")]
    again = replayed(bench, captures, tmp_path)
    assert_paths(again.spec, cut.spec, one_way=False)
    # After 5 s as before, the 2 s that were seen, to half a round trip and an interval.
    assert moments(again.spec) == [("cut", "path1", pytest.approx(7, abs=0.040))]
    assert failover_s(again) == pytest.approx(failover_s(cut), rel=0.1)


def test_thresholds_that_were_seen(bench: runner.Bench, tmp_path: Path) -> None:
    """Without PF new data waits for all timeouts of the path; the settings that do that are found."""
    first = perform(bench, cell("failover-cut", "no-pf", {"pmr": (2,), "rto_min_ms": (600,)}), tmp_path / "1")
    again = replayed(bench, files(first, "host1", "host2"), tmp_path / "2", "seen")
    found = again.spec.sysctl.host1
    assert (found["net.sctp.pf_enable"], found["net.sctp.path_max_retrans"]) == ("0", "2")
    assert float(found["net.sctp.rto_min"]) == pytest.approx(600, rel=0.05)
    for metric in ("failover_s", "max_message_delay_s"):
        expected = first.record["metrics"][metric]
        assert again.record["metrics"][metric] == pytest.approx(expected, rel=0.1)


def test_a_path_that_comes_back(bench: runner.Bench, tmp_path: Path) -> None:
    """The end of an outage is known to the packets on both sides of it: after 30 s, HEARTBEATs."""
    first = perform(bench, cell("failover-return", "pf", {"pmr": (5,), "heal_s": (15,)}), tmp_path / "1")
    again = replayed(bench, files(first, "host1", "host2"), tmp_path / "2")
    (action, path, began), (other, _, ended) = moments(again.spec)
    assert (action, path, other) == ("cut", "path1", "heal")
    assert began == pytest.approx(10, abs=0.010)
    low, high = between(tmp_path / "2" / "again.toml", "heal")
    assert low <= 15 <= high and low <= ended <= high
    assert failover_s(again) == pytest.approx(failover_s(first), rel=0.1)
    came_back = [run.record["metrics"]["return_s"] + moments(run.spec)[1][2] for run in (first, again)]
    assert came_back[1] == pytest.approx(came_back[0], rel=0.1)


def between(file: Path, action: str) -> tuple[float, float]:
    """The earliest and latest moment that the comment of an event names."""
    event = next(part for part in file.read_text().split("[[events]]") if f'action = "{action}"' in part)
    words = event.split(" between ")[1].split(":")[0].split(" and ")
    return float(words[0]), float(words[1])


def test_one_direction_is_cut(bench: runner.Bench, tmp_path: Path) -> None:
    spec = cell("failover-cut", "pf", {"pmr": (5,)})
    events = (Event(10, "cut", "path1", "forward"), Event(12, "heal", "path1", "forward"))
    flow = replace(spec.flows[0], duration_s=20.0)
    spec = replace(spec, events=events, flows=(flow,))
    first = perform(bench, spec, tmp_path / "1")
    again = replayed(bench, files(first, "host1", "host2"), tmp_path / "2")
    assert [event.action for event in again.spec.events] == ["cut", "heal"]
    assert [event.direction for event in again.spec.events] == ["forward"] * 2
    assert again.spec.events[0].at_s == pytest.approx(10, abs=0.010)
    assert failover_s(again) == pytest.approx(failover_s(first), rel=0.1)


def test_bulk_over_full_paths(bench: runner.Bench, tmp_path: Path) -> None:
    """As demo-cut, with 8 MB and a cut after 0.6 s, before the queue overflows."""
    spec = cell("demo-cut", "kernel", {"size_mb": (8,), "cut_s": (0.6,)})
    first = perform(bench, spec, tmp_path / "1")
    again = replayed(bench, files(first, "host1", "host2"), tmp_path / "2")
    assert_paths(again.spec, first.spec, one_way=True)
    assert again.spec.topology.path("path1").forward.rate_mbit == pytest.approx(34.368, rel=0.01)
    assert moments(again.spec) == [("cut", "path1", pytest.approx(0.6, abs=0.010))]
    flow = again.spec.measured_flow
    assert (flow.size_mb, flow.message_b, flow.interval_ms) == (pytest.approx(8, rel=0.01), 1400, 0)
    for metric in ("max_gap_s", "transfer_s"):
        expected = first.record["metrics"][metric]
        assert again.record["metrics"][metric] == pytest.approx(expected, rel=0.1)


def test_losses(bench: runner.Bench, tmp_path: Path) -> None:
    """Both ends tell exactly what was lost; the sender alone only what was sent again."""
    spec = cell("failover-cut", "pf", {"pmr": (5,)})
    lossy = tuple(
        replace(path, forward=replace(path.forward, loss_pct=4), reverse=replace(path.reverse, loss_pct=2))
        for path in spec.topology.paths
    )
    spec = replace(spec, topology=replace(spec.topology, paths=lossy), events=())
    first = perform(bench, spec, tmp_path / "1")
    out = tmp_path / "again.toml"
    for hosts in (("host1", "host2"), ("host1",)):
        from_pcap(files(first, *hosts), None, out)
        found = scenario.expand(scenario.load(out), {}, scenario.Choice(kernels=("stock",), repeat=1))[0]
        assert found.events == ()
        counted = first.record["paths"][0]["forward"]
        share = 100 * counted["drops"] / (counted["drops"] + counted["tx_packets"])
        tolerance = 0.01 if len(hosts) == 2 else 0.4
        assert found.topology.paths[0].forward.loss_pct == pytest.approx(share, rel=tolerance)


def test_losses_on_a_full_path(bench: runner.Bench, tmp_path: Path) -> None:
    """Packets dropped by a full queue are not counted as random losses, nor the other way round."""
    spec = cell("demo-cut", "kernel", {"size_mb": (8,), "cut_s": (60.0,)})
    first, *others = spec.topology.paths
    spec = replace(spec, events=(), flows=(replace(spec.flows[0], paths=("path1",)),))
    ways = {
        "short-queue": replace(first.forward, rate_mbit=5, queue_pkts=40),
        "losses": replace(first.forward, rate_mbit=2, loss_pct=0.5),
    }
    for name, way in ways.items():
        topology = replace(spec.topology, paths=(replace(first, forward=way), *others))
        made = perform(bench, replace(spec, topology=topology), tmp_path / name)
        out = tmp_path / f"{name}.toml"
        from_pcap(files(made, "host1", "host2"), None, out)
        found = scenario.expand(scenario.load(out), {}, scenario.Choice(kernels=("stock",), repeat=1))[0]
        forward = found.topology.paths[0].forward
        counted = made.record["paths"][0]["forward"]
        share = 100 * counted["drops"] / (counted["drops"] + counted["tx_packets"])
        assert forward.rate_mbit == pytest.approx(way.rate_mbit, rel=0.01)
        assert forward.loss_pct == pytest.approx(0 if name == "short-queue" else share, abs=0.1)
        assert forward.queue_pkts == pytest.approx(way.queue_pkts, rel=0.05)
