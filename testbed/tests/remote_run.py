# SPDX-License-Identifier: GPL-2.0
"""Place remote without machines: namespaces of one kernel of the laboratory, reached by `ip netns exec`."""

import difflib
import os
import sys
from pathlib import Path
from typing import Any

from sctplab.plan import run_plan
from sctplab.plan.link_commands import namespaces
from sctplab.spec import scenario
from sctplab.spec.model import RunSpec
from sctplab.spec.schema import plain
from tests.kernel_run import linux, run_work
from tests.lab_run import TESTBED

WALL_S = 300.0
LAB = f"{sys.executable} -m sctplab"
INVENTORY = """
LOCAL_TYPE=netns
LOCAL_ARGS=host1
REMOTE_TYPE=netns
REMOTE_ARGS=host2
NETIF=path1
LOCAL_V4=10.1.1.1
REMOTE_V4=10.1.2.1
NETIF_2=path2
LOCAL_V4_2=10.2.1.1
REMOTE_V4_2=10.2.2.1
"""
ROUTERS = """
ROUTER_TYPE=netns
ROUTER_ARGS=mid-path1
ROUTER_TYPE_2=netns
ROUTER_ARGS_2=mid-path2
"""


def inner_environment() -> dict[str, str]:
    """Environment of a laboratory started inside one of its kernels; HOME and SCTPMP_CACHE name its cache."""
    cache = {name: os.environ[name] for name in ("HOME", "SCTPMP_CACHE") if name in os.environ}
    return {
        **cache,
        "PYTHONPATH": f"{TESTBED}:{TESTBED.parent}/tools",
        "PYTHONDONTWRITEBYTECODE": "1",
        "LC_ALL": "C.UTF-8",
    }


def two_paths() -> RunSpec:
    found = scenario.load(scenario.find("demo-cut"))
    return scenario.expand(found, {}, scenario.Choice(kernels=("stock",), repeat=1))[0]


def on_site(scripts: list[str], folder: Path, inventory: str = INVENTORY + ROUTERS) -> dict[str, Any]:
    """Run SCRIPTS among machines set up as the guide says: the result of work/site.py."""
    spec = two_paths()
    setup = [one for one in run_plan.make(spec, "mpflow").setup if one.argv[0] not in ("tc", "ethtool")]
    return run_work(
        "site",
        linux("patched"),
        folder,
        WALL_S,
        setup=plain(setup),
        machines=namespaces(spec.topology),
        scripts=scripts,
        inventory=inventory,
        environment={**inner_environment(), "TMPDIR": str(folder)},
    )


def left_over(done: dict[str, Any]) -> list[str]:
    """Changes that the scripts left on the machines, as lines of a diff: "MACHINE: +..."."""
    found = []
    for name, before in done["before"].items():
        lines = difflib.ndiff(before.splitlines(), done["after"][name].splitlines())
        found += [f"{name}: {line}" for line in lines if line[0] in "+-"]
    return found
