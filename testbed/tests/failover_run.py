# SPDX-License-Identifier: GPL-2.0
"""A failover as the prediction tool has it, measured: messages over two equal paths, the primary cut."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path as File
from typing import Any

from failover.situation import Moment, Situation
from sctplab.run import runner
from sctplab.spec.model import Direction, Event, Flow, HostSettings, Limits, Path, RunSpec, Topology
from tests.lab_run import small_spec

LAB_HZ = 100
CUT_S = 10.0
AFTER_S = 10.0
LONG_S = 200.0  # until an association without any path has ended
SIZE_B = 100


def assumed(**changes: Any) -> Situation:
    """20 ms links and a message every 20 ms, with CHANGES."""
    usual = {"rtt_ms": 40, "interval_ms": 20, "sack_delay_ms": 200, "size_b": SIZE_B, "lasted_s": CUT_S}
    given = {**usual, **changes}
    return Situation(alternate_rtt_ms=given["rtt_ms"], hz=LAB_HZ, **given)


def measured(
    bench: runner.Bench, values: Mapping[str, str], situation: Situation, action: str = "cut"
) -> dict[str, Any]:
    """The record of a run of the patched kernel with VALUES (net.sctp.*) at both hosts."""
    return good(bench, run_spec(values, situation, action))


def lasted(bench: runner.Bench, values: Mapping[str, str], situation: Situation) -> float:
    """Seconds from the cut of both paths to the end of the association."""
    sender = perform(bench, run_spec(values, situation))["flows"][0]["sender"]
    assert sender["status"] == "aborted", sender
    return float(sender["last_t"] - sender["first_t"] - CUT_S)


def run_spec(values: Mapping[str, str], situation: Situation, action: str = "cut") -> RunSpec:
    direction = Direction(rate_mbit=10, delay_ms=situation.rtt_ms / 2, jitter_ms=situation.jitter_ms)
    paths = ("path1", "path2") if situation.both else ("path1",)
    events = [Event(CUT_S, action, path) for path in paths]
    heal_s = situation.heal_s or 0.0
    if heal_s:
        events += [Event(CUT_S + heal_s, "heal", path) for path in paths]
    flow = Flow(
        "main",
        duration_s=CUT_S + heal_s + (LONG_S if situation.both else AFTER_S),
        message_b=SIZE_B,
        interval_ms=situation.interval_ms,
        nodelay=situation.nodelay,
        message_log=True,
    )
    return small_spec(
        kernel="patched",
        topology=Topology(tuple(Path(f"path{number}", direction, direction) for number in (1, 2))),
        flows=(flow,),
        events=tuple(events),
        sysctl=HostSettings(dict(values), dict(values)),
        limits=Limits(300, 120),
    )


def perform(bench: runner.Bench, spec: RunSpec) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        return runner.perform(runner.Job(spec, File(folder) / "record.json", File(folder) / "pcap"), bench)


def shortened(spec: RunSpec, end_s: float, **changed: Any) -> RunSpec:
    """Flows that end then, with what else is CHANGED of them."""
    return replace(spec, flows=tuple(replace(flow, duration_s=end_s, **changed) for flow in spec.flows))


def with_families(topology: Topology, families: Sequence[str]) -> Topology:
    """The same with addresses of these FAMILIES, one for each path."""
    found = (replace(one, family=family) for one, family in zip(topology.paths, families, strict=True))
    return replace(topology, paths=tuple(found))


def with_links(topology: Topology, changed: Mapping[str, Any]) -> Topology:
    """The same with CHANGED in both directions of each path."""
    found = (
        replace(path, forward=replace(path.forward, **changed), reverse=replace(path.reverse, **changed))
        for path in topology.paths
    )
    return replace(topology, paths=tuple(found))


def with_more_settings(spec: RunSpec, settings: Mapping[str, str]) -> RunSpec:
    """The same with these net.sctp.NAME beside its own, at both hosts."""
    more = {f"net.sctp.{name}": value for name, value in settings.items()}
    return replace(spec, sysctl=HostSettings(spec.sysctl.host1 | more, spec.sysctl.host2 | more))


def good(bench: runner.Bench, spec: RunSpec) -> dict[str, Any]:
    """The record of a run that has to be good."""
    made = perform(bench, spec)
    assert (made["status"], made["reason"]) == ("ok", ""), made["reason"]
    return made


def moment(made: dict[str, Any]) -> Moment:
    """When the cut of this run fell between its messages."""
    sent = [t for t, _ in made["series"]["message_delay"]]
    before = sum(t < CUT_S for t in sent)
    return Moment(before, sent[before] - CUT_S)
