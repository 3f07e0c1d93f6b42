# SPDX-License-Identifier: GPL-2.0
"""CMT on a local network, whose round trips are a fraction of a tick: what a second link brings."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sctplab.run import runner
from sctplab.spec.model import RunSpec
from tests.cmt_run import cell, metrics_of

pytestmark = pytest.mark.kernel
LINK1_MBIT = 1000


def lan(link2_mbit: float, buffer_kb: float) -> RunSpec:
    """20 MB with per-path SACKs."""
    return cell("cmt-lan", "cmt-per-path", rate2_mbit=link2_mbit, buffer_kb=buffer_kb, size_mb=20)


@pytest.fixture(scope="module")
def bench() -> Iterator[runner.Bench]:
    with runner.bench_for([lan(LINK1_MBIT, 104)]) as made:
        yield made


@pytest.mark.parametrize("link2_mbit", [100, 200, 1000])
def test_a_second_link_is_a_gain_with_default_buffers(link2_mbit: float, bench: runner.Bench) -> None:
    """More than the first link can carry alone, however slow the second is."""
    share = metrics_of(bench, lan(link2_mbit, 104))["capacity_share"]
    assert share * (LINK1_MBIT + link2_mbit) > LINK1_MBIT


def test_the_peers_window_does_not_hold_back_what_was_lost(bench: runner.Bench) -> None:
    """Two queues overflow at once: more gaps than a SACK has room for, and a window that seems shut."""
    metrics = metrics_of(bench, lan(LINK1_MBIT, 4096))
    assert metrics["fast_rtx"] > 0
    assert metrics["t3_timeouts"] == 0
