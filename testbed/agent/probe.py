# SPDX-License-Identifier: GPL-2.0
"""Capabilities of the running kernel that a run may need, as one JSON object. Standard library only.

unshare --net python3 -S -E -B probe.py         as root; its devices and qdiscs vanish with that namespace
"""

import json
import os
import subprocess
from typing import Any


def run(line: str) -> tuple[int, str]:
    """(exit status, output); 127 where there is no such program."""
    try:
        done = subprocess.run(line.split(), stdin=subprocess.DEVNULL, capture_output=True, text=True)
    except FileNotFoundError:
        return 127, ""
    return done.returncode, done.stdout


def works(*lines: str) -> bool:
    """Whether all these commands succeed."""
    return all(run(line)[0] == 0 for line in lines)


def output(line: str) -> str:
    return run(line)[1]


def settings() -> list[str]:
    """Names below net.sctp; [] where sctp is not loaded, which this does not change."""
    folder = "/proc/sys/net/sctp"
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


def netem_seed() -> bool:
    """Whether netem keeps a seed: an older kernel ignores it, an older tc does not know it."""
    works("ip link set lo up", "tc qdisc add dev lo root netem loss random 1% seed 7")
    return "seed 7" in output("tc qdisc show dev lo")


def module_of(name: str) -> str:
    """Where modprobe would take it from, "" when there is none."""
    return output(f"modinfo -F filename {name}").strip()


def probe() -> dict[str, Any]:
    kernel = os.uname()
    return {
        "release": kernel.release,
        "version": kernel.version,
        "machine": kernel.machine,
        "settings": settings(),
        "module": module_of("sctp"),
        "veth": works("ip link add probe0 type veth peer name probe1", "ip link del probe0"),
        "ifb": works("ip link add probe0 type ifb", "ip link del probe0"),
        "netem": works("tc qdisc add dev lo root netem limit 10", "tc qdisc del dev lo root"),
        "netem_seed": netem_seed(),
        "mptcp": os.path.exists("/proc/sys/net/mptcp/enabled"),
        "processors": os.cpu_count(),
        "clocksource": read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
    }


def read(path: str) -> str:
    try:
        with open(path, encoding="ascii") as source:
            return source.read().strip()
    except OSError:
        return ""


if __name__ == "__main__":
    os.environ["PATH"] += ":/usr/local/sbin:/usr/sbin:/sbin"
    print(json.dumps(probe()))
