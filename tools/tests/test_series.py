# SPDX-License-Identifier: GPL-2.0
"""Series files and what they name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from fakes import patches_folder
from sctpkernel.errors import Problem
from sctpkernel.series import (
    PATCHES,
    load_series,
    load_testbed,
    series_names,
    short_id,
    update_series,
)

LISTING = """# SPDX-License-Identifier: GPL-2.0
# what this is

# first part
0010-a.patch
0020-b.patch  # needs a reason

# second part
0030-c.patch
# the end
"""


def test_names() -> None:
    assert series_names(LISTING) == ["0010-a.patch", "0020-b.patch", "0030-c.patch"]


def test_same_names_same_text() -> None:
    assert update_series(LISTING, series_names(LISTING)) == LISTING


def test_added_and_dropped_keep_comments() -> None:
    text = update_series(LISTING, ["0005-new.patch", "0010-a.patch", "0030-c.patch", "0040-d.patch"])
    assert (
        text
        == """# SPDX-License-Identifier: GPL-2.0
# what this is

0005-new.patch
# first part
0010-a.patch

# second part
0030-c.patch
0040-d.patch
# the end
"""
    )


def test_heading_of_a_dropped_patch_stays() -> None:
    assert "# first part\n0020-b.patch" in update_series(LISTING, ["0020-b.patch", "0030-c.patch"])


def test_own_file_of_a_base_wins(tmp_path: Path) -> None:
    patches = patches_folder(tmp_path)
    for folder in ("common", "6.12"):
        (patches / folder).mkdir()
        (patches / folder / "0010-a.patch").write_text(folder)
    for base in ("6.12", "7.2"):
        (patches / f"series-{base}").write_text("0010-a.patch\n")
    assert [patch.text for patch in load_series("6.12", patches)] == ["6.12"]
    assert [patch.text for patch in load_series("7.2", patches)] == ["common"]
    assert load_series("6.1", patches) == []


@pytest.mark.parametrize(
    ("listing", "fault"),
    [("0010-b.patch\n", "is neither in"), ("0010-a.patch\n0010-a.patch\n", "listed twice")],
)
def test_bad_listing(tmp_path: Path, listing: str, fault: str) -> None:
    patches = patches_folder(tmp_path)
    (patches / "common").mkdir()
    (patches / "common/0010-a.patch").write_text("")
    (patches / "series-6.12").write_text(listing)
    with pytest.raises(Problem, match=fault):
        load_series("6.12", patches)


def test_testbed_goes_by_the_field(tmp_path: Path) -> None:
    patches = patches_folder(tmp_path)
    (patches / "testbed").mkdir()
    (patches / "testbed/0010-a.patch").write_text("Bases: 6.1 6.12\n")
    (patches / "testbed/0020-b.patch").write_text("Bases: 7.2\n")
    assert [patch.name for patch in load_testbed("6.12", patches)] == ["0010-a.patch"]


def test_short_id_sees_diff_and_order_but_no_message(tmp_path: Path) -> None:
    patches = patches_folder(tmp_path)
    (patches / "testbed").mkdir()
    (patches / "testbed/0010-a.patch").write_text("Bases: 6.12\n---\ndiff --git a/one b/one\n")
    (patches / "testbed/0020-b.patch").write_text("Bases: 6.12\n---\ndiff --git a/two b/two\n")
    first, second = load_testbed("6.12", patches)
    assert short_id([], "stock") == "stock"
    assert len({short_id(order, "") for order in ([first], [second], [first, second], [second, first])}) == 4
    assert short_id([replace(first, text="Better words.\n" + first.text)], "") == short_id([first], "")


def test_all_patches_have_one_author() -> None:
    authors = {path.read_text(encoding="utf-8").split("\n", 1)[0] for path in PATCHES.rglob("*.patch")}
    assert authors == {"From: sctp-multipath developers <sctp-multipath@example.org>"}
