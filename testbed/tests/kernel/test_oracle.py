# SPDX-License-Identifier: GPL-2.0
"""The same patches under another name are as good as themselves, in everything and to the last digit."""

import os
import re
import shutil
from pathlib import Path

import pytest
from sctpkernel.series import load_series
from sctplab.paths import ROOT
from sctplab.spec.model import USUAL_BASE
from tests.lab_run import lab

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif("SCTPMP_KERNELS" in os.environ, reason="kernels are given, none is built"),
]
SET = """
[runs.rtx-policy]
scenarios = ["rtx-policy"]
kernels = ["patched"]
variants = ["same", "alternate"]
repeat = 2
set = { size_mb = [2], d2_ms = [50], queue_pkts = [100] }

[runs.cmt-random]
scenarios = ["cmt-random"]
kernels = ["patched"]
repeat = 2
"""


def signed(folder: Path) -> Path:
    """The series with a line below its first diff, as mail programs add it: another series, the same code."""
    shutil.copytree(ROOT / "patches", folder)
    patch = load_series(USUAL_BASE, folder)[0]
    patch.path.write_text(f"{patch.text}-- \nthe same code\n")
    return folder


def test_a_series_is_as_good_as_itself(tmp_path: Path) -> None:
    (tmp_path / "set.toml").write_text(SET)
    other = signed(tmp_path / "other")
    words = ("compare", "--set", str(tmp_path / "set.toml"), "--out", str(tmp_path / "out"), "--pairs", "1")
    done = lab(*words, str(ROOT / "patches"), str(other))
    assert done.returncode == 0, done.stderr
    ids = re.findall(r"\(series ([0-9a-f]{12})\): 9 runs: 9 ok", done.stdout)
    assert len(set(ids)) == 2
    assert 'Identical apart from "host" and "kernel": 9 of 9 pairs' in done.stdout
    medians = re.findall(r"median ratio (.*?);", done.stdout)
    assert len(medians) >= 4 and set(medians) == {"1.000 (1.000 to 1.000)"}
    assert not re.search("worst|Gone|New|Not ok", done.stdout)
    whole = (tmp_path / "out" / f"{ids[0]}-{ids[1]}.txt").read_text()
    assert {found[2:] for found in re.findall(r"× [0-9.]+", whole)} == {"1.000"}
    assert re.search(r"^  cmt: A [0-9.]+ s, B [0-9.]+ s, × ", done.stdout, re.MULTILINE)

    again = lab(*words[:-1], "0", str(ROOT / "patches"), str(other))
    assert again.stdout.count("9 good records kept, 0 runs to do") == 2
    assert "Processor time" not in again.stdout
