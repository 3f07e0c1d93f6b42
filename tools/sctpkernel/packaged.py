# SPDX-License-Identifier: GPL-2.0
"""Programs of Debian packages in the cache, unpacked and not installed, each set in a folder of its own."""

from __future__ import annotations

import hashlib
import json
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from sctpkernel.debian import download_with_needs
from sctpkernel.errors import warn
from sctpkernel.paths import cache_root, locked, new_folder

VERSIONS = "versions.json"


def folder_of(packages: Sequence[str]) -> Path:
    """Where these packages are, or will be."""
    key = hashlib.sha256(" ".join(sorted(packages)).encode()).hexdigest()[:12]
    return cache_root() / "programs" / key


def ensure_packaged(packages: Sequence[str]) -> Path:
    """The folder with usr/ of these packages and of what they need; fetched when it is not there."""
    folder = folder_of(packages)
    if not folder.is_dir():
        with locked(cache_root() / "lock" / f"programs-{folder.name}.lock"):
            if not folder.is_dir():
                _unpack(packages, folder)
    return folder


def versions(folder: Path) -> dict[str, str]:
    """Package -> version of what is in a folder of ensure_packaged()."""
    found: dict[str, str] = json.loads((folder / VERSIONS).read_text(encoding="utf-8"))
    return found


def _unpack(packages: Sequence[str], folder: Path) -> None:
    """Packages that these need, and that are installed, are taken from the system."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    warn(f"fetching {', '.join(packages)} for the laboratory (nothing is installed) ...")
    found = {}
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder.parent) as name:
        archives = download_with_needs(packages, Path(name))
        with new_folder(folder) as temporary:
            for archive in archives:
                subprocess.run(["dpkg-deb", "-x", str(archive), str(temporary)], check=True)
                package, version, _ = archive.name.split("_")
                found[package] = version.replace("%3a", ":")
            (temporary / VERSIONS).write_text(json.dumps(found, sort_keys=True, indent=1))
