# SPDX-License-Identifier: GPL-2.0
"""The stored form of a patch."""

from __future__ import annotations

from pathlib import Path

import pytest
from sctpkernel.errors import Problem
from sctpkernel.patchfile import Stored, essence, faults, parse

GOOD = """From: A Tester <a@localhost>
Date: Fri, 20 Nov 2026 20:50:26 +0000
Subject: sctp: change a line

Because.

Forwarded: no
Bases: 6.12
---
diff --git a/a.c b/a.c
--- a/a.c
+++ b/a.c
@@ -1,2 +1,2 @@ int f(void)
-one
+two
 three
"""
PATH = Path("0010-x.patch")


def test_parse_and_render_are_inverse() -> None:
    assert parse(GOOD, PATH).render() == GOOD


def test_good_has_no_faults() -> None:
    assert faults(GOOD, PATH, ["6.12"]) == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("Forwarded: no\n", "", "field Forwarded: is ''"),
        ("Forwarded: no", "Forwarded: maybe", "field Forwarded: is 'maybe'"),
        ("Bases: 6.12\n", "", "field Bases: is missing"),
        ("Bases: 6.12", "Bases: 6.13", "names '6.13'"),
        ("--- a/a.c", "index 123..456 100644\n--- a/a.c", ":11: 'index 123..456 100644' must not be"),
        (" three\n", " three\n-- \n2.39.5\n", "'-- ' must not be"),
        ("From: A", "From 123\nFrom: A", ":1: expected the lines From:"),
        ("---\ndiff", "diff", "expected a line ---"),
        ("one", "one\r", "Unix line ends"),
    ],
)
def test_faults(old: str, new: str, fault: str) -> None:
    found = faults(GOOD.replace(old, new), PATH, ["6.12"])
    assert len(found) == 1
    assert found[0].startswith("0010-x.patch:")
    assert fault in found[0]


def test_fields_join_other_trailers() -> None:
    plain = Stored("A", "now", "s", "Because.", "diff --git")
    given = {"Forwarded": "no", "Bases": "6.12"}
    assert plain.with_fields(given).message == "Because.\n\nForwarded: no\nBases: 6.12"
    trailer = Stored("A", "now", "s", "Because.\n\nReported-by: B", "diff --git").with_fields(given)
    assert trailer.message == "Because.\n\nReported-by: B\nForwarded: no\nBases: 6.12"
    assert trailer.with_fields({"Forwarded": "not-needed", "Bases": "7.2"}) == trailer
    assert Stored("A", "now", "s", "", "d").with_fields(given).message == "Forwarded: no\nBases: 6.12"


def test_essence_forgets_places() -> None:
    moved = GOOD.replace("@@ -1,2 +1,2 @@ int f(void)", "@@ -9,2 +11,2 @@ int g(void)")
    assert essence(moved) == essence(GOOD)
    assert essence(GOOD.replace("two", "2")) != essence(GOOD)


def test_mail_header_may_not_be_folded() -> None:
    with pytest.raises(Problem, match=r"0010-x\.patch:1"):
        parse(GOOD.replace("Tester <", "Tester\n <"), PATH)
