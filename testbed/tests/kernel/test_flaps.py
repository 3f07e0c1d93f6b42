# SPDX-License-Identifier: GPL-2.0
"""Paths that come and go at random, under random settings: everything arrives, the kernel has no complaint.

The same on a kernel that checks itself: testbed/lab run flaps --kernel patched --build debug --repeat 1000
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sctplab.random import flaps
from sctplab.run import runner
from sctplab.spec.scenario import Choice

pytestmark = pytest.mark.kernel
SEEDS = range(1, flaps.SCENARIO.repeat + 1)


@pytest.fixture(scope="module")
def bench() -> Iterator[runner.Bench]:
    with runner.bench_for([flaps.spec(1, "patched", Choice())]) as made:
        yield made


@pytest.mark.parametrize("seed", SEEDS)
def test_everything_arrives(seed: int, bench: runner.Bench, tmp_path: Path) -> None:
    job = runner.Job(flaps.spec(seed, "patched", Choice()), tmp_path / "record.json", tmp_path / "pcap")
    made = runner.perform(job, bench)
    assert (made["status"], made["reason"]) == ("ok", "")
    assert len(made["events"]) == len(job.spec.events)
