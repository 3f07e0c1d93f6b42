# SPDX-License-Identifier: GPL-2.0
"""A series goes to another base: as it is, merged by git, or by hand; and again after its text changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes import commit_change, git_tree, patches_folder, write_source
from sctpkernel import bump
from sctpkernel import tree as tree_module
from sctpkernel.bases import find_base
from sctpkernel.check import check_variants, round_trip
from sctpkernel.errors import Problem
from sctpkernel.export import stored_series, write_series
from sctpkernel.git import git
from sctpkernel.patchfile import parse
from sctpkernel.series import load_series

LISTED = [
    "0010-sctp-name-thirty.patch",
    "0020-sctp-name-five.patch",
    "0030-sctp-name-twenty.patch",
]


@pytest.fixture
def reference(tmp_path: Path) -> Path:
    """The tree of the reference base: thirty applies to the other one, five merges, twenty conflicts."""
    tree = git_tree(tmp_path / "git", write_source(tmp_path / "source"))
    for old, name in ((30, "thirty"), (5, "five"), (20, "twenty")):
        commit_change(tree, f"line {old}", f"line {name}", f"sctp: name {name}")
    return tree


@pytest.fixture
def job(tmp_path: Path, reference: Path, monkeypatch: pytest.MonkeyPatch) -> bump.Job:
    """The other base, whose lines around five and twenty itself differ, with no series yet."""
    patches = patches_folder(tmp_path)
    write_series("6.12", stored_series(reference, "6.12", {}), patches)
    source = write_source(tmp_path / "source-7.2", shift=3)
    path = source / "net/sctp/a.c"
    path.write_text(path.read_text().replace("line 3\n", "line 3.0\n").replace("line 20\n", "line 20.0\n"))
    git_tree(tmp_path / "git-7.2", source)
    monkeypatch.setattr(tree_module, "base_repository", lambda _base: tmp_path / "git-7.2/base.git")
    monkeypatch.setattr(bump, "unpacked", lambda _base: tmp_path / "source")
    return bump.Job(find_base("7.2", patches / "bases.toml"), tmp_path / "tree-7.2", patches)


def carry(job: bump.Job, content: str) -> list[str]:
    """Begin, stop at twenty, resolve it with `content` as its line, go on to the export."""
    bump.begin(job, force=False)
    with pytest.raises(
        Problem, match=r"twenty.*does not apply to Linux 7.2: in .* marks <<<<<<< in net/sctp/a.c"
    ):
        bump.apply(job)
    assert job.stopped
    with pytest.raises(Problem, match="conflict marks"):
        bump.resume(job)
    path = job.tree / "net/sctp/a.c"
    before, _, rest = path.read_text().partition("<<<<<<<")
    path.write_text(f"{before}{content}\n{rest.partition('>>>>>>>')[2].partition(chr(10))[2]}")
    bump.resume(job)
    bump.apply(job)
    return bump.export(job)


def test_carry_and_carry_again(tmp_path: Path, reference: Path, job: bump.Job) -> None:
    assert carry(job, "line twenty.0") == [
        "changed common/0010-sctp-name-thirty.patch",
        "added 7.2/0020-sctp-name-five.patch",
        "added 7.2/0030-sctp-name-twenty.patch",
    ]
    series = load_series("7.2", job.patches)
    assert [patch.name for patch in series] == LISTED
    assert round_trip(tmp_path / "source-7.2", series, exact=False) == []
    assert check_variants(job.patches, ["6.12", "7.2"]) == []
    assert not job.stopped

    bump.begin(job, force=False)
    bump.apply(job)
    assert bump.export(job) == []

    commit_change(reference, "line 35", "line thirtyfive", "sctp: name twenty more")
    git(reference, "reset", "--quiet", "--soft", "HEAD~2")
    git(reference, "commit", "--quiet", "-m", "sctp: name twenty", "-m", "Because.")
    old = {patch.name: parse(patch.text, patch.path) for patch in load_series("6.12", job.patches)}
    write_series("6.12", stored_series(reference, "6.12", old), job.patches)
    assert (
        "0030-sctp-name-twenty.patch: was adapted from another text"
        in check_variants(job.patches, ["7.2"])[0]
    )
    assert carry(job, "line twenty.0") == ["changed 7.2/0030-sctp-name-twenty.patch"]
    assert check_variants(job.patches, ["7.2"]) == []
    assert "line thirtyfive" in (job.tree / "net/sctp/a.c").read_text()


def test_a_variant_that_is_needed_no_more_is_asked_for(reference: Path, job: bump.Job) -> None:
    carry(job, "line twenty.0")
    git(reference, "reset", "--quiet", "--hard", "HEAD~1")
    commit_change(reference, "line 37", "line twenty", "sctp: name twenty")
    old = {patch.name: parse(patch.text, patch.path) for patch in load_series("6.12", job.patches)}
    write_series("6.12", stored_series(reference, "6.12", old), job.patches)
    bump.begin(job, force=False)
    with pytest.raises(
        Problem, match=r"twenty\.patch applies, though the base had a variant .* git commit --amend"
    ):
        bump.apply(job)
    bump.resume(job)
    bump.apply(job)
    assert bump.export(job) == [
        "changed common/0030-sctp-name-twenty.patch",
        "removed 7.2/0030-sctp-name-twenty.patch",
    ]


def test_giving_up(job: bump.Job) -> None:
    with pytest.raises(Problem, match=r"no bump of 7\.2 has stopped"):
        bump.resume(job)
    carry(job, "line twenty.0")
    (job.patches / "7.2" / LISTED[2]).unlink()
    (job.patches / "series-7.2").write_text("\n".join(LISTED[:2]) + "\n")
    bump.begin(job, force=False)
    with pytest.raises(Problem, match="does not apply"):
        bump.apply(job)
    with pytest.raises(Problem, match=r"has changes that are not committed: .*--force"):
        bump.begin(job, force=False)
    bump.abort(job)
    assert not job.stopped
    text = (job.tree / "net/sctp/a.c").read_text()
    assert "line five\n" in text and "line 20.0\n" in text
