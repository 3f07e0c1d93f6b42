# SPDX-License-Identifier: GPL-2.0
"""Directs a run on machines: python -m sctplab.remote.conduct FOLDER, from its plan.json to its result.json.

Started by a place's command, as UML's kernel is: it may be killed whatever it is doing, for each machine
restores itself. All times in the result are those of this machine's clock; mpflow is told how far the others'
are ahead.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from sctplab.errors import RunError
from sctplab.plan import placement
from sctplab.plan.site import Address
from sctplab.remote.connection import Machine, bundle, clock_offset

START_S = 1.0  # from the order to start until the start, so that all machines have heard it
TURN_S = 0.2  # how often the machines are looked at


class Run:
    """A run whose machines are up."""

    def __init__(self, plan: Mapping[str, Any], machines: Mapping[str, Machine]) -> None:
        self.plan = plan
        self.machines = machines
        self.parts = {name: placement.part(plan, name) for name in machines}
        self.ahead: dict[str, float] = {}
        self.clocks: dict[str, dict[str, float]] = {}

    def set_up(self) -> None:
        for name, machine in self.machines.items():
            commands = [one["argv"] for one in self.plan["setup"] if one["where"] == name]
            machine.ask("commands", commands=commands)

    def measure_clocks(self, moment: str) -> None:
        """How far each is ahead of ours; called again at the end, since clocks drift."""
        for name, machine in self.machines.items():
            ahead, error = clock_offset(machine)
            self.clocks.setdefault(name, {}).update({f"{moment}_s": ahead, "error_s": error})
            self.ahead.setdefault(name, ahead)

    def play(self) -> str:
        """Start all and wait until all have ended; "ok" or "timeout". Raises RunError."""
        for name, machine in self.machines.items():
            machine.ask("receive", plan=self.shifted(name))
        for machine in self.machines.values():
            machine.event("ready", 60)
        self.start_t = time.time() + START_S
        for name, machine in self.machines.items():
            machine.ask("start", start_t=self.start_t + self.ahead[name])
        until = self.start_t + self.plan["virtual_limit_s"]
        waiting = set(self.machines)
        while waiting and time.time() < until:
            for name in sorted(waiting):
                if self.machines[name].happened("ended", TURN_S):
                    waiting.discard(name)
        return "timeout" if waiting else "ok"

    def shifted(self, name: str) -> dict[str, Any]:
        """The machine's part, whose programs know how far its clock is ahead."""
        offset = str(round(-self.ahead[name] * 1e6))

        def told(process: dict[str, Any] | None) -> dict[str, Any] | None:
            if process is None or not process["argv"][0].startswith("./mpflow"):
                return process
            return {**process, "argv": [*process["argv"], "--clock-offset-us", offset]}

        part = self.parts[name]
        flows = [{**flow, "receiver": told(flow["receiver"]), "sender": told(flow["sender"])}
                 for flow in part["flows"]]  # fmt: skip
        return {**part, "flows": flows}

    def finish(self, folder: Path) -> dict[str, Any]:
        """The result of all; captures are fetched into FOLDER."""
        found = {name: machine.ask("finish", 120) for name, machine in self.machines.items()}
        for name, one in found.items():
            for timed in (*one["events"], *one["samples"]):
                timed["t"] -= self.ahead[name]
        for name, part in self.parts.items():
            for capture in part["captures"]:
                self.machines[name].fetch(capture["file"], folder / capture["file"])
        return placement.merged(self.plan, found)


def conduct(plan: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The result of the run, whether it went well or not."""
    site = plan["site"]
    packed = bundle({name: Path(path) for name, path in site["programs"].items()})
    result: dict[str, Any] = {"python": sys.version.split()[0]}
    with ExitStack() as stack:
        machines: dict[str, Machine] = {}
        try:
            for one in site["machines"]:
                address = Address(one["name"], one["transport"], tuple(one["args"]))
                machines[address.name] = Machine(address, packed)
                stack.callback(machines[address.name].close)
            run = Run(plan, machines)
            run.set_up()
            run.measure_clocks("start")
            status = run.play()
            end_t = time.time()
            run.measure_clocks("end")
            late = f"not finished after {plan['virtual_limit_s']:g} s (limits.virtual_s)"
            result |= run.finish(folder) | {
                "status": status,
                "reason": late if status == "timeout" else "",
                "start_t": run.start_t,
                "end_t": end_t,
                "clocks": run.clocks,
            }
        except RunError as error:
            result |= {"status": "failed", "reason": str(error)}
        kept = list(released(machines))
    if kept and result["status"] == "ok":
        result |= {"status": "failed", "reason": f"not taken back: {kept[0]}"}
    return result


def released(machines: Mapping[str, Machine]) -> Iterator[str]:
    """Have all machines restored; what could not be."""
    for machine in machines.values():
        try:
            yield from machine.release()
        except RunError as error:
            yield str(error)


def main() -> None:
    folder = Path(sys.argv[1])
    plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    (folder / "result.json").write_text(json.dumps(conduct(plan, folder)), encoding="utf-8")


if __name__ == "__main__":
    main()
