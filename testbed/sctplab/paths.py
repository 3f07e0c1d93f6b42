# SPDX-License-Identifier: GPL-2.0
"""Where things are in the checkout."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
AGENT = ROOT / "testbed" / "agent"
SCENARIOS = ROOT / "testbed" / "scenarios"
SETUP = ROOT / "tools" / "setup"
MODULES = f"{ROOT / 'testbed'}:{ROOT / 'tools'}"  # PYTHONPATH of the laboratory, as testbed/lab sets it
