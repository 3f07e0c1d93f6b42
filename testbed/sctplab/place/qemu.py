# SPDX-License-Identifier: GPL-2.0
"""Virtual machines: one for each host and one for the middle of each path, in real time, with two processors.

    host1 data1 ---- data1 mid-path1 data2 ---- data1 host2
    host1 data2 ---- data1 mid-path2 data2 ---- data2 host2

The kernel under test runs on the hosts. A middle is always Debian 13 with its own kernel, whose netem takes a
seed, and virtio cards. Machines stay up as long as runs with the same kernel and cards follow each other; a
run that is not ok ends them, for what it left behind might spoil the next.
"""

from __future__ import annotations

import functools
import json
import lzma
import os
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from sctplab.errors import LabError
from sctplab.paths import MODULES, ROOT
from sctplab.place.base import Kernel
from sctplab.place.uml import BUILD
from sctplab.plan import capabilities
from sctplab.plan.link_commands import Command, command, ends, middle, namespaces
from sctplab.plan.placement import Names, placed
from sctplab.plan.run_plan import Plan, make
from sctplab.plan.site import Address
from sctplab.processes import last_line
from sctplab.programs import Tools
from sctplab.spec.model import FLAVOURS, HOSTS, USUAL_BASE, RunSpec, Topology
from sctplab.vm.machine import MOST_NICS, Machine, Nic, image, mac
from sctplab.vm.running import Running, running

MODULE = ROOT / "tools" / "build" / "module"
VARIANTS = {"plain": "x86", "debug": "x86-debug"}  # what tools/build/kernel calls them
MIDDLE_IMAGE = "debian-13-6.12"
IMAGES = {"6.1": "debian-12-6.1", "6.12": "debian-12-6.12", "7.2": "debian-13-7.2"}
HOST_MB = {"plain": 512, "debug": 1536, "debian": 512}
MIDDLE_MB = 384
XZ_FILTERS = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 20}]  # the kernel unpacks no other ones
USUAL_MTU = 1500
USUAL_NIC = "virtio"
CARDS = {"host1": "data1", "host2": "data2"}  # of a middle, by the host at the other end


class Qemu:
    deterministic = False

    def __init__(self) -> None:
        self.stack = ExitStack()
        self.machines: list[Machine] = []
        self.vms: dict[str, Running] = {}
        self.folder = Path("VMS")

    def refuse(self, specs: list[RunSpec]) -> None:
        for spec in specs:
            for lack in capabilities.no_bottleneck(spec):
                raise LabError(f"{spec.scenario}: {lack}")
            number = len(spec.topology.paths)
            if number > MOST_NICS:
                raise LabError(
                    f"{spec.scenario}: got {number} paths, expected at most {MOST_NICS} in place qemu"
                )
            for host in HOSTS:
                base = spec.tested(host)[1]
                if base not in IMAGES:
                    raise LabError(
                        f"kernel base: got {base!r}, expected one of {', '.join(IMAGES)} in place qemu"
                    )

    def here(self, inventory: str | None) -> tuple[tuple[str, ...], str]:
        return FLAVOURS, USUAL_BASE

    def kernel(self, spec: RunSpec) -> Kernel:
        folders = [kernel_folder(spec.build, *spec.tested(host)) for host in HOSTS]
        return Kernel(folders[0], json.loads((folders[0] / "info.json").read_text()))

    def plan(self, spec: RunSpec, mpflow: str) -> Plan:
        made = make(spec, mpflow)
        topology = spec.topology
        setup = [*made.setup, *for_both_hosts(made.setup), *mtu_commands(topology)]
        config = str(self.folder / "ssh_config")
        addresses = tuple(Address(name, "ssh", ("-F", config, name)) for name in namespaces(topology))
        return placed(replace(made, setup=tuple(setup)), names(topology), addresses, mpflow)

    def ready(self, spec: RunSpec, kernel: Kernel) -> None:
        """Start the machines of this run unless they are up."""
        wanted = machines(spec)
        if wanted != self.machines:
            self.close()
            self.folder = Path(self.stack.enter_context(tempfile.TemporaryDirectory(prefix="vms-")))
            self.vms = self.stack.enter_context(running(wanted, self.folder))
            for name, vm in self.vms.items():
                load_sctp(spec, name, vm)
            self.machines = wanted

    def close(self) -> None:
        """End all machines."""
        self.machines = []
        self.stack.close()

    def command(self, spec: RunSpec, steady: bool, linux: str, folder: str) -> list[str]:
        consoles = " ".join(str(self.folder / f"{host}.console") for host in HOSTS)
        conduct = (sys.executable, "-m", "sctplab.remote.conduct", folder)
        words = f"""said=$("$@" 2>&1); code=$?; tail -n 100 {consoles}; printf '%s\\n' "$said"; exit $code"""
        return ["sh", "-c", words, "sh", *conduct]

    def environment(self, tools: Tools, folder: Path) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": MODULES}


