# SPDX-License-Identifier: GPL-2.0
"""The parts of a virtual machine, and the arguments and files that describe it to QEMU and ssh."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sctplab.errors import LabError
from sctplab.paths import ROOT
from sctplab.processes import last_line
from sctplab.spec.model import NICS
from sctplab.vm.ticks import counter_khz

MODELS = dict(zip(NICS, ("virtio-net-pci", "e1000e", "igb"), strict=True))  # ours -> QEMU's
MOST_NICS = 8
# The processors are shared: what looks like one that hangs is one that waits for its turn, and a clock that
# seems to have jumped has not.
KERNEL = (
    *("root=/dev/vda", "rw", "console=ttyS0", "panic=-1", "mitigations=off", "tsc=reliable"),
    *("no_timer_check", "nowatchdog", "rcupdate.rcu_cpu_stall_suppress=1"),
)
INIT = Path(__file__).with_name("init.sh")
LEAN = ("init=/bin/sh", "--", "/dev/vdb")
SECTOR_B = 512


@dataclass(frozen=True)
class Nic:
    """A network card and the cable it is plugged into."""

    model: str
    cable: str

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            raise LabError(f"network card: got {self.model!r}, expected one of {', '.join(MODELS)}")


@dataclass(frozen=True)
class Machine:
    """IMAGE: folder of tools/build/image. KERNEL: folder with a bzImage without modules, else the image's.

    LEAN: with sshd and nothing else, which takes a third of the time to start; else as Debian is. MODULE: the
    name of the image whose drop-in module it is to have, "" for its own SCTP.
    """

    name: str
    image: Path
    kernel: Path | None = None
    nics: tuple[Nic, ...] = ()
    memory_mb: int = 768
    cpus: int = 2
    lean: bool = False
    module: str = ""


@functools.cache
def image(name: str) -> Path:
    """The folder of tools/build/image NAME, made when there is none; raises RunError."""
    return Path(last_line([str(ROOT / "tools" / "build" / "image"), name], f"tools/build/image {name}"))


def emulator() -> str:
    """QEMU's program; raises RunError."""
    return last_line([str(ROOT / "tools" / "build" / "qemu")], "tools/build/qemu")


def cables(machines: Sequence[Machine]) -> dict[str, list[tuple[int, int]]]:
    """Cable -> its two ends as (machine, card), both from 1; raises LabError for another number of ends."""
    found: dict[str, list[tuple[int, int]]] = {}
    for number, machine in enumerate(machines, 1):
        if len(machine.nics) > MOST_NICS:
            raise LabError(
                f"{machine.name}: got {len(machine.nics)} network cards, expected at most {MOST_NICS}"
            )
        for nic, card in enumerate(machine.nics, 1):
            found.setdefault(card.cable, []).append((number, nic))
    for cable, ends in found.items():
        if len(ends) != 2:
            raise LabError(f"cable {cable!r}: got {len(ends)} ends, expected 2")
    return found


def mac(machine: int, nic: int) -> str:
    """The address of card NIC (from 1; 0: the way in) of machine number MACHINE (from 1)."""
    return f"52:54:00:{machine:02x}:01:{nic:02x}" if nic else f"52:54:00:{machine:02x}:00:01"


def arguments(machine: Machine, number: int, folder: Path, port: int, plugs: Sequence[int]) -> list[str]:
    """QEMU's arguments. NUMBER: from 1. PORT: of 127.0.0.1, leads to sshd. PLUGS: a socket for each card."""
    kernel = machine.kernel / "bzImage" if machine.kernel else machine.image / "vmlinuz"
    words = [
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-machine", "q35,sata=off,smbus=off", "-accel", "tcg,thread=multi", "-cpu", "Nehalem,+rdrand"),
        *("-smp", str(machine.cpus), "-m", str(machine.memory_mb)),
        *("-kernel", str(kernel)),
        *([] if machine.kernel else ["-initrd", str(machine.image / "initrd")]),
        *("-append", " ".join((*KERNEL, f"tsc_early_khz={counter_khz()}", *(LEAN if machine.lean else ())))),
        *("-drive", f"file={folder / machine.name}.qcow2,if=virtio,cache=unsafe"),
        *("-drive", f"file={folder / INIT.name},if=virtio,format=raw,readonly=on"),
        *("-serial", f"file:{folder / machine.name}.console"),
        *("-qmp", f"unix:{folder / machine.name}.qmp,server=on,wait=off"),
        *("-netdev", f"user,id=control,restrict=on,hostfwd=tcp:127.0.0.1:{port}-:22"),
        *("-device", f"virtio-net-pci,netdev=control,mac={mac(number, 0)},romfile="),
    ]
    for nic, (card, plug) in enumerate(zip(machine.nics, plugs, strict=True), 1):
        words += ["-netdev", f"stream,id=data{nic},server=off,addr.type=fd,addr.str={plug}"]
        words += ["-device", f"pcie-root-port,id=slot{nic},chassis={nic}"]
        device = f"{MODELS[card.model]},id=card{nic},netdev=data{nic},mac={mac(number, nic)},romfile="
        words += ["-device", f"{device},bus=slot{nic}"]
    return words


def init_disk() -> bytes:
    """The second disk of a lean machine: a script for its shell, padded with newlines to whole sectors."""
    script = INIT.read_bytes()
    return script + b"\n" * (-len(script) % SECTOR_B)


def ssh_config(machines: Sequence[tuple[Machine, int]], folder: Path) -> str:
    """A configuration file of ssh by which `ssh -F FILE NAME` leads into each (machine, local port)."""
    common = [
        "User root",
        "HostName 127.0.0.1",
        "HostKeyAlias sctplab",
        "IdentitiesOnly yes",
        "BatchMode yes",
    ]
    common += ["ControlMaster auto", "ControlPersist 600", f"ControlPath {folder}/%n.ssh"]
    common += ["ConnectTimeout 10", "LogLevel ERROR"]
    lines = []
    for machine, port in machines:
        own = [f"Port {port}", f"IdentityFile {machine.image / 'id_ed25519'}"]
        own += [f"UserKnownHostsFile {machine.image / 'known_hosts'}"]
        lines += [f"Host {machine.name}", *(f"  {line}" for line in own + common)]
    return "\n".join(lines) + "\n"
