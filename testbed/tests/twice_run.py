# SPDX-License-Identifier: GPL-2.0
"""Runs of sent-twice, each beside one path."""

from pathlib import Path
from typing import Any

from sctplab.random import twice
from sctplab.run import runner
from sctplab.spec.model import RunSpec
from sctplab.spec.scenario import Choice


def performed(spec: RunSpec, bench: runner.Bench, folder: Path) -> dict[str, Any]:
    return runner.perform(runner.job_in(folder, spec), bench)


def share(seed: int, bench: runner.Bench, folder: Path) -> float:
    """Of what comes over one path, how much comes over both."""
    both, one = (performed(spec, bench, folder) for spec in twice.runs(seed, "patched", Choice(), {}))
    return twice.share(both, one)
