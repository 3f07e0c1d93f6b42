# SPDX-License-Identifier: GPL-2.0
"""The worth of each rule of the series: the same runs with and without it.

testbed/ablation.toml:

[rules.runs]
title = "runs: a full window waits for an eighth of room"   # of its row
patch = "0420"                                                # where it comes from
function = "net/sctp/multipath/sched.c:sctp_mp_sched_run"     # returns at once where the rule is left out,
returns = "0"                                                 # this; "" for a void function

A rule's worth in a cell is the metric with it over that without it, turned round where less is better: 1.03
is three per cent gained. It stays if the median is MEDIAN or one cell is CELL at least (see KEEPS). Rules may
be worth more together than one by one, where one does the work of the other: --together leaves out several.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from sctplab.errors import LabError
from sctplab.evidence.manifest import toml_of
from sctplab.measure.records import Run
from sctplab.oracle.bench import Asked, run_set, specs_of
from sctplab.oracle.series import series
from sctplab.paths import ROOT
from sctplab.processes import last_line
from sctplab.report.compare import changes
from sctplab.spec.schema import At, build, mapping, nearest, refuse_unknown, text

FILE = ROOT / "testbed" / "ablation.toml"
WITHOUT = ROOT / "tools" / "patch" / "without"
MEDIAN, CELL = 1.01, 1.03
METRICS = ("goodput_mbit", "transfer_s", "failover_s", "max_message_delay_s")
HEAD = ("rule", "patch", "metric", "cells", "median", "most", "gained in", "least", "lost in", "keeps")


@dataclass(frozen=True)
class Rule:
    """See the file."""

    title: str = field(metadata=text(r".+", "one line"))
    patch: str = field(metadata=text(r"[0-9]{4}(, [0-9]{4})*", "numbers of patches, such as 0420"))
    function: str = field(metadata=text(r"\S+:\w+", "FILE:FUNCTION"))
    returns: str = field(default="", metadata=text(r".*", "an expression of C"))

    @property
    def word(self) -> str:
        """As tools/patch/without takes it."""
        return f"{self.function}={self.returns}" if self.returns else self.function


@dataclass(frozen=True)
class Row:
    """The worth of a rule, or of several together, by one metric. PATCH: of its Rule."""

    name: str
    patch: str
    metric: str
    worths: tuple[tuple[float, str], ...]  # of each cell, with its name; ascending

    @property
    def median(self) -> float:
        return float(np.median([worth for worth, _ in self.worths]))

    @property
    def keeps(self) -> bool:
        """Whether this metric alone keeps the rule."""
        return self.median >= MEDIAN or self.worths[-1][0] >= CELL

    def words(self) -> tuple[str, ...]:
        """As HEAD names them."""
        (least, lost), (most, gained) = self.worths[0], self.worths[-1]
        numbers = (str(len(self.worths)), f"{self.median:.3f}", f"{most:.3f}", gained, f"{least:.3f}", lost)
        return (self.name, self.patch, self.metric, *numbers, "yes" if self.keeps else "no")


def read(file: Path = FILE) -> dict[str, Rule]:
    """Name -> rule; raises LabError, one line, for what the file should not say."""
    tree = toml_of(file)
    at = At(str(file), "")
    refuse_unknown(tree, ["rules"], at)
    found = mapping(tree.get("rules", {}), at("rules"))
    return {name: build(Rule, one, at.inside(f"rules.{name}")) for name, one in found.items()}


def chosen(rules: dict[str, Rule], option: str, names: Sequence[str]) -> dict[str, Rule]:
    """Those that OPTION names, all for none."""
    for name in names:
        if name not in rules:
            known = list(rules)
            raise LabError(f"{option} {name}: expected one of {', '.join(known)}; {nearest(name, known)}")
    return {name: rule for name, rule in rules.items() if not names or name in names}


def groups(rules: dict[str, Rule], only: Sequence[str], together: Sequence[str]) -> dict[str, list[Rule]]:
    """The rules that each series lacks, by a name: one after the other, or several TOGETHER."""
    if together:
        found = chosen(rules, "--together", together)
        return {"+".join(found): list(found.values())}
    return {name: [rule] for name, rule in chosen(rules, "--only", only).items()}


def rows(name: str, patch: str, whole: Sequence[Run], without: Sequence[Run]) -> Iterator[Row]:
    """One for each metric that some cell has with the rule and without."""
    found = changes(without, whole)
    for metric in METRICS:
        worths = sorted((one.gain, one.name) for one in found.get(metric, []) if one.ratio)
        if worths:
            yield Row(name, patch, metric, tuple(worths))


def failed(name: str, whole: Sequence[Run], without: Sequence[Run]) -> list[str]:
    """One line for the runs that the rule saves or spoils; a rule without which runs fail stays."""
    bad = [sum(not run.ok for run in runs) for runs in (whole, without)]
    return [f"{name}: {bad[0]} runs not ok with it, {bad[1]} without"] if any(bad) else []


def measure(asked: Asked, left_out: dict[str, list[Rule]], say: Callable[[str], None]) -> list[Row]:
    """Build, run, compare, one series after the other; what was finished in an earlier call stays."""
    specs = specs_of(asked.manifest, asked.seeds)
    whole = run_set(series(str(ROOT / "patches"), asked.out), specs, asked)
    found: list[Row] = []
    for name, rules in left_out.items():
        out = asked.out / "patches" / name
        out.parent.mkdir(parents=True, exist_ok=True)
        words = [*(rule.word for rule in rules), "--out", str(out)]
        last_line([str(WITHOUT), *words], f"tools/patch/without {' '.join(words)}")
        without = run_set(series(str(out), asked.out), specs, asked)
        made = list(rows(name, ", ".join(dict.fromkeys(rule.patch for rule in rules)), whole, without))
        found += made
        for line in [*(", ".join(row.words()) for row in made), *failed(name, whole, without)]:
            say(line)
        write(found, asked.out / "ablation.csv")
    return found


def write(found: Sequence[Row], file: Path) -> None:
    """The table as CSV."""
    with file.open("w", encoding="utf-8", newline="") as out:
        csv.writer(out, lineterminator="\n").writerows([HEAD, *(row.words() for row in found)])
