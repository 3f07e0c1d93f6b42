# SPDX-License-Identifier: GPL-2.0
"""Which records of drawn scenarios show something wrong: runs that are not ok, waits that the specification
does not explain, and transfers over all paths that are slower than over the best one.

Waits are judged where there are several paths. With one the kernel does what it always did: a chunk whose
fast retransmission is lost waits as long as SACKs of later ones go on restarting the timer, for many seconds.

A transfer over all paths is compared with those of the same seed and kernel over one path each, where the
scenario makes them (cmt_random.rivals). They meet the same series of losses, but it hits other packets, and
the loss of the last one costs a timeout, which may be a tenth of the transfer. So a seed may be run with
several series of losses (--set losses=0,1,2,3), and the means of the goodputs count.

The longest wait after a program has not read (closed.py) is compared with that of the stock kernel for the
same seed. With everything off the two are alike. A profile probes at other moments, so that it may meet the
cut in a worse phase than stock does: only the longest wait of all seeds counts, and the seeds are counted in
which it waits longer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from sctplab.errors import LabError
from sctplab.measure.collect import T3
from sctplab.measure.records import read_json, record_files
from sctplab.plan import expected_gap
from sctplab.random import closed, cmt
from sctplab.spec.model import Flow, RunSpec
from sctplab.spec.schema import At, build

LEAST_SHARE = 0.9  # of the goodput over the best path
LATER_S = 0.01  # than the stock kernel, after a closed window: as good as the same


@dataclass(frozen=True)
class Judged:
    """One record: its spec, its goodput and longest wait (0 unless ok), and its own faults."""

    spec: RunSpec
    goodput_mbit: float
    complaints: tuple[str, ...]
    wait_s: float = 0.0


@dataclass(frozen=True)
class Race:
    """Transfers over all paths, and those over the best single one; means over the series of losses."""

    seed: int
    run_id: str  # of one of them
    series: int
    all_mbit: float
    best: str
    best_mbit: float

    @property
    def share(self) -> float:
        return self.all_mbit / self.best_mbit

    @property
    def complaint(self) -> str:
        means = f" (means of {self.series} series of losses)" if self.series > 1 else ""
        return (
            f"{self.run_id}: {self.all_mbit:.3f} Mbit/s over all paths, {self.best_mbit:.3f} over"
            f" {self.best}: {self.share:.2f} of it, expected at least {LEAST_SHARE}{means}"
        )


@dataclass(frozen=True)
class Verdict:
    """Verdict on a result folder: complaints, seeds where the best single path won, a one-line summary."""

    complaints: tuple[str, ...]
    behind: tuple[int, ...]
    counted: str


def judge_run(path: Path) -> Judged:
    """One record file; raises LabError."""
    record = read_json(path)
    try:
        return _judged(path, record)
    except (KeyError, TypeError, AttributeError) as error:
        raise LabError(
            f"{path}: damaged, not a whole record ({error!r}); delete it and run again with --resume"
        ) from error


def _judged(path: Path, record: dict[str, Any]) -> Judged:
    spec: RunSpec = build(RunSpec, record["spec"], At(str(path), "spec"))
    if record["status"] != "ok":
        return Judged(spec, 0.0, (f"{record['status']}: {record['reason']}",))
    if spec.scenario == closed.NAME:
        return Judged(spec, record["metrics"]["goodput_mbit"], (), record["metrics"].get("max_gap_s", 0.0))
    outcomes = {outcome["name"]: outcome for outcome in record["flows"]}
    found = (
        stall(spec, flow, outcomes[flow.name]["receiver"], record)
        for flow in spec.flows
        if len(expected_gap.used(spec, flow)) > 1
    )
    return Judged(spec, record["metrics"]["goodput_mbit"], tuple(one for one in found if one))


def stall(spec: RunSpec, flow: Flow, receiver: dict[str, Any], record: dict[str, Any]) -> str:
    """A complaint about the longest gap between arrivals at FLOW's receiver; "" if it is explained.

    A flow that arrives all at once, such as a single message, has no gap.
    """
    if "max_gap_t" not in receiver:
        return ""
    seconds = receiver["max_gap_s"]
    begin = receiver["max_gap_t"] - record["start_t"]
    timeouts = record["counters"][flow.hosts[0]].get(T3, 0)
    why = list(expected_gap.reasons(spec, flow, (begin, begin + seconds), timeouts))
    if seconds <= sum(cost for _, cost in why):
        return ""
    told = ", ".join(f"{reason} {cost:.2f}" for reason, cost in why)
    return f"{flow.name}: nothing arrived for {seconds:.2f} s at {begin:.2f} s; explained: {told}"


def races(runs: Iterable[Judged]) -> Iterator[Race]:
    """One for each seed and kernel with good runs over all paths and over single ones."""
    beside: dict[tuple[Any, ...], dict[str, list[Judged]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        spec = run.spec
        if run.goodput_mbit:
            key = (spec.scenario, spec.kernel, spec.base, spec.build, spec.place, spec.seed)
            beside[key][spec.variant].append(run)
    for variants in beside.values():
        whole = variants.pop(cmt.ALL_PATHS, [])
        if whole and variants:
            means = {name: fmean(run.goodput_mbit for run in found) for name, found in variants.items()}
            best = max(means, key=lambda name: means[name])
            yield Race(
                whole[0].spec.seed,
                whole[0].spec.run_id,
                len(whole),
                fmean(run.goodput_mbit for run in whole),
                best,
                means[best],
            )


def waits(runs: Iterable[Judged]) -> Iterator[str]:
    """Complaints about waits after a closed window that are longer than on the stock kernel."""
    good = [run for run in runs if run.spec.scenario == closed.NAME and not run.complaints]
    stock = {run.spec.seed: run.wait_s for run in good if run.spec.kernel == "stock"}
    for variant in (closed.OFF, *closed.PROFILES):
        found = [
            run for run in good
            if run.spec.kernel != "stock" and run.spec.variant == variant and run.spec.seed in stock
        ]  # fmt: skip
        later = [run for run in found if run.wait_s > stock[run.spec.seed] + LATER_S]
        if variant == closed.OFF:
            for run in later:
                yield f"{run.spec.run_id}: waits {run.wait_s:.3f} s, stock {stock[run.spec.seed]:.3f}"
        elif (ours := longest(found)) > (theirs := max(stock.values(), default=0.0)) + LATER_S:
            yield f"{variant}: waits {ours:.3f} s, stock {theirs:.3f}; longer in {len(later)} of {len(found)}"


def longest(runs: Iterable[Judged]) -> float:
    return max((run.wait_s for run in runs), default=0.0)


def judge(folder: Path) -> Verdict:
    """All records of a result folder."""
    runs = [judge_run(path) for path in record_files(folder)]
    told = [f"{run.spec.run_id}: {one}" for run in runs for one in run.complaints]
    told += waits(runs)
    found = sorted(races(runs), key=lambda race: race.share)
    behind = [race for race in found if race.share < LEAST_SHARE]
    told += [race.complaint for race in behind]
    least = f", lowest {found[0].share:.3f}" if found else ""
    counted = f"{len(runs)} runs, {len(found)} comparisons{least}; {len(told)} complaints"
    return Verdict(tuple(told), tuple(race.seed for race in behind), counted)
