# SPDX-License-Identifier: GPL-2.0
"""testbed/evidence.toml: which runs there are, and what README and Documentation show of them.

testbed/bench.toml has runs only, those of 'compare --set bench'.

[runs.rtx-policy]                 # a set of runs; its summary is Documentation/tables/rtx-policy.csv
scenarios = ["rtx-policy"]
kernels = ["stock", "patched"]    # default: both
variants = ["kernel", "cmt"]      # default: all
repeat = 5                        # seeds per cell; default: the scenario's
set = { queue_pkts = [1000] }     # values of factors, as run's --set
quick = { d2_ms = [10] }          # the cells of it that --quick repeats, first seed; absent: none
older = "why"                     # its summary may be of another series than patches/; before [runs]: any may

[tables.goodput]                  # see table.py
[plots.goodput]                   # see plot.py
[[figures]]                       # see pages.py
"""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sctplab.errors import LabError
from sctplab.paths import ROOT
from sctplab.random.scenarios import specs_named
from sctplab.spec.model import BUILDS, FLAVOURS, RunSpec
from sctplab.spec.scenario import Choice
from sctplab.spec.schema import At, build, check, choice, count, mapping, names, refuse_unknown, text

FILE = ROOT / "testbed" / "evidence.toml"
NAME = r"[a-z0-9][a-z0-9-]*"
FLAVOUR = "|".join(FLAVOURS)
OWN = ("scenario", "kernel", "variant")  # settings of a run beside its factors
SECTIONS = ("older", "runs", "tables", "plots", "figures")


def _values(value: object, at: At) -> dict[str, tuple[Any, ...]]:
    """Factor -> values; kept as they are, the scenario checks them."""
    found = mapping(value, at)
    for name, some in found.items():
        if not isinstance(some, list) or not some or isinstance(some[0], dict | list):
            raise at(name).refuse(some, "a list of at least one value", f"write {name} = [...]")
    return {name: tuple(some) for name, some in found.items()}


@dataclass(frozen=True)
class RunSet:
    """Runs that are made together: as options of 'lab run'."""

    scenarios: tuple[str, ...] = field(metadata=names("names of scenarios", NAME))
    kernels: tuple[str, ...] = field(default=FLAVOURS, metadata=names("flavours of the kernel", FLAVOUR))
    variants: tuple[str, ...] = field(default=(), metadata=names("names of variants"))
    repeat: int | None = field(default=None, metadata=count(1, 100000, "seeds per cell"))
    first_seed: int = field(default=1, metadata=count(0, 1000000, "a seed"))
    build: str = field(default="plain", metadata=choice(*BUILDS))
    set: dict[str, tuple[Any, ...]] = field(default_factory=dict, metadata=check(_values))
    quick: dict[str, tuple[Any, ...]] | None = field(default=None, metadata=check(_values))
    older: str = field(default="", metadata=text(r".+", "the reason, one line"))

    def validate(self, at: At) -> None:
        if not self.scenarios or not self.kernels:
            raise at("scenarios").refuse(list(self.scenarios), "at least one scenario and one kernel")

    def command(self) -> str:
        """The same runs by 'lab run', for who wants only these; runs of other variants come along."""
        words = ["testbed/lab", "run", *self.scenarios]
        words += [] if set(self.kernels) == set(FLAVOURS) else ["--kernel", ",".join(self.kernels)]
        words += ["--build", self.build] if self.build != "plain" else []
        for word in self.assignments():
            words += ["--set", word]
        words += ["--repeat", str(self.repeat)] if self.repeat else []
        words += ["--first-seed", str(self.first_seed)] if self.first_seed != 1 else []
        return shlex.join(words)

    def assignments(self) -> list[str]:
        """SET as the command line has it."""
        return [f"{name}={','.join(map(str, values))}" for name, values in self.set.items()]

    def specs(self) -> list[RunSpec]:
        """The runs, frozen; raises LabError as 'lab run' does."""
        choice_of = Choice(self.kernels, repeat=self.repeat, first_seed=self.first_seed, build=self.build)
        made = [spec for name in self.scenarios for spec in specs_named(name, self.assignments(), choice_of)]
        known = dict.fromkeys(spec.variant for spec in made)
        for name in self.variants:
            if name not in known:
                raise LabError(f"{self.command()}: no variant {name!r}; expected one of {', '.join(known)}")
        return [spec for spec in made if not self.variants or spec.variant in self.variants]

    def quick_specs(self) -> list[RunSpec]:
        """The part of specs() that --quick repeats: the first seed of the cells that quick names."""
        if self.quick is None:
            return []
        wanted = self.quick
        made = [
            spec
            for spec in self.specs()
            if spec.seed == self.first_seed
            and all(settings(spec).get(name) in values for name, values in wanted.items())
        ]
        if not made:
            raise LabError(
                f"{self.command()}: quick: got {wanted}, expected settings that some of these runs have"
            )
        return made


def settings(spec: RunSpec) -> dict[str, Any]:
    """Scenario, kernel, variant and factors of a run."""
    return {name: getattr(spec, name) for name in OWN} | spec.factors


@dataclass(frozen=True)
class Manifest:
    """The file, its sets of runs checked; TABLES, PLOTS and FIGURES as they stand in it."""

    file: Path
    runs: dict[str, RunSet]
    tables: dict[str, Any]
    figures: tuple[Any, ...]
    plots: dict[str, Any] = field(default_factory=dict)


def toml_of(file: Path) -> dict[str, Any]:
    """A file's content; raises LabError, one line, where it cannot be read."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise LabError(f"{file}: cannot be read: {error}") from error


def read(file: Path = FILE) -> Manifest:
    """The manifest; raises LabError, one line, for what it should not say."""
    tree = toml_of(file)
    at = At(str(file), "")
    refuse_unknown(tree, list(SECTIONS), at)
    figures = tree.get("figures", [])
    if not isinstance(figures, list):
        raise at("figures").refuse(figures, "tables [[figures]]")
    return Manifest(
        file,
        _sets(tree.get("runs", {}), {"older": tree["older"]} if "older" in tree else {}, at.inside("runs")),
        dict(mapping(tree.get("tables", {}), at("tables"))),
        tuple(figures),
        dict(mapping(tree.get("plots", {}), at("plots"))),
    )


def _sets(found: object, default: Mapping[str, Any], at: At) -> dict[str, RunSet]:
    """DEFAULT: what holds for each set that does not say otherwise."""
    tables: Mapping[str, Any] = mapping(found, at)
    name_check = text(NAME, "a name of small letters, digits and -")["check"]
    return {
        name_check(name, at): build(RunSet, {**default, **mapping(one, at(name))}, at.inside(name))
        for name, one in tables.items()
    }
