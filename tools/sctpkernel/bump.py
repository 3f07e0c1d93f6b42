# SPDX-License-Identifier: GPL-2.0
"""tools/patch/bump: carry the series to another base, or to the newest point release of one.

The series is that of the reference base. Another base takes each patch as it is wherever it applies without
fuzz, else its own variant, else what git merges (source of the reference, its commit, source of this base).
The first patch that needs a human stops it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sctpkernel.bases import Base, load_bases, reference_base, release_warning
from sctpkernel.check import full, quick
from sctpkernel.errors import FAILED, Parser, Problem, run_main, warn
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
BUMPING = "refs/sctp-multipath/bumping"  # there from the first patch to the export


@dataclass(frozen=True)
class Job:
    """A base, the git tree it is worked on in, and the stored patches."""

    base: Base
    tree: Path
    patches: Path = PATCHES

    @property
    def reference(self) -> Base:
        """The base whose series is carried over."""
        bases = self.patches / "bases.toml"
        return load_bases(bases)[reference_base(bases)]

    @property
    def stopped(self) -> bool:
        """Whether a bump has stopped in the tree and waits for a human."""
        if not (self.tree / ".git").exists():
            return False
        return try_git(self.tree, "rev-parse", "--verify", "--quiet", BUMPING).returncode == 0


@dataclass(frozen=True)
class Step:
    """One patch on its way to a base. `own`: its variant, `stale` when made from another text of `common`."""

    common: Patch
    own: Patch | None
    stale: bool

    @property
    def subject(self) -> str:
        return parse(self.common.text, self.common.path).subject


def steps(job: Job) -> list[Step]:
    """The series of the reference base, each with the variant that the base has of it."""
    found = []
    for common in load_series(job.reference.name, job.patches):
        path = job.patches / job.base.name / common.name
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
            f"base {name!r} is unknown: add a table for it to {PATCHES / 'bases.toml'}, state planned"
        )
    if name == reference_base():
        raise Problem(f"base {name} is the reference, which the others follow: tools/patch/tree {name} first")
    return bases[name]


def fetch(job: Job) -> None:
    """Phase 1: the newest source of the base."""
    warn(f"fetch: Linux {newest(job.base).version} ({variable(job.base)} names another one)")
    base_repository(job.base)


def begin(job: Job, force: bool) -> None:
    """Phase 2 begins: the tree without a patch, and the reference's series beside it to merge from."""
    if (job.tree / ".git").exists() and not force and (lost := lost_work(job.tree)):
        raise Problem(f"{job.tree} has {lost}: tools/patch/export {job.base.name}, or bump with --force")
    make_tree(job.base, job.tree, [], force=True)
    series = load_series(job.reference.name, job.patches)
    with tempfile.TemporaryDirectory(prefix="reference-") as folder:
        small = small_tree(unpacked(job.reference), series, Path(folder))
        git(job.tree, "fetch", "--quiet", str(small), f"+HEAD:{REFERENCE}")
    git(job.tree, "update-ref", BUMPING, "HEAD")


def resume(job: Job) -> None:
    """Phase 2 goes on: what a human resolved becomes a commit."""
    tree = job.tree
    if not job.stopped:
        raise Problem(f"no bump of {job.base.name} has stopped: run tools/patch/bump {job.base.name}")
    if try_git(tree, "diff", "--check", "HEAD").returncode:
        raise Problem(f"{tree}: conflict marks or trailing blanks are left: see git diff --check HEAD")
    if try_git(tree, "rev-parse", "--verify", "--quiet", "CHERRY_PICK_HEAD").returncode == 0:
        git(tree, "add", "--update")
        git(tree, "-c", "core.editor=true", "cherry-pick", "--continue")
    if git(tree, "status", "--porcelain"):
        raise Problem(f"{tree} has changes that are not committed: git commit --amend, or remove them")


