# SPDX-License-Identifier: GPL-2.0
"""Running git so that its output depends on the repository alone, not on who runs it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from sctpkernel.errors import FAILED, Problem

COMMITTER = {"GIT_COMMITTER_NAME": "sctp-multipath", "GIT_COMMITTER_EMAIL": "sctp-multipath@localhost"}


def environment() -> dict[str, str]:
    """The caller's environment without what points git at another repository or at personal settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {
        **kept,
        **COMMITTER,
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        "LC_ALL": "C.UTF-8",
    }


def try_git(repository: Path, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    """Run git in `repository` with `text` as its input; the caller looks at the exit code."""
    # the folder may belong to somebody else than the one who runs this, as root often does
    command = ["git", "-C", str(repository), "-c", "safe.directory=*", *arguments]
    return subprocess.run(
        command, env=environment(), input=text, capture_output=True, encoding="utf-8", check=False
    )


def git(repository: Path, *arguments: str, text: str = "") -> str:
    """Run git in `repository`; its output. A failure is reported with git's first words."""
    result = try_git(repository, *arguments, text=text)
    if result.returncode:
        said = (result.stderr or result.stdout).strip().splitlines()
        raise Problem(f"{repository}: git {arguments[0]}: {said[0] if said else 'failed'}", FAILED)
    return result.stdout


def root_commit(repository: Path) -> str:
    """The first commit: the kernel source as it was unpacked."""
    roots = git(repository, "rev-list", "--max-parents=0", "HEAD").split()
    if len(roots) != 1:
        raise Problem(f"{repository}: {len(roots)} commits without a parent: expected one, the kernel source")
    return roots[0]


def series_commits(repository: Path) -> list[str]:
    """The commits on top of the first one, oldest first; they must be one line without merges."""
    root = root_commit(repository)
    if git(repository, "rev-list", "--merges", f"{root}..HEAD"):
        raise Problem(
            f"{repository}: there is a merge on top of {root[:12]}: a series is one line of commits"
        )
    return git(repository, "rev-list", "--reverse", f"{root}..HEAD").split()
