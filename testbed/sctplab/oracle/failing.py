# SPDX-License-Identifier: GPL-2.0
"""The judge's complaints about the runs of a scenario file, by kind; the smallest file for a drawn run."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sctplab.errors import LabError, RunError
from sctplab.measure import judge
from sctplab.oracle.as_file import toml, tree_of
from sctplab.oracle.shrink import Case, shrink
from sctplab.random.scenarios import SCENARIOS, specs_named
from sctplab.run import runner
from sctplab.spec import scenario
from sctplab.spec.model import RunSpec

BEHIND, WAIT = "slower than a single path", "a gap"
NAME = "shrunk"  # of the scenario while it is tried
SHRINKABLE = tuple(name for name, one in SCENARIOS.items() if one.one_file)


@dataclass(frozen=True)
class Asked:
    scenario: str
    seed: int
    kernel: str = "patched"
    tries: int = 200
    jobs: int = 1
    out: Path | None = None


def drawn(asked: Asked) -> Case:
    """The runs of a seed as a scenario file."""
    if asked.scenario not in SHRINKABLE:
        raise LabError(
            f"{asked.scenario}: is not drawn from seeds as one file; expected one of {', '.join(SHRINKABLE)}"
        )
    choice = scenario.Choice((asked.kernel,), repeat=1, first_seed=asked.seed)
    whole, *others = specs_named(asked.scenario, [], choice)
    return Case(tree_of(whole, others), asked.seed)


def runs(case: Case, kernel: str, name: str = NAME) -> list[RunSpec]:
    """The runs that 'lab run' makes of the case's file; raises LabError if it is refused."""
    found = scenario.parse(f"{name}.toml", name, "# Does it fail?", case.tree)
    return scenario.expand(found, {}, scenario.Choice((kernel,), repeat=1, first_seed=case.seed))


def kinds(judged: list[judge.Judged]) -> dict[str, str]:
    """Kind of fault -> a complaint of the judge. A kind does not depend on where or how much."""
    found = {kind_of(text): f"{run.spec.variant}: {text}" for run in judged for text in run.complaints}
    for race in judge.races(judged):
        if race.share < judge.LEAST_SHARE:
            found[BEHIND] = race.complaint
    return found


def kind_of(complaint: str) -> str:
    """Without numbers, which another run has not."""
    return (
        WAIT
        if "nothing arrived for" in complaint
        else re.sub(r"\b(0x)?[0-9a-f]*[0-9][0-9a-f]*", "N", complaint)
    )


def wrong(case: Case, asked: Asked, bench: runner.Bench) -> dict[str, str]:
    """The same after the runs were made; nothing where the file would be refused."""
    try:
        specs = runs(case, asked.kernel)
    except LabError:
        return {}
    with tempfile.TemporaryDirectory(prefix="sctplab-shrink-") as name:
        jobs = [runner.Job(spec, Path(name, f"{spec.run_id}.json"), Path(name)) for spec in specs]
        runner.perform_all(jobs, bench, asked.jobs, lambda job, record: None)
        return kinds([judge.judge_run(job.record) for job in jobs])


def smallest(asked: Asked, say: Callable[[str], None]) -> str:
    """The text of a scenario file that fails as the drawn run does."""
    if asked.out and asked.out.suffix != ".toml":
        raise LabError(f"--out: got {asked.out}, expected a name that ends in .toml")
    case = drawn(asked)
    with runner.bench_for(runs(case, asked.kernel)) as bench:
        found = wrong(case, asked, bench)
        if not found:
            raise RunError(f"{asked.scenario}, seed {asked.seed}: the judge finds nothing wrong")
        fault = next(iter(found))
        say(f"{fault}: {found[fault]}")
        case = shrink(case, lambda one: fault in wrong(one, asked, bench), asked.tries, say)
        words = wrong(case, asked, bench)[fault]
    return text(case, asked, fault, words)


def text(case: Case, asked: Asked, fault: str, words: str) -> str:
    """The file: its question, how to run it, what the judge says of it."""
    file = asked.out or Path(f"{NAME}.toml")
    seed = f" --first-seed {case.seed}" if case.seed != 1 else ""
    said = re.sub(rf"\b{NAME}-\S+: ", "", words)
    head = [
        f"# Why is this {fault}? Shrunk from {asked.scenario}, seed {asked.seed}.",
        "#",
        f"#     testbed/lab run {file}{seed} --out results/{file.stem}",
        f"#     testbed/lab judge results/{file.stem}",
        f"# {said}",
    ]
    return "\n".join(head) + "\n\n" + toml(case.tree)
