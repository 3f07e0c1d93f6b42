# SPDX-License-Identifier: GPL-2.0
"""Waits of 300 random transfers over several paths: how many of them explain accounts for."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from sctplab.random import cmt
from sctplab.replay.explain import Wait, tell
from sctplab.run import runner
from sctplab.spec.model import RunSpec
from sctplab.spec.scenario import Choice

pytestmark = pytest.mark.kernel
SEEDS = range(1, 301)
SHARE = 0.95


def drawn(seed: int) -> RunSpec:
    return cmt.spec(seed, "patched", Choice(pcap=True))


def waits_of(seed: int, bench: runner.Bench) -> list[Wait]:
    with tempfile.TemporaryDirectory() as folder:
        record, captures = Path(folder, "record.json"), Path(folder, "pcap")
        made = runner.perform(runner.Job(drawn(seed), record, captures), bench)
        assert made["status"] == "ok", f"seed {seed}: {made['reason']}"
        return tell(record, captures).waits


def test_nearly_all_waits_are_accounted_for() -> None:
    """A wait is if its causes fill as much of it."""
    found: list[tuple[int, Wait]] = []
    with runner.bench_for([drawn(1)]) as bench:
        for seed in SEEDS:
            found += [(seed, one) for one in waits_of(seed, bench)]
    open_ones = [(seed, one) for seed, one in found if one.known_s < SHARE * one.lasted_s]
    total, known = sum(one.lasted_s for _, one in found), sum(one.known_s for _, one in found)
    print(f"{len(found)} waits, {total:.1f} s in all; accounted for: all but {len(open_ones)}, {known:.1f} s")
    assert len(open_ones) <= (1 - SHARE) * len(found), open_ones
    assert known >= SHARE * total
