# SPDX-License-Identifier: GPL-2.0
"""Whether a running kernel can do a run: what testbed/agent/probe.py found, against its spec. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from sctplab.spec.model import BY_KERNEL, PROGRAM, Direction, RunSpec

FOUND = dict[str, Any]
OURS = "rtx_policy"  # a setting that only patched kernels have
SCTP = (*BY_KERNEL, "usrsctp-to-sctp", "sctp-to-usrsctp", "iperf3-sctp", PROGRAM)


def flavour(found: FOUND) -> str:
    return "patched" if OURS in found["settings"] else "stock"


def another(spec: RunSpec, sysctls: dict[str, dict[str, str]]) -> Iterator[str]:
    """Hosts that ran another kernel than the spec says, one line each. SYSCTLS: by host, as read."""
    for host, values in sysctls.items():
        ran = flavour({"settings": [key.removeprefix("net.sctp.") for key in values]})
        if values and ran != spec.tested(host)[0]:
            yield f"{host}: the kernel that ran is {ran}, not {spec.tested(host)[0]}"


def base(found: FOUND) -> str:
    """6.12 of 6.12.90-1-amd64."""
    return ".".join(found["release"].split("-")[0].split(".")[:2])


def info(found: FOUND) -> dict[str, Any]:
    """info.json of a kernel that the laboratory did not build; equal keys mean equal capabilities."""
    digest = hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()[:12]
    return {"key": f"{found['release']}-{flavour(found)}-{digest}", "flavour": flavour(found), **found}


def host_lacks(found: FOUND, spec: RunSpec, host: str, kernel: str | None = None) -> Iterator[str]:
    """Requirements of the run that a host does not meet, one line each. KERNEL: its flavour, if required."""
    kinds = {flow.kind for flow in spec.flows}
    if kinds & set(SCTP) and not found["settings"]:
        yield no_sctp(found)
        return
    if kernel and flavour(found) != kernel:
        seen = "has" if flavour(found) == "patched" else "does not have"
        yield f"the kernel {found['release']} {seen} net.sctp.{OURS}, so it is {flavour(found)}, not {kernel}"
    for key in getattr(spec.sysctl, host):
        name = key.removeprefix("net.sctp.")
        if key != name and name not in found["settings"]:
            yield f"the kernel {found['release']} has no setting {key}"
    if "mptcp" in kinds and not found["mptcp"]:
        yield f"the kernel {found['release']} has no MPTCP"


def no_sctp(found: FOUND) -> str:
    if found["module"]:
        return "sctp is not loaded; load it: modprobe sctp"
    return f"the kernel {found['release']} has no module sctp; install one that belongs to it"


def middle_lacks(found: FOUND, directions: list[Direction]) -> Iterator[str]:
    """Features that the kernel or tc lacks to shape these directions, one line each."""
    if not found["netem"]:
        yield f"the kernel {found['release']} has no netem (CONFIG_NET_SCH_NETEM)"
    elif any(random(one) for one in directions) and not found["netem_seed"]:
        yield (
            f"netem of the kernel {found['release']} or its tc takes no seed (Linux 6.6, iproute2 6.6),"
            " which the scenario's random losses need"
        )


def no_bottleneck(spec: RunSpec) -> Iterator[str]:
    """One line for each shared bottleneck: a place whose middles are machines supports none."""
    for one in spec.topology.shared:
        yield f"bottleneck {one.name}: got place {spec.place}, expected uml or netns; choose one with --place"


def random(one: Direction) -> bool:
    """Whether what netem does in this direction depends on chance."""
    return bool(one.loss_pct or one.gemodel or one.jitter_ms or one.reorder_pct)


def shaped(spec: RunSpec) -> list[Direction]:
    """All directions, with what events make of them; the changes of events count as they are written."""
    every = [one for path in spec.topology.shaped for one in (path.forward, path.reverse)]
    changes = [event.values for event in spec.events if event.values]
    chance = ("loss_pct", "gemodel", "jitter_ms", "reorder_pct")
    if any(values.get(key) for values in changes for key in chance):
        return [*every, Direction(rate_mbit=1, loss_pct=1)]
    return every
