# SPDX-License-Identifier: GPL-2.0
"""Running make: the log, the line that says why it failed, a clean environment."""

from __future__ import annotations

from pathlib import Path

import pytest
from sctpkernel.errors import Problem
from sctpkernel.lint import warnings
from sctpkernel.make import environment, first_error, make


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCTPMP_CACHE", str(tmp_path / "cache"))


def makefile(tree: Path, recipe: str) -> Path:
    """A tree with a Makefile of one target, `all`."""
    tree.mkdir()
    (tree / "Makefile").write_text(f"all:\n\t{recipe}\n")
    return tree


def test_settings_of_the_caller_do_not_reach_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MAKEFLAGS", "KCFLAGS", "ARCH", "CROSS_COMPILE", "LANG"):
        monkeypatch.setenv(name, "x")
    assert not {"MAKEFLAGS", "KCFLAGS", "ARCH", "CROSS_COMPILE", "LANG"} & set(environment())


def test_output_goes_to_the_log(tmp_path: Path) -> None:
    tree = makefile(tmp_path / "tree", "@echo made $(ARCH)")
    make(tree, ["all"], tmp_path / "log", "title", {"ARCH": "um"})
    assert "made um\n" in (tmp_path / "log").read_text()


def test_failure_names_cause_and_log(tmp_path: Path) -> None:
    tree = makefile(tmp_path / "tree", "@echo 'a.c:1:2: error: no such thing'; echo more; false")
    with pytest.raises(Problem, match=r"^title: make failed: a\.c:1:2: error: no such thing; .*/log$"):
        make(tree, ["all"], tmp_path / "log", "title")


def test_full_disk_comes_first(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("a.c:1: error: x\nfatal: No space left on device\nmake: *** [all] Error 1\n")
    assert first_error(log) == "fatal: No space left on device"


def test_warnings_forget_line_numbers() -> None:
    said = ["  CC a.o", "/root/tree/net/sctp/a.c:12:3: warning: unused", "net/sctp/a.c:99:3: warning: unused"]
    text = "\n".join([*said, "net/sctp/a.c:1: note: x", ".config:12:warning: override"])
    assert warnings(text) == {"net/sctp/a.c: unused": 2}