def apply(job: Job) -> None:
    """Phase 2: all patches that are not commits yet; the first one that needs a human ends it."""
    wanted, tree = steps(job), job.tree
    have = git(tree, "log", "--format=%s").splitlines()
    root = git(tree, "rev-list", "--max-parents=0", REFERENCE).strip()
    merges = git(tree, "rev-list", "--reverse", f"{root}..{REFERENCE}").split()
    for step, merge in zip(wanted, merges, strict=True):
        if step.subject in have or (step.own and not step.stale and _am(tree, step.own)):
            continue
        if _am(tree, step.common):
            if step.own:
                raise _stopped(job, step, "applies, though the base had a variant of its older text")
            continue
        if try_git(tree, "-c", "merge.renames=false", "cherry-pick", merge).returncode:
            raise _stopped(job, step, "does not apply")
        warn(f"apply: {step.common.name}: does not apply; merged by git: review it in {tree}")


def _am(tree: Path, patch: Patch) -> bool:
    """Make a commit of a patch if it applies without fuzz."""
    if try_git(tree, "am", *AM, text=patch.text).returncode == 0:
        return True
    try_git(tree, "am", "--abort")
    return False


def _stopped(job: Job, step: Step, what: str) -> Problem:
    """The error that tells the human how to continue after a patch that did not apply."""
    files = git(job.tree, "diff", "--name-only", "--diff-filter=U").split()
    todo = f"resolve the marks <<<<<<< in {', '.join(files)}" if files else "git commit --amend what it needs"
    if step.own:
        todo += f" (compare the variant so far, {step.own.path})"
    return Problem(
        f"{step.common.name} {what} to Linux {job.base.name}: in {job.tree} {todo}; "
        f"then tools/patch/bump {job.base.name} --continue (--abort gives up)",
        FAILED,
    )


def abort(job: Job) -> None:
    """Give the tree back as patches/ has it."""
    try_git(job.tree, "cherry-pick", "--abort")
    try_git(job.tree, "update-ref", "-d", BUMPING)
    make_tree(job.base, job.tree, load_series(job.base.name, job.patches), force=True)


def export(job: Job) -> list[str]:
    """Phase 3: commits to patches/; what changed, one line each."""
    name, reference = job.base.name, job.reference.name
    old = {step.common.name: parse(step.common.text, step.common.path) for step in steps(job)}
    listing = job.patches / f"series-{name}"
    # the table of contents is the reference's
    text = (job.patches / f"series-{reference}").read_text(encoding="utf-8")
    listing.write_text(text.replace(f"Linux {reference}", f"Linux {name}"), encoding="utf-8")
    done = write_series(name, stored_series(job.tree, name, old), job.patches)
    git(job.tree, "update-ref", EXPORTED, "HEAD")
    git(job.tree, "update-ref", "-d", BUMPING)
    return done


def check(base: Base) -> None:
    """Phase 4: form, the way into a tree and back, and what the compiler says."""
    found = quick() or full(base) + check_series(base, each=False)
    for line in found:
        print(line)
    if found:
        raise Problem(f"base {base.name}: {len(found)} faults", FAILED)
    warning = release_warning(base, origin(base).version)
    if warning:
        warn(f"{warning}; run tools/test --base {base.name}, then enter it in {PATCHES / 'bases.toml'}")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = Parser(
        prog="tools/patch/bump",
        description="Port the series to another base or to its newest point release, in phases: "
        f"{', '.join(PHASES)}. Stops at the first patch that needs manual work and names the next step.",
    )
    parser.add_argument("base", help="kernel version, see patches/bases.toml; may be a planned one")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--continue", dest="resume", action="store_true", help="resume after a stop")
    group.add_argument("--abort", action="store_true", help="give up and reset the tree to patches/")
    group.add_argument("--force", action="store_true", help="start again and discard the tree's commits")
    parser.add_argument(
        "--until", choices=PHASES, default=PHASES[-1], help="last phase (default: %(default)s)"
    )
    given = parser.parse_args(arguments)
    base = any_base(given.base)
    job = Job(base, tree_path(base.name, testbed=False))
    last = PHASES.index(given.until)
    if given.abort:
        abort(job)
        return 0
    if given.resume:
        resume(job)
    elif job.stopped and not given.force:
        raise Problem(f"a bump of {base.name} has stopped in {job.tree}: --continue, or --abort gives up")
    else:
        fetch(job)
        if last >= PHASES.index("apply"):
            begin(job, given.force)
    if last >= PHASES.index("apply"):
        apply(job)
    if last >= PHASES.index("export"):
        for line in export(job):
            print(line)
    if last >= PHASES.index("check"):
        check(base)
    return 0


if __name__ == "__main__":
    run_main("tools/patch/bump", main)
