# SPDX-License-Identifier: GPL-2.0
"""KUnit behind each patch: what has failed, where it begins, what is not tried again. No compiler runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from sctpkernel import each
from sctpkernel.bases import Base
from sctpkernel.kernel import Inputs
from sctpkernel.series import Patch

BASE = Base("6.12", "linux-source-6.12", "supported", "", "")
OPTION = "diff --git a/net/sctp/Kconfig b/net/sctp/Kconfig\n+config SCTP_MULTIPATH_KUNIT_TEST\n"
OUTPUT = """\
Linux version 6.12
KTAP version 1
1..2
    KTAP version 1
    # Subtest: sctp-multipath
    1..2
    ok 1 sctp_mp_test_one
    ok 2 sctp_mp_test_two # SKIP no memory
# sctp-multipath: pass:1 fail:0 skip:1 total:2
ok 1 sctp-multipath
    # Subtest: sctp-multipath-cmt
    1..1
    ok 1 sctp_mp_test_three
ok 2 sctp-multipath-cmt
reboot: System halted
"""


def inputs(*texts: str) -> Inputs:
    series = tuple(Patch(Path(f"{number}.patch"), f"\n{text}") for number, text in enumerate(texts, 1))
    return Inputs("6.12", "patched", each.KUNIT, "6.12.1", "gcc", (), series, ())


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("", "", []),
        ("    ok 1 sctp_mp_test_one", "    not ok 1 sctp_mp_test_one", ["sctp_mp_test_one failed"]),
        (
            "    ok 1 sctp_mp_test_one",
            "    # sctp_mp_test_one: EXPECTATION FAILED at net/a.c:5\n"
            "    # sctp_mp_test_one: EXPECTATION FAILED at net/a.c:6\n    not ok 1 sctp_mp_test_one",
            ["sctp_mp_test_one failed at net/a.c:5"],
        ),
        ("ok 2 sctp-multipath-cmt", "not ok 2 sctp-multipath-cmt", ["suite sctp-multipath-cmt failed"]),
        (
            "    ok 1 sctp_mp_test_three\nok 2 sctp-multipath-cmt\nreboot: System halted",
            "Kernel panic",
            ["the tests did not end: 1 suites, last line: Kernel panic"],
        ),
        (OUTPUT, "", ["the tests did not end: 0 suites, last line: none"]),
    ],
)
def test_failures(old: str, new: str, expected: list[str]) -> None:
    assert each.failures(OUTPUT.replace(old, new) if old else OUTPUT) == expected


def test_a_suite_that_fails_by_a_case_is_one_failure() -> None:
    output = OUTPUT.replace("    ok 1 sctp_mp_test_one", "    not ok 1 sctp_mp_test_one")
    assert each.failures(output.replace("ok 1 sctp-multipath\n", "not ok 1 sctp-multipath\n")) == [
        "sctp_mp_test_one failed"
    ]


def test_it_begins_where_the_option_comes() -> None:
    found = each.cut_off(inputs("one", OPTION, "three"))
    assert [[patch.name for patch in at.series] for at in found] == [
        ["1.patch", "2.patch"],
        ["1.patch", "2.patch", "3.patch"],
    ]
    assert each.cut_off(inputs("one", "two")) == []


def test_what_passed_is_not_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    bad = {"3.patch"}

    def check_cases(at: Inputs, _: str) -> Sequence[str]:
        tried.append(at.series[-1].name)
        return [f"{name} failed" for name in bad & {tried[-1]}]

    monkeypatch.setenv("SCTPMP_CACHE", str(tmp_path))
    monkeypatch.setattr(each, "check_cases", check_cases)
    monkeypatch.setattr(each, "gather", lambda *_: inputs(OPTION, "two", "three"))
    assert each.check_each(BASE) == ["3.patch: 3.patch failed"]
    assert tried == ["1.patch", "2.patch", "3.patch"]
    tried.clear()
    bad.clear()
    assert each.check_each(BASE) == []
    assert tried == ["3.patch"]
