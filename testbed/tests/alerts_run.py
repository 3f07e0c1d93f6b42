# SPDX-License-Identifier: GPL-2.0
"""Recorded outages, and what promtool makes of Documentation/alerts.yml on them.

As a program it makes the record again, on the kernel of the series (a minute):

    PYTHONPATH=testbed:tools:testbed/agent $(tools/setup --python) testbed/tests/alerts_run.py
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path as File
from typing import Any

from pathview.metrics import Scrape, families
from pathview.model import Association, Part, Path
from sctplab.paths import ROOT, SETUP
from sctplab.processes import last_line

RECORD = File(__file__).parent / "golden" / "outages.jsonl"
ALERTS = ROOT / "Documentation" / "alerts.yml"
SCRAPE_S = 15
TARGET = {"job": "sctp", "instance": "a"}
NAMES = {kind: [one.name for one in fields(kind)] for kind in (Association, Path)}
FIRING = 'ALERTS{alertstate="firing"}'
Look = tuple[Association, ...]


@cache
def promtool() -> str:
    return last_line([str(SETUP), "--promtool"], "tools/setup --promtool")


def association(given: Mapping[str, Any]) -> Association:
    """From what asdict() makes of one."""
    paths = tuple(Path(**{**path, "marks": tuple(path["marks"])}) for path in given["paths"])
    return Association(**{**given, "paths": paths})


def outages(found: Mapping[str, Sequence[Sequence[Mapping[str, Any]]]]) -> dict[str, list[Look]]:
    """From the result of work/outage.py."""
    return {name: [tuple(map(association, look)) for look in looks] for name, looks in found.items()}


def rows(look: Look) -> list[list[Any]]:
    """An association as the values of its fields, its paths as lists of theirs."""
    return [
        [
            [[getattr(path, name) for name in NAMES[Path]] for path in one.paths]
            if name == "paths"
            else getattr(one, name)
            for name in NAMES[Association]
        ]
        for one in look
    ]


def write(found: Mapping[str, Sequence[Look]]) -> None:
    """The record: a line of the fields' names, then a line per look."""
    lines: list[Any] = [{"association": NAMES[Association], "path": NAMES[Path], "each_s": SCRAPE_S}]
    lines += [[name, *rows(look)] for name, looks in found.items() for look in looks]
    RECORD.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))


def recorded() -> dict[str, list[Look]]:
    """The record; a field that is new since is not known."""
    lines = [json.loads(line) for line in RECORD.read_text().splitlines()]
    found: dict[str, list[Look]] = {}
    for name, *some in lines[1:]:
        look = []
        for values in some:
            one = dict(zip(lines[0]["association"], values, strict=True))
            one["paths"] = [dict(zip(lines[0]["path"], path, strict=True)) for path in one["paths"]]
            look.append(association(one))
        found.setdefault(name, []).append(tuple(look))
    return found


def scrape(look: Look, complete: bool = True, limit: int = 100) -> Scrape:
    counts = Counter(path.state for one in look for path in one.paths)
    return Scrape(Part(look[:limit], len(look), counts), {}, complete)


def ended(values: Sequence[str]) -> list[str]:
    """A series that a scrape has no more is stale from then on."""
    pairs = zip(["_", *values], values, strict=False)
    return ["stale" if value == "_" != before else value for before, value in pairs]


def series(scrapes: Sequence[Scrape]) -> list[dict[str, str]]:
    """The time series that these scrapes give Prometheus, in promtool's notation."""
    found: dict[str, list[str]] = {}
    for at, one in enumerate(scrapes):
        for sample in (sample for family in families(one) for sample in family.samples):
            labels = {**sample.labels, **TARGET}
            name = f"{sample.name}{{{','.join(f'{key}={value!r}' for key, value in labels.items())}}}"
            found.setdefault(name, ["_"] * len(scrapes))[at] = repr(float(sample.value))
    return [{"series": name, "values": " ".join(ended(values))} for name, values in found.items()]


def firing(names: Iterable[str], at_s: int, said: str) -> dict[str, Any]:
    """These alerts, and no others."""
    samples = [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in sorted(names)]
    return {"expr": f"group by (alertname) ({said})", "eval_time": f"{at_s}s", "exp_samples": samples}


def check(folder: File, scrapes: Sequence[Scrape], **tests: Any) -> None:
    """Have promtool evaluate the alerts; TESTS: of its format."""
    one = {"interval": f"{SCRAPE_S}s", "input_series": series(scrapes), **tests}
    content = {"rule_files": [str(ALERTS)], "evaluation_interval": f"{SCRAPE_S}s", "tests": [one]}
    file = folder / "test.json"  # JSON is YAML
    file.write_text(json.dumps(content))
    done = subprocess.run([promtool(), "test", "rules", str(file)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def check_outage(
    folder: File, scrapes: Sequence[Scrape], quiet_s: Sequence[int], expected: Iterable[str]
) -> None:
    """The alerts that fire at some time are those expected, and none at the times of QUIET_S."""
    last = (len(scrapes) - 1) * SCRAPE_S
    some_time = firing(expected, last, f"max_over_time({FIRING}[1h])")
    check(folder, scrapes, promql_expr_test=[some_time, *(firing((), at, FIRING) for at in quiet_s)])


def main() -> None:
    from tests.kernel_run import linux, run_work

    with tempfile.TemporaryDirectory() as folder:
        write(outages(run_work("outage", linux("patched"), File(folder), 500)["outages"]))
    print(RECORD)


if __name__ == "__main__":
    main()
