# SPDX-License-Identifier: GPL-2.0
"""Reads records, one at a time, into the small typed form that reports work on.

A result folder may hold tens of thousands of records, each with time series that are larger than
all the rest; so only numbers and identities are kept, and what many records share (kernel, tools,
sysctls, the frozen specification without its factors) is kept once.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sctplab.errors import LabError

FORMAT = 1
STATUSES = ("ok", "failed", "timeout", "crashed")

Value = int | float | str | bool
Factors = tuple[tuple[str, Value], ...]


@dataclass(frozen=True, slots=True)
class Environment:
    """Kernel, tools and settings of a run, without its factors and seed; shared by many runs."""

    kernel: dict[str, Any]  # info.json of the kernel build
    tools: dict[str, str]  # tool -> version
    sysctls: dict[str, dict[str, str]]  # host -> key -> value, as read in the running place
    settings: dict[str, dict[str, str]]  # host -> key -> value, what the scenario sets


MOST = 1e100  # of a metric, and of what is made of it


@dataclass(frozen=True, slots=True)
class Run:
    """One record without its series. Factors are in the scenario's order; metrics are finite numbers."""

    path: Path
    status: str
    reason: str
    scenario: str
    place: str
    base: str
    kernel: str
    variant: str
    factors: Factors
    seed: int
    metrics: dict[str, float]
    environment: Environment
    question: str
    events: int  # how many things happen to the paths during the run
    reference: str  # path of a CSV with other people's figures, "" when there is none
    series: tuple[str, ...]  # names of the time series the record holds; read_json() has their values
    virtual_s: float
    wall_s: float

    @property
    def ok(self) -> bool:
        """True when the run may contribute numbers."""
        return self.status == "ok"


def record_files(where: Path) -> list[Path]:
    """The records of a result folder (its records/, else itself), sorted by name, or the one record given."""
    if where.is_file():
        return [where]
    if not where.is_dir():
        raise LabError(f"{where}: no such record or result folder")
    folder = where / "records"
    files = sorted(
        p for p in (folder if folder.is_dir() else where).glob("*.json") if not p.name.startswith(".")
    )
    if not files:
        raise LabError(f"{where}: no records here; expected {folder}/*.json as written by 'testbed/lab run'")
    return files


def read_json(path: Path) -> dict[str, Any]:
    """The whole record as parsed JSON, after checking that it is a record of a format known here."""
    try:
        data = json.loads(path.read_bytes())
    except OSError as error:
        raise LabError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise LabError(
            f"{path}: damaged, not JSON ({error}); delete it and run again with --resume"
        ) from error
    if not isinstance(data, dict) or "format" not in data or "spec" not in data:
        raise LabError(f"{path}: not a record (a JSON object with 'format', 'status' and 'spec' is expected)")
    number = data["format"]
    if not isinstance(number, int) or number < 1:
        raise LabError(f"{path}: format is {number!r}, expected {FORMAT}")
    if number > FORMAT:
        raise LabError(
            f"{path}: written in format {number}, this program knows up to {FORMAT}; use a newer version"
        )
    return data


def load_runs(where: Path) -> Iterator[Run]:
    """Yields the runs below WHERE in the order of their file names; raises LabError at the first bad file.

    A run that is there twice is refused: it would count as two.
    """
    shared: dict[str, Environment] = {}
    seen: dict[str, Path] = {}
    for path in record_files(where):
        data = read_json(path)
        run = parse_run(path, data, shared)
        first = seen.setdefault(json.dumps(data["spec"], sort_keys=True), path)
        if first != path:
            raise LabError(f"{path}: the same run as {first}; remove one of them")
        yield run


def parse_run(path: Path, data: dict[str, Any], shared: dict[str, Environment]) -> Run:
    """One parsed record as a Run; equal environments are taken from and added to SHARED."""
    spec = _member(path, data, "spec", dict)
    status = _member(path, data, "status", str)
    if status not in STATUSES:
        raise LabError(f"{path}: status is {status!r}, expected one of {', '.join(STATUSES)}")
    host = _member(path, data, "host", dict, {})
    return Run(
        path=path,
        status=status,
        reason=_member(path, data, "reason", str, ""),
        scenario=sys.intern(_member(path, spec, "scenario", str)),
        place=sys.intern(_member(path, spec, "place", str, "")),
        base=sys.intern(_member(path, spec, "base", str, "")),
        kernel=sys.intern(_member(path, spec, "kernel", str)),
        variant=sys.intern(_member(path, spec, "variant", str, "")),
        factors=_factors(path, _member(path, spec, "factors", dict, {})),
        seed=_member(path, spec, "seed", int),
        metrics=_metrics(path, _member(path, data, "metrics", dict, {})),
        environment=_environment(path, data, shared),
        question=sys.intern(_member(path, spec, "question", str, "")),
        events=len(_member(path, spec, "events", list, [])),
        reference=sys.intern(_member(path, spec, "reference", str, "")),
        series=tuple(sorted(sys.intern(n) for n, v in _member(path, data, "series", dict, {}).items() if v)),
        virtual_s=_number(path, data, "virtual_s"),
        wall_s=_number(path, host, "wall_s"),
    )


def _environment(path: Path, data: dict[str, Any], shared: dict[str, Environment]) -> Environment:
    members = {name: _member(path, data, name, dict, {}) for name in ("kernel", "tools", "sysctls")}
    members["settings"] = _member(path, data["spec"], "sysctl", dict, {})
    for name in ("settings", "sysctls"):
        for host in members[name]:
            _member(path, members[name], host, dict)
    return shared.setdefault(json.dumps(members, sort_keys=True), Environment(**members))


def _factors(path: Path, factors: dict[str, Any]) -> Factors:
    for name, value in factors.items():
        if not isinstance(value, int | float | str):
            raise LabError(f"{path}: factor {name} is {value!r}, expected a number or a text")
    return tuple((sys.intern(name), value) for name, value in factors.items())


def _metrics(path: Path, metrics: dict[str, Any]) -> dict[str, float]:
    for name, value in metrics.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < MOST:
            got = str(value)[:20]
            raise LabError(f"{path}: metric {name} is {got!r}, expected a number below {MOST:g} (or none)")
    return {sys.intern(name): float(value) for name, value in metrics.items()}


def _number(path: Path, data: dict[str, Any], name: str) -> float:
    value = data.get(name, 0.0)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise LabError(f"{path}: {name} is {value!r}, expected a number")
    return float(value)


def _member(path: Path, data: dict[str, Any], name: str, kind: type, default: Any = None) -> Any:
    """DATA[NAME], checked to be a KIND; DEFAULT for an absent or null member, an error when there is none."""
    value = data.get(name)
    if value is None:
        if default is None:
            raise LabError(f"{path}: not a complete record, '{name}' is missing")
        return default
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise LabError(f"{path}: {name} is {value!r:.60}, expected {_KINDS[kind]}")
    return value


_KINDS = {dict: "an object", list: "a list", str: "a text", int: "a whole number"}
