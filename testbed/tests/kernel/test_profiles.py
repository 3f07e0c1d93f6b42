# SPDX-License-Identifier: GPL-2.0
"""The files in sysctl/: a kernel takes every value, and a failover takes as long as the file says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from failover.predict import predict
from failover.settings import Settings, from_profile, profile
from sctpkernel.paths import ROOT
from sctplab import cli, runner
from sctplab.model import Event
from tests.failover_run import CUT_S, assumed, measured, perform, run_spec
from tests.lab_run import small_spec

pytestmark = pytest.mark.kernel
PROFILES = sorted((ROOT / "sysctl").glob("*.conf"))
STATED = re.compile(r"^# failover_s: predicted ([0-9.]+), measured ([0-9.]+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def bench() -> Iterator[runner.Bench]:
    with cli.bench([small_spec(kernel="patched")]) as made:
        yield made


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.stem)
def test_profile(bench: runner.Bench, path: Path) -> None:
    settings = from_profile(path, Settings())
    situation = assumed(sack_delay_ms=settings.sack_timeout)
    values = profile(path)
    made = measured(bench, values, situation)
    for host in ("host1", "host2"):
        assert {key: made["sysctls"][host][key] for key in values} == values
    predicted, found = predict(settings, situation).failover_s.typical, made["metrics"]["failover_s"]
    stated = STATED.search(path.read_text())
    assert stated and stated.groups() == (f"{predicted:.2f}", f"{found:.2f}")
    assert found == pytest.approx(predicted, rel=0.1)


SIGNALLING = ROOT / "sysctl" / "10-signalling.conf"


def without(bench: runner.Bench, *paths: str) -> dict[str, Any]:
    """The sender's side of a run with the settings for signalling, in which these paths are cut for good."""
    settings = from_profile(SIGNALLING, Settings())
    spec = run_spec(profile(SIGNALLING), assumed(sack_delay_ms=settings.sack_timeout))
    flow = replace(spec.flows[0], duration_s=60)
    spec = replace(spec, flows=(flow,), events=tuple(Event(CUT_S, "cut", path) for path in paths))
    flow_record: dict[str, Any] = perform(bench, spec)["flows"][0]
    return flow_record


def since_cut(flow: dict[str, Any], t: float) -> float:
    return float(t - flow["sender"]["first_t"] - CUT_S)


def test_signalling_ends_without_a_network(bench: runner.Bench) -> None:
    """The figure in the file: 20 s."""
    flow = without(bench, "path1", "path2")
    assert flow["sender"]["status"] == "aborted"
    assert since_cut(flow, flow["sender"]["last_t"]) == pytest.approx(20, rel=0.1)


def test_signalling_learns_that_the_path_in_reserve_is_dead(bench: runner.Bench) -> None:
    """Two heartbeats, one per 5 s, RTO and jitter."""
    flow = without(bench, "path2")
    assert flow["sender"]["status"] == "ok"
    failed = next(event for event in flow["path_events"] if event["state"] == "potentially-failed")
    assert failed["address"] == "10.2.2.1"
    assert 5 < since_cut(flow, failed["t"]) < 11
