# SPDX-License-Identifier: GPL-2.0
"""The interface of every kind of place, and the kernel that a place runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from sctplab.programs import Tools
from sctplab.spec.model import RunSpec

if TYPE_CHECKING:
    from sctplab.plan.run_plan import Plan


@dataclass(frozen=True)
class Kernel:
    """A built kernel: its folder and its info.json."""

    folder: Path
    info: dict[str, Any]


class Place(Protocol):
    """A kind of place. A run's folder holds plan.json and receives result.json and captures.

    DETERMINISTIC: runs have virtual time. Where they have not, they go one after the other.
    """

    deterministic: bool

    def refuse(self, specs: list[RunSpec]) -> None:
        """Raise LabError, one line, where this place cannot do these runs; changes nothing."""

    def here(self, inventory: str | None) -> tuple[tuple[str, ...], str]:
        """(flavours, base) of the kernels that there are when nothing is asked for; INVENTORY of machines."""

    def kernel(self, spec: RunSpec) -> Kernel:
        """Build or find the kernel of a run; raises RunError."""

    def ready(self, spec: RunSpec, kernel: Kernel) -> None:
        """Have up what a run with this kernel needs, and runs after it may need; raises RunError."""

    def close(self) -> None:
        """End what ready() started: at the end, and after a run that was not ok."""

    def plan(self, spec: RunSpec, mpflow: str) -> Plan:
        """The run's plan with the namespaces or machines, interfaces and programs of this place."""

    def command(self, spec: RunSpec, steady: bool, linux: str, folder: str) -> list[str]:
        """The command line that makes the run happen; LINUX and FOLDER as they are to be written."""

    def environment(self, tools: Tools, folder: Path) -> dict[str, str]:
        """The environment of that command."""
