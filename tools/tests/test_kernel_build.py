# SPDX-License-Identifier: GPL-2.0
"""The cache of built kernels: its key, and that a failure leaves nothing behind."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from fakes import write_source
from sctpkernel import kernel
from sctpkernel.errors import FAILED, Problem
from sctpkernel.fragment import Option
from sctpkernel.series import Patch

INPUTS = kernel.Inputs(
    base="6.12",
    flavour="patched",
    variant="uml",
    source_version="6.12.117-1",
    compiler="gcc 12",
    testbed=(Patch(Path("t"), "testbed"),),
    series=(Patch(Path("a"), "one"), Patch(Path("b"), "two")),
    options=(Option("NET", "y", Path("f")),),
)


@pytest.mark.parametrize(
    "other",
    [
        replace(INPUTS, base="6.1"),
        replace(INPUTS, flavour="stock"),
        replace(INPUTS, variant="kunit"),
        replace(INPUTS, source_version="6.12.118-1"),
        replace(INPUTS, compiler="gcc 13"),
        replace(INPUTS, testbed=()),
        replace(INPUTS, series=INPUTS.series[:1]),
        replace(INPUTS, series=INPUTS.series[::-1]),
        replace(INPUTS, options=(Option("NET", "n", Path("f")),)),
    ],
)
def test_every_input_changes_the_key(other: kernel.Inputs) -> None:
    assert other.key != INPUTS.key


def test_names_of_files_do_not() -> None:
    renamed = replace(INPUTS, series=(Patch(Path("x"), "one"), Patch(Path("y"), "two")))
    assert renamed.key == INPUTS.key


def test_info() -> None:
    info = INPUTS.info()
    assert info["key"] == INPUTS.key
    assert info["series_id"] != "stock"
    assert replace(INPUTS, series=()).info()["series_id"] == "stock"


def test_the_series_of_another_folder(tmp_path: Path) -> None:
    (tmp_path / "common").mkdir()
    (tmp_path / "common" / "0010-one.patch").write_text("one")
    (tmp_path / "series-6.12").write_text("0010-one.patch\n")
    found = kernel.gather("6.12", "patched", "uml", tmp_path)
    own = kernel.gather("6.12", "patched", "uml")
    assert [patch.text for patch in found.series] == ["one"]
    assert (found.testbed, found.options) == (own.testbed, own.options)


def test_a_folder_without_a_series(tmp_path: Path) -> None:
    with pytest.raises(Problem, match=r"no file series-6\.12: name a folder that is laid out like patches/"):
        kernel.gather("6.12", "patched", "uml", tmp_path)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, a source of two files, and no patches."""
    monkeypatch.setenv("SCTPMP_CACHE", str(tmp_path / "cache"))
    source = write_source(tmp_path / "source")
    monkeypatch.setattr(kernel, "unpacked", lambda _base: source)
    monkeypatch.setattr(kernel, "BUILD_GB", 0.0)
    return tmp_path / "cache"


def fake_make(tree: Path, arguments: list[str], log: Path, *_: object) -> None:
    """Leave behind what make would."""
    if arguments == ["defconfig"]:
        (tree / ".config").write_text("CONFIG_X=y\n")
    if arguments == ["linux"]:
        (tree / "linux").write_text("kernel")


def test_built_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = replace(INPUTS, testbed=(), series=())
    monkeypatch.setattr(kernel, "make", fake_make)
    folder = kernel.cached(inputs)
    assert folder == cache / "kernel" / inputs.key
    assert sorted(path.name for path in folder.iterdir()) == ["config", "info.json", "linux"]
    assert json.loads((folder / "info.json").read_text()) == inputs.info()
    assert (folder / "config").read_text() == "CONFIG_X=y\nCONFIG_NET=y\n"
    monkeypatch.setattr(kernel, "build", None)
    assert kernel.cached(inputs) == folder


def test_failure_leaves_no_kernel(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(tree: Path, arguments: list[str], log: Path, *rest: object) -> None:
        fake_make(tree, arguments, log, *rest)
        if arguments == ["linux"]:
            raise Problem("make failed", FAILED)

    monkeypatch.setattr(kernel, "make", failing)
    with pytest.raises(Problem, match="make failed"):
        kernel.cached(replace(INPUTS, testbed=(), series=()))
    assert not list((cache / "kernel").glob("*"))
    assert (cache / "log/kernel-6.12-patched-uml.log").exists()


def test_missing_option_stops_the_build(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(tree: Path, arguments: list[str], log: Path, *rest: object) -> None:
        fake_make(tree, arguments, log, *rest)
        if arguments == ["olddefconfig"]:
            (tree / ".config").write_text("# CONFIG_NET is not set\n")

    monkeypatch.setattr(kernel, "make", forgetful)
    with pytest.raises(Problem, match=r"'CONFIG_NET=y' did not reach the \.config"):
        kernel.cached(replace(INPUTS, testbed=(), series=()))
    assert not list((cache / "kernel").glob("*"))


def test_patch_that_does_not_apply_is_named(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "make", fake_make)
    bad = Patch(
        Path("patches/common/0010-bad.patch"), "--- a/net/none.c\n+++ b/net/none.c\n@@ -1 +1 @@\n-a\n+b\n"
    )
    with pytest.raises(Problem, match=r"patches/common/0010-bad\.patch: does not apply"):
        kernel.cached(replace(INPUTS, testbed=(), series=(bad,)))


def test_a_new_tree_starts_from_the_nearest_configuration(cache: Path) -> None:
    for name in ("6.12-stock-debug", "6.12-patched-uml-gcov", "6.12-patched-x86"):
        product = cache / "build" / name / "tree" / kernel.VARIANTS["uml"].product
        product.parent.mkdir(parents=True)
        product.touch()
    with kernel.sibling(INPUTS) as place:
        assert place == cache / "build" / "6.12-patched-uml-gcov"
