# SPDX-License-Identifier: GPL-2.0
"""Namespaces of this host, under the kernel that runs here, in real time.

The whole run is one tree of processes in mount, network and process namespaces of its own. Every name that it
makes is seen in there only, and all of it ends with its first process, which ends with the laboratory:
nothing of the host's is touched, and nothing is left to clean up, even after SIGKILL.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

from sctplab import programs
from sctplab.errors import LabError
from sctplab.paths import AGENT, SETUP
from sctplab.place.base import Kernel
from sctplab.plan import capabilities
from sctplab.plan.run_plan import Plan, make
from sctplab.plan.traffic import PYTHON
from sctplab.processes import last_line
from sctplab.programs import Tools
from sctplab.spec.model import HOSTS, RunSpec

APART = ("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")


class Netns:
    deterministic = False

    def here(self, inventory: str | None) -> tuple[tuple[str, ...], str]:
        found = probed()
        return (capabilities.flavour(found),), capabilities.base(found)

    def refuse(self, specs: list[RunSpec]) -> None:
        if os.geteuid():
            raise LabError("--place netns: root is required; run it as root, or in place uml")
        found = probed()
        for spec in specs:
            for lack in lacks(found, spec):
                raise LabError(f"{spec.scenario}: --place netns: {lack}")

    def kernel(self, spec: RunSpec) -> Kernel:
        return Kernel(Path("/"), capabilities.info(probed()))

    def ready(self, spec: RunSpec, kernel: Kernel) -> None:
        pass

    def close(self) -> None:
        pass

    def plan(self, spec: RunSpec, mpflow: str) -> Plan:
        """Outside of all namespaces only names and cables are made: buffers' limits there are the host's."""
        made = make(spec, mpflow)
        setup = [one for one in made.setup if one.where or one.argv[0] != "sysctl"]
        return replace(made, setup=tuple(setup))

    def command(self, spec: RunSpec, steady: bool, linux: str, folder: str) -> list[str]:
        words = [*PYTHON, str(AGENT / "netns.py"), folder, str(AGENT / "run.py")]
        return ["setpriv", "--pdeathsig", "KILL", *APART, *words]

    def environment(self, tools: Tools, folder: Path) -> dict[str, str]:
        return dict(os.environ)


@functools.cache
def probed() -> capabilities.FOUND:
    """Capabilities of this host's kernel, probed once; raises LabError if it cannot create a namespace."""
    iproute2 = last_line([str(SETUP), "--iproute2"], "tools/setup --iproute2") + "/sbin"
    argv = ["unshare", "--net", *PYTHON, str(AGENT / "probe.py")]
    path = f"{iproute2}:{programs.search_path()}"
    done = subprocess.run(argv, capture_output=True, text=True, env={**os.environ, "PATH": path})
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no answer"])[-1]
        raise LabError(f"--place netns: cannot create a namespace: {reason}; run it as root")
    found: capabilities.FOUND = json.loads(done.stdout)
    return found


def lacks(found: capabilities.FOUND, spec: RunSpec) -> list[str]:
    """Why this host cannot do the run."""
    wrong = []
    for option, unusual in (("build", spec.build != "plain"), ("peer", spec.peer)):
        if unusual:
            wrong.append(f"--{option}: the kernel of both hosts is the one that runs here; leave it out")
    if not found["veth"]:
        wrong.append(f"the kernel {found['release']} has no veth")
    wrong += capabilities.middle_lacks(found, capabilities.shaped(spec))
    for host in HOSTS:
        wrong += capabilities.host_lacks(found, spec, host, spec.kernel)
    if spec.base != capabilities.base(found):
        wrong.append(f"--base {spec.base}: the kernel that runs here is {found['release']}; leave it out")
    return wrong


PLACE = Netns()
