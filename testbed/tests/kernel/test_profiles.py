# SPDX-License-Identifier: GPL-2.0
"""The files in sysctl/: a kernel takes every value, and a failover takes as long as the file says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from failover.predict import predict
from failover.settings import Settings, from_profile, profile
from sctpkernel.paths import ROOT
from sctplab import cli, runner
from tests.failover_run import assumed, measured
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
