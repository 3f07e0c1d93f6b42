# SPDX-License-Identifier: GPL-2.0
"""Snakemake makes the records that `lab run` makes. Run by tools/test-long: it installs Snakemake."""

import json
import subprocess
from pathlib import Path

from sctplab.report.compare import differences
from tests.lab_run import TESTBED, lab

GRID = ("demo", "--set", "d2_ms=10", "--set", "size_mb=0.5", "--repeat", "2")


def test_the_same_records_either_way(tmp_path: Path) -> None:
    plain, spread = tmp_path / "plain", tmp_path / "spread"
    assert lab("run", *GRID, "--out", str(plain)).returncode == 0
    assert lab("specs", *GRID, "--out", str(spread)).returncode == 0
    subprocess.run([TESTBED / "cluster" / "run", spread, "--cores", "2"], check=True)
    names = sorted(path.name for path in (plain / "records").iterdir())
    assert names == sorted(path.name for path in (spread / "records").iterdir())
    assert len(names) == 10
    for name in names:
        one, other = (json.loads((folder / "records" / name).read_text()) for folder in (plain, spread))
        assert one["status"] == "ok"
        assert list(differences(one, other)) == []


def test_a_folder_without_specs_is_refused(tmp_path: Path) -> None:
    done = subprocess.run(
        [TESTBED / "cluster" / "run", tmp_path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "expected a folder with specs/; make it with: testbed/lab specs" in done.stderr
