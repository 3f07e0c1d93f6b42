# SPDX-License-Identifier: GPL-2.0
"""A call of what no patch has defined yet."""

from __future__ import annotations

from pathlib import Path

import pytest
from sctpkernel.callees import undefined
from sctpkernel.series import Patch, load_series

HELPER = """
+/* Is there a path?  See other(). */
+static struct sctp_transport *
+sctp_mp_helper(const struct sctp_association *asoc,
+\t       int n)
+{
+\treturn NULL;
+}"""
MACRO = "\n+#define sctp_mp_helper(t, asoc) \\\n+\tfor (;;)"
PROTOTYPE = "\n+bool sctp_mp_helper(int n);"
CALL = "\n+\tif (sctp_mp_helper(asoc, 1) || stock(1))\n+\t\treturn;"
SPOKEN_OF = "\n+\t/* see sctp_mp_helper() */\n+\t * of sctp_mp_helper(), too"


def series(*diffs: str, file: str = "net/sctp/a.c") -> list[Patch]:
    """Patches 1, 2, ... that change one file."""
    head = f"Subject: x\n---\ndiff --git a/{file} b/{file}\n--- a/{file}\n+++ b/{file}\n@@ -1 +1 @@"
    return [Patch(Path(f"{number}"), f"{head}{diff}\n") for number, diff in enumerate(diffs, 1)]


def removed(diff: str) -> str:
    return diff.replace("\n+", "\n-")


@pytest.mark.parametrize("definition", [HELPER, MACRO, PROTOTYPE])
def test_a_call_before_its_definition_is_told_once(definition: str) -> None:
    assert undefined(series(definition, CALL)) == []
    assert undefined(series(definition + CALL)) == []
    (fault,) = undefined(series(CALL, "\n+int x;", definition))
    assert fault.startswith("1: sctp_mp_helper: called, but not defined")


def test_what_is_removed_counts() -> None:
    (fault,) = undefined(series(HELPER + CALL, removed(HELPER), HELPER))
    assert fault.startswith("2: ")
    assert undefined(series(HELPER + CALL, removed(HELPER) + removed(CALL), HELPER)) == []
    assert undefined(series(HELPER + CALL, removed(HELPER) + MACRO)) == []


def test_words_are_no_calls_and_stock_is_not_ours() -> None:
    assert undefined(series(SPOKEN_OF, HELPER)) == []
    assert undefined(series("\n+\tstock(1);")) == []
    assert undefined(series(CALL, HELPER, file="Documentation/a.rst")) == []


def test_what_stock_defines_is_not_ours() -> None:
    call, stock = "\n+\tsctp_stock(1);", "\n+void sctp_stock(int n)"
    assert undefined(series(call, removed(stock) + "\n+void sctp_stock(long n)")) == []
    assert (
        undefined(series("\n+const int size = SIZE(table);", removed("\n+const int size = SIZE(table);")))
        == []
    )
    assert (
        undefined(
            series("\n+const int size = SIZE(a);\n+\tf(SIZE(b));", removed("\n+const int size = SIZE(a);"))
        )
        == []
    )
    assert undefined(series("\n+USE(a);\n+\tUSE(b);", removed("\n+USE(a);"))) == []


@pytest.mark.parametrize("base", ["6.1", "6.12", "7.2"])
def test_the_series_defines_before_it_calls(base: str) -> None:
    assert undefined(load_series(base)) == []
