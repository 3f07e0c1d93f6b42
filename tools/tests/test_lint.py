# SPDX-License-Identifier: GPL-2.0
"""Warnings of a series, patch by patch: what is built, and what is not built again. No compiler runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from sctpkernel import lint
from sctpkernel.bases import Base
from sctpkernel.series import Patch

BASE = Base("6.12", "linux-source-6.12", "supported", "", "")
SERIES = [Patch(Path(f"{number}.patch"), f"text {number}") for number in (1, 2, 3, 4)]


class Builds:
    """The builds so far: (number of patches, all of it again). BAD: numbers with a warning."""

    def __init__(self) -> None:
        self.done: list[tuple[int, bool]] = []
        self.forms: list[Sequence[lint.Form]] = []
        self.bad: set[int] = set()

    def new_warnings(
        self, _: Base, patches: Sequence[Patch], forms: Sequence[lint.Form], *rest: object
    ) -> list[str]:
        self.done.append((len(patches), bool(rest[-1])))
        self.forms.append(forms)
        return ["off: a.c: unused"] if len(patches) in self.bad else []


@pytest.fixture
def builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Builds:
    found = Builds()
    monkeypatch.setenv("SCTPMP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(lint, "load_series", lambda _: SERIES)
    monkeypatch.setattr(lint, "unpacked", lambda _: tmp_path)
    monkeypatch.setattr(lint, "stock_warnings", lambda *_: {})
    monkeypatch.setattr(lint, "new_warnings", found.new_warnings)
    return found


def test_what_was_good_is_not_built_again(builds: Builds) -> None:
    builds.bad = {2}
    assert lint.check_series(BASE, each=True) == ["2.patch: off: a.c: unused"]
    assert builds.done == [(1, True), (2, False), (3, False), (4, True)]
    builds.done.clear()
    builds.bad.clear()
    assert lint.check_series(BASE, each=True) == []
    assert builds.done == [(2, True), (3, False), (4, True)]
    builds.done.clear()
    assert lint.check_series(BASE, each=False) == []
    assert builds.done == []


def test_another_patch_in_front_is_another_source(builds: Builds, monkeypatch: pytest.MonkeyPatch) -> None:
    assert lint.check_series(BASE, each=True) == []
    builds.done.clear()
    changed = [SERIES[0], Patch(Path("2.patch"), "another text"), *SERIES[2:]]
    monkeypatch.setattr(lint, "load_series", lambda _: changed)
    assert lint.check_series(BASE, each=True) == []
    assert builds.done == [(2, True), (3, False), (4, True)]


def test_the_last_patch_is_built_in_all_forms_from_the_start(builds: Builds) -> None:
    lint.check_series(BASE, each=True)
    assert [len(forms) for forms in builds.forms] == [3, 3, 3, 4]
    assert [form.name for form in builds.forms[0] if form.sparse] == ["built-in"]
    assert all(form.sparse for form in builds.forms[-1])
    assert builds.done[-1] == (4, True), "what is up to date is not shown to sparse"


def test_a_warning_in_a_header_does_not_count_for_every_file_that_includes_it() -> None:
    header = "/cache/tree/include/net/sctp/structs.h:{}:41: warning: array of flexible structures\n"
    source = "net/sctp/input.c:{}: warning: unused\n"
    stock = lint.warnings(header.format(336) * 31 + source.format("7:1"))
    assert not lint.warnings(header.format(340) * 41 + source.format("9:1")) - stock
    assert lint.warnings(header.format(340) + header.format(350)) - stock == {
        "net/sctp/structs.h: array of flexible structures": 1
    }
    twice = lint.warnings(source.format("9:1") + source.format("10:1"))
    assert twice - stock == {"net/sctp/input.c: unused": 1}
