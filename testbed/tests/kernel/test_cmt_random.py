# SPDX-License-Identifier: GPL-2.0
"""CMT over random topologies, schedules and options: everything arrives, waits have a reason, no path alone
is faster.

A thousand on a kernel that checks itself: tools/test-long
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sctplab.measure import judge
from sctplab.random import cmt
from sctplab.run import runner
from sctplab.spec.scenario import Choice

pytestmark = pytest.mark.kernel
SEEDS = (
    *range(1, 13),
    723,  # small messages and windows, where nothing may be sent ahead
    828,  # messages a little larger than a packet
    948,  # four slow paths beside a fast one
)
MORE_LOSSES = range(1, 6)  # series for a race that is lost with the first: the means count


@pytest.fixture(scope="module")
def bench() -> Iterator[runner.Bench]:
    with runner.bench_for([cmt.spec(1, "patched", Choice())]) as made:
        yield made


def judged(seed: int, losses: int, bench: runner.Bench, folder: Path) -> judge.Verdict:
    """The verdict on the records in FOLDER, after these runs have been added to it."""
    for spec in cmt.runs(seed, "patched", Choice(), {"losses": losses}):
        record = folder / "records" / f"{spec.run_id}.json"
        runner.perform(runner.Job(spec, record, folder / "pcap"), bench)
    return judge.judge(folder)


@pytest.mark.parametrize("seed", SEEDS)
def test_cmt_over_random_paths(seed: int, bench: runner.Bench, tmp_path: Path) -> None:
    verdict = judged(seed, 0, bench, tmp_path)
    if verdict.behind:
        verdict = [judged(seed, losses, bench, tmp_path) for losses in MORE_LOSSES][-1]
    assert verdict.complaints == ()
