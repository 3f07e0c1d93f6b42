# SPDX-License-Identifier: GPL-2.0
"""mpflow's options for the series: read back from its kernels, refused in one line on a stock kernel."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sctplab.measure import collect
from sctplab.run import runner
from tests.lab_run import small_spec

pytestmark = pytest.mark.kernel


def send(kernel: str, folder: Path, **keys: Any) -> dict[str, Any]:
    """The agent's result of a run with one short flow that has these keys."""
    flow = replace(small_spec().flows[0], size_mb=0.01, **keys)
    spec = small_spec(kernel=kernel, flows=(flow,))
    with runner.bench_for([spec]) as bench:
        return runner.in_place(spec, bench, bench.kernel(spec), folder)[1]


POLICIES = ("kernel", "same", "alternate", "fr-same-rto-alt", "ssthresh", "cwnd", "asap", "lossrate")
VALUES: dict[str, tuple[str | int, ...]] = {
    "rtx_policy": POLICIES,
    "dormant_policy": ("kernel", "hop", "primary", "last"),
    "failover_heartbeat": (0, 1),
    "pmr": (0,),
    "cmt": ("off", "base"),
    "cmt_sack": ("standard", "delayed", "per-path"),
}


@pytest.mark.parametrize("turn", range(max(map(len, VALUES.values()))))
def test_patched_has_what_was_asked_for(turn: int, tmp_path: Path) -> None:
    """Every value of every option has its turn."""
    keys = {key: values[turn % len(values)] for key, values in VALUES.items()}
    result = send("patched", tmp_path, **keys)
    assert result["status"] == "ok", result["reason"]
    flow = result["flows"][0]
    both = [event for end in ("receiver", "sender") for event in collect.events_of(flow[end])]
    options = [event["options"] for event in both if event["event"] == "connected"]
    assert len(options) == 2
    assert keys.items() <= {**options[0], **options[1]}.items()


@pytest.mark.parametrize(
    ("keys", "complaint"),
    [
        ({"rtx_policy": "same"}, "send: mpflow: --rtx-policy: not supported by this kernel"),
        ({"failover_heartbeat": 1}, "send: mpflow: --failover-heartbeat: not supported by this kernel"),
        ({"dormant_policy": "hop"}, "send: mpflow: --dormant-policy: not supported by this kernel"),
        ({"cmt": "base"}, "recv: mpflow: --cmt: not supported by this kernel"),
        ({"cmt_sack": "delayed"}, "recv: mpflow: --cmt-sack: not supported by this kernel"),
        ({"pmr": 0}, "send: mpflow: --pmr 0: not supported by this kernel"),
    ],
)
def test_stock_refuses(keys: dict[str, Any], complaint: str, tmp_path: Path) -> None:
    """The receiver first, where both are asked for it."""
    result = send("stock", tmp_path, **keys)
    end = "receiver" if complaint.startswith("recv") else "sender"
    assert result["flows"][0][end] == {"exit": 2, "output": ""}
    assert result["reason"] == f"mpflow {complaint}; expected one with the sctp-multipath patches"
