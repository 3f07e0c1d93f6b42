# SPDX-License-Identifier: GPL-2.0
"""tools/patch/tree: a git tree of a kernel base with the series as commits, to work in.

The source is committed once per version, to a bare repository in the cache; trees borrow its objects.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from sctpkernel.bases import Base, find_base, release_warning
from sctpkernel.errors import FAILED, Parser, Problem, run_main, warn
from sctpkernel.export import EXPORTED, tree_path
from sctpkernel.git import environment, git, root_commit, try_git
from sctpkernel.origin import origin
from sctpkernel.paths import cache_root, locked, need_space, new_folder
from sctpkernel.series import Patch, load_series, load_testbed
from sctpkernel.source import copy_touched, unpacked

GIT_GB = 1.0  # the committed source
TREE_GB = 2.0  # a checked out tree
AM = ("--quiet", "--keep", "--no-scissors", "--whitespace=nowarn", "--committer-date-is-author-date")


def commit_source(repository: Path, source: Path, title: str) -> None:
    """Make `source` the first commit of a new bare repository; always the same commit for the same files."""
    git(repository, "init", "--quiet", "--bare", "--initial-branch=source", ".")
    work = ["--work-tree", str(source)]
    # files that the kernel's .gitignore names are part of the source, too
    git(repository, *work, "add", "--all", "--force", ".")
    author = {"GIT_AUTHOR_NAME": "Debian", "GIT_AUTHOR_EMAIL": "debian@localhost"}
    dates = {"GIT_AUTHOR_DATE": "@0 +0000", "GIT_COMMITTER_DATE": "@0 +0000"}
    command = ["git", "-C", str(repository), *work, "commit", "--quiet", "-m", title]
    done = subprocess.run(
        command, env={**environment(), **author, **dates}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Problem(f"{source}: cannot be committed: {done.stderr.strip()}", FAILED)


def base_repository(base: Base) -> Path:
    """The bare repository of a base's source; made when it is not there yet."""
    source = unpacked(base)
    folder = cache_root() / "git" / f"{source.name}.git"
    if folder.is_dir():
        return folder
    with locked(cache_root() / "lock" / f"{folder.name}.lock"):
        if not folder.is_dir():
            need_space(folder.parent, GIT_GB, f"committing {source.name}")
            warn(f"committing {source.name} ...")
            with new_folder(folder) as temporary:
                commit_source(temporary, source, source.name)
    return folder


def apply_series(repository: Path, patches: Sequence[Patch]) -> None:
    """Make one commit per patch on top of HEAD; the first that does not apply without fuzz ends it."""
    for patch in patches:
        done = try_git(repository, "am", *AM, text=patch.text)
        if done.returncode:
            try_git(repository, "am", "--abort")
            said = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
            reason = said[0] if said else (done.stderr or done.stdout).strip().partition("\n")[0]
            raise Problem(f"{patch.path}: does not apply without fuzz: {reason}", FAILED)


def small_tree(source: Path, patches: Sequence[Patch], folder: Path) -> Path:
    """A git tree below `folder` of the files of `source` that `patches` touch, with one commit per patch."""
    work, bare, tree = folder / "work", folder / "base.git", folder / "tree"
    for path in (work, bare, tree):
        path.mkdir()
    copy_touched(source, patches, work)
    commit_source(bare, work, source.name)
    git(tree, "clone", "--quiet", str(bare), ".")
    apply_series(tree, patches)
    return tree


def lost_work(tree: Path) -> str:
    """The work that making the tree again would lose, in words; "" for nothing."""
    if git(tree, "status", "--porcelain"):
        return "changes that are not committed"
    exported = try_git(tree, "rev-parse", "--verify", "--quiet", EXPORTED).stdout.strip()
    if git(tree, "rev-parse", "HEAD").strip() != exported:
        return "commits that are not exported"
    return ""


def make_tree(base: Base, tree: Path, patches: Sequence[Patch], force: bool) -> None:
    """Make or renew the tree of a base with `patches` as commits."""
    repository = base_repository(base)
    if (tree / ".git").exists():
        lost = lost_work(tree)
        if lost and not force:
            raise Problem(f"{tree} has {lost}: commit and run tools/patch/export {base.name}, or use --force")
        if root_commit(tree) != git(repository, "rev-parse", "HEAD").strip():
            shutil.rmtree(tree)  # of another version of the source
    if not (tree / ".git").exists():
        need_space(tree.parent, TREE_GB, f"the tree {tree.name}")
        warn(f"checking out {tree} ...")
        with new_folder(tree) as temporary:
            git(temporary, "clone", "--quiet", "--shared", "--branch", "source", str(repository), ".")
    if force:
        try_git(tree, "am", "--abort")
        git(tree, "reset", "--quiet", "--hard")
    git(tree, "checkout", "--quiet", "-B", "series", root_commit(tree))
    apply_series(tree, patches)
    git(tree, "update-ref", EXPORTED, "HEAD")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: prints the path of the tree."""
    parser = Parser(
        prog="tools/patch/tree",
        description="Make a git tree of a kernel base below build/: its source, then one commit per patch.",
    )
    parser.add_argument("base", help="kernel version, see patches/bases.toml")
    parser.add_argument(
        "--force", action="store_true", help="discard commits of the present tree that are not in patches/"
    )
    parser.add_argument("--testbed", action="store_true", help="the laboratory's own patches, not the series")
    given = parser.parse_args(arguments)
    base = find_base(given.base)
    warning = release_warning(base, origin(base).version)
    if warning:
        warn(warning)
    tree = tree_path(base.name, given.testbed)
    patches = load_testbed(base.name) if given.testbed else load_series(base.name)
    make_tree(base, tree, patches, given.force)
    print(tree)
    return 0


if __name__ == "__main__":
    run_main("tools/patch/tree", main)
