# SPDX-License-Identifier: GPL-2.0
"""Namespaces and commands inside a place. Standard library only."""

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000
BATCHED = ("ip", "tc")
Command = dict[str, Any]  # {"where": namespace, "argv": [...]}


class CommandFailed(Exception):
    """A command ended with an error; the text names both."""


def enter(path: str) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        if LIBC.setns(handle, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"setns {path}")
    finally:
        os.close(handle)


@contextmanager
def inside(where: str) -> Iterator[None]:
    """In the network namespace WHERE; programs started here stay there. "" = the first namespace."""
    if not where:
        yield
        return
    enter(f"/run/netns/{where}")
    try:
        yield
    finally:
        enter(HOME)


HOME = "/run/netns-home"


def remember_home() -> None:
    """Keep a way back to the namespace that the agent started in."""
    open(HOME, "w", encoding="utf-8").close()
    if LIBC.mount(b"/proc/self/ns/net", HOME.encode(), None, 4096, None):  # MS_BIND
        raise OSError(ctypes.get_errno(), "bind mount of the first network namespace")


def run_all(commands: list[Command]) -> None:
    """Run commands ({"where", "argv"}) in order; neighbours for one namespace and tool share a process."""
    group: list[Command] = []
    for one in commands:
        if group and key(group[0]) != key(one):
            run_group(group)
            group = []
        group.append(one)
    if group:
        run_group(group)


def tool(argv: list[str]) -> list[str]:
    """The program, with its option when it has one: ["tc"], ["ip", "-6"]."""
    return argv[: 2 if argv[1:] and argv[1].startswith("-") else 1]


def key(one: Command) -> tuple[object, ...]:
    """A key, equal for commands that may run together: ip, tc or sysctl of one namespace; else unique."""
    together = one["argv"][0] in (*BATCHED, "sysctl")
    return (one["where"], *tool(one["argv"]), 0 if together else id(one))


def run_group(group: list[Command]) -> None:
    name = group[0]["argv"][0]
    with inside(group[0]["where"]):
        if name == "sysctl":
            for one in group:
                set_sysctl(one["argv"][-1])
        elif name in BATCHED and len(group) > 1:
            run_batch(tool(group[0]["argv"]), group)
        else:
            run_one(group[0])


def set_sysctl(assignment: str) -> None:
    """Like `sysctl -w KEY=VALUE`, without a process; raises CommandFailed."""
    name, _, value = assignment.partition("=")
    try:
        with open("/proc/sys/" + name.replace(".", "/"), "w", encoding="ascii") as setting:
            setting.write(value)
    except OSError as error:
        raise CommandFailed(f"sysctl -w {assignment}: {error.strerror}") from error


def run_batch(program: list[str], group: list[Command]) -> None:
    lines = "".join(" ".join(one["argv"][len(program) :]) + "\n" for one in group)
    done = subprocess.run([*program, "-batch", "-"], input=lines, capture_output=True, text=True)
    if done.returncode:
        raise CommandFailed(
            f"in {group[0]['where'] or 'the first namespace'}: {complaint(done.stderr, group)}"
        )


def complaint(stderr: str, group: list[Command]) -> str:
    """The tool's message, with the line number of `-batch` turned into the command."""
    message, _, tail = stderr.strip().partition("Command failed -:")
    number = tail.split()[0] if tail.split() else ""
    failed = " ".join(group[int(number) - 1]["argv"]) if number.isdigit() else "a batch of commands"
    return f"{failed}: {' '.join(message.split())}"


def run_one(one: Command) -> None:
    try:
        done = subprocess.run(one["argv"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    except OSError as error:
        raise CommandFailed(f"{one['argv'][0]}: {error.strerror}") from error
    if done.returncode:
        message = " ".join((done.stderr or done.stdout).split())
        raise CommandFailed(f"in {one['where'] or 'the first namespace'}: {' '.join(one['argv'])}: {message}")
