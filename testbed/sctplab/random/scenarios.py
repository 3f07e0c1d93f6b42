# SPDX-License-Identifier: GPL-2.0
"""The scenarios that have no file, by name; runs of any scenario."""

from sctplab.random import closed, cmt, differential, flaps, lengths, suspects, twice
from sctplab.spec import scenario
from sctplab.spec.model import RunSpec

DRAWN = (
    closed.SCENARIO,
    cmt.SCENARIO,
    cmt.SHORT_SCENARIO,
    differential.SCENARIO,
    flaps.SCENARIO,
    lengths.SCENARIO,
    *suspects.SCENARIOS,
    twice.SCENARIO,
)
SCENARIOS = {one.name: one for one in DRAWN}


def specs_named(name: str, assignments: list[str], choice: scenario.Choice) -> list[RunSpec]:
    """The runs of one scenario, from its file or drawn from their seeds."""
    if name in SCENARIOS:
        drawn = SCENARIOS[name]
        return drawn.expand(scenario.set_factors(drawn, assignments), choice)
    found = scenario.load(scenario.find(name))
    return scenario.expand(found, scenario.set_factors(found, assignments), choice)
