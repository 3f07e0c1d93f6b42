# SPDX-License-Identifier: GPL-2.0
"""Programs with changing habits (work/habits.py) with one path at a time and under the profiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path as File

from sctplab.plan.link_commands import address, build_commands
from sctplab.spec.model import Direction, Path, Topology
from sctplab.spec.profiles import settings_of
from sctplab.spec.schema import plain
from tests.kernel_run import linux, run_work

WALL_S = 600
OFF = "00-off"
BOTH = ("host1", "host2")
PROFILES = ("10-signalling", "20-bulk", "25-cmt")
# Of what the same takes with everything off; once the wait for a delayed SACK, which falls on either by the
# parity of what is in flight. Of all: the geometric mean.
MOST, SACK_S, MOST_OF_ALL = 1.05, 0.25, 1.01


@dataclass(frozen=True)
class Ways:
    """Two paths: one-way delays in ms, rates in Mbit/s."""

    delays_ms: tuple[float, float]
    rates_mbit: tuple[float, float] = (20, 20)

    def __str__(self) -> str:
        return "{:g}-{:g}ms-{:g}-{:g}Mbit".format(*self.delays_ms, *self.rates_mbit)

    def topology(self) -> Topology:
        both = [Direction(rate, delay) for rate, delay in zip(self.rates_mbit, self.delays_ms, strict=True)]
        return Topology(tuple(Path(f"path{number}", one, one) for number, one in enumerate(both, 1)))


def took_s(
    ways: Ways, name: str, seeds: Sequence[int], folder: File, hosts: Sequence[str] = BOTH
) -> list[float]:
    """Under profile NAME of sysctl/ at HOSTS, in the order of SEEDS."""
    topology = ways.topology()
    values = settings_of(name)
    found = run_work(
        "habits",
        linux("patched"),
        folder,
        WALL_S,
        setup=[plain(one) for one in build_commands(topology, 1)],
        settings={key.removeprefix("net.sctp."): value for key, value in values.items()},
        hosts=list(hosts),
        server=address(topology, "host2", "path1"),
        seeds=list(seeds),
    )["took_s"]
    return [found[str(seed)] for seed in seeds]


def check(ways: Ways, seeds: Sequence[int], folder: File, hosts: Sequence[str] = BOTH) -> None:
    """HOSTS: those that load a profile; its peer may know of none."""
    found = {}
    for name in (OFF, *PROFILES):
        (folder / name).mkdir()
        found[name] = took_s(ways, name, seeds, folder / name, hosts)
    off = found.pop(OFF)
    slower = []
    for name, took in found.items():
        ratios = [one / before for one, before in zip(took, off, strict=True)]
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        least, most = min(ratios), max(ratios)
        print(f"{ways}, {name} at {' and '.join(hosts)}: {mean:.3f} of the time, {least:.2f} to {most:.2f}")
        if mean > MOST_OF_ALL:
            slower.append(f"{name}: {mean:.3f} in the mean")
        slower += [
            f"{name}, seed {seed}: {one:.3f} s, {before:.3f} without"
            for seed, one, before in zip(seeds, took, off, strict=True)
            if one > MOST * before + SACK_S
        ]
    assert slower == [], "; ".join(slower)
