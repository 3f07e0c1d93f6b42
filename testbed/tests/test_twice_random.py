# SPDX-License-Identifier: GPL-2.0
"""Random pairs of paths for what goes out twice: what is drawn follows from the seed alone."""

from dataclasses import replace
from typing import Any

import pytest
from sctplab.random import twice
from sctplab.spec.model import RunSpec
from sctplab.spec.scenario import Choice
from sctplab.spec.schema import At, build, plain


def drawn(seed: int) -> tuple[RunSpec, RunSpec]:
    both, one = twice.runs(seed, "patched", Choice(), {})
    return both, one


@pytest.mark.parametrize("seed", range(1, 41))
def test_both_runs_differ_in_the_paths_and_the_setting_only(seed: int) -> None:
    both, one = drawn(seed)
    assert both.sysctl.host1.keys() - one.sysctl.host1.keys() == {"net.sctp.redundant_bytes"}
    assert [flow.paths for flow in one.flows] == [("path1",)]
    flows = tuple(replace(flow, paths=both.flows[0].paths) for flow in one.flows)
    assert replace(one, variant=both.variant, sysctl=both.sysctl, flows=flows) == both


@pytest.mark.parametrize("seed", range(1, 21))
def test_a_spec_survives_its_file_and_follows_from_its_seed(seed: int) -> None:
    both, _ = drawn(seed)
    assert build(RunSpec, plain(both), At("spec", "")) == both == drawn(seed)[0] != drawn(seed + 1)[0]


def test_every_message_fits_into_a_copy_and_all_kinds_are_drawn() -> None:
    found = [drawn(seed)[0] for seed in range(1, 101)]
    assert all(one.flows[0].message_b <= twice.SETTINGS["redundant_bytes"] for one in found)
    assert {bool(one.flows[0].interval_ms) for one in found} == {True, False}
    assert {bool(one.topology.paths[0].forward.gemodel) for one in found} == {True, False}


@pytest.mark.parametrize(("interval_ms", "expected"), [(0, 1.5), (20, 0.5)])
def test_bulk_counts_by_its_goodput_and_what_has_a_lifetime_by_its_messages(
    interval_ms: float, expected: float
) -> None:
    def record(goodput: float, messages: int) -> dict[str, Any]:
        return {
            "spec": {"flows": [{"interval_ms": interval_ms}]},
            "metrics": {"goodput_mbit": goodput},
            "flows": [{"receiver": {"messages": messages}}],
        }

    assert twice.share(record(3, 100), record(2, 200)) == expected
