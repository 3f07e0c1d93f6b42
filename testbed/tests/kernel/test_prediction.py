# SPDX-License-Identifier: GPL-2.0
"""What tools/failover-time predicts is what a kernel does, within 10 %."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from failover.predict import predict
from failover.settings import DORMANT, Settings, changed
from sctplab.run import runner
from tests.failover_run import assumed, lasted, measured, moment
from tests.lab_run import small_spec

pytestmark = pytest.mark.kernel
FAST = {"net.sctp.rto_min": "100", "net.sctp.rto_max": "2000", "net.sctp.sack_timeout": "20"}
CASES: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "defaults": ({}, {}),
    "pmr-0": ({"net.sctp.path_max_retrans": "0"}, {}),
    "no-pf-pmr-2": ({"net.sctp.pf_enable": "0", "net.sctp.path_max_retrans": "2"}, {}),
    "fast": (FAST, {}),
    "fast-no-pf-capped": ({**FAST, "net.sctp.rto_max": "200", "net.sctp.pf_enable": "0"}, {}),
    "fast-long-paths": (FAST, {"rtt_ms": 400}),
    "fast-sparse": (FAST, {"interval_ms": 250}),
    "alternate-times-out-too": (
        {
            **FAST,
            "net.sctp.sack_timeout": "200",
            "net.sctp.rto_min": "150",
            "net.sctp.pf_enable": "0",
            "net.sctp.path_max_retrans": "2",
            "net.sctp.failover_heartbeat": "1",
        },
        {"interval_ms": 600},
    ),
    "sack-delay-in-the-rto": ({"net.sctp.rto_min": "300"}, {"interval_ms": 600}),
}

PROBED = {**FAST, "net.sctp.failover_heartbeat": "1"}
RETURNS = {
    "pf": (PROBED, 1.0),
    "pmr-0": ({**PROBED, "net.sctp.path_max_retrans": "0"}, 5.0),
    "slow": ({"net.sctp.failover_heartbeat": "1"}, 3.5),
}

PMR_0 = {**PROBED, "net.sctp.path_max_retrans": "0"}
NO_PATH: dict[str, dict[str, str]] = {
    "defaults": {},
    "probed": PROBED,
    **{policy: {**PMR_0, "net.sctp.dormant_policy": policy} for policy in DORMANT},
}


@pytest.fixture(scope="module")
def bench() -> Iterator[runner.Bench]:
    with runner.bench_for([small_spec(kernel="patched")]) as made:
        yield made


@pytest.mark.parametrize(("values", "changes"), CASES.values(), ids=CASES.keys())
def test_failover(bench: runner.Bench, values: dict[str, str], changes: dict[str, Any]) -> None:
    settings = changed(Settings(), values, "test", strict=True)
    situation = assumed(sack_delay_ms=settings.sack_timeout, **changes)
    made = measured(bench, values, situation)
    found = predict(settings, situation, moment=moment(made))
    got = made["metrics"]
    assert got["early_timeouts"] == found.early_timeouts
    assert got["rto_ms"] == pytest.approx(found.rto_ms, rel=0.1)
    assert got["failover_s"] == pytest.approx(found.failover_s.typical, rel=0.1)
    assert got["max_message_delay_s"] == pytest.approx(found.max_message_delay_s.typical, rel=0.1)


@pytest.mark.parametrize(("values", "heal_s"), RETURNS.values(), ids=RETURNS.keys())
def test_return(bench: runner.Bench, values: dict[str, str], heal_s: float) -> None:
    settings = changed(Settings(), values, "test", strict=True)
    situation = assumed(sack_delay_ms=settings.sack_timeout, heal_s=heal_s)
    made = measured(bench, values, situation)
    found = predict(settings, situation, moment=moment(made)).returns_s
    assert found is not None
    since_cut = heal_s + made["metrics"]["return_s"]
    assert 0.9 * found.low <= since_cut <= 1.1 * found.high


@pytest.mark.parametrize("values", NO_PATH.values(), ids=NO_PATH.keys())
def test_end_without_a_path(bench: runner.Bench, values: dict[str, str]) -> None:
    settings = changed(Settings(), values, "test", strict=True)
    situation = assumed(sack_delay_ms=settings.sack_timeout, both=True)
    found = predict(settings, situation).lost_s
    assert found is not None
    assert lasted(bench, values, situation) == pytest.approx(found.typical, rel=0.1)
