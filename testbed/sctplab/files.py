# SPDX-License-Identifier: GPL-2.0
"""Files that commands write: whole or not at all, and known to be possible before the work."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from sctplab.errors import LabError


def ready(path: Path | None) -> None:
    """Make the folder of a file that is written later, if any is; raises LabError where none can be."""
    if path is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LabError(f"{path}: its folder cannot be made: {error.strerror}") from error
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise LabError(f"{path}: cannot be written: got a folder, or one that is read-only; choose another")


def write_text(path: Path, text: str) -> Path:
    """Replace a file in one step, so that what is interrupted, or has no space, leaves the old one.

    Raises LabError. A device is written as it is.
    """
    try:
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")
            return path
        replace(path, text, 0o644)
    except OSError as error:
        raise LabError(f"{path}: cannot be written: {error.strerror}") from error
    return path


def replace(path: Path, text: str, mode: int = 0o600) -> None:
    """PATH is TEXT as a whole, or stays what it was; raises OSError. Names of runs may be long."""
    handle, temporary = tempfile.mkstemp(prefix=f".{path.stem[:40]}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
