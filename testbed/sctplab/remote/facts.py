# SPDX-License-Identifier: GPL-2.0
"""Looks at the machines of an inventory: changes nothing there, and lets go of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from sctplab.errors import RunError
from sctplab.plan.traffic import PYTHON
from sctplab.remote.connection import Machine, bundle, clock_offset
from sctplab.remote.inventory import Cable, Inventory
from sctplab.spec.model import HOSTS

HEADERS = {"ipv4": 28, "ipv6": 48}  # of IP and ICMP
PING_S = 2
LOOK_S = 12.0


@dataclass(frozen=True)
class Survey:
    """Results of a survey of machines. PROBES, FACTS: by machine, see testbed/agent/probe.py and facts.py.

    CLOCKS: machine -> (seconds ahead of this machine's, how wrong that may be). PINGS: (path, family) ->
    largest packet that was sent unfragmented, and the round trip in ms or None when there was no answer.
    """

    inventory: Inventory
    probes: Mapping[str, Mapping[str, Any]]
    facts: Mapping[str, Mapping[str, Any]]
    clocks: Mapping[str, tuple[float, float]]
    pings: Mapping[tuple[int, str], tuple[int, float | str]]

    def interface(self, host: str, cable: Cable, family: str) -> str:
        """The host's interface that has the path's address, "" when none has."""
        address = cable.address(host, family)
        found = self.facts[host]["interfaces"]
        return next((name for name, one in found.items() if address in one["addresses"]), "")

    def toward(self, cable: Cable, number: int, host: str, family: str) -> str:
        """The router's interface towards a host, by its routes; "" when it has none."""
        ways = self.facts[cable.router]["paths"][question(self.inventory, number, family)]
        found: str = ways["free" if host == "host2" else "back"].get("dev", "")
        return found


def questions(inventory: Inventory) -> list[tuple[int, str]]:
    """(path number from 0, family) of all pairs of addresses."""
    return [
        (number, family)
        for number, cable in enumerate(inventory.cables)
        for family in HEADERS
        if all(cable.address(host, family) for host in HOSTS)
    ]


def question(inventory: Inventory, number: int, family: str) -> int:
    return questions(inventory).index((number, family))


def survey(inventory: Inventory) -> Survey:
    """Raises RunError when a machine is not reached or does not answer."""
    with ExitStack() as stack:
        machines = {}
        for one in inventory.machines:
            machines[one.name] = Machine(one, bundle({}))
            stack.callback(machines[one.name].close)
        probes = {
            name: python(machine, ["unshare", "--net"], "probe.py") for name, machine in machines.items()
        }
        facts = {name: look_around(machine, inventory, name) for name, machine in machines.items()}
        clocks = {name: clock_offset(machine) for name, machine in machines.items()}
        pings = {
            (number, family): ping(machines["host1"], inventory.cables[number], family, facts)
            for number, family in questions(inventory)
        }
        for machine in machines.values():
            machine.release()
    return Survey(inventory, probes, facts, clocks, pings)


def python(machine: Machine, before: list[str], file: str, *words: str) -> dict[str, Any]:
    """The JSON output of one of the agent's programs on MACHINE; raises RunError if it fails."""
    done = machine.look(*before, *PYTHON, f"agent/{file}", *words, limit_s=LOOK_S)
    if done["exit"]:
        reason = (done["errors"].strip().splitlines() or ["no answer"])[-1]
        raise RunError(f"{machine.address.name}: {file}: {reason}")
    found: dict[str, Any] = json.loads(done["output"])
    return found


def look_around(machine: Machine, inventory: Inventory, name: str) -> dict[str, Any]:
    """facts.py's answer; host2 sees the paths from its end."""
    near, far = HOSTS if name != "host2" else HOSTS[::-1]
    asked = [
        {
            "near": inventory.cables[number].address(near, family),
            "far": inventory.cables[number].address(far, family),
        }
        for number, family in questions(inventory)
    ]
    return python(machine, [], "facts.py", json.dumps({"paths": asked}))


def ping(
    machine: Machine, cable: Cable, family: str, facts: Mapping[str, Mapping[str, Any]]
) -> tuple[int, float | str]:
    """As large as host1's interface allows, not fragmented: see Survey."""
    near, far = (str(cable.address(host, family)) for host in HOSTS)
    interface = facts["host1"]["interfaces"].get(cable.interface)
    size = interface["mtu"] if interface else 1500
    words = ["-n", "-q", "-M", "do", "-c", "2", "-i", "0.3", "-W", str(PING_S)]
    payload = str(min(size, 65535) - HEADERS[family])
    done = machine.look("ping", *words, "-s", payload, "-I", near, far, limit_s=LOOK_S)
    if done["exit"] == 127:
        return size, "ping: not found on host1; install it: apt-get install iputils-ping"
    if done["exit"]:
        return size, f"no answer; try there: ping -M do -s {payload} -I {near} {far}"
    return size, float(done["output"].rpartition("= ")[2].split("/")[0])
