# SPDX-License-Identifier: GPL-2.0
"""The dead-man's switch of a machine: a process of its own that takes everything back. Standard library only.

It does so when the agent lets go of it: at the end of a run, when the agent dies, whoever killed it, and when
the agent has passed on no sign of life from its conductor for LIMIT seconds. It knows the way back of each
command before that is carried out.
"""

import json
import os
import select
import shutil
import signal
import subprocess
from contextlib import suppress
from typing import Any

DEAF = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGPIPE)


class Guard:
    """The agent's end of it. FOLDER is removed at the end."""

    def __init__(self, folder: str, limit_s: float) -> None:
        orders, self.orders = os.pipe()
        self.answers, answers = os.pipe()
        agent = os.getpgrp()
        if not os.fork():
            os.close(self.orders)
            os.close(self.answers)
            stand(orders, answers, agent, folder, limit_s)
            os._exit(0)
        os.close(orders)
        os.close(answers)

    def tell(self, order: dict[str, Any]) -> None:
        """{"undo": argv} to remember, {} for a sign of life, {"done": true} when no program is left."""
        os.write(self.orders, json.dumps(order).encode() + b"\n")

    def release(self) -> list[str]:
        """Let it restore the machine; returns what could not be undone, with the reasons."""
        self.tell({"done": True})
        os.close(self.orders)
        with os.fdopen(self.answers, encoding="utf-8") as said:
            return said.read().splitlines()


def stand(orders: int, answers: int, agent: int, folder: str, limit_s: float) -> None:
    """The guard's life. AGENT: the process group of the agent and its programs."""
    os.setsid()
    for one in DEAF:
        signal.signal(one, signal.SIG_IGN)
    silence = os.open(os.devnull, os.O_RDWR)  # nobody waits for this end of the agent's output
    for number in (0, 1, 2):
        os.dup2(silence, number)
    undo, done = listen(orders, limit_s)
    if not done:
        with suppress(ProcessLookupError):
            os.killpg(agent, signal.SIGKILL)
    failed = restore(undo)
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(BrokenPipeError):
        os.write(answers, "\n".join(failed).encode())


def listen(orders: int, limit_s: float) -> tuple[list[list[str]], bool]:
    """The ways back until the agent lets go or is silent for LIMIT_S, and whether it had ended well."""
    undo: list[list[str]] = []
    done = False
    rest = b""
    while select.select([orders], [], [], limit_s)[0]:
        data = os.read(orders, 1 << 16)
        if not data:
            return undo, done
        *lines, rest = (rest + data).split(b"\n")
        for order in map(json.loads, lines):
            done = done or "done" in order
            undo += [order["undo"]] if "undo" in order else []
    return undo, False


def restore(undo: list[list[str]]) -> list[str]:
    """Run the undo commands in reverse order, past failures; returns the failures, one line each."""
    failed = []
    for argv in reversed(undo):
        try:
            done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        except OSError as error:
            failed.append(f"{argv[0]}: {error.strerror}")
            continue
        if done.returncode:
            failed.append(f"{' '.join(argv)}: {' '.join(done.stderr.split())}")
    return failed
