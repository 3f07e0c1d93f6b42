# SPDX-License-Identifier: GPL-2.0
"""Which records of drawn scenarios show something wrong: runs that are not ok, waits that the specification
does not explain, and transfers over all paths that are slower than over the best one.

Waits are judged where there are several paths. With one the kernel does what it always did: a chunk whose fast
retransmission is lost waits as long as SACKs of later ones go on restarting the timer, for many seconds.

A run over all paths is compared with those of the same seed and kernel over one path each, where the scenario
makes them (cmt_random.rivals). What stands beside it meets the same losses: netem's seeds are the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sctplab import cmt_random, stalls
from sctplab.checks import At, build
from sctplab.collect import T3
from sctplab.load_records import read_json, record_files
from sctplab.model import Flow, RunSpec

LEAST_SHARE = 0.9  # of the goodput over the best path


@dataclass(frozen=True)
class Judged:
    """One record: its spec, its goodput (0 unless ok), and what is wrong with it by itself."""

    spec: RunSpec
    goodput_mbit: float
    complaints: tuple[str, ...]


@dataclass(frozen=True)
class Race:
    """A transfer over all paths, and the best of those over one."""

    run_id: str
    all_mbit: float
    best: str
    best_mbit: float

    @property
    def share(self) -> float:
        return self.all_mbit / self.best_mbit


def judge(path: Path) -> Judged:
    """One record file."""
    record = read_json(path)
    spec: RunSpec = build(RunSpec, record["spec"], At(str(path), "spec"))
    if record["status"] != "ok":
        return Judged(spec, 0.0, (f"{record['status']}: {record['reason']}",))
    outcomes = {outcome["name"]: outcome for outcome in record["flows"]}
    found = (
        stall(spec, flow, outcomes[flow.name]["receiver"], record)
        for flow in spec.flows
        if len(stalls.used(spec, flow)) > 1
    )
    return Judged(spec, record["metrics"]["goodput_mbit"], tuple(one for one in found if one))


def stall(spec: RunSpec, flow: Flow, receiver: dict[str, Any], record: dict[str, Any]) -> str:
    """What is wrong with the longest time in which FLOW's receiver got nothing; "" if it is explained."""
    seconds = receiver["max_gap_s"]
    begin = receiver["max_gap_t"] - record["start_t"]
    timeouts = record["counters"][flow.hosts[0]].get(T3, 0)
    why = list(stalls.reasons(spec, flow, (begin, begin + seconds), timeouts))
    if seconds <= sum(cost for _, cost in why):
        return ""
    told = ", ".join(f"{reason} {cost:.2f}" for reason, cost in why)
    return f"{flow.name}: nothing arrived for {seconds:.2f} s at {begin:.2f} s; explained: {told}"


def races(runs: Iterable[Judged]) -> Iterator[Race]:
    """One for each run over all paths that has others of its seed and kernel beside it."""
    beside: dict[tuple[Any, ...], list[Judged]] = defaultdict(list)
    for run in runs:
        spec = run.spec
        beside[spec.scenario, spec.kernel, spec.base, spec.build, spec.place, spec.seed].append(run)
    for group in beside.values():
        alone = [run for run in group if run.spec.variant != cmt_random.ALL_PATHS and run.goodput_mbit]
        for whole in group:
            if whole.spec.variant == cmt_random.ALL_PATHS and whole.goodput_mbit and alone:
                best = max(alone, key=lambda run: run.goodput_mbit)
                yield Race(whole.spec.run_id, whole.goodput_mbit, best.spec.variant, best.goodput_mbit)


def complaints(folder: Path) -> tuple[list[str], str]:
    """(everything that is wrong, one line that counts) in a result folder."""
    runs = [judge(path) for path in record_files(folder)]
    told = [f"{run.spec.run_id}: {one}" for run in runs for one in run.complaints]
    run_races = sorted(races(runs), key=lambda race: race.share)
    behind = [race for race in run_races if race.share < LEAST_SHARE]
    told += [
        f"{race.run_id}: {race.all_mbit:.3f} Mbit/s over all paths, {race.best_mbit:.3f} over {race.best}:"
        f" {race.share:.2f} of it, expected at least {LEAST_SHARE}"
        for race in behind
    ]
    least = f", least {run_races[0].share:.3f}" if run_races else ""
    counted = f"{len(runs)} runs, {len(run_races)} races{least}; {len(told)} complaints"
    return told, counted
