# SPDX-License-Identifier: GPL-2.0
"""Facts of a host that both `sctp-multipath` and its doctor need: programs, small files, modules.

Standard library only: the package installs this folder as it is.
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Module:
    """Fields that modinfo prints of the SCTP that would be loaded; "" for those that it does not print."""

    filename: str = ""
    version: str = ""
    source: str = ""  # the point release whose SCTP it has


def environment() -> dict[str, str]:
    """For programs: sbin is not in everybody's PATH."""
    return {**os.environ, "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin", "LC_ALL": "C"}


def output(*command: str) -> str:
    """The output of a program, "" if it fails or is not there."""
    try:
        done = subprocess.run(
            command,
            env=environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return ""
    return "" if done.returncode else done.stdout


def text_of(path: Path) -> str:
    """The content of a small file, "" if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def bans(config: str, *modules: str) -> tuple[str, ...]:
    """The lines in the output of `modprobe --showconfig` that keep one of the modules from being loaded."""
    pattern = re.compile(rf"(blacklist|install) ({'|'.join(modules)})(\s|$)")
    return tuple(line for line in config.splitlines() if pattern.match(line))


def field(info: str, name: str) -> str:
    """The first value of a field in the output of modinfo."""
    match = re.search(rf"^{name}:\s*(.*)$", info, re.MULTILINE)
    return match[1] if match else ""


def module_on_disk() -> Module:
    """The SCTP that would be loaded."""
    info = output("modinfo", "sctp")
    return Module(field(info, "filename"), field(info, "version"), field(info, "sctp_source"))


def point_release(release: str, version: str) -> str:
    """The upstream release of a kernel by `uname -r` and `uname -v`, in which Debian has it."""
    match = re.search(r"Debian (\d+\.\d+\.\d+)", version) or re.match(r"(\d+\.\d+\.\d+)", release)
    return match[1] if match else ""


def newer(point: str, than: str) -> bool:
    """Whether point release `point` is above `than`, numbers by number."""
    return [int(part) for part in re.findall(r"\d+", point)] > [
        int(part) for part in re.findall(r"\d+", than)
    ]
