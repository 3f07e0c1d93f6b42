# SPDX-License-Identifier: GPL-2.0
"""Place remote against virtual machines reached by SSH: Debian's kernels, both with the drop-in module."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from sctplab.plan import capabilities
from sctplab.remote import inventory
from sctplab.spec import scenario
from sctplab.spec.model import RunSpec
from sctplab.vm.running import Running
from sctplab.vm_site import site
from tests.lab_run import environment, lab
from tests.remote_run import left_over

LOOK = (
    "ip addr | grep -v _lft; ip route show table all; ip rule; ip neigh show nud permanent | sort; tc qdisc;"
    " ls /run | grep sctplab; sysctl net.sctp net.ipv4 2>/dev/null;"
    " for dev in /sys/class/net/data*; do ethtool -k ${dev##*/}; done"
)
RESTORED_S = 120.0
Site = tuple[Path, Mapping[str, Running]]


def spec() -> RunSpec:
    """Two kernels, each with the drop-in module."""
    found = scenario.load(scenario.find("places-cut"))
    choice = scenario.Choice(("patched",), "6.12", "remote", 1, build="debian", peer="patched-6.1")
    return scenario.expand(found, {}, choice)[0]


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(spec(), tmp_path_factory.mktemp("vms")) as made:
        yield made


def state(vms: Mapping[str, Running]) -> dict[str, str]:
    return {name: vm.run(LOOK, 60).output for name, vm in vms.items()}


def words(machines: Site, out: Path) -> list[str]:
    where = ["--place", "remote", "--inventory", str(machines[0])]
    kernels = ["--kernel", "patched", "--peer", "patched-6.1"]
    return ["run", "places-cut", *where, *kernels, "--set", "pmr=5", "--out", str(out)]


def test_the_checks_find_nothing_bad(machines: Site) -> None:
    done = lab("check", str(machines[0]))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "which is not tested" in done.stdout and " 0 bad" in done.stdout


def test_runs_leave_the_machines_as_they_were(machines: Site, tmp_path: Path) -> None:
    before = state(machines[1])
    done = lab(*words(machines, tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert left_over({"before": before, "after": state(machines[1])}) == []
    for path in (tmp_path / "records").glob("*.json"):
        record: dict[str, Any] = json.loads(path.read_text())
        assert record["flows"][0]["receiver"]["content"] == "ok"
        kernel = record["kernel"]
        assert [capabilities.base(one) for one in (kernel, kernel["host2"])] == ["6.12", "6.1"]
        assert set(record["clocks"]) == {one.name for one in inventory.read(str(machines[0])).machines}


def test_a_controller_that_is_killed(machines: Site, tmp_path: Path) -> None:
    """With SIGKILL, while path1 is cut."""
    before = state(machines[1])
    argv = [sys.executable, "-m", "sctplab", *words(machines, tmp_path)]
    with subprocess.Popen(argv, env=environment(), start_new_session=True) as process:
        wait_for(lambda: "loss 100%" in machines[1]["mid-path1"].run("tc qdisc", 60).output)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    with suppress(AssertionError):
        wait_for(lambda: state(machines[1]) == before)
    assert left_over({"before": before, "after": state(machines[1])}) == []


def wait_for(holds: Any) -> None:
    until = time.monotonic() + RESTORED_S
    while not holds():
        assert time.monotonic() < until
        time.sleep(1)
