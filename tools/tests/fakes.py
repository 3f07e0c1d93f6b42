# SPDX-License-Identifier: GPL-2.0
"""A kernel source of a few files and a patches/ folder: what the tests of the series work on."""

from __future__ import annotations

from pathlib import Path

from sctpkernel.git import git
from sctpkernel.tree import commit_source

BASES = """
reference = "6.12"

["6.12"]
package = "linux-source-6.12"
state = "supported"
oldest = "6.12.117"
newest = "6.12.117"

["7.2"]
package = "linux-source-7.2"
state = "supported"
oldest = ""
newest = ""
"""

LINES = [f"line {number}" for number in range(1, 41)]


def write_source(folder: Path, shift: int = 0) -> Path:
    """A source with net/sctp/a.c of 40 lines, `shift` more in front, and an executable script."""
    (folder / "net/sctp").mkdir(parents=True)
    (folder / "scripts").mkdir()
    front = [f"front {number}" for number in range(shift)]
    (folder / "net/sctp/a.c").write_text("\n".join([*front, *LINES]) + "\n")
    (folder / "net/sctp/Kconfig").write_text("config IP_SCTP\n\ttristate\n")
    (folder / ".gitattributes").write_text("*.[ch] diff=cpp\n")
    (folder / "scripts/run").write_text("#!/bin/sh\n")
    (folder / "scripts/run").chmod(0o755)
    return folder


def git_tree(folder: Path, source: Path) -> Path:
    """A git tree whose first commit is `source`."""
    bare = folder / "base.git"
    bare.mkdir(parents=True)
    commit_source(bare, source, "source")
    tree = folder / "tree"
    tree.mkdir()
    git(tree, "clone", "--quiet", str(bare), ".")
    git(tree, "config", "user.name", "Jörg Tester")
    git(tree, "config", "user.email", "tester@localhost")
    return tree


def commit_change(tree: Path, old: str, new: str, subject: str, body: str = "Because.") -> None:
    """Commit the replacement of a line of net/sctp/a.c."""
    path = tree / "net/sctp/a.c"
    text = path.read_text()
    assert f"{old}\n" in text
    path.write_text(text.replace(f"{old}\n", f"{new}\n", 1))
    git(tree, "commit", "--quiet", "--all", "-m", subject, "-m", body)


def patches_folder(folder: Path) -> Path:
    """An empty patches/ with two bases."""
    patches = folder / "patches"
    patches.mkdir()
    (patches / "bases.toml").write_text(BASES)
    return patches
