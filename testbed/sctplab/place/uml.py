# SPDX-License-Identifier: GPL-2.0
"""User Mode Linux in virtual time: the whole testbed is one process, no root, no image, deterministic.

The kernel boots on the host's own file tree (hostfs) with testbed/agent/init.py as its first process.
Virtual time moves only while every process sleeps, so a program that polls stops it for ever; flows
with such programs run with time that also moves with CPU use and are not deterministic.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

from sctplab.errors import LabError
from sctplab.paths import AGENT, ROOT
from sctplab.place.base import Kernel
from sctplab.plan.run_plan import Plan, make
from sctplab.plan.traffic import PYTHON
from sctplab.processes import last_line
from sctplab.programs import Tools
from sctplab.spec.model import FLAVOURS, USUAL_BASE, RunSpec, derive_seed

BUILD = ROOT / "tools" / "build" / "kernel"
VARIANTS = {"plain": "uml", "debug": "debug"}  # what tools/build/kernel calls them
MEMORY_MB = 512
PHASE_NS = 5_120_000_000  # 512 ticks: timers of up to 40 s expire at every tick, every 8th or every 64th
HIDDEN = ("/dev", "/proc", "/run", "/sys")  # the guest mounts its own, see testbed/agent/init.py
EPOCH_NS = 1_700_000_000_000_000_000  # every run starts at this moment


class Uml:
    deterministic = True

    def refuse(self, specs: list[RunSpec]) -> None:
        seen(AGENT)
        for spec in specs:
            if spec.build not in VARIANTS:
                raise LabError(f"--build: got {spec.build!r}, expected {' or '.join(VARIANTS)} in place uml")
            if spec.peer:
                raise LabError(f"--peer: got {spec.peer!r}, expected none in place uml, which has one kernel")

    def ready(self, spec: RunSpec, kernel: Kernel) -> None:
        pass

    def close(self) -> None:
        pass

    def here(self, inventory: str | None) -> tuple[tuple[str, ...], str]:
        return FLAVOURS, USUAL_BASE

    def plan(self, spec: RunSpec, mpflow: str) -> Plan:
        return replace(make(spec, mpflow), start_every_ns=PHASE_NS)

    def kernel(self, spec: RunSpec) -> Kernel:
        return built(spec.base, spec.kernel, VARIANTS[spec.build])

    def command(self, spec: RunSpec, steady: bool, linux: str, folder: str) -> list[str]:
        return boot(linux, folder, derive_seed(spec.seed, "kernel"), steady, AGENT / "run.py")

    def environment(self, tools: Tools, folder: Path) -> dict[str, str]:
        return boot_environment(folder)


def built(base: str, flavour: str, variant: str, patches: Path | None = None) -> Kernel:
    """The kernel, made when it is not in the cache; PATCHES: a folder with another series than patches/."""
    words = ["--base", base, "--flavour", flavour, "--variant", variant]
    words += ["--patches", str(patches)] if patches else []
    folder = Path(last_line([str(BUILD), *words], f"tools/build/kernel {' '.join(words)}"))
    return Kernel(folder, json.loads((folder / "info.json").read_text()))


def seen(path: Path) -> None:
    """Raises LabError if the guest does not see PATH of the host."""
    for one in HIDDEN:
        if path.resolve().is_relative_to(one):
            raise LabError(f"{path}: User Mode Linux has a {one} of its own; choose a folder elsewhere")


def boot(linux: str, folder: str, seed: int, steady: bool, work: Path) -> list[str]:
    """The command that starts LINUX with the agent on FOLDER; WORK: what the agent is to do, see there."""
    seen(Path(folder))
    seen(work)
    agent = [str(AGENT / "init.py"), folder, str(work)]
    return [
        *("setarch", "-R", linux),
        *(f"mem={MEMORY_MB}M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "rw"),
        f"uml_dir={folder}",
        f"uml_seed={seed}",
        "time-travel=inf-cpu" if steady else "time-travel",
        f"time-travel-start={EPOCH_NS}",
        *("con=null", "con0=null,fd:1", "quiet", "panic=-1"),
        *(f"init={PYTHON[0]}", "--", *PYTHON[1:], *map(quoted, agent)),
    ]


def boot_environment(folder: Path) -> dict[str, str]:
    """TMPDIR: where UML keeps its memory file; shared memory when that has room."""
    shm = Path("/dev/shm")
    roomy = shm.is_dir() and os.access(shm, os.W_OK) and shutil.disk_usage(shm).free > 4 * MEMORY_MB << 20
    return {**os.environ, "TMPDIR": str(shm if roomy else folder)}


def quoted(word: str) -> str:
    """A word of the kernel's command line."""
    return f'"{word}"' if " " in word else word


PLACE = Uml()
