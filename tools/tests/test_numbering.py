# SPDX-License-Identifier: GPL-2.0
"""Names of patches: steps of ten, and as few new ones as the order allows."""

from __future__ import annotations

import pytest
from sctpkernel.errors import Problem
from sctpkernel.numbering import assign, number, slug

OLD = {"a": "0010-a.patch", "b": "0020-b.patch", "c": "0030-c.patch"}


def test_new_series_counts_in_tens() -> None:
    assert assign(["a", "b"], {}) == ["0010-a.patch", "0020-b.patch"]


@pytest.mark.parametrize(
    ("subjects", "names"),
    [
        (["a", "b", "c"], ["0010-a.patch", "0020-b.patch", "0030-c.patch"]),
        (["a", "c"], ["0010-a.patch", "0030-c.patch"]),
        (["a", "b", "c", "d"], ["0010-a.patch", "0020-b.patch", "0030-c.patch", "0040-d.patch"]),
        (["a", "new", "b", "c"], ["0010-a.patch", "0015-new.patch", "0020-b.patch", "0030-c.patch"]),
        (
            ["n", "m", "a", "b", "c"],
            ["0003-n.patch", "0006-m.patch", "0010-a.patch", "0020-b.patch", "0030-c.patch"],
        ),
        (["a", "renamed", "c"], ["0010-a.patch", "0020-renamed.patch", "0030-c.patch"]),
        (["b", "c", "a"], ["0020-b.patch", "0030-c.patch", "0040-a.patch"]),
        (["c", "a", "b"], ["0005-c.patch", "0010-a.patch", "0020-b.patch"]),
    ],
)
def test_names_stay(subjects: list[str], names: list[str]) -> None:
    assert assign(subjects, OLD) == names


def test_no_room() -> None:
    with pytest.raises(Problem, match="no 1 free numbers between 0010 and 0011"):
        assign(["a", "new", "b"], {"a": "0010-a.patch", "b": "0011-b.patch"})


def test_same_subject_twice() -> None:
    with pytest.raises(Problem, match="two commits have the subject 'a'"):
        assign(["a", "a"], {})


def test_slug_has_whole_words() -> None:
    assert slug("sctp: add net.sctp.rtx_policy (1/2)") == "sctp-add-net.sctp.rtx_policy-1-2"
    assert slug("word " * 20) == "word-" * 11 + "word"


def test_number_wants_four_digits() -> None:
    assert number("0070-sctp-x.patch") == 70
    with pytest.raises(Problem, match="four digits"):
        number("70-x.patch")
