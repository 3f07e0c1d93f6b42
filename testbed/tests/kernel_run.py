# SPDX-License-Identifier: GPL-2.0
"""Boots a kernel of the laboratory for one piece of work instead of a run: testbed/tests/kernel/work/*.py."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from sctplab.paths import SETUP
from sctplab.place.uml import BUILD, boot, boot_environment
from sctplab.plan.link_commands import Command, build_commands
from sctplab.processes import Processes, last_line
from sctplab.spec.model import USUAL_BASE, Direction, Topology
from sctplab.spec.model import Path as Way
from sctplab.spec.schema import plain

WORK = Path(__file__).resolve().parent / "kernel" / "work"
SEED = 1


@cache
def linux(flavour: str, variant: str = "uml") -> str:
    """The kernel of the base that is tested (SCTPMP_BASE), built when it is not in the cache."""
    argv = [str(BUILD), "--base", USUAL_BASE, "--flavour", flavour, "--variant", variant]
    return str(Path(last_line(argv, " ".join(argv))) / "linux")


@cache
def iproute2() -> str:
    return last_line([str(SETUP), "--iproute2"], "tools/setup --iproute2") + "/sbin"


def run_work(
    name: str, kernel: str, folder: Path, wall_s: float, *, steady: bool = True, **plan: Any
) -> dict[str, Any]:
    """The result of work/NAME.py with PLAN on KERNEL; the test fails unless that is "ok" without warnings.

    STEADY: virtual time stands still while the kernel or a program works.
    """
    (folder / "plan.json").write_text(json.dumps({"path": iproute2(), **plan}))
    argv = boot(kernel, str(folder), SEED, steady, WORK / f"{name}.py")
    ended = Processes().run(argv, boot_environment(folder), folder, wall_s)
    try:
        result: dict[str, Any] = json.loads((folder / "result.json").read_text())
    except (OSError, ValueError):
        result = {"status": "crashed"}
    story = f"exit {ended.returncode}, last words: {ended.console[-2000:]}"
    assert not ended.timed_out, f"no end after {wall_s:g} s; a program may be polling; {story}"
    assert result["status"] == "ok", f"{result}; {story}"
    assert result["warnings"] == []
    return result


def run_scripts(
    kernel: str,
    link: Direction,
    folder: Path,
    wall_s: float,
    scripts: Mapping[str, str],
    environment: Mapping[str, str],
    setup: Sequence[Command] = (),
) -> dict[str, Any]:
    """How SCRIPTS ended on a kernel (stock or patched) with two hosts and two paths of LINK each way."""
    ways = tuple(Way(f"path{number}", link, link) for number in (1, 2))
    plan = {
        "setup": [plain(one) for one in (*build_commands(Topology(ways), 1), *setup)],
        "scripts": dict(scripts),
        "environment": dict(environment),
    }
    ended: dict[str, Any] = run_work("launch", linux(kernel), folder, wall_s, **plan)["ended"]
    return ended


def run_cases(name: str, kernel: str, folder: Path, wall_s: float, **plan: Any) -> dict[str, str]:
    """Likewise, of work that is cases: each with "", or what went wrong."""
    cases: dict[str, str] = run_work(name, kernel, folder, wall_s, **plan)["cases"]
    return cases


def holds(said: dict[str, str], case: str) -> None:
    """One of them; fails the test."""
    if wrong := said.get(case, "did not run"):
        pytest.fail(wrong, pytrace=False)
