# SPDX-License-Identifier: GPL-2.0
"""mpflow's options for the series: read back from its kernels, refused in one line on a stock kernel."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sctplab import cli, collect, runner
from tests.lab_run import small_spec

pytestmark = pytest.mark.kernel


def send(kernel: str, folder: Path, **keys: Any) -> dict[str, Any]:
    """What the agent says about a short flow with these keys."""
    flow = replace(small_spec().flows[0], size_mb=0.01, **keys)
    spec = small_spec(kernel=kernel, flows=(flow,))
    with cli.bench([spec]) as bench:
        return runner.in_place(spec, bench, bench.kernel(spec), folder)[1]


POLICIES = [("rtx_policy", name) for name in ("kernel", "same", "alternate", "fr-same-rto-alt")]
DORMANT = [("dormant_policy", name) for name in ("kernel", "hop", "primary", "last")]


@pytest.mark.parametrize(
    ("key", "value"), [*POLICIES, *DORMANT, ("failover_heartbeat", 0), ("failover_heartbeat", 1), ("pmr", 0)]
)
def test_patched_has_what_was_asked_for(key: str, value: str | int, tmp_path: Path) -> None:
    result = send("patched", tmp_path, **{key: value})
    assert result["status"] == "ok", result["reason"]
    connected = collect.events_of(result["flows"][0]["sender"])[0]
    assert connected["options"][key] == value


@pytest.mark.parametrize(
    ("keys", "complaint"),
    [
        ({"rtx_policy": "same"}, "--rtx-policy: this kernel does not know it"),
        ({"failover_heartbeat": 1}, "--failover-heartbeat: this kernel does not know it"),
        ({"dormant_policy": "hop"}, "--dormant-policy: this kernel does not know it"),
        ({"pmr": 0}, "--pmr 0: this kernel does not fail over at the first timeout"),
    ],
)
def test_stock_refuses(keys: dict[str, Any], complaint: str, tmp_path: Path) -> None:
    result = send("stock", tmp_path, **keys)
    assert result["flows"][0]["sender"] == {"exit": 2, "output": ""}
    expected = f"mpflow send: mpflow: {complaint}; expected one with the sctp-multipath patches"
    assert result["reason"] == expected
