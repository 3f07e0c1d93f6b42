# SPDX-License-Identifier: GPL-2.0
"""One scenario file in four places: simulation, namespaces, virtual machines, and machines reached by SSH."""

import csv
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from sctpkernel.paths import cache_root
from sctplab.paths import MODULES, ROOT
from sctplab.place import qemu
from sctplab.programs import build_mpflow, mpflow_path
from sctplab.spec import scenario
from sctplab.spec.model import USUAL_BASE, RunSpec
from sctplab.vm.machine import Machine, image
from sctplab.vm.running import Running, running
from sctplab.vm_site import site
from tests.lab_run import lab

pytestmark = pytest.mark.kernel

SCENARIO = "places"
LAB_S = 1200.0  # all runs of it in one place
COPY_S = 900.0
NETNS_MB = 1536  # a laboratory and both hosts in one machine
CLOSE = 0.1  # part of the goodput in place uml by which others may differ: emulated machines wake up late


def debian() -> RunSpec:
    """Both hosts with Debian's kernel and the drop-in module."""
    choice = scenario.Choice(("patched",), USUAL_BASE, "qemu", 1, build="debian")
    return scenario.expand(scenario.load(scenario.find(SCENARIO)), {}, choice)[0]


def run(out: Path, *words: str) -> None:
    done = lab("run", SCENARIO, "--kernel", "patched", "--out", str(out), *words)
    assert done.returncode == 0, done.stdout + done.stderr


def bring_laboratory(vm: Running, folder: Path) -> None:
    """This checkout, its Python environment and its tools, at the same places as here."""
    build_mpflow(False)
    words = ["git", "-C", str(ROOT), "ls-files", "-z", "testbed", "tools", "patches/bases.toml"]
    listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split("\0")
    files = [*(str(ROOT / name) for name in listed if name), str(mpflow_path().parent)]
    cached = [sys.prefix, str(cache_root() / "iproute2")]
    bundle = folder / "laboratory.tar"
    subprocess.run(["tar", "-cPf", str(bundle), *files, *cached], check=True)
    vm.put([bundle], "/root", COPY_S)
    vm.need("tar -xPf laboratory.tar && rm laboratory.tar", COPY_S)


def in_namespaces(folder: Path, out: Path) -> None:
    """In a machine with the module; its records come to OUT."""
    name = qemu.IMAGES[USUAL_BASE]
    with running([Machine("host", image(name), memory_mb=NETNS_MB, module=name)], folder) as vms:
        vm = vms["host"]
        qemu.put_module(vm)
        bring_laboratory(vm, folder)
        words = [sys.executable, "-m", "sctplab", "run", SCENARIO, "--place", "netns", "--out", "/root/out"]
        where = f"SCTPMP_CACHE={shlex.quote(str(cache_root()))} PYTHONPATH={MODULES}"
        vm.need(f"cd {ROOT} && {where} {shlex.join(words)}", LAB_S)
        vm.get(["/root/out/records"], out)


def test_one_scenario_in_four_places(tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(out, "--place", "uml")
    run(out, "--place", "qemu", "--build", "debian")
    for name in ("site", "netns"):
        (tmp_path / name).mkdir()
    with site(debian(), tmp_path / "site") as (inventory, _):
        run(out, "--place", "remote", "--inventory", str(inventory))
    in_namespaces(tmp_path / "netns", out)

    assert lab("report", str(out)).returncode == 0
    with (out / "summary.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["metric"] == "goodput_mbit"]
    found = {(row["place"], row["variant"]): float(row["mean"]) for row in rows}
    places, variants = {place for place, _ in found}, {variant for _, variant in found}
    assert places == {"uml", "qemu", "remote", "netns"} and len(found) == 4 * len(variants)
    for (place, variant), goodput in found.items():
        assert goodput == pytest.approx(found["uml", variant], rel=CLOSE), (place, variant)
