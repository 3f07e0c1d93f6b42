# SPDX-License-Identifier: GPL-2.0
"""Helpers of several tests, to start the laboratory as a user does and to make small specs."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from sctplab.spec import scenario
from sctplab.spec.model import Limits, RunSpec

TESTBED = Path(__file__).resolve().parent.parent


def environment(**extra: str) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": f"{TESTBED}:{TESTBED.parent}/tools",
        "PYTHONDONTWRITEBYTECODE": "1",
        **extra,
    }


def lab(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the command line with WORDS; no setup, since tests run in its environment already."""
    argv = [sys.executable, "-m", "sctplab", *words]
    return subprocess.run(argv, capture_output=True, text=True, env=environment(), **options)


def small_spec(**changes: Any) -> RunSpec:
    """A run of a second or two on the stock kernel."""
    found = scenario.load(scenario.find("off-clean"))
    spec = scenario.expand(found, {}, scenario.Choice(kernels=("stock",), repeat=1))[0]
    return replace(spec, **{"limits": Limits(60, 60), **changes})