@functools.cache
def kernel_folder(build: str, flavour: str, base: str) -> Path:
    """The folder with the kernel and info.json, made when there is none; raises RunError."""
    if build not in VARIANTS:
        return image(IMAGES[base])
    words = ["--base", base, "--flavour", flavour, "--variant", VARIANTS[build]]
    return Path(last_line([str(BUILD), *words], f"tools/build/kernel {' '.join(words)}"))


def load_sctp(spec: RunSpec, name: str, vm: Running) -> None:
    """Where the distribution's kernel has not loaded it yet, and so has none of its settings: on hosts."""
    put_module(vm)
    if name in HOSTS and spec.build == "debian":
        vm.need("modprobe sctp")


def put_module(vm: Running) -> None:
    """Have the distribution's kernel use the drop-in module from now on, where the machine is to have it.

    In the place of its own one, so that what depends on what stays true: depmod reads thousands of modules,
    which takes an emulated processor a minute and a half.
    """
    if not vm.machine.module:
        return
    words = [str(MODULE), vm.machine.module]
    folder = Path(last_line(words, f"tools/build/module {vm.machine.module}"))
    with tempfile.TemporaryDirectory() as packed:
        for module in folder.glob("*.ko"):
            stock = Path(vm.need(f"modinfo -n {module.stem}").strip())
            new = Path(packed, stock.name)
            new.write_bytes(like(stock, module.read_bytes()))
            vm.put([new], str(stock.parent))
    vm.need("modprobe sctp && test -e /proc/sys/net/sctp/rtx_policy")


def like(stock: Path, module: bytes) -> bytes:
    """MODULE as the distribution keeps STOCK: compressed or as it is."""
    if stock.suffix != ".xz":
        return module
    return lzma.compress(module, check=lzma.CHECK_CRC32, filters=XZ_FILTERS)


def names(topology: Topology) -> Names:
    """The names on the machines of the laboratory's namespaces, interfaces and MAC addresses."""
    known = namespaces(topology)
    numbers = {name: number for number, name in enumerate(known, 1)}
    words: dict[str, dict[str, str]] = {name: {} for name in ("", *known)}
    for path in topology.paths:
        for host in HOSTS:
            near, far = ends(topology, path, host)
            nic = topology.number(path.name)
            words[host][near.interface] = f"data{nic}"
            words[far.where][far.interface] = CARDS[host]
            words[""][near.mac] = mac(numbers[host], nic)
            words[""][far.mac] = mac(numbers[far.where], int(CARDS[host][-1]))
    return Names({name: name for name in known}, words)


def for_both_hosts(setup: tuple[Command, ...]) -> list[Command]:
    """Settings that the plan makes once, outside of all namespaces: here each host has its own."""
    shared = [one for one in setup if not one.where and one.argv[0] == "sysctl"]
    return [replace(one, where=host) for host in HOSTS for one in shared]


def mtu_commands(topology: Topology) -> list[Command]:
    """Cards start with the usual one, where a pair of the laboratory is made with its own."""
    lines = [(path, end) for path in topology.paths for host in HOSTS for end in ends(topology, path, host)]
    return [
        command(end.where, f"ip link set {end.interface} mtu {path.mtu}")
        for path, end in lines
        if path.mtu != USUAL_MTU
    ]


def machines(spec: RunSpec) -> list[Machine]:
    """In the order of the namespaces, so that their numbers agree."""
    paths = spec.topology.paths
    hosts = [host_machine(spec, host) for host in HOSTS]
    return hosts + [
        Machine(
            middle(path),
            image(MIDDLE_IMAGE),
            nics=tuple(Nic(USUAL_NIC, f"{path.name}-{host}") for host in CARDS),
            memory_mb=MIDDLE_MB,
            lean=True,
        )
        for path in paths
    ]


def host_machine(spec: RunSpec, host: str) -> Machine:
    flavour, base = spec.tested(host)
    model = spec.topology.nic or USUAL_NIC
    return Machine(
        host,
        image(IMAGES[base]),
        kernel_folder(spec.build, flavour, base) if spec.build in VARIANTS else None,
        tuple(Nic(model, f"{path.name}-{host}") for path in spec.topology.paths),
        HOST_MB[spec.build],
        lean=True,
        module=IMAGES[base] if (spec.build, flavour) == ("debian", "patched") else "",
    )


PLACE = Qemu()
