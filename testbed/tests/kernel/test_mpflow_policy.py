# SPDX-License-Identifier: GPL-2.0
"""mpflow's --rtx-policy: read back from a kernel of the series, refused in one line on a stock kernel."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sctplab import cli, collect, runner
from tests.lab_run import small_spec

pytestmark = pytest.mark.kernel


def send(policy: str, kernel: str, folder: Path) -> dict[str, Any]:
    """What the agent says about a short flow with this policy."""
    flow = replace(small_spec().flows[0], size_mb=0.01, rtx_policy=policy)
    spec = small_spec(kernel=kernel, flows=(flow,))
    with cli.bench([spec]) as bench:
        return runner.in_place(spec, bench, bench.kernel(spec), folder)[1]


@pytest.mark.parametrize("policy", ["kernel", "same", "alternate", "fr-same-rto-alt"])
def test_patched_has_what_was_asked_for(policy: str, tmp_path: Path) -> None:
    result = send(policy, "patched", tmp_path)
    assert result["status"] == "ok", result["reason"]
    connected = collect.events_of(result["flows"][0]["sender"])[0]
    assert connected["options"]["rtx_policy"] == policy


def test_stock_refuses(tmp_path: Path) -> None:
    result = send("same", "stock", tmp_path)
    assert result["flows"][0]["sender"] == {"exit": 2, "output": ""}
    assert result["reason"] == (
        "mpflow send: mpflow: --rtx-policy: this kernel cannot choose; "
        "expected one with the sctp-multipath patches"
    )
