# SPDX-License-Identifier: GPL-2.0
"""Namespaces as the machines of an inventory: looked at before and after scripts. Standard library only."""

import os
import re
import subprocess
from typing import Any

from commands import inside, remember_home, run_all
from links import await_links

LOOKS = (
    *("ip -d addr", "ip route show table all", "ip -6 route show table all", "ip rule", "ip -6 rule"),
    *("ip neigh", "tc qdisc", "sysctl net", "ls /run"),
)
MOVES = r"(?m)^.*(entropy|valid_lft).*\n| expires \S+"


def seen(look: str) -> str:
    """The output of a command; that of `ip neigh` sorted, since its own order is that of a hash table."""
    text = subprocess.run(look.split(), capture_output=True, text=True).stdout
    return "".join(sorted(text.splitlines(keepends=True))) if look == "ip neigh" else text


def state(machines: list[str]) -> dict[str, str]:
    """All that a run may change on each machine, as text."""
    found = {}
    for name in machines:
        with inside(name):
            devices = sorted(one for one in os.listdir("/sys/class/net") if one != "lo")
            looks = [*LOOKS, *(f"ethtool -k {dev}" for dev in devices)]
            texts = [seen(look) for look in looks]
        found[name] = re.sub(MOVES, "", "".join(texts))
    return found


def carry_out(plan: dict[str, Any]) -> dict[str, Any]:
    """PLAN: "setup", "machines" (namespaces), "scripts", "environment", "inventory" for /run/inventory."""
    remember_home()
    run_all(plan["setup"])
    await_links(plan["setup"])
    with open("/run/inventory", "w", encoding="utf-8") as out:
        out.write(plan["inventory"])
    environment = {**os.environ, **plan["environment"]}
    before, ended = state(plan["machines"]), []
    for script in plan["scripts"]:
        done = subprocess.run(
            ["sh", "-c", script], stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment
        )
        ended.append({"exit": done.returncode, "output": done.stdout, "errors": done.stderr})
    return {"status": "ok", "ended": ended, "before": before, "after": state(plan["machines"])}
