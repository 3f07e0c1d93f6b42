# SPDX-License-Identifier: GPL-2.0
"""Which tests run a line: kept, in order of their time, and cut to what may be spent."""

from __future__ import annotations

from pathlib import Path

from sctpkernel import mutate, reached
from sctpkernel.reached import Reached, Run

FOUND = Reached(
    {
        "a.py::slow[x y]": Run(50.0, {"net/sctp/f.c": {3, 4, 9}}),
        "a.py::quick": Run(0.5, {"net/sctp/f.c": {3}}),
        "b.py::other": Run(80.0, {"net/sctp/f.c": {3}, "net/sctp/g.c": {1}}),
    },
    {"net/sctp/f.c": {3, 4, 6, 9}, "net/sctp/g.c": {1}},
)


def test_the_quickest_comes_first() -> None:
    assert FOUND.runs("net/sctp/f.c", 3) == ["a.py::quick", "a.py::slow[x y]", "b.py::other"]


def test_a_line_without_code_counts_as_the_last_before_it_that_runs() -> None:
    assert FOUND.runs("net/sctp/f.c", 6) == []
    for number in (4, 5, 7, 8):
        assert FOUND.runs("net/sctp/f.c", number) == ["a.py::slow[x y]"]


def test_a_file_that_no_test_knows_is_run_by_none() -> None:
    assert FOUND.runs("net/sctp/h.c", 3) == []


def test_it_is_kept(tmp_path: Path) -> None:
    FOUND.save(tmp_path / "f.json")
    assert reached.load(tmp_path / "f.json") == FOUND


def test_as_many_as_the_time_allows_and_one_at_least() -> None:
    tests = FOUND.runs("net/sctp/f.c", 3)
    assert mutate.within(60.0, tests, FOUND) == tests[:2]
    assert mutate.within(0.1, tests, FOUND) == tests[:1]
    assert mutate.within(1.0, [], FOUND) == []


def test_times_are_those_of_the_report_and_a_test_that_fails_has_none(tmp_path: Path) -> None:
    (tmp_path / "report.xml").write_text(
        '<testsuites><testsuite><testcase classname="a" file="t/test_a.py" name="test_x[1 2]" time="2.5" />'
        '<testcase classname="a" file="t/test_a.py" name="test_y" time="9"><failure /></testcase>'
        "</testsuite></testsuites>"
    )
    assert reached.seconds_of(tmp_path / "report.xml") == (
        {"t/test_a.py::test_x[1 2]": 2.5},
        ["t/test_a.py::test_y"],
    )
