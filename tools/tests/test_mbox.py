# SPDX-License-Identifier: GPL-2.0
"""The series as mail: git am makes the same commits of it as of the files."""

from __future__ import annotations

from pathlib import Path

import pytest
from sctpkernel import mbox
from sctpkernel.bases import find_base, load_bases
from sctpkernel.errors import Problem
from sctpkernel.git import git
from sctpkernel.patchfile import Stored, essence, from_commit, parse
from sctpkernel.series import load_series
from sctpkernel.source import unpacked
from sctpkernel.tree import small_tree

DIFF = "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1,2 @@\n one\n+two\n"
PATCH = Stored(
    "Me <me@host>",
    "Fri, 20 Nov 2026 20:45:45 +0000",
    "sctp: do it",
    "Why.\n\nForwarded: no\nBases: 6.12",
    DIFF,
)


def test_a_mail_has_the_patch_without_the_fields_of_this_project() -> None:
    text = mbox.message(PATCH, 3, 12, "6.12")
    assert "Subject: [PATCH 6.12 03/12] sctp: do it\n" in text
    assert "\n\nWhy.\n---\n f |" in text
    assert "Forwarded" not in text
    assert "Bases" not in text
    assert DIFF in text


def test_a_line_that_would_start_a_mail_is_refused() -> None:
    patch = Stored(PATCH.author, PATCH.date, PATCH.subject, "From then on, since 2026", DIFF)
    with pytest.raises(Problem, match="reword it"):
        mbox.message(patch, 1, 1, "6.12")


def test_the_cover_letter_lists_the_subjects_below_their_headings() -> None:
    series = "# The series, in order.\n\n# Names\n0010-a.patch\n\n# Code\n0020-b.patch # why\n"
    listed = mbox.contents(series, {"0010-a.patch": "sctp: a", "0020-b.patch": "sctp: b"})
    assert listed == "Names:\n  sctp: a\n\nCode:\n  sctp: b"
    letter = mbox.cover("sctp: all\n\nOne.\n\nTwo.\n", [PATCH], listed, "Linux 6.12.1")
    assert "Subject: [PATCH 0/1] sctp: all\n" in letter
    assert letter.endswith(f"\n\nOne.\n\nTwo.\n\nFor Linux 6.12.1.\n\n{listed}\n")


@pytest.mark.kernel
@pytest.mark.parametrize("name", [base.name for base in load_bases().values() if base.state == "supported"])
def test_git_am_makes_the_same_commits_of_it(tmp_path: Path, name: str) -> None:
    base, patches = find_base(name), load_series(name)
    tree = small_tree(unpacked(base), patches, tmp_path)
    source = git(tree, "rev-parse", "HEAD").strip()
    git(tree, "checkout", "--quiet", "-B", "mail", f"HEAD~{len(patches)}")
    mbox.write(base, patches, "Linux", tmp_path)
    git(tree, "am", "--quiet", "--whitespace=nowarn", str(tmp_path / f"sctp-multipath-{name}.mbox"))
    assert not git(tree, "diff", source, "HEAD")
    commits = git(tree, "rev-list", "--reverse", f"HEAD~{len(patches)}..HEAD").split()
    made = [from_commit(tree, commit) for commit in commits]
    wanted = [parse(patch.text, patch.path) for patch in patches]
    assert [(one.author, one.date, one.subject, essence(one.diff)) for one in made] == [
        (one.author, one.date, one.subject, essence(one.diff)) for one in wanted
    ]
