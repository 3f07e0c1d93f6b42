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
from sctpkernel.series import PATCHES, load_series
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


SERIES = """\
# The series, in order.

## names: helpers
1.patch

## code: the rest
# Sending
2.patch
3.patch
"""


def test_postings_are_parts_of_the_series_file() -> None:
    names, code = mbox.postings(SERIES)
    assert (names.name, names.title, names.names) == ("names", "helpers", ["1.patch"])
    assert code.names == ["2.patch", "3.patch"]
    listed = mbox.contents(SERIES, {f"{n}.patch": f"sctp: {n}" for n in (1, 2, 3)})
    assert listed == "helpers:\n  sctp: 1\n\nthe rest:\n\nSending:\n  sctp: 2\n  sctp: 3"


@pytest.mark.parametrize(
    ("series", "complaint"),
    [
        ("# The series\n\n1.patch\n\n## a: b\n2.patch\n", "1.patch: in no posting: expected a line"),
        ("## a: b\n" + "".join(f"{n}.patch\n" for n in range(16)), "has 16 patches, expected 1 to 15"),
        ("## a: b\n\n## c: d\n1.patch\n", "posting a: has 0 patches"),
    ],
)
def test_postings_that_nobody_takes(series: str, complaint: str) -> None:
    with pytest.raises(Problem, match=complaint):
        mbox.postings(series)


def test_each_posting_has_a_text_of_its_own() -> None:
    known = mbox.texts((PATCHES / "cover").read_text())
    for base in load_bases().values():
        file = PATCHES / f"series-{base.name}"
        if file.is_file():
            assert {one.name for one in mbox.postings(file.read_text())} == known.keys() - {""}
    assert all(len(text.split()) > 10 for text in known.values())


@pytest.mark.kernel
@pytest.mark.parametrize("name", [base.name for base in load_bases().values() if base.state == "supported"])
def test_git_am_makes_the_same_commits_of_it(tmp_path: Path, name: str) -> None:
    base, patches = find_base(name), load_series(name)
    tree = small_tree(unpacked(base), patches, tmp_path)
    source = git(tree, "rev-parse", "HEAD").strip()
    git(tree, "checkout", "--quiet", "-B", "mail", f"HEAD~{len(patches)}")
    mbox.write(base, patches, "Linux", tmp_path)
    git(tree, "am", "--quiet", "--whitespace=nowarn", str(tmp_path / f"sctp-multipath-{name}.mbox"))
    whole = git(tree, "rev-parse", "HEAD^{tree}")
    git(tree, "checkout", "--quiet", "-B", "postings", f"HEAD~{len(patches)}")
    boxes = sorted((tmp_path / name).glob("*.mbox"))
    git(tree, "am", "--quiet", "--whitespace=nowarn", *map(str, boxes))
    assert git(tree, "rev-parse", "HEAD^{tree}") == whole
    git(tree, "checkout", "--quiet", "mail")
    assert not git(tree, "diff", source, "HEAD")
    commits = git(tree, "rev-list", "--reverse", f"HEAD~{len(patches)}..HEAD").split()
    made = [from_commit(tree, commit) for commit in commits]
    wanted = [parse(patch.text, patch.path) for patch in patches]
    assert [(one.author, one.date, one.subject, essence(one.diff)) for one in made] == [
        (one.author, one.date, one.subject, essence(one.diff)) for one in wanted
    ]
