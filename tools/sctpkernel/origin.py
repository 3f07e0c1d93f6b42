# SPDX-License-Identifier: GPL-2.0
"""Where the source of a base comes from: Debian's package, fetched when missing, or what the user names.

SCTPMP_LINUX_7_2=PATH names a git tree (its HEAD is used) or a tar archive for the base 7.2, and so on.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from sctpkernel.bases import Base, package_version
from sctpkernel.debian import as_root, codename, download, install, known_to_apt, missing
from sctpkernel.errors import FAILED, Problem, last_line, warn
from sctpkernel.git import git, try_git

_DIGITS = 12  # of a hash, as short_id() has them
_MAKEFILE = re.compile(r"^(VERSION|PATCHLEVEL|SUBLEVEL) *= *(\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class Origin:
    """One version of a source. `path` is a tar archive with one folder on top, or a git tree."""

    path: Path
    version: str
    name: str


def variable(base: Base) -> str:
    """The environment variable that names another source of a base."""
    return f"SCTPMP_LINUX_{base.name.replace('.', '_')}"


def origin(base: Base) -> Origin:
    """The source that is used for a base now."""
    chosen = os.environ.get(variable(base))
    if chosen:
        return _named(base, Path(chosen).absolute())
    ensure_package(base)
    version = package_version(base.package)
    return Origin(Path("/usr/src") / f"{base.package}.tar.xz", version, f"{base.package}_{version}")


def newest(base: Base) -> Origin:
    """The source of a base, of the newest version that Debian has unless the user names another one."""
    if variable(base) not in os.environ:
        ensure_package(base, newest=True)
    return origin(base)


def ensure_package(base: Base, newest: bool = False) -> None:
    """Install Debian's source package of a base; with `newest` also when an older one is there."""
    reason = {base.package: f"the source of Linux {base.name}"}
    present = "" if missing([base.package]) else package_version(base.package)
    if present and not newest:
        return
    # an installed package is known to apt, wherever it came from
    if known_to_apt(base.package) and not (present and base.suites):
        install(reason)
        return
    release = codename()
    suites = [*base.suites.split(), f"{release}-security", f"{release}-backports"]
    warn(f"fetching Debian package {base.package}: {reason[base.package]}")
    with tempfile.TemporaryDirectory(prefix="source-") as folder:
        archive = download(base.package, suites, Path(folder))
        Path(folder).chmod(0o755)
        if archive.name.split("_")[1] == present:
            return
        command = as_root(["dpkg", "-i", str(archive)], f"installing {base.package}")
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode:
            raise Problem(f"{base.package} cannot be installed: {last_line(result.stderr)}", FAILED)


def point_of(makefile: str) -> str:
    """ "7.2.13" from the text of a kernel's top Makefile, "" when it is none."""
    numbers = dict(_MAKEFILE.findall(makefile))
    return ".".join(numbers.values()) if len(numbers) == 3 else ""


def _named(base: Base, path: Path) -> Origin:
    """The source at `path`, checked to be one of this base."""
    where = f"{variable(base)}={path}"
    if (path / ".git").exists():
        makefile = try_git(path, "show", "HEAD:Makefile").stdout
        identity = git(path, "rev-parse", "HEAD")[:_DIGITS]
        if git(path, "status", "--porcelain", "--untracked-files=no"):
            warn(f"{where}: changes that are not committed are not used")
    elif path.is_file() and tarfile.is_tarfile(path):
        makefile = _makefile_of(path)
        with path.open("rb") as handle:
            identity = hashlib.file_digest(handle, "sha256").hexdigest()[:_DIGITS]
    else:
        raise Problem(f"{where}: expected a git tree of Linux {base.name} or a tar archive of one")
    point = point_of(makefile)
    if not point.startswith(f"{base.name}."):
        raise Problem(f"{where}: this is {f'Linux {point}' if point else 'no kernel'}: expected {base.name}")
    return Origin(path, f"{point}-{identity}", f"linux-{point}-{identity}")


def _makefile_of(archive: Path) -> str:
    """The text of TOP/Makefile in a tar archive; it is near the start of none, so this reads up to it."""
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.isfile() and member.name.removeprefix("./").split("/")[1:] == ["Makefile"]:
                handle = tar.extractfile(member)
                return handle.read().decode() if handle else ""
    return ""


def unpack(source: Origin, folder: Path) -> None:
    """Put the files of a source into the empty `folder`."""
    if not source.path.exists():
        raise Problem(f"{source.path}: not found although its package is installed: reinstall the package")
    with tempfile.TemporaryDirectory(prefix="archive-", dir=folder.parent) as scratch:
        archive, strip = source.path, 1
        if source.path.is_dir():
            archive, strip = Path(scratch, "source.tar"), 0
            git(source.path, "archive", "--format=tar", "-o", str(archive), "HEAD")
        command = ["tar", "-C", str(folder), f"--strip-components={strip}", "-xf", str(archive)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Problem(f"{source.path}: cannot be unpacked: {last_line(done.stderr)}", FAILED)
