# SPDX-License-Identifier: GPL-2.0
"""Machines that take part in a run: reached by a transport, directed in JSON lines.

The transport only has to start a command there, as root, with our pipes as its stdin and stdout: the system's
ssh, `ip netns exec` for a namespace of this machine, nothing for this machine itself. The command becomes
testbed/agent/machine.py, sent along with mpflow; the machine needs Python 3, iproute2, ethtool, and tcpdump
for captures.
"""

from __future__ import annotations

import base64
import functools
import io
import json
import os
import selectors
import subprocess
import tarfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, cast

from sctplab.errors import RunError
from sctplab.paths import AGENT
from sctplab.plan.site import Address
from sctplab.spec.schema import plain

TRANSPORTS = ("ssh", "netns", "local")
ALIVE_S = 1.0  # between signs of life
DEAD_MAN_S = 10.0  # without one for so long, a machine takes everything back
ANSWER_S = 60.0
# Unpacks what follows on stdin into a folder of its own and becomes the agent. Its words are kept out of the
# shell's hands by shlex.
UNPACK = """
import io, os, sys, tarfile, tempfile
if os.geteuid():
    sys.exit("not root there; log in as root")
size = int(sys.stdin.buffer.readline())
os.chdir(tempfile.mkdtemp(prefix="sctplab-", dir="/run"))
tarfile.open(fileobj=io.BytesIO(sys.stdin.buffer.read(size))).extractall()
os.execv(sys.executable, [sys.executable, "-S", "-E", "-B", "agent/machine.py", sys.argv[1]])
"""


def bundle(programs: Mapping[str, Path]) -> bytes:
    """The agent, and programs by the names they get, as a tar file."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as out:
        for file in sorted(AGENT.glob("*.py")):
            out.add(file, f"agent/{file.name}")
        for name, file in programs.items():
            out.add(file, name)
    return packed.getvalue()


class Machine:
    """A machine whose agent is up; close() has everything taken back."""

    def __init__(self, address: Address, packed: bytes) -> None:
        self.address = address
        argv = ("python3", "-S", "-E", "-B", "-c", UNPACK, f"{DEAD_MAN_S:g}")
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(address.command(argv), stdin=pipe, stdout=pipe, stderr=pipe)
        self.stdin = cast(IO[bytes], self.process.stdin)
        self.stdout = cast(IO[bytes], self.process.stdout)
        self.writing = threading.Lock()
        self.rest = b""
        self.events: list[dict[str, Any]] = []
        try:
            self.stdin.write(b"%d\n" % len(packed) + packed)
            self.stdin.flush()
        except BrokenPipeError:
            pass  # the reason is read below
        self.python = self.event("up", 3 * ANSWER_S)["python"]
        self.closing = threading.Event()
        threading.Thread(target=self._stay_alive, daemon=True).start()

    def _stay_alive(self) -> None:
        """Signs of life as long as this process lives, whatever it is waiting for."""
        while not self.closing.wait(ALIVE_S):
            try:
                self._send({"do": "alive"})
            except (OSError, ValueError):  # gone, closed
                return

    def _send(self, request: Mapping[str, Any]) -> None:
        with self.writing:
            self.stdin.write(json.dumps(request).encode() + b"\n")
            self.stdin.flush()

    def _readable(self, limit_s: float) -> bool:
        """Whether there is something to read within so long."""
        with selectors.DefaultSelector() as waiting:
            waiting.register(self.stdout, selectors.EVENT_READ)
            return b"\n" in self.rest or bool(waiting.select(max(0.0, limit_s)))

    def _line(self, limit_s: float) -> dict[str, Any]:
        """The next line that the agent says; raises RunError when the machine is lost."""
        until = time.monotonic() + limit_s
        while b"\n" not in self.rest:
            if not self._readable(until - time.monotonic()):
                raise RunError(f"{self.address.name}: no answer for {limit_s:g} s")
            data = os.read(self.stdout.fileno(), 1 << 20)
            if not data:
                raise RunError(f"{self.address.name}: {self._complaint}")
            self.rest += data
        line, _, self.rest = self.rest.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found

    def _take(self, said: dict[str, Any]) -> bool:
        """Keep an event for later; False for anything else."""
        if "event" in said:
            self.events.append(said)
        return "event" in said

    @functools.cached_property
    def _complaint(self) -> str:
        """Why the transport ended: its last words, after which its pipes are closed."""
        said = self.process.communicate()[1].decode(errors="replace").strip().splitlines()
        reason = said[-1] if said else f"exit {self.process.returncode}"
        return f"{self.address.transport} {' '.join(self.address.args)}: {reason}"

    def ask(self, do: str, limit_s: float = ANSWER_S, **request: Any) -> dict[str, Any]:
        """Have something done; raises RunError when it failed there."""
        try:
            self._send({"do": do, **plain(request)})
        except (OSError, ValueError):  # gone, closed
            raise RunError(f"{self.address.name}: {self._complaint}") from None
        while True:
            said = self._line(limit_s)
            if self._take(said):
                continue
            if "failed" in said:
                raise RunError(f"{self.address.name}: {said['failed']}")
            return said

    def event(self, kind: str, limit_s: float) -> dict[str, Any]:
        """Wait for what the agent says next of itself; raises RunError unless it is KIND."""
        until = time.monotonic() + limit_s
        while not self.events:
            self._take(self._line(until - time.monotonic()))
        found = self.events.pop(0)
        if found["event"] != kind:
            raise RunError(f"{self.address.name}: {found.get('reason') or found['event']}")
        return found

    def happened(self, kind: str, within_s: float) -> bool:
        """Whether the agent says KIND of itself within so long; raises RunError for anything else."""
        if not self.events and not self._readable(within_s):
            return False
        self.event(kind, ANSWER_S)
        return True

    def look(self, *argv: str, limit_s: float = 8) -> dict[str, Any]:
        """{"exit", "output", "errors"} of a command that changes nothing; shorter than DEAD_MAN_S."""
        return self.ask("look", argv=argv, within_s=limit_s)

    def fetch(self, file: str, target: Path) -> None:
        with target.open("wb") as out:
            while piece := base64.b64decode(self.ask("fetch", file=file, offset=out.tell())["piece"]):
                out.write(piece)

    def release(self) -> list[str]:
        """Have everything taken back; returns what could not be."""
        kept: list[str] = self.ask("release")["kept"]
        return [f"{self.address.name}: {one}" for one in kept]

    def close(self) -> None:
        """Let go: the machine takes back what there is to take back."""
        self.closing.set()
        for stream in (self.stdin, self.stdout):
            try:
                stream.close()
            except OSError:
                continue
        self.process.wait()


def clock_offset(machine: Machine, rounds: int = 10) -> tuple[float, float]:
    """(seconds that the machine's clock is ahead of ours, how wrong that may be): the quickest of ROUNDS."""
    best = (float("inf"), 0.0)
    for _ in range(rounds):
        before = time.time()
        there: float = machine.ask("clock")["t"]
        after = time.time()
        best = min(best, ((after - before) / 2, there - (before + after) / 2))
    return best[1], best[0]
