# SPDX-License-Identifier: GPL-2.0
"""Place netns, inside a kernel of the laboratory as on a host: answers, refusals, nothing left behind."""

import json
from pathlib import Path
from typing import Any

import pytest
from sctplab.spec.model import USUAL_BASE
from tests.kernel_run import linux, run_work
from tests.remote_run import LAB, WALL_S, inner_environment

pytestmark = pytest.mark.kernel

RUN = f"{LAB} run demo-cut --set size_mb=4 --set cut_s=0.5 --place netns"
LEFT = "ls -A /run /run/netns; ip -o link; pgrep -af '[n]etns.py|[m]pflow'"


def ended(scripts: list[str], folder: Path, flavour: str = "patched") -> list[dict[str, Any]]:
    environment = {**inner_environment(), "TMPDIR": str(folder)}
    found: list[dict[str, Any]] = run_work(
        "shell", linux(flavour), folder, WALL_S, scripts=scripts, environment=environment
    )["ended"]
    return found


def test_runs_leave_nothing_on_the_host(tmp_path: Path) -> None:
    before, ran, after = ended([LEFT, f"{RUN} --out {tmp_path}/out", LEFT], tmp_path)
    assert ran["exit"] == 0, ran
    assert after["output"] == before["output"]
    for path in (tmp_path / "out/records").glob("*.json"):
        record = json.loads(path.read_text())
        assert record["kernel"]["flavour"] == "patched" and not record["deterministic"]
        assert (
            record["paths"][0]["forward"]["drops"] > 0 and record["flows"][0]["receiver"]["content"] == "ok"
        )


def test_a_laboratory_that_is_killed_leaves_nothing_on_the_host(tmp_path: Path) -> None:
    kill = "until pgrep -f '[m]pflow send'; do sleep 0.1; done; kill -KILL $!; sleep 1"
    before, _, after = ended([LEFT, f"{RUN} --out {tmp_path}/out & {kill}", LEFT], tmp_path)
    assert after["output"] == before["output"]


def test_what_the_kernel_lacks_is_one_line(tmp_path: Path) -> None:
    other = next(base for base in ("6.1", "7.2") if base != USUAL_BASE)
    words = ("--kernel patched", f"--base {other}", "--build debug", "--jobs 2", "--peer stock-6.1")
    done = ended([f"{RUN} --out {tmp_path}/out {word}" for word in words], tmp_path, "stock")
    assert [one["exit"] for one in done] == [2] * len(words)
    said = [one["errors"].removeprefix("lab: ").strip() for one in done]
    assert "does not have net.sctp.rtx_policy, so it is stock, not patched" in said[0]
    assert f"--base {other}: the kernel that runs here is {USUAL_BASE}" in said[1]
    assert "--build: the kernel of both hosts is the one that runs here" in said[2]
    assert said[3] == "--jobs: got 2, expected 1: runs in place netns use real time"
    assert "--peer: the kernel of both hosts is the one that runs here" in said[4]
    assert all("\n" not in one for one in said) and not (tmp_path / "out").exists()
