# SPDX-License-Identifier: GPL-2.0
"""Machines that share a run, and how each is reached."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

SSH = ("ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=3",
       "-o", "ServerAliveCountMax=3", "-o", "LogLevel=ERROR")  # fmt: skip


@dataclass(frozen=True)
class Address:
    """How a machine is reached. ARGS: words for ssh (options and USER@HOST), a namespace's name, or none."""

    name: str
    transport: str
    args: tuple[str, ...]

    def command(self, argv: tuple[str, ...]) -> list[str]:
        """The command here that runs ARGV there."""
        if self.transport == "local":
            return list(argv)
        if self.transport == "netns":
            return ["ip", "netns", "exec", *self.args, *argv]
        return [*SSH, *self.args, shlex.join(argv)]


@dataclass(frozen=True)
class Site:
    """Machines that share a run, in whose words the plan is written, and what their results are called here.

    HOSTS: host1 and host2 -> machine. LINKS: the plan's links as the laboratory names them. INTERFACES:
    host -> interface there -> its name here. PROGRAMS: sent along, by the names they have there.
    """

    machines: tuple[Address, ...]
    hosts: dict[str, str]
    links: tuple[tuple[str, str], ...]
    interfaces: dict[str, dict[str, str]]
    programs: dict[str, str]
