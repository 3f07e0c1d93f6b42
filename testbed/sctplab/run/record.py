# SPDX-License-Identifier: GPL-2.0
"""Record files: one JSON object per run, written whole or not at all; a first run starts as "crashed"."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

from sctplab import files
from sctplab.errors import LabError, RunError
from sctplab.place.base import Kernel
from sctplab.spec.model import RunSpec
from sctplab.spec.schema import At, build, plain

RECORD_FORMAT = 1
UNFINISHED = "the run was started and never ended"


def crashed(spec: RunSpec, kernel: Kernel) -> dict[str, Any]:
    """The record on disk while a run goes on that had none; it remains if the run never ends."""
    return {
        "format": RECORD_FORMAT,
        "status": "crashed",
        "reason": UNFINISHED,
        "spec": plain(spec),
        "kernel": kernel.info,
    }


def write(path: Path, record: dict[str, Any]) -> None:
    """Replace PATH by RECORD in one step; raises RunError with the reason, leaving no half file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.replace(path, json.dumps(record, indent=1) + "\n")
    except OSError as error:
        raise RunError(f"{path}: cannot be written: {error.strerror}{advice(error)}") from error


def advice(error: OSError) -> str:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return "; make room and go on with --resume" if full else ""


def finished(path: Path, spec: RunSpec, kernel: Kernel) -> bool:
    """Whether PATH holds a good record of exactly this run on exactly this kernel."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        same = found["spec"] == plain(spec) and found["kernel"].get("key") == kernel.info.get("key")
        return bool(found["status"] == "ok" and same)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def write_spec(path: Path, spec: RunSpec) -> None:
    """SPEC as run-one reads it; a file that says the same is left alone and keeps its time."""
    try:
        same = json.loads(path.read_text(encoding="utf-8")) == plain(spec)
    except (OSError, ValueError):
        same = False
    if not same:
        write(path, plain(spec))


def read_spec(path: Path) -> RunSpec:
    """A frozen spec from a JSON file, or from the "spec" of a record."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise LabError(
            f"{path}: cannot be read: {error}; give a spec or a record of an earlier run"
        ) from error
    if isinstance(found, dict) and "spec" in found:
        found = found["spec"]
    return build(RunSpec, found, At(str(path), ""))
