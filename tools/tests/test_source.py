# SPDX-License-Identifier: GPL-2.0
"""Build trees: only what the patches touch is written, and the unpacked source never."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes import write_source
from sctpkernel.errors import Problem
from sctpkernel.series import Patch
from sctpkernel.source import patched_tree, touched_files


def change(name: str, old: str, new: str) -> Patch:
    """A patch of one line in the middle of net/sctp/a.c."""
    value = int(old.split()[1])
    text = f"--- a/net/sctp/a.c\n+++ b/net/sctp/a.c\n@@ -{value - 1},3 +{value - 1},3 @@\n"
    text += f" line {value - 1}\n-{old}\n+{new}\n line {value + 1}\n"
    return Patch(Path(name), f"diff --git a/net/sctp/a.c b/net/sctp/a.c\n{text}")


ADD = Patch(
    Path("add"),
    "diff --git a/net/b.c b/net/b.c\nnew file mode 100644\n"
    "--- /dev/null\n+++ b/net/b.c\n@@ -0,0 +1 @@\n+new\n",
)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_source(tmp_path / "source")


def test_touched_files() -> None:
    assert touched_files([change("one", "line 5", "5"), ADD]) == ["net/b.c", "net/sctp/a.c"]


def test_patches_come_and_go(tmp_path: Path, source: Path) -> None:
    before = (source / "net/sctp/a.c").read_text()
    place = tmp_path / "place"
    tree = patched_tree(source, [change("one", "line 5", "five"), ADD], place)
    assert "five\n" in (tree / "net/sctp/a.c").read_text()
    assert (tree / "net/b.c").read_text() == "new\n"
    assert (tree / "scripts/run").stat().st_ino == (source / "scripts/run").stat().st_ino
    assert (tree / "scripts/run").stat().st_mode & 0o100

    stamp = (tree / "net/sctp/a.c").stat().st_mtime_ns
    patched_tree(source, [change("one", "line 5", "five"), ADD], place)
    assert (tree / "net/sctp/a.c").stat().st_mtime_ns == stamp

    patched_tree(source, [], place)
    assert (tree / "net/sctp/a.c").read_text() == before
    assert (tree / "net/sctp/a.c").stat().st_mtime_ns > stamp
    assert not (tree / "net/b.c").exists()
    assert (source / "net/sctp/a.c").read_text() == before


def test_objects_of_the_build_stay(tmp_path: Path, source: Path) -> None:
    tree = patched_tree(source, [], tmp_path / "place")
    (tree / "net/a.o").write_text("object")
    patched_tree(source, [ADD], tmp_path / "place")
    assert (tree / "net/a.o").exists()


def test_a_new_tree_starts_from_a_built_one(tmp_path: Path, source: Path) -> None:
    built = patched_tree(source, [change("one", "line 5", "five"), ADD], tmp_path / "built")
    (built / "net/new/deep").mkdir(parents=True)
    (built / "net/new/deep/a.o").write_text("object")
    stamp = (built / "net/new/deep/a.o").stat().st_mtime_ns
    tree = patched_tree(source, [change("two", "line 9", "nine")], tmp_path / "new", tmp_path / "built")
    assert (tree / "net/new/deep/a.o").stat().st_mtime_ns == stamp
    assert (tree / "net/new/deep/a.o").stat().st_ino != (built / "net/new/deep/a.o").stat().st_ino
    text = (tree / "net/sctp/a.c").read_text()
    assert "nine\n" in text and "line 5\n" in text
    assert not (tree / "net/b.c").exists()
    newer = write_source(tmp_path / "newer", shift=2)
    assert not (patched_tree(newer, [], tmp_path / "other", tmp_path / "built") / "net/new/deep/a.o").exists()


def test_another_source_starts_over(tmp_path: Path, source: Path) -> None:
    tree = patched_tree(source, [], tmp_path / "place")
    (tree / "net/a.o").write_text("object")
    newer = write_source(tmp_path / "newer", shift=2)
    assert patched_tree(newer, [], tmp_path / "place") == tree
    assert not (tree / "net/a.o").exists()
    assert (tree / "net/sctp/a.c").read_text().startswith("front 0\n")


def test_moved_lines_are_fine_and_fuzz_is_not(tmp_path: Path, source: Path) -> None:
    shifted = write_source(tmp_path / "shifted", shift=4)
    tree = patched_tree(shifted, [change("one", "line 5", "five")], tmp_path / "place")
    assert "five\n" in (tree / "net/sctp/a.c").read_text()
    (source / "net/sctp/a.c").write_text(
        (source / "net/sctp/a.c").read_text().replace("line 4\n", "line four\n")
    )
    with pytest.raises(Problem, match="one: does not apply without fuzz to source: error: patch failed"):
        patched_tree(source, [change("one", "line 5", "five")], tmp_path / "other")
