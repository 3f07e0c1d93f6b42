# SPDX-License-Identifier: GPL-2.0
"""The summary of a set of runs, Documentation/tables/NAME.csv: one line per run, and its source.

Comment lines first, `# key: value`; then scenario, kernel, variant, the factors, seed, and the metrics that
tables use, each with ten digits. A run that is not ok makes no summary: what is shown is complete.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from sctpkernel.series import load_series, short_id

from sctplab.errors import LabError
from sctplab.evidence.manifest import OWN, RunSet
from sctplab.paths import ROOT
from sctplab.report.stats import Interval
from sctplab.spec.model import USUAL_BASE

FOLDER = ROOT / "Documentation" / "tables"
PARTS = ("testbed/agent", "tools/mpflow", *(f"testbed/sctplab/{one}" for one in ("spec", "plan", "place")))
PARTS += ("testbed/sctplab/random", "testbed/sctplab/run", "testbed/sctplab/measure")
SOURCE = ("series", "kernel", "laboratory", "records", "runs")  # keys of the lines at the top
UNTOLD = ("host", "kernel", "tools")  # members of a record that differ between equal runs
Setting = str | float
Key = tuple[tuple[str, Setting], ...]


@cache
def series_id() -> str:
    """Of patches/, as kernels and records say it."""
    return short_id(load_series(USUAL_BASE), "stock")


@dataclass(frozen=True)
class Row:
    """One run: its settings (scenario, kernel, variant, factors), seed and metrics.

    INTERVALS: of figures that are no runs of ours, ends of the 95 % interval.
    """

    settings: dict[str, Setting]
    seed: int
    metrics: dict[str, float]
    intervals: dict[str, Interval] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        return (*sorted(self.settings.items()), ("seed", self.seed))


@dataclass(frozen=True)
class Data:
    """A summary. SOURCE: series, kernels, laboratory, records, runs; as text."""

    source: dict[str, str]
    rows: tuple[Row, ...]


def path_of(name: str) -> Path:
    return FOLDER / f"{name}.csv"


def laboratory() -> str:
    """Twelve hex digits of the code that makes and measures a run."""
    digest = hashlib.sha256()
    for part in PARTS:
        for file in sorted((ROOT / part).rglob("*")):
            if file.suffix in (".py", ".c", ".h"):
                digest.update(file.relative_to(ROOT).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:12]


def record_hash(records: Iterable[Mapping[str, Any]]) -> str:
    """Sixteen hex digits of these records, in any order; the clock, builds and versions of tools left out."""
    lines = sorted(
        json.dumps({key: one for key, one in record.items() if key not in UNTOLD}, sort_keys=True)
        for record in records
    )
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def row(record: Mapping[str, Any], metrics: Collection[str]) -> Row:
    """One record, with those of METRICS that it has."""
    spec = record["spec"]
    settings = {name: spec[name] for name in OWN} | dict(spec["factors"])
    own = {name: rounded(value) for name, value in record["metrics"].items() if name in metrics}
    return Row(settings, spec["seed"], own)


def rounded(value: float) -> float:
    """As the file keeps it."""
    return float(f"{value:.10g}")


def source(records: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Where these records come from."""
    kernels = [record["kernel"] for record in records]
    series = {one["series_id"] for one in kernels} - {"stock"}
    return {
        "series": " ".join(sorted(series)) or "none",
        "kernel": " ".join(sorted({one["source_version"] for one in kernels})),
        "laboratory": laboratory(),
        "records": record_hash(records),
        "runs": str(len(records)),
    }


def text(data: Data, runs: RunSet) -> str:
    """The file's content."""
    out = io.StringIO()
    out.write(f"# command: {runs.command()}\n")
    for key, value in data.source.items():
        out.write(f"# {key}: {value}\n")
    factors = list(dict.fromkeys(name for one in data.rows for name in one.settings if name not in OWN))
    metrics = sorted({name for one in data.rows for name in one.metrics})
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*OWN, *factors, "seed", *metrics])
    for one in data.rows:
        settings = [one.settings.get(name, "") for name in (*OWN, *factors)]
        values = [f"{one.metrics[name]:.10g}" if name in one.metrics else "" for name in metrics]
        writer.writerow([*settings, one.seed, *values])
    return out.getvalue()


def read(path: Path) -> Data:
    """A summary; raises LabError."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise LabError(
            f"{path}: cannot be read: {error}; make it with testbed/lab evidence --only {path.stem}"
        ) from error
    try:
        return _parsed(lines)
    except (ValueError, KeyError, csv.Error) as error:
        remedy = f"make it with testbed/lab evidence --only {path.stem}"
        raise LabError(f"{path}: damaged, or no summary of runs ({error}); {remedy}") from error


def _parsed(lines: Sequence[str]) -> Data:
    """Raises ValueError or KeyError where the lines are no summary, or not all of one."""
    head = [line for line in lines if line.startswith("# ")]
    found = dict(line[2:].split(": ", 1) for line in head)
    lacks = [name for name in SOURCE if name not in found]
    if lacks:
        raise ValueError(f"no line '# {lacks[0]}: '")
    names, *rest = csv.reader(line for line in lines if not line.startswith("#"))
    split = names.index("seed")
    rows = tuple(_row(names, split, one) for one in rest)
    if str(len(rows)) != found["runs"]:
        raise ValueError(f"{len(rows)} of {found['runs']} runs")
    return Data(found, rows)


def _row(names: list[str], split: int, words: list[str]) -> Row:
    settings = {name: value(word) for name, word in zip(names[:split], words, strict=False) if word}
    pairs = zip(names[split + 1 :], words[split + 1 :], strict=True)
    return Row(settings, int(words[split]), {name: float(word) for name, word in pairs if word})


def value(word: str) -> Setting:
    """A number where it reads as one."""
    return float(word) if re.fullmatch(r"-?[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?", word) else word
