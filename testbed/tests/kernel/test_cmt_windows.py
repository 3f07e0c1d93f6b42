# SPDX-License-Identifier: GPL-2.0
"""CMT with receive windows that hold little more than one path needs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sctplab.run import runner
from tests.cmt_run import cell, metrics_of

pytestmark = pytest.mark.kernel
LONG = cell("cmt-buffers", "cmt-per-path", d2_ms=200, size_mb=40, rcvbuf_kb=1024)
EQUAL = cell("lsfr", "sharing", size_mb=5, loss_pct=0)


@pytest.fixture(scope="module")
def bench() -> Iterator[runner.Bench]:
    with runner.bench_for([LONG, EQUAL]) as made:
        yield made


def test_a_long_path_gets_what_the_window_has_left(bench: runner.Bench) -> None:
    """More than the first of two equal paths can carry: 1 MB in 210 ms is more than its rate."""
    assert metrics_of(bench, LONG)["capacity_share"] > 0.5


def test_a_path_with_a_queue_lets_the_other_one_begin(bench: runner.Bench) -> None:
    """The window is twice what a path and its queue hold; shared in time it overflows neither."""
    assert metrics_of(bench, EQUAL)["rtx_ratio"] == 0
