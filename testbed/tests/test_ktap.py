# SPDX-License-Identifier: GPL-2.0
"""The reader of unit test results takes whole results only."""

import pytest
from tests import ktap

GOOD = """\
Linux version 6.12
KTAP version 1
1..2
    KTAP version 1
    # Subtest: first
    # module: sctp
    1..3
    ok 1 one
    # two: EXPECTATION FAILED at net/sctp/multipath_test.c:1
    Expected 1 == 2
    not ok 2 two
    ok 3 three # SKIP not here
# first: pass:1 fail:1 skip:1 total:3
not ok 1 first
    KTAP version 1
    # Subtest: second
    1..1
        KTAP version 1
        # Subtest: many
        ok 1 a
        ok 2 b
        1..2
    ok 1 many
ok 2 second
VFS: Mounted root
"""


def read(text: str) -> dict[str, ktap.Result]:
    return ktap.read(text.splitlines())


def test_results_of_all_levels() -> None:
    found = read(GOOD)
    assert {name: one.verdict for name, one in found.items()} == {"first": "not ok", "second": "ok"}
    first = found["first"].parts
    assert {name: one.verdict for name, one in first.items()} == {
        "one": "ok",
        "two": "not ok",
        "three": "skip",
    }
    assert "EXPECTATION FAILED" in first["two"].diagnosis and "1 == 2" in first["two"].diagnosis
    assert first["three"].diagnosis == ""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("KTAP version 1\n1..2", "1..2"),
        ("ok 2 second\n", ""),
        ("    ok 1 one\n", ""),
        ("    ok 3 three # SKIP not here\n", ""),
        ("    1..3\n", ""),
        ("1..2\n    KTAP", "1..1\n    KTAP"),
        ("1..2\n    KTAP", "1..3\n    KTAP"),
        ("    not ok 2 two\n", "    not ok 3 two\n"),
        ("    not ok 2 two\n", "    not ok 2 one\n"),
        ("VFS: Mounted root", "KTAP version 1\n1..0"),
    ],
)
def test_anything_else_is_broken(old: str, new: str) -> None:
    assert old in GOOD
    with pytest.raises(ktap.Broken):
        read(GOOD.replace(old, new, 1))
