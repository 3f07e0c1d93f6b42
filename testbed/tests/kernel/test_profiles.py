# SPDX-License-Identifier: GPL-2.0
"""The files in sysctl/: a kernel takes every value, and a failover takes as long as file and manual say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from failover.predict import predict
from failover.settings import Settings, from_profile, profile
from sctpkernel.paths import ROOT
from sctplab.run import runner
from sctplab.spec import scenario
from sctplab.spec.model import Event
from sctplab.spec.scenario import Choice
from tests.failover_run import CUT_S, assumed, lasted, measured, perform, run_spec
from tests.lab_run import small_spec

pytestmark = pytest.mark.kernel
PROFILES = sorted((ROOT / "sysctl").glob("*.conf"))
STATED = re.compile(
    r"^# Longest wait of a message when a path is cut: predicted ([0-9.]+) s, measured ([0-9.]+) s by\n"
    r"# testbed/lab run profiles --kernel (\w+) --set interval_ms=20 --set heal_s=30 --repeat 1$",
    re.MULTILINE,
)
CELL = {"interval_ms": (20,), "heal_s": (30,)}


@pytest.fixture(scope="module")
def bench() -> Iterator[runner.Bench]:
    with runner.bench_for([small_spec(kernel=one) for one in ("stock", "patched")]) as made:
        yield made


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.stem)
def test_a_kernel_takes_all_of_it(bench: runner.Bench, path: Path) -> None:
    values = profile(path)
    made = measured(bench, values, assumed(sack_delay_ms=from_profile(path, Settings()).sack_timeout))
    for host in ("host1", "host2"):
        assert {key: made["sysctls"][host][key] for key in values} == values


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.stem)
def test_profile(bench: runner.Bench, path: Path) -> None:
    """The scenario's variant has its settings: tools/tests/test_failover_time.py."""
    settings = from_profile(path, Settings())
    predicted = predict(settings, assumed(sack_delay_ms=settings.sack_timeout)).max_message_delay_s
    stated = STATED.search(path.read_text())
    assert stated and predicted
    specs = scenario.expand(scenario.load(scenario.find("profiles")), CELL, Choice((stated[3],), repeat=1))
    variant = path.stem.split("-")[1]
    made = perform(bench, next(spec for spec in specs if spec.variant == variant))
    found = made["metrics"]["max_message_delay_s"]
    assert stated.groups()[:2] == (f"{predicted.typical:.2f}", f"{found:.2f}")
    assert found == pytest.approx(predicted.typical, rel=0.1)


@pytest.mark.parametrize(("name", "seconds"), [("10-signalling", 19.9), ("00-off", 100.6)])
def test_an_association_ends_without_a_network(bench: runner.Bench, name: str, seconds: float) -> None:
    path = ROOT / "sysctl" / f"{name}.conf"
    situation = assumed(sack_delay_ms=from_profile(path, Settings()).sack_timeout, both=True)
    assert lasted(bench, profile(path), situation) == pytest.approx(seconds, rel=0.1)


@pytest.mark.parametrize(("name", "interval_s"), [("10-signalling", 5), ("00-off", 30)])
def test_a_dead_path_in_reserve_is_noticed(bench: runner.Bench, name: str, interval_s: float) -> None:
    """By the second heartbeat that would have to be answered: two intervals, half an RTO and jitter."""
    path = ROOT / "sysctl" / f"{name}.conf"
    spec = run_spec(profile(path), assumed(sack_delay_ms=from_profile(path, Settings()).sack_timeout))
    flow = replace(spec.flows[0], duration_s=CUT_S + 3 * interval_s)
    seen = perform(bench, replace(spec, flows=(flow,), events=(Event(CUT_S, "cut", "path2"),)))["flows"][0]
    failed = next(event for event in seen["path_events"] if event["state"] == "potentially-failed")
    assert failed["address"] == "10.2.2.1"
    assert interval_s < failed["t"] - seen["sender"]["first_t"] - CUT_S < 2 * interval_s + 10
