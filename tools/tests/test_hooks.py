# SPDX-License-Identifier: GPL-2.0
"""The functions that a series changes are found, and noticed when they are no longer what was looked at."""

from __future__ import annotations

from pathlib import Path

import pytest
from sctpkernel import hooks
from sctpkernel.bases import Base
from sctpkernel.series import Patch

SOURCE = """\
#include <linux/types.h>

struct path {
	int cwnd;
};

static const struct item list[] = {
	ITEM("a"),
};

/* Its purpose. */
static int
first(struct path *path,
      int bytes)
{
	if (bytes)
		return 1;
	return 0;
}

static int declared(int bytes);
void second(void)
{
	first(NULL, 0);
}
"""
FILE = "net/sctp/a.c"
PATCH = Patch(
    Path("0010-sctp-a.patch"),
    f"diff --git a/{FILE} b/{FILE}\n--- a/{FILE}\n+++ b/{FILE}\n@@ -15,4 +15,5 @@\n {{\n \tif (bytes)\n"
    " \t\treturn 1;\n+\thook(path);\n \treturn 0;\n",
)
BASE = Base("6.12", "linux-source-6.12", "supported", "", "")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source" / FILE
    path.parent.mkdir(parents=True)
    path.write_text(SOURCE)
    return tmp_path / "source"


def test_definitions() -> None:
    found = dict(hooks.definitions(SOURCE))
    assert list(found) == ["struct path", "list", "first", "second"]
    assert found["first"].startswith("static int\nfirst(") and found["first"].endswith("return 0;\n}")
    assert found["second"].startswith("void second")


def test_what_a_series_changes(source: Path) -> None:
    assert hooks.touched(source, [PATCH]) == [(FILE, "first")]
    assert hooks.touched(source, []) == []
    before = hooks.fingerprints(source, [(FILE, "first"), (FILE, "third")])
    assert before[FILE, "third"] == hooks.ABSENT
    path = source / FILE
    path.write_text(SOURCE.replace("hook", "").replace("first(NULL, 0)", "first(NULL, 1)"))
    assert hooks.fingerprints(source, list(before)) == before
    path.write_text(SOURCE.replace("return 1;", "return 2;"))
    assert hooks.fingerprints(source, list(before)) != before


def test_a_changed_function_is_named(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks, "unpacked", lambda _base: source)
    monkeypatch.setattr(hooks, "load_series", lambda _base: [PATCH])
    assert "net/sctp/a.c: first is not in it" in hooks.faults(BASE, {})[0]
    stored = hooks.measure([BASE])
    assert hooks.parse(hooks.render(stored)) == stored
    assert hooks.faults(BASE, stored) == []
    (source / FILE).write_text(SOURCE.replace("if (bytes)", "if (bytes > 1)"))
    monkeypatch.setattr(hooks, "touched", lambda _source, _series: [(FILE, "first")])
    assert "first is another text in source than when it was made" in hooks.faults(BASE, stored)[0]


def test_summary() -> None:
    table = {(FILE, "first"): {"6.1": "b", "6.12": "a", "7.2": "a"}}
    assert hooks.summary(table, "6.12") == [f"{FILE}: first: 6.1 differs, 7.2 same"]
