# SPDX-License-Identifier: GPL-2.0
"""A series without one of its rules."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from sctpkernel import questions, without
from sctpkernel.errors import Problem
from sctpkernel.patchfile import faults
from sctpkernel.paths import ROOT
from sctpkernel.series import load_series

FILE = """\
/* May @t carry data? */
static bool may(const struct sctp_transport *t,
		int n)
{
	bool may = n;

	return may;
}

bool other(void)
{
	return may(NULL, 1);
}
"""


def test_the_function_returns_at_once_and_nothing_else_changes() -> None:
    changed = without.returning(FILE, "may", "false")
    assert changed.replace("\treturn false;\n\n", "", 1) == FILE
    assert "int n)\n{\n\treturn false;\n\n\tbool may = n;" in changed


def test_a_void_function() -> None:
    assert "{\n\treturn;\n\n\treturn may" in without.returning(FILE, "other", "")


def test_a_function_that_is_not_there() -> None:
    assert without.returning(FILE, "nothing", "0") == FILE


def test_the_patch_has_the_stored_form() -> None:
    changed = {
        "net/sctp/a.c": (FILE, without.returning(FILE, "may", "false")),
        "net/sctp/b.c": (FILE, without.returning(FILE, "other", "true")),
    }
    text = without.patch_text(changed, "6.12")
    assert not faults(text, Path("a.patch"), ["6.12"])
    first, second = text.split("+++ b/net/sctp/b.c\n")
    assert "+\treturn false;\n" in first
    assert "+\treturn true;\n" in second


def test_parts_of_a_rule() -> None:
    assert without.parts("a/b.c:may=x ? 1 : y == 2") == ("a/b.c", "may", "x ? 1 : y == 2")
    assert without.parts("a/b.c:may") == ("a/b.c", "may", "")


@pytest.mark.parametrize("rule", ["may", "a.c:may:1", ":may", "a b.c:may"])
def test_what_is_no_rule(rule: str, tmp_path: Path) -> None:
    with pytest.raises(Problem, match="expected FILE:FUNCTION"):
        without.write("6.12", [rule], tmp_path / "out")


def test_a_file_that_no_patch_touches(tmp_path: Path) -> None:
    with pytest.raises(Problem, match=r"net/sctp/none.c: no patch of series-6.12 touches it"):
        without.write("6.12", ["net/sctp/none.c:may=1"], tmp_path / "out")


def test_each_rule_that_is_measured_can_be_left_out() -> None:
    files = questions.brought(load_series("6.12"), re.compile(r"net/sctp/multipath/.*"))
    for rule in tomllib.loads((ROOT / "testbed" / "ablation.toml").read_text())["rules"].values():
        file, function = rule["function"].split(":")
        assert without.returning(files[file], function, rule.get("returns", "")) != files[file], function
