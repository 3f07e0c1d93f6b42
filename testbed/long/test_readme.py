# SPDX-License-Identifier: GPL-2.0
"""What README says that make demo shows is what it shows."""

import csv
import re
from pathlib import Path

import pytest
from sctplab.paths import ROOT
from tests.lab_run import lab

pytestmark = pytest.mark.kernel

# Of the table's columns, after that for the delay of path 2.
COLUMNS = (
    ("stock", "single-homed"),
    ("stock", "kernel"),
    ("patched", "fr-same-rto-alt+mfr"),
    ("patched", "cmt"),
)
CUT = re.compile(r"(\d+) s on stock, (\d+) s with the policy, (\d+) s with CMT")


def said() -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """README's first table by path 2's delay, and how long the transfer takes whose path is cut."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table, rest = text.split("**What will I see?**")[1].split("\n\n", 2)[1:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    found = CUT.search(" ".join(rest.split()))
    assert found
    return {first.removesuffix(" ms"): tuple(others) for first, *others in cells}, found.groups()


def test_readme_shows_what_the_demo_shows(tmp_path: Path) -> None:
    assert lab("run", "demo", "demo-cut", "--out", str(tmp_path)).returncode == 0
    assert lab("report", str(tmp_path)).returncode == 0
    with (tmp_path / "summary.csv").open() as file:
        mean = {
            (row["scenario"], row["d2_ms"], row["metric"], row["kernel"], row["variant"]): float(row["mean"])
            for row in csv.DictReader(file)
            if row["mean"]
        }
    table, cut = said()
    assert table == {
        delay: tuple(f"{mean['demo', delay, 'goodput_mbit', *column]:.2f}" for column in COLUMNS)
        for delay in ("10", "50", "100", "200")
    }
    assert cut == tuple(f"{mean['demo-cut', '', 'transfer_s', *column]:.0f}" for column in COLUMNS[1:])
