# SPDX-License-Identifier: GPL-2.0
"""The scenarios that have no file, by name."""

from sctplab.random import cmt, flaps

SCENARIOS = {one.name: one for one in (cmt.SCENARIO, flaps.SCENARIO)}
