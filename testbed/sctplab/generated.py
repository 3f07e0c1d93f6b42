# SPDX-License-Identifier: GPL-2.0
"""The scenarios that have no file, by name."""

from sctplab import cmt_random, flaps

SCENARIOS = {one.name: one for one in (cmt_random.SCENARIO, flaps.SCENARIO)}
