# SPDX-License-Identifier: GPL-2.0
"""Where things are: the checkout, the cache, and writing into the cache safely."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sctpkernel.errors import FAILED, Problem, warn

ROOT = Path(__file__).resolve().parents[2]


def cache_root() -> Path:
    """The folder for everything that can be made again; outside the checkout."""
    chosen = os.environ.get("SCTPMP_CACHE")
    if chosen:
        return Path(chosen).absolute()
    try:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    except RuntimeError as error:
        raise Problem(f"HOME: not set, and uid {os.getuid()} has no home: set it or SCTPMP_CACHE") from error
    return Path(base).absolute() / "sctp-multipath"


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file `path`; a second caller waits and says so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            warn(f"waiting for another build ({path.stem}) to end ...")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextmanager
def lock_if_free(path: Path) -> Iterator[bool]:
    """Hold the lock file `path` if nobody else does; whether that is so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            free = True
        except BlockingIOError:
            free = False
        yield free


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Give a temporary folder that becomes `target` in one step when the block ends well, else vanishes."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        yield temporary
        temporary.chmod(0o755)
        temporary.rename(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def need_space(folder: Path, gigabytes: float, what: str) -> None:
    """Refuse early when the disk under `folder` has not `gigabytes` left for `what`."""
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free / 1e9
    if free < gigabytes:
        raise Problem(
            f"{folder}: {what} needs {gigabytes:.1f} GB, {free:.1f} GB are free: "
            "free some or point SCTPMP_CACHE to another disk",
            FAILED,
        )
