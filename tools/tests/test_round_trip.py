# SPDX-License-Identifier: GPL-2.0
"""Trees and exports: what goes into a tree comes out of it again, byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes import commit_change, git_tree, patches_folder, write_source
from sctpkernel import tree as tree_module
from sctpkernel.bases import find_base
from sctpkernel.check import check_forms, check_lists, check_variants, round_trip
from sctpkernel.errors import Problem
from sctpkernel.export import EXPORTED, stored_series, write_series, write_testbed
from sctpkernel.git import git
from sctpkernel.patchfile import Stored, parse
from sctpkernel.series import load_series, load_testbed
from sctpkernel.tree import make_tree


def export(tree: Path, base: str, patches: Path) -> list[str]:
    """Export as the command does."""
    old = {patch.name: parse(patch.text, patch.path) for patch in load_series(base, patches)}
    done = write_series(base, stored_series(tree, base, old), patches)
    git(tree, "update-ref", EXPORTED, "HEAD")
    return done


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_source(tmp_path / "source")


@pytest.fixture
def tree(tmp_path: Path, source: Path) -> Path:
    """Two commits; the first changes two places, the second adds an executable file."""
    tree = git_tree(tmp_path / "git", source)
    commit_change(tree, "line 5", "line five", "sctp: name five")
    (tree / "net/sctp/new.sh").write_text("#!/bin/sh\n")
    (tree / "net/sctp/new.sh").chmod(0o755)
    git(tree, "add", "net/sctp/new.sh")
    git(
        tree,
        "commit",
        "--quiet",
        "-m",
        "sctp: add a script",
        "-m",
        "Because.\n\nForwarded: not-needed\nBases: 6.12",
    )
    return tree


@pytest.fixture
def patches(tmp_path: Path) -> Path:
    return patches_folder(tmp_path)


def test_there_and_back(tree: Path, source: Path, patches: Path) -> None:
    assert export(tree, "6.12", patches) == [
        "added common/0010-sctp-name-five.patch",
        "added common/0020-sctp-add-a-script.patch",
        "changed series-6.12",
    ]
    series = load_series("6.12", patches)
    assert round_trip(source, series, exact=True) == []
    assert export(tree, "6.12", patches) == []
    assert "From: Jörg Tester <tester@localhost>\n" in series[0].text
    assert series[0].text.count("Bases: 6.12\n---\n") == 1
    assert "Forwarded: not-needed\nBases: 6.12\n---\n" in series[1].text
    assert "new file mode 100755" in series[1].text
    assert check_forms(patches, ["6.12", "7.2"]) == []


def test_edited_line_numbers_are_noticed(tree: Path, source: Path, patches: Path) -> None:
    export(tree, "6.12", patches)
    path = patches / "common/0010-sctp-name-five.patch"
    path.write_text(path.read_text().replace("@@ -2,7 +2,7 @@", "@@ -3,7 +3,7 @@"))
    series = load_series("6.12", patches)
    assert [fault.partition(":")[0] for fault in round_trip(source, series, exact=True)] == [str(path)]
    assert round_trip(source, series, exact=False) == []


def test_fuzz_is_refused(tree: Path, source: Path, patches: Path) -> None:
    export(tree, "6.12", patches)
    path = patches / "common/0010-sctp-name-five.patch"
    path.write_text(path.read_text().replace(" line 3\n", " line three\n"))
    with pytest.raises(Problem, match="does not apply without fuzz: error: patch failed"):
        round_trip(source, load_series("6.12", patches), exact=False)


def test_a_patch_between_two_renames_neither(tree: Path, patches: Path) -> None:
    export(tree, "6.12", patches)
    git(tree, "checkout", "--quiet", "HEAD~1")
    commit_change(tree, "line 30", "line thirty", "sctp: name thirty")
    git(tree, "cherry-pick", "source")
    assert export(tree, "6.12", patches) == [
        "added common/0015-sctp-name-thirty.patch",
        "changed series-6.12",
    ]


def test_dropped_patches_go(tree: Path, patches: Path) -> None:
    export(tree, "6.12", patches)
    git(tree, "reset", "--quiet", "--hard", "HEAD~1")
    assert export(tree, "6.12", patches) == [
        "changed series-6.12",
        "removed common/0020-sctp-add-a-script.patch",
    ]


def test_edited_fields_outlive_commits_without_them(tree: Path, patches: Path) -> None:
    export(tree, "6.12", patches)
    path = patches / "common/0010-sctp-name-five.patch"
    path.write_text(path.read_text().replace("Forwarded: no\n", "Forwarded: not-needed\n"))
    assert export(tree, "6.12", patches) == []


def test_another_base_gets_files_only_where_it_differs(tmp_path: Path, tree: Path, patches: Path) -> None:
    export(tree, "6.12", patches)
    other = git_tree(tmp_path / "other", write_source(tmp_path / "source-7.2", shift=3))
    (patches / "series-7.2").write_text((patches / "series-6.12").read_text())
    for patch in load_series("7.2", patches):
        git(other, "am", "--quiet", "--keep", text=patch.text)
    assert export(other, "7.2", patches) == [
        "changed common/0010-sctp-name-five.patch",
        "changed common/0020-sctp-add-a-script.patch",
    ]
    common = patches / "common/0010-sctp-name-five.patch"
    assert "\nBases: 6.12 7.2\n" in common.read_text()
    assert export(tree, "6.12", patches) == []
    git(other, "reset", "--quiet", "--hard", "HEAD~2")
    commit_change(other, "line 5", "line FIVE", "sctp: name five")
    assert export(other, "7.2", patches) == [
        "added 7.2/0010-sctp-name-five.patch",
        "changed series-7.2",
    ]
    assert check_forms(patches, ["6.12", "7.2"]) == []
    assert check_variants(patches, ["6.12", "7.2"]) == []
    own = patches / "7.2/0010-sctp-name-five.patch"
    assert "\nBases: 7.2\nReplaces: " in own.read_text()
    common.write_text(common.read_text().replace("+line five", "+line 5.0"))
    assert "another text" in check_variants(patches, ["6.12", "7.2"])[0]
    own.write_text((patches / "common" / own.name).read_text().replace("@@ -2,7 +2,7 @@", "@@ -5,7 +5,7 @@"))
    assert "differs from" in check_variants(patches, ["6.12", "7.2"])[0]


def test_the_laboratory_has_its_own_folder(tree: Path, patches: Path) -> None:
    first, second = "0010-sctp-name-five.patch", "0020-sctp-add-a-script.patch"
    assert write_testbed("6.12", stored_series(tree, "6.12", {}), patches) == [
        f"added testbed/{first}",
        f"added testbed/{second}",
    ]
    assert [patch.name for patch in load_testbed("6.12", patches)] == [first, second]
    git(tree, "reset", "--quiet", "--hard", "HEAD~1")
    old = {patch.name: parse(patch.text, patch.path) for patch in load_testbed("6.12", patches)}
    assert write_testbed("6.12", stored_series(tree, "6.12", old), patches) == [f"removed testbed/{second}"]


def test_lists_are_checked(tree: Path, patches: Path) -> None:
    base = find_base("6.12", patches / "bases.toml")
    assert "series-6.12: not found" in check_lists(patches, [base])[0]
    export(tree, "6.12", patches)
    assert check_lists(patches, [base]) == []
    (patches / "common/0099-stray.patch").write_text("")
    listing = patches / "series-6.12"
    listing.write_text("\n".join(reversed(listing.read_text().splitlines())) + "\n")
    first, second = check_lists(patches, [base])
    assert "do not rise" in first
    assert "0099-stray.patch: no series names it" in second


def test_binary_and_empty_commits(tree: Path, patches: Path) -> None:
    git(tree, "commit", "--quiet", "--allow-empty", "-m", "sctp: nothing")
    with pytest.raises(Problem, match="changes nothing"):
        export(tree, "6.12", patches)
    (tree / "blob").write_bytes(bytes(range(256)))
    git(tree, "add", "blob")
    git(tree, "commit", "--quiet", "--amend", "-m", "sctp: a blob")
    export(tree, "6.12", patches)
    assert any("binary content" in fault for fault in check_forms(patches, ["6.12"]))


def test_merges_are_refused(tree: Path, patches: Path) -> None:
    git(tree, "checkout", "--quiet", "-b", "side", "HEAD~1")
    commit_change(tree, "line 30", "line thirty", "sctp: name thirty")
    git(tree, "merge", "--quiet", "--no-edit", "source")
    with pytest.raises(Problem, match="there is a merge"):
        export(tree, "6.12", patches)


def test_stored_message_survives_as_it_is(tree: Path) -> None:
    commit_change(tree, "line 9", "line nine", "[sctp]: odd subject", 'Text.\n\n  indented\n\nFixes: 1 ("x")')
    patch = list(stored_series(tree, "6.12", {}).values())[-1]
    assert isinstance(patch, Stored)
    assert patch.subject == "[sctp]: odd subject"
    assert patch.message.endswith('  indented\n\nFixes: 1 ("x")\nForwarded: no\nBases: 6.12')


def test_work_is_not_thrown_away(
    tmp_path: Path, tree: Path, patches: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export(tree, "6.12", patches)
    base = find_base("6.12", patches / "bases.toml")
    monkeypatch.setattr(tree_module, "base_repository", lambda _base: tmp_path / "git/base.git")
    series = load_series("6.12", patches)
    work = tmp_path / "work"
    make_tree(base, work, series, force=False)
    assert (work / "net/sctp/a.c").read_text() == (tree / "net/sctp/a.c").read_text()
    make_tree(base, work, series, force=False)
    (work / "net/sctp/a.c").write_text("edited\n")
    with pytest.raises(Problem, match="changes that are not committed"):
        make_tree(base, work, series, force=False)
    git(work, "commit", "--quiet", "--all", "--author=A <a@localhost>", "-m", "sctp: edit")
    with pytest.raises(Problem, match="commits that are not exported"):
        make_tree(base, work, series, force=False)
    make_tree(base, work, series, force=True)
    assert "line five" in (work / "net/sctp/a.c").read_text()
