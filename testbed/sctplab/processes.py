# SPDX-License-Identifier: GPL-2.0
"""The one way in which processes are started and ended."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from sctplab.errors import RunError


@dataclass(frozen=True)
class Ended:
    """How the process of a run ended; CONSOLE is what it printed."""

    returncode: int
    timed_out: bool
    wall_s: float
    console: str


@contextmanager
def own_cpu(wanted: bool) -> Iterator[list[str]]:
    """Words that pin a command to a CPU no other run has, [] when all are taken or it is not WANTED.

    A run in UML is one line of work that hops between processes; on one CPU it is two to three times faster.
    The claim is a socket name: other users of this machine see it, and it ends with the process.
    """
    with socket.socket(socket.AF_UNIX) as claim:
        for cpu in sorted(os.sched_getaffinity(0)) if wanted else ():
            try:
                claim.bind(f"\0sctplab-cpu{cpu}")
            except OSError:
                continue
            yield ["taskset", "-c", str(cpu)]
            return
        yield []


class Processes:
    """The process groups that are alive, so that an interrupt can end exactly these."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._groups: set[int] = set()
        self._stopped = False

    @property
    def stopped(self) -> bool:
        return self._stopped

    def run(
        self,
        argv: list[str],
        environment: Mapping[str, str],
        folder: Path,
        wall_s: float,
        one_cpu: bool = True,
    ) -> Ended:
        """Start ARGV in its own process group, wait, and leave no process of that group behind."""
        started = time.monotonic()
        console = folder / "console"
        with console.open("wb") as out, own_cpu(one_cpu) as pinned:
            process = self._start(pinned + argv, environment, folder, out.fileno())
            timed_out = False
            try:
                process.wait(wall_s)
            except subprocess.TimeoutExpired:
                timed_out = True
            finally:
                self._end(process)
        text = console.read_text(errors="replace")
        return Ended(process.returncode, timed_out, time.monotonic() - started, text)

    def _start(
        self, argv: list[str], environment: Mapping[str, str], folder: Path, out: int
    ) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._stopped:
                raise KeyboardInterrupt
            process = subprocess.Popen(
                argv,
                env=environment,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                process_group=0,
            )
            self._groups.add(process.pid)
        return process

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        kill_group(process.pid)
        process.wait()
        with self._lock:
            self._groups.discard(process.pid)

    def stop(self) -> None:
        """End every group and start no other."""
        with self._lock:
            self._stopped = True
            for group in self._groups:
                kill_group(group)


def last_line(argv: list[str], what: str) -> str:
    """The last line that ARGV prints on stdout; stderr is the user's to see. Raises RunError when it fails.

    It has a process group of its own, which an interrupt ends as a whole: builds have many processes.
    """
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, process_group=0) as process:
        try:
            output = process.communicate()[0]
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            raise
    if process.returncode:
        raise RunError(f"{what} failed, exit {process.returncode}; see above")
    lines = output.strip().splitlines()
    return lines[-1] if lines else ""


def kill_group(group: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
