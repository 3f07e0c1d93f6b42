# SPDX-License-Identifier: GPL-2.0
"""How every command ends: one clear line for what can be foreseen, a traceback only for a fault of ours."""

from __future__ import annotations

import argparse
import errno
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

USAGE = 2  # the caller gave something that cannot work
FAILED = 1  # the work itself went wrong
INTERRUPTED = 130
# Errors that are no fault of ours, and the remedy.
OF_THE_HOST = {
    errno.ENOSPC: "free some",
    errno.EDQUOT: "free some",
    errno.EROFS: "choose another folder (the cache: SCTPMP_CACHE)",
    errno.EACCES: "choose a folder that you may write (the cache: SCTPMP_CACHE)",
    errno.EPERM: "run it as root",
    errno.ENOENT: "make or install it, or choose another folder (the cache: SCTPMP_CACHE)",
    errno.ENOTDIR: "choose a folder (the cache: SCTPMP_CACHE)",
}


class Problem(Exception):
    """A foreseeable failure. The text is one line: what, where, what to do."""

    def __init__(self, text: str, code: int = USAGE) -> None:
        super().__init__(text)
        self.code = code


class Parser(argparse.ArgumentParser):
    """argparse with errors of one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"{self.prog}: {message}; see {self.prog} --help\n")


def last_line(text: str) -> str:
    """The last line that is not empty, for messages of other programs."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no message"


def warn(text: str) -> None:
    """One line on stderr."""
    print(text, file=sys.stderr)


def interrupt(number: int, _frame: FrameType | None) -> None:
    """End the command as ^C does."""
    if number == signal.SIGHUP:  # the shell and the terminal may each send one
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    raise KeyboardInterrupt


def heed_signals() -> None:
    """SIGTERM interrupts, and so does SIGHUP, unless it is ignored, as under nohup."""
    signal.signal(signal.SIGTERM, interrupt)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signal.signal(signal.SIGHUP, interrupt)


def run_main(name: str, main: Callable[[], int]) -> None:
    """Run a command's main function and leave with its exit code, whatever happens inside."""
    heed_signals()
    try:
        code = main()
        if sys.stdout:  # none where the caller has closed it
            sys.stdout.flush()
    except Problem as problem:
        warn(f"{name}: {problem}")
        code = problem.code
    except KeyboardInterrupt:
        warn(f"{name}: interrupted; nothing half-done was kept")
        code = INTERRUPTED
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = FAILED
    except OSError as error:
        if error.errno not in OF_THE_HOST:
            raise
        why, remedy = os.strerror(error.errno).lower(), OF_THE_HOST[error.errno]
        warn(f"{name}: {error.filename or 'the output'}: {why}; {remedy} and repeat")
        code = FAILED
    sys.exit(code)
