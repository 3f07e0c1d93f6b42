# SPDX-License-Identifier: GPL-2.0
"""tools/patch/bump: carry the series to another base, or to the newest point release of one.

What the reference base has is the series. Another base takes each patch as it is wherever it applies without
fuzz, else its own variant, else what git merges (source of the reference, its commit, source of this base).
The first patch that needs a human stops it.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sctpkernel.bases import Base, load_bases, reference_base, release_warning
from sctpkernel.check import full, quick
from sctpkernel.errors import FAILED, Problem, run_main, warn
from sctpkernel.export import EXPORTED, stored_series, tree_path, write_series
from sctpkernel.git import git, try_git
from sctpkernel.lint import check_series
from sctpkernel.origin import newest, origin, variable
from sctpkernel.patchfile import parse
from sctpkernel.series import PATCHES, Patch, load_series
from sctpkernel.source import unpacked
from sctpkernel.tree import AM, base_repository, lost_work, make_tree, small_tree

PHASES = ("fetch", "apply", "export", "check")
REFERENCE = "refs/sctp-multipath/reference"  # the series of the reference base, in the tree of another one
BUMPING = "refs/sctp-multipath/bumping"  # where the tree was when the bump began; gone when it has ended


@dataclass(frozen=True)
class Step:
    """One patch on its way to a base. `own`: its variant, `stale` when made from another text of `common`."""

    common: Patch
    own: Patch | None
    stale: bool

    @property
    def subject(self) -> str:
        return parse(self.common.text, self.common.path).subject


def steps(base: str, patches: Path) -> list[Step]:
    """The series of the reference base, each with the variant that `base` has of it."""
    found = []
    for common in load_series(reference_base(patches / "bases.toml"), patches):
        path = patches / base / common.name
        own = Patch(path, path.read_text(encoding="utf-8")) if path.is_file() else None
        stored = parse(common.text, common.path)
        stale = own is not None and parse(own.text, own.path).field("Replaces") != stored.fingerprint
        found.append(Step(common, own, stale))
    return found


def any_base(name: str) -> Base:
    """The base called `name`, planned or supported, that is not the reference."""
    bases = load_bases()
    if name not in bases:
        raise Problem(
            f'base {name!r} is unknown: add a table to {PATCHES / "bases.toml"} with state = "planned"'
        )
    if name == reference_base():
        raise Problem(
            f"base {name} is the reference that the others follow: for a new point release of it install "
            f"its package, then run tools/patch/tree {name} and tools/patch/export {name}"
        )
    return bases[name]


def fetch(base: Base) -> None:
    """Phase 1: the newest source of the base."""
    warn(f"fetch: Linux {newest(base).version} ({variable(base)} names another one)")
    base_repository(base)


def begin(base: Base, tree: Path, force: bool) -> None:
    """Phase 2 begins: the tree without a patch, and the reference's series beside it to merge from."""
    if (tree / ".git").exists() and not force and (lost := lost_work(tree)):
        raise Problem(f"{tree} has {lost}: tools/patch/export {base.name}, or bump with --force")
    make_tree(base, tree, [], force=True)
    reference = load_bases()[reference_base()]
    with tempfile.TemporaryDirectory(prefix="reference-") as folder:
        small = small_tree(unpacked(reference), load_series(reference.name), Path(folder))
        git(tree, "fetch", "--quiet", str(small), f"+HEAD:{REFERENCE}")
    git(tree, "update-ref", BUMPING, "HEAD")


def resume(base: Base, tree: Path) -> None:
    """Phase 2 goes on: what a human resolved becomes a commit."""
    if not in_progress(tree):
        raise Problem(f"no bump of {base.name} has stopped: run tools/patch/bump {base.name}")
    if try_git(tree, "diff", "--check", "HEAD").returncode:
        raise Problem(f"{tree}: there are conflict markers or blanks at line ends: see git diff --check HEAD")
    if try_git(tree, "rev-parse", "--verify", "--quiet", "CHERRY_PICK_HEAD").returncode == 0:
        git(tree, "add", "--update")
        git(tree, "-c", "core.editor=true", "cherry-pick", "--continue")
    if git(tree, "status", "--porcelain"):
        raise Problem(f"{tree} has changes that are not committed: git commit --amend, or git stash")


def in_progress(tree: Path) -> bool:
    """Whether a bump in this tree has stopped and waits for --continue."""
    return (tree / ".git").exists() and not try_git(
        tree, "rev-parse", "--verify", "--quiet", BUMPING
    ).returncode


