# SPDX-License-Identifier: GPL-2.0
"""The report section of a scenario file: plots and contrasts. Read when the report is made.

    [[plots]]                         # in place of the automatic ones
    metric = "any_spurious_failover"
    x = "loss_pct"                    # a factor; left out: the numeric factor with most values
    curves = ["pmr"]                  # factors; panels likewise. Others that vary make separate figures
    pool = ["alt_loss_pct"]           # cells that differ in these only are put together
    sources = ["Caro 2004"]           # of the reference files; left out: all
    zero = false                      # y axes that fit the values of each panel, not from 0
    title = "..."

    [[plots]]
    metric = "spurious_failovers"
    kind = "cdf"                      # share of runs with at most 0, 1, ... up_to of them
    panels = ["loss_pct"]
    curves = ["pmr"]
    pool = ["alt_loss_pct"]

    [[contrasts]]                     # a table: all other values of the factor against this one, by seed
    metric = "transfer_s"
    factor = "pmr"                    # or "variant"
    against = 5

No part of a run's spec: what is drawn does not change what is measured, and records keep their names.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sctplab.errors import LabError
from sctplab.paths import SCENARIOS
from sctplab.spec.schema import At, build, check, choice, count, flag, names, tables, text

KEYS = ("plots", "contrasts")
VARIANT = "variant"
FACTOR = text(r"[A-Za-z_][A-Za-z0-9_]*", "the name of a factor")
METRIC = text(r"[a-z][a-z0-9_]*(\.[a-z0-9_-]+)?", "the name of a metric")


def _scalar(value: object, at: At) -> Any:
    if not isinstance(value, int | float | str):
        raise at.refuse(value, "a number or a text")
    return value


@dataclass(frozen=True)
class Plot:
    """One figure, or one per value of the factors that it does not name."""

    metric: str = field(metadata=METRIC)
    kind: str = field(default="curves", metadata=choice("curves", "cdf"))
    x: str | None = field(default=None, metadata=FACTOR)
    curves: tuple[str, ...] = field(default=(), metadata=names("factors"))
    panels: tuple[str, ...] = field(default=(), metadata=names("factors"))
    pool: tuple[str, ...] = field(default=(), metadata=names("factors"))
    up_to: int = field(default=10, metadata=count(1, 100, "events, for cdf"))
    sources: tuple[str, ...] = field(default=(), metadata=names("sources of the reference files"))
    zero: bool = field(default=True, metadata=flag())
    title: str = field(default="", metadata=text(r".*", "one line"))

    def factors(self) -> tuple[str, ...]:
        return (*((self.x,) if self.x else ()), *self.curves, *self.panels, *self.pool)

    def validate(self, at: At) -> None:
        for name in self.factors():
            if self.factors().count(name) > 1:
                raise at.refuse(name, "each factor in one place", "remove one of them")
        if self.kind == "cdf" and self.x:
            raise at("x").refuse(self.x, "no x for a cdf, whose x axis is the metric", "remove it")


@dataclass(frozen=True)
class Contrast:
    """A table of ratios over the common seeds: values of a factor, or variants, against one of them."""

    metric: str = field(metadata=METRIC)
    factor: str = field(metadata=FACTOR)
    against: int | float | str = field(metadata=check(_scalar))

    def factors(self) -> tuple[str, ...]:
        return () if self.factor == VARIANT else (self.factor,)


@dataclass(frozen=True)
class Wanted:
    """All that a file asks for, in its order."""

    plots: tuple[Plot, ...] = field(default=(), metadata=tables(Plot))
    contrasts: tuple[Contrast, ...] = field(default=(), metadata=tables(Contrast))


def read(tree: Mapping[str, Any], factors: Iterable[str], at: At) -> Wanted:
    """The plots and contrasts of a scenario's tree, whose FACTORS they may name; raises LabError."""
    known = tuple(factors)
    wanted = build(Wanted, {key: tree[key] for key in KEYS if key in tree}, at)
    for kind in KEYS:
        asked: tuple[Plot | Contrast, ...] = getattr(wanted, kind)
        for number, one in enumerate(asked, 1):
            for name in one.factors():
                if name not in known:
                    raise at.inside(f"{kind} {number}").refuse(name, "one of the factors " + ", ".join(known))
    return wanted


def of_scenario(name: str) -> Wanted:
    """The plots and contrasts of the laboratory's scenario NAME; none if it has no such file."""
    path = SCENARIOS / f"{name}.toml"
    if not path.is_file():
        return Wanted()
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise LabError(f"{path}: cannot be read: {error}") from error
    return read(tree, tree.get("factors", {}), At(str(path), ""))
