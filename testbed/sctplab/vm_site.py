# SPDX-License-Identifier: GPL-2.0
"""Virtual machines as somebody's own: with addresses, routes, forwarding; and an inventory for place remote.

The same machines and cables as in place qemu, but what the laboratory sets up there has been set up before,
as Documentation/real-hosts.rst says it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from sctplab.place import qemu
from sctplab.place.remote import measures
from sctplab.plan.link_commands import address, middle
from sctplab.plan.run_plan import make
from sctplab.remote.inventory import HOST_KEYS
from sctplab.spec.model import RunSpec, Topology
from sctplab.vm.running import Running, running


@contextmanager
def site(spec: RunSpec, folder: Path) -> Iterator[tuple[Path, Mapping[str, Running]]]:
    """(inventory, machines) for runs with the topology and kernels of SPEC; raises RunError."""
    with running(qemu.machines(spec), folder) as vms:
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda name: prepare(spec, name, vms[name]), vms))
        inventory = folder / "inventory"
        inventory.write_text(inventory_text(spec.topology, folder / "ssh_config"), encoding="utf-8")
        yield inventory, vms


def prepare(spec: RunSpec, name: str, vm: Running) -> None:
    """The preparation that place remote leaves to a machine's owner: load sctp, set up the network."""
    names = qemu.names(spec.topology)
    made = make(replace(spec, flows=spec.flows[:1], events=()), "mpflow").setup
    own = [one for one in made if one.where == name and not measures(one)]
    lines = [shlex.join(names.command(one).argv) for one in [*own, *qemu.mtu_commands(spec.topology)]
             if one.where == name]  # fmt: skip
    vm.need("set -e; " + "; ".join(lines))
    qemu.load_sctp(spec, name, vm)


def inventory_text(topology: Topology, config: Path) -> str:
    """The file for place remote; one router per path."""
    lines = []
    for host, key in HOST_KEYS.items():
        lines += [f"{key}_TYPE=ssh", f'{key}_ARGS="-F {config} {host}"']
    for number, path in enumerate(topology.paths, 1):
        suffix = f"_{number}" if number > 1 else ""
        version = path.family.removeprefix("ip").upper()
        lines += [
            f"ROUTER_TYPE{suffix}=ssh",
            f'ROUTER_ARGS{suffix}="-F {config} {middle(path)}"',
            f"NETIF{suffix}=data{number}",
            *(
                f"{key}_{version}{suffix}={address(topology, host, path.name)}"
                for host, key in HOST_KEYS.items()
            ),
        ]
    return "\n".join(lines) + "\n"
