# SPDX-License-Identifier: GPL-2.0
"""From gcov's words to the table of lines and branches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sctpkernel import coverage, kernel, page
from sctpkernel.errors import Problem

OWN, HEADER = "net/sctp/multipath/core.c", "net/sctp/multipath/internal.h"


def line(number: int, count: int, *taken: int, function: str = "f") -> dict[str, Any]:
    branches = [{"count": one, "throw": False, "fallthrough": False} for one in taken]
    return {"line_number": number, "count": count, "function_name": function, "branches": branches}


def source(name: str, *lines: dict[str, Any]) -> dict[str, Any]:
    return {"file": name, "lines": list(lines)}


def table(*files: dict[str, Any]) -> coverage.Table:
    made: coverage.Table = {}
    coverage.collect(made, files, known_only=False)
    return made


def test_a_header_counts_once_over_all_object_files() -> None:
    made = table(
        source(f"./{HEADER}", line(1, 0, 0, 1), line(2, 0)),
        source(HEADER, line(1, 3, 3, 0), line(2, 0)),
    )
    assert [str(one) for one in coverage.shares(made, [HEADER])] == ["50.0 % of 2", "100.0 % of 2"]


def test_branches_that_differ_in_number_are_not_mixed() -> None:
    made = table(source(HEADER, line(1, 1, 1, 0)), source(HEADER, line(1, 1, 1, 1, 1, 0)))
    assert made[HEADER][1].taken() == (3, 4)


def test_functions_on_one_line_have_branches_of_their_own() -> None:
    made = table(source(OWN, line(1, 1, 1, 0, function="f"), line(1, 1, 0, 0, function="g")))
    assert made[OWN][1].taken() == (1, 4)


def test_checks_of_the_debug_kernel_are_not_asked_for() -> None:
    made = table(source(OWN, line(1, 0, 0, 0)))
    coverage.collect(made, [source(OWN, line(1, 2, 1, 1, 0, 0), line(9, 0))], known_only=True)
    assert {number: (one.count, one.taken()) for number, one in made[OWN].items()} == {1: (2, (0, 2))}


def test_unit_tests_and_other_files_are_left_out() -> None:
    ours = ("net/sctp/multipath/test/copy.c", "net/sctp/multipath/test/test.h")
    names = (*ours, "net/sctp/input.c", "lib/transport.c")
    assert [name for name in names if coverage.wanted(name)] == []
    rows = ("include/net/sctp/multipath_types.h", HEADER, "net/sctp/output.c")
    assert [name for name in rows if not coverage.wanted(name)] == []


def test_the_page_has_the_table_the_goals_and_what_never_ran() -> None:
    made = table(
        source(OWN, line(3, 0), line(5, 0), line(6, 0), line(7, 1, 1, 0)),
        source("net/sctp/output.c", line(1, 1), line(2, 0)),
    )
    text = coverage.page(made, "tools/coverage --write", "9 passed, 0 failed")
    assert "``multipath/*.c``  25.0 % of 4  50.0 % of 2" in text
    assert "- 95 % of the lines of multipath/*.c: 25.0 %" in text
    assert "- 75 % of the lines of outqueue.c, output.c, transport.c, associola.c: 50.0 %" in text
    assert f"- {OWN}: 3, 5-6\n" in text


def test_a_page_keeps_what_is_not_between_the_marks(tmp_path: Path) -> None:
    path = tmp_path / "page.rst"
    marks = ".. begin of the output of tools/one\n\n{}.. end of the output of tools/one\n"
    path.write_text("Above\n\n" + marks.format("") + "\nBelow\n")
    for text in ("old\n", "new\n"):
        page.put(path, "tools/one", text)
    assert path.read_text() == "Above\n\n" + marks.format("new\n\n") + "\nBelow\n"
    with pytest.raises(Problem, match="put them back"):
        page.put(path, "tools/another", "")


def test_kernels_of_the_series_count_where_it_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(kernel.COUNTING, raising=False)
    assert kernel.counting("patched", "uml") == "uml"
    monkeypatch.setenv(kernel.COUNTING, "1")
    asked = [("patched", "uml"), ("patched", "kunit"), ("stock", "uml"), ("patched", "x86")]
    assert [kernel.counting(*one) for one in asked] == ["uml-gcov", "kunit-gcov", "uml", "x86"]


def test_no_tests_needs_a_folder() -> None:
    with pytest.raises(Problem, match="--no-tests: got no --counters"):
        coverage.main(["--no-tests"])
