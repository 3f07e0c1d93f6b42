# SPDX-License-Identifier: GPL-2.0
"""Common parts of the scenarios that are drawn from a seed and have no file: flaps, cmt-random. Pure.

A run is a function of its seed. Each value is drawn from a generator of its own, seeded by the run's seed and
the value's name, so that a value more or less leaves all others as they are.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sctplab.spec.model import (
    SPEC_FORMAT,
    Event,
    Flow,
    HostSettings,
    Limits,
    Measure,
    RunSpec,
    Topology,
    derive_seed,
)
from sctplab.spec.outages import Outage, scattered
from sctplab.spec.scenario import Choice

PATIENCE = Limits(virtual_s=3600.0, wall_s=600.0)  # a transfer that stands still costs nothing until then


@dataclass(frozen=True)
class Draw:
    """Random choices of one run of SCENARIO, each by its name."""

    scenario: str
    seed: int

    def source(self, name: str) -> random.Random:
        return random.Random(derive_seed(self.seed, self.scenario, name))

    def one(self, name: str, values: tuple[Any, ...]) -> Any:
        return self.source(name).choice(values)

    def between(self, name: str, low: float, high: float) -> float:
        return scattered(low, high, self.source(name))

    def each(self, settings: dict[str, tuple[Any, ...]]) -> dict[str, Any]:
        """A value for each setting."""
        return {name: self.one(name, values) for name, values in settings.items()}


@dataclass(frozen=True)
class Generated:
    """A scenario without a file. RUNS: all runs of one seed, kernel and cell of the factors.

    one_file  those differ in variant and in the paths of all flows, so that a scenario file can have them
    """

    name: str
    question: str
    repeat: int  # seeds, unless the choice says otherwise
    runs: Callable[[int, str, Choice, dict[str, Any]], list[RunSpec]]
    factors: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    one_file: bool = True

    def expand(self, given: dict[str, tuple[Any, ...]], choice: Choice) -> list[RunSpec]:
        """Seeds slowest, so that a stopped sweep is balanced; GIVEN replaces values of factors."""
        factors = {**self.factors, **given}
        seeds = range(choice.first_seed, choice.first_seed + (choice.repeat or self.repeat))
        cells = [dict(zip(factors, values, strict=True)) for values in itertools.product(*factors.values())]
        return [
            spec
            for seed, cell, kernel in itertools.product(seeds, cells, choice.kernels)
            for spec in self.runs(seed, kernel, choice, cell)
        ]


def run_spec(
    draw: Draw,
    question: str,
    kernel: str,
    choice: Choice,
    topology: Topology,
    flows: Sequence[Flow],
    events: tuple[Event, ...],
    settings: dict[str, Any],
    variant: str = "default",
) -> RunSpec:
    """The run; SETTINGS are net.sctp's, of both hosts."""
    values = {f"net.sctp.{name}": str(value) for name, value in settings.items()}
    return RunSpec(
        format=SPEC_FORMAT,
        scenario=draw.scenario,
        question=question,
        place=choice.place,
        kernel=kernel,
        base=choice.base,
        variant=variant,
        factors={},
        seed=draw.seed,
        topology=topology,
        flows=tuple(flows),
        events=events,
        sysctl=HostSettings(values, values),
        limits=PATIENCE,
        measure=Measure(),
        pcap=choice.pcap,
        build=choice.build,
    )


def names(topology: Topology) -> list[str]:
    return [path.name for path in topology.paths]


def end_s(drawn: Sequence[Outage]) -> float:
    """When everything is healed, seconds after the start."""
    return max((outage.end_s for outage in drawn), default=0.0)


def most_timeouts(paths: int, seconds: float, rto_min_ms: int) -> int:
    """More than the timers of all paths can expire in this time."""
    return math.ceil(paths * seconds * 1000 / rto_min_ms) + paths
