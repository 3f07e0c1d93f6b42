# SPDX-License-Identifier: GPL-2.0
"""The files that git has: the top level is fixed, and no symbolic link points out of the tree."""

from pathlib import Path

from sctpkernel.git import git
from sctpkernel.paths import ROOT

FILES = {".gitignore", "Kconfig.fragment", "LICENSE", "Makefile", "README.md"}
FOLDERS = {".ci", "Documentation", "patches", "sysctl", "testbed", "tools"}
SYMBOLIC_LINK = "120000"


def tracked() -> list[tuple[str, Path]]:
    """(mode, path in the tree) of every file."""
    lines = git(ROOT, "ls-files", "--stage", "-z").split("\0")
    return [(line.split()[0], Path(line.split("\t", 1)[1])) for line in lines if line]


def test_the_top_level_is_fixed() -> None:
    paths = [path for _, path in tracked()]
    assert {path.name for path in paths if len(path.parts) == 1} == FILES
    assert {path.parts[0] for path in paths if len(path.parts) > 1} == FOLDERS


def test_no_link_leaves_the_tree() -> None:
    links = [ROOT / path for mode, path in tracked() if mode == SYMBOLIC_LINK]
    assert [link for link in links if not link.resolve().is_relative_to(ROOT)] == []
