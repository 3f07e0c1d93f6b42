# SPDX-License-Identifier: GPL-2.0
"""Runs of sctplab/random/suspects.py without failover_suspect and with it, and what is wrong with both."""

from __future__ import annotations

from sctplab.random import suspects
from sctplab.run import runner
from sctplab.spec.scenario import Choice
from tests.failover_run import good

NAMES = (suspects.LONGER, suspects.LATE, suspects.HOLE)


def check(name: str, seed: int, bench: runner.Bench) -> None:
    off, on = (good(bench, spec) for spec in suspects.runs(seed, "patched", Choice(), {}, name))
    assert suspects.complaints(off, on, suspects.spec(seed, "patched", Choice(), name)) == []
