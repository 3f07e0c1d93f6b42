# SPDX-License-Identifier: GPL-2.0
"""The predictions of tools/failover-time agree with a kernel within 10 %.

test_setup.py and test_path_mtu.py compare an association set up over a dead path, and a path with a hole.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from failover.kinds import kinds
from failover.predict import Prediction, Range, predict
from failover.settings import DORMANT, Settings, changed
from failover.situation import Situation
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

SUSPECT = {"net.sctp.failover_suspect": "1"}
OVERDUE: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "suspect": (SUSPECT, {}),
    "suspect-near": (SUSPECT, {"rtt_ms": 10, "interval_ms": 4}),
    "suspect-far": (SUSPECT, {"rtt_ms": 200}),
    "suspect-sparse": (SUSPECT, {"interval_ms": 2000}),
    "suspect-sparse-far": (SUSPECT, {"interval_ms": 1000, "rtt_ms": 200}),
    "suspect-fast": ({**FAST, **SUSPECT}, {"interval_ms": 250}),
}
NAGLE: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "defaults": ({}, {}),
    "sparse": ({}, {"interval_ms": 50}),
    "fast": (FAST, {}),
    "suspect": (SUSPECT, {}),
    "suspect-sparse": (SUSPECT, {"interval_ms": 50}),
    "suspect-far": (SUSPECT, {"rtt_ms": 200}),
}
MARGIN_S = 0.002  # beside 10 %: the rate of the links, the time between two events

PROBED = {**FAST, "net.sctp.failover_heartbeat": "1"}
RETURNS = {
    "pf": (PROBED, 1.0),
    "pmr-0": ({**PROBED, "net.sctp.path_max_retrans": "0"}, 5.0),
    "slow": ({"net.sctp.failover_heartbeat": "1"}, 3.5),
}
RETURN = {"net.sctp.failover_return": "1"}
AT_ONCE = {
    "return": (RETURN, 5.003),
    "return-pmr-0": ({**RETURN, "net.sctp.path_max_retrans": "0"}, 5.013),
    "return-heartbeat": ({**RETURN, "net.sctp.failover_heartbeat": "1"}, 20.007),
    "return-suspect": ({**RETURN, **SUSPECT}, 0.507),
}

PMR_0 = {**PROBED, "net.sctp.path_max_retrans": "0"}
NO_PATH: dict[str, dict[str, str]] = {
    "defaults": {},
    "probed": PROBED,
    "return": RETURN,
    "return-suspect": {**FAST, **RETURN, **SUSPECT},
    **{policy: {**PMR_0, "net.sctp.dormant_policy": policy} for policy in DORMANT},
}


def covered(seconds: float, found: Range | None) -> bool:
    """Whether a prediction covers what was measured."""
    return found is not None and 0.9 * found.low - MARGIN_S <= seconds <= 1.1 * found.high + MARGIN_S


def of_kind(failure: str, settings: Settings, situation: Situation, found: Prediction) -> Range | None:
    return next(one.seconds for one in kinds(settings, situation, found) if one.failure == failure)


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


@pytest.mark.parametrize(("values", "changes"), OVERDUE.values(), ids=OVERDUE.keys())
def test_failover_without_a_timeout(
    bench: runner.Bench, values: dict[str, str], changes: dict[str, Any]
) -> None:
    settings = changed(Settings(), values, "test", strict=True)
    situation = assumed(sack_delay_ms=settings.sack_timeout, **changes)
    made = measured(bench, values, situation)
    found = predict(settings, situation, moment=moment(made))
    got = made["metrics"]
    assert got["t3_timeouts"] == found.early_timeouts == 0
    assert got["failover_s"] == pytest.approx(found.failover_s.typical, rel=0.1, abs=MARGIN_S)
    assert got["max_message_delay_s"] == pytest.approx(
        found.max_message_delay_s.typical, rel=0.1, abs=MARGIN_S
    )


@pytest.mark.parametrize(("values", "changes"), NAGLE.values(), ids=NAGLE.keys())
def test_failover_with_nagle(bench: runner.Bench, values: dict[str, str], changes: dict[str, Any]) -> None:
    """Where the cut falls among messages that wait for a SACK is not known: the range has to cover it."""
    settings = changed(Settings(), values, "test", strict=True)
    situation = assumed(sack_delay_ms=settings.sack_timeout, nodelay=False, **changes)
    got = measured(bench, values, situation)["metrics"]
    assert covered(got["max_message_delay_s"], predict(settings, situation).max_message_delay_s)


@pytest.mark.parametrize("jitter_ms", [3, 10, 19])
def test_jitter_makes_the_wait_longer_as_predicted(bench: runner.Bench, jitter_ms: float) -> None:
    settings = changed(Settings(), SUSPECT, "test", strict=True)
    situation = assumed(jitter_ms=jitter_ms)
    got = measured(bench, SUSPECT, situation)["metrics"]
    assert covered(got["max_message_delay_s"], predict(settings, situation).max_message_delay_s)


@pytest.mark.parametrize("link", ["0", "1"])
def test_a_carrier_that_the_host_loses(bench: runner.Bench, link: str) -> None:
    values = {"net.sctp.failover_link": link}
    settings = changed(Settings(), values, "test", strict=True)
    situation = assumed()
    made = measured(bench, values, situation, action="carrier-down")
    found = predict(settings, situation, moment=moment(made))
    seconds = of_kind("carrier lost here", settings, situation, found)
    assert covered(made["metrics"]["max_message_delay_s"], seconds)


@pytest.mark.parametrize(("values", "heal_s"), AT_ONCE.values(), ids=AT_ONCE.keys())
def test_return_at_once(bench: runner.Bench, values: dict[str, str], heal_s: float) -> None:
    settings = changed(Settings(), values, "test", strict=True)
    situation = assumed(sack_delay_ms=settings.sack_timeout, heal_s=heal_s)
    got = measured(bench, values, situation)["metrics"]["return_s"]
    assert covered(got, of_kind("way back", settings, situation, predict(settings, situation)))


@pytest.mark.parametrize(("values", "heal_s"), RETURNS.values(), ids=RETURNS.keys())
def test_return(bench: runner.Bench, values: dict[str, str], heal_s: float) -> None:
    settings = changed(Settings(), values, "test", strict=True)
    situation = assumed(sack_delay_ms=settings.sack_timeout, heal_s=heal_s)
    made = measured(bench, values, situation)
    found = predict(settings, situation, moment=moment(made)).returns_s
    assert covered(heal_s + made["metrics"]["return_s"], found)


@pytest.mark.parametrize("values", NO_PATH.values(), ids=NO_PATH.keys())
def test_end_without_a_path(bench: runner.Bench, values: dict[str, str]) -> None:
    settings = changed(Settings(), values, "test", strict=True)
    situation = assumed(sack_delay_ms=settings.sack_timeout, both=True)
    found = predict(settings, situation).lost_s
    assert covered(lasted(bench, values, situation), found)