def apply(base: Base, tree: Path, wanted: Sequence[Step]) -> None:
    """Phase 2: all steps that are not commits yet; the first one that needs a human ends it."""
    have = git(tree, "log", "--format=%s").splitlines()
    merges = dict(zip((step.subject for step in wanted), _reference_commits(tree), strict=True))
    for step in wanted:
        if step.subject in have:
            continue
        if step.own and not step.stale and _am(tree, step.own):
            continue
        if _am(tree, step.common):
            if step.own:
                raise _stopped(
                    base, tree, step, "applies as it is, though the base had a variant of its older text"
                )
            continue
        if try_git(tree, "-c", "merge.renames=false", "cherry-pick", merges[step.subject]).returncode:
            raise _stopped(base, tree, step, "does not apply")
        warn(f"apply: {step.common.name}: merged by git, not as it stands: look at it in {tree}")


def _reference_commits(tree: Path) -> list[str]:
    """The commits of the reference's series in order."""
    root = git(tree, "rev-list", "--max-parents=0", REFERENCE).strip()
    return git(tree, "rev-list", "--reverse", f"{root}..{REFERENCE}").split()


def _am(tree: Path, patch: Patch) -> bool:
    """Make a commit of a patch if it applies without fuzz."""
    if try_git(tree, "am", *AM, text=patch.text).returncode == 0:
        return True
    try_git(tree, "am", "--abort")
    return False


def _stopped(base: Base, tree: Path, step: Step, what: str) -> Problem:
    """What the human is to do now."""
    files = git(tree, "diff", "--name-only", "--diff-filter=U").split()
    if files:
        todo = f"resolve the marks <<<<<<< in {', '.join(files)}"
    else:
        todo = "compare it with the variant, and git commit --amend what the base needs"
    if step.own:
        todo += f" (the variant so far: {step.own.path})"
    return Problem(
        f"{step.common.name} {what} to Linux {base.name}: in {tree} {todo}; "
        f"then tools/patch/bump {base.name} --continue (--abort gives up)",
        FAILED,
    )


def abort(base: Base, tree: Path) -> None:
    """Give the tree back as patches/ has it."""
    try_git(tree, "cherry-pick", "--abort")
    try_git(tree, "update-ref", "-d", BUMPING)
    make_tree(base, tree, load_series(base.name), force=True)


def export(base: Base, tree: Path) -> None:
    """Phase 3: commits to patches/."""
    old = {patch.name: parse(patch.text, patch.path) for patch in load_series(base.name)}
    old |= {step.common.name: parse(step.common.text, step.common.path) for step in steps(base.name, PATCHES)}
    listing = PATCHES / f"series-{base.name}"
    if not listing.is_file():
        reference = reference_base()
        text = (PATCHES / f"series-{reference}").read_text(encoding="utf-8")
        listing.write_text(text.replace(f"Linux {reference}", f"Linux {base.name}"), encoding="utf-8")
    for line in write_series(base.name, stored_series(tree, base.name, old), PATCHES):
        print(line)
    git(tree, "update-ref", EXPORTED, "HEAD")
    git(tree, "update-ref", "-d", BUMPING)


def check(base: Base) -> None:
    """Phase 4: form, the way into a tree and back, and what the compiler says."""
    found = quick() + full(base)
    found += check_series(base, each=False)
    for line in found:
        print(line)
    if found:
        raise Problem(f"base {base.name}: {len(found)} faults", FAILED)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="tools/patch/bump",
        description="Carry the series to another base or to its newest point release, in phases: "
        f"{', '.join(PHASES)}. Stops at the first patch that needs a human and says what to do.",
    )
    parser.add_argument("base", help="kernel version, see patches/bases.toml; may be a planned one")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--continue", dest="resume", action="store_true", help="go on after a stop")
    group.add_argument("--abort", action="store_true", help="give up: the tree as patches/ has it")
    group.add_argument(
        "--force", action="store_true", help="throw away what the tree has and patches/ has not"
    )
    parser.add_argument(
        "--until", choices=PHASES, default=PHASES[-1], help="last phase (default: %(default)s)"
    )
    given = parser.parse_args(arguments)
    base = any_base(given.base)
    tree = tree_path(base.name, testbed=False)
    if given.abort:
        abort(base, tree)
        return 0
    last = PHASES.index(given.until)
    if given.resume:
        resume(base, tree)
    elif in_progress(tree) and not given.force:
        raise Problem(
            f"a bump of {base.name} has stopped in {tree}: go on with --continue, or give up with --abort"
        )
    else:
        fetch(base)
        if last < PHASES.index("apply"):
            return 0
        begin(base, tree, given.force)
    apply(base, tree, steps(base.name, PATCHES))
    if last >= PHASES.index("export"):
        export(base, tree)
    if last >= PHASES.index("check"):
        check(base)
        todo(base)
    return 0


def todo(base: Base) -> None:
    """What is left to a human when all phases went well."""
    warning = release_warning(base, origin(base).version)
    if warning:
        warn(f"{warning}; run tools/test --base {base.name}, then raise oldest/newest in patches/bases.toml")


if __name__ == "__main__":
    run_main("tools/patch/bump", main)
