# SPDX-License-Identifier: GPL-2.0
"""From a flow of kind "program" to agent/drive.py at both ends."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sctpkernel.packaged import folder_of

from sctplab.paths import AGENT, ROOT
from sctplab.plan.link_commands import address
from sctplab.spec.model import Flow, Topology
from sctplab.spec.program import ENDS, FOLDER, End, Program, find, from_page

PYTHON = ("/usr/bin/python3", "-S", "-E", "-B")
STATUS = ROOT / "tools" / "deb" / "status.py"
NOTICE_PORT = 4999  # where the server is told that the client has ended
BEGIN_S = 12.0  # from the client's start to the first message
OWN_BEGIN_S = 3.0  # that a program which makes messages itself takes for it
LOOK_S, LIVE_S = 25, 14  # after the client's start: one path is cut, both work
LIVE = (
    "import dataclasses, json, sys; from failover.cli import of_association, parser; "
    "found = of_association(parser().parse_args(sys.argv[1:])); "
    "print(json.dumps([dataclasses.asdict(one) for one in found[:2]]))"
)
TAIL_S = 4.0  # after the last message
LIBRARIES = ("usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu", "usr/lib")
FOLDERS = ("usr/bin", "usr/sbin", "bin", "sbin")
EXAMPLE = re.compile(r"\b10(?P<dot>[.,])([1-9])(?P=dot)0(?P=dot)([12])\b")  # an address as the page writes it


@dataclass(frozen=True)
class Words:
    """Replacements for one end of a flow."""

    name: str
    end: str
    root: Path
    flow: Flow
    topology: Topology

    def fill(self, text: str) -> str:
        found = text
        if "{page}" in found:
            found = found.replace("{page}", from_page(self.name, self.end).rstrip("\n"))
        for word, value in (
            ("{root}", str(self.root)),
            ("{here}", str(FOLDER)),
            ("{messages}", str(self.flow.messages)),
            ("{interval_ms}", f"{self.flow.interval_ms:g}"),
            ("{per_second}", f"{1000 / self.flow.interval_ms:g}"),
            ("{duration_s}", f"{(self.flow.messages or 0) * self.flow.interval_ms / 1000:g}"),
        ):
            found = found.replace(word, value)
        return EXAMPLE.sub(self.own_address, found)

    def own_address(self, found: re.Match[str]) -> str:
        """Of the run's topology; one of a path that it does not have stays."""
        number, host = int(found[2]), self.flow.hosts[int(found[3]) - 1]
        paths = self.topology.paths
        if number > len(paths):
            return found[0]
        return address(self.topology, host, paths[number - 1].name).replace(".", found[1])


def environment(program: Program, root: Path, fill: Callable[[str], str]) -> dict[str, str]:
    """Of PROGRAM with its packages in ROOT; FILL: replaces what stands in braces."""
    found = {
        "PATH": ":".join([*(f"{root}/{one}" for one in FOLDERS), "/usr/sbin:/usr/bin:/sbin:/bin"]),
        "LD_LIBRARY_PATH": ":".join(f"{root}/{one}" for one in LIBRARIES),
    }
    return found | {name: fill(value) for name, value in program.environment.items()}


def watchers(role: str, port: int) -> dict[str, list[str]]:
    """The project's own commands beside the program: what happens, what is at LOOK_S, and at LIVE_S what
    failover-time takes from the association to this port.
    """
    if role != "client":
        return {}
    python = f"PYTHONPATH={ROOT}/tools exec {PYTHON[0]} -S -B"
    live = ["sh", "-c", f'sleep {LIVE_S}; {python} -c "$0" --port {port}', LIVE]
    own = " ".join([*PYTHON, str(STATUS)])
    looks = {name: ["sh", "-c", f"sleep {LOOK_S}; exec {own} {name} --json"] for name in ("paths", "doctor")}
    return {"events": [*PYTHON, str(STATUS), "events", "--json"], **looks, "live": live}


def with_options(flow: Flow, line: str) -> str:
    """The command under `sctp-multipath run`, if the flow asks for it."""
    own = " ".join([*PYTHON, str(STATUS), "run"])
    return f"{own} {flow.run_with} {line}" if flow.run_with else line


def plan_of(flow: Flow, topology: Topology, role: str) -> dict[str, Any]:
    """The plan of one end, as drive.py takes it."""
    program = find(flow.program or "")
    end: End = getattr(program, role)
    words = Words(flow.program or "", role, folder_of(program.packages), flow, topology)
    server = flow.hosts[1]
    return {
        "name": flow.program,
        "role": role,
        "run": [with_options(flow, words.fill(end.run[0])), *map(words.fill, end.run[1:])],
        "ready": end.ready,
        "settle_s": end.settle_s,
        "prepare": words.fill(end.prepare),
        "files": {name: words.fill(content) for name, content in end.files.items()},
        "feeds": end.feeds,
        "counts": end.counts,
        "counts_file": end.counts_file,
        "trouble": list(program.trouble),
        "environment": environment(program, words.root, words.fill),
        "watchers": watchers(role, program.port),
        "messages": flow.messages,
        "interval_s": flow.interval_ms / 1000,
        "begin_s": BEGIN_S,
        "own_begin_s": OWN_BEGIN_S,
        "tail_s": TAIL_S if role == "client" else 0.5,
        "notice_port": NOTICE_PORT,
        "notice_to": [address(topology, server, path.name) for path in topology.paths],
    }


def command(flow: Flow, topology: Topology, role: str) -> tuple[str, ...]:
    assert role in ENDS
    return (*PYTHON, str(AGENT / "drive.py"), json.dumps(plan_of(flow, topology, role)))


def polls(flow: Flow) -> bool:
    return find(flow.program or "").polls
