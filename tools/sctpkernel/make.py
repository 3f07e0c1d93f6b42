# SPDX-License-Identifier: GPL-2.0
"""Running make on a kernel tree: a clean environment, ccache, a log, progress, and nothing left running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from sctpkernel.errors import FAILED, Problem, warn
from sctpkernel.paths import cache_root

CCACHE_SIZE = "4G"  # some fifteen full builds; the cache of one flavour is about 100 MB
# One line of kbuild's output per file made; the words are the ones it uses for compilers and linkers.
_STEPS = ("CC", "AS", "LD", "AR", "HOSTCC", "HOSTLD", "LINK", "MODPOST", "CHECK")


def environment() -> dict[str, str]:
    """Nothing of the caller's environment but what finds programs and files: same input, same kernel."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    return {
        **kept,
        "LC_ALL": "C",
        "TZ": "UTC",
        "CCACHE_DIR": str(cache_root() / "ccache"),
        "CCACHE_MAXSIZE": CCACHE_SIZE,
        "KBUILD_BUILD_TIMESTAMP": "Thu Jan  1 00:00:00 UTC 1970",
        "KBUILD_BUILD_VERSION": "1",
        "KBUILD_BUILD_USER": "sctp-multipath",
        "KBUILD_BUILD_HOST": "sctp-multipath",
    }


def run_group(command: Sequence[str], log: IO[str], title: str) -> int:
    """Run `command` as a process group of its own, output into `log`, with a line of progress on a terminal.

    However this function is left, the group has ended.
    """
    process = subprocess.Popen(
        command,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        _follow(process.stdout, log, title)
        return process.wait()
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()


def _follow(lines: IO[str], log: IO[str], title: str) -> None:
    """Copy output to the log and count files; on a terminal the count is shown as it grows."""
    terminal = sys.stderr.isatty()
    count, shown, start = 0, 0.0, time.monotonic()
    for line in lines:
        log.write(line)
        count += line.split(maxsplit=1)[:1] in [[step] for step in _STEPS]
        now = time.monotonic()
        if terminal and now - shown > 0.2:
            shown = now
            print(f"\r{title}: {count} files, {now - start:.0f} s\033[K", end="", file=sys.stderr, flush=True)
    if terminal:
        print("\r\033[K", end="", file=sys.stderr, flush=True)
    log.flush()


def make(
    tree: Path,
    arguments: Sequence[str],
    log_path: Path,
    title: str,
    settings: Mapping[str, str] | None = None,
) -> None:
    """Run make in `tree`; a failure names the first error and the log, which is kept."""
    command = [
        "make",
        "-C",
        str(tree),
        f"-j{len(os.sched_getaffinity(0))}",
        "CC=ccache gcc",
        "HOSTCC=ccache gcc",
    ]
    command += [f"{name}={value}" for name, value in (settings or {}).items()]
    log_path.parent.mkdir(parents=True, exist_ok=True)
    with log_path.open("a", encoding="utf-8") as log:
        log.write(f"$ {' '.join([*command, *arguments])}\n")
        code = run_group([*command, *arguments], log, title)
    if code:
        raise Problem(
            f"{title}: make failed: {first_error(log_path)}; the whole output is in {log_path}", FAILED
        )


def first_error(log_path: Path) -> str:
    """The line of a build log that says best why it failed."""
    lines = log_path.read_text(encoding="utf-8", errors="replace").splitlines()
    for sign in ("No space left on device", "error: ", "undefined reference", "***"):
        for line in lines:
            if sign in line:
                return line.strip()
    warn_line = [line for line in lines if line.strip()]
    return warn_line[-1] if warn_line else "no output"


def begin_log(log_path: Path, title: str) -> None:
    """Start an empty log and say on stderr what begins."""
    log_path.parent.mkdir(parents=True, exist_ok=True)
    log_path.write_text("", encoding="utf-8")
    warn(f"{title} ...")
