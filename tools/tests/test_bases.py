# SPDX-License-Identifier: GPL-2.0
"""patches/bases.toml, and point releases inside and outside what was tested."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes import BASES, patches_folder
from sctpkernel.bases import find_base, load_bases, point_release, release_warning
from sctpkernel.errors import Problem


def test_the_file_of_the_project_is_good() -> None:
    assert find_base("6.12").package == "linux-source-6.12"


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ('newest = "6.12.117"', 'newest = "6.12.117"\nurl = "x"', r"\[6\.12\] has an unknown key 'url'"),
        ('package = "linux-source-6.12"\n', "", r"\[6\.12\] lacks the key 'package'"),
        ('state = "supported"', 'state = "good"', r"state = 'good': expected one of supported, planned"),
        ('state = "supported"', "state = 1", r"state = 1 is not a string"),
        (
            'oldest = "6.12.117"',
            'oldest = "6.13.1"',
            r"oldest = '6\.13\.1': expected a point release such as 6\.12\.1",
        ),
        ('reference = "6.12"', 'reference = "5.10"', r"reference = '5\.10': expected one of 6\.12, 7\.2"),
        ('["7.2"]', '["7.2"', "not TOML"),
        ('reference = "6.12"', 'reference = "6.12"\nx = 1', "x is not a table"),
    ],
)
def test_faults_name_file_and_key(tmp_path: Path, old: str, new: str, fault: str) -> None:
    path = patches_folder(tmp_path) / "bases.toml"
    assert old in BASES
    path.write_text(BASES.replace(old, new, 1))
    with pytest.raises(Problem, match=fault) as caught:
        load_bases(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_unknown_and_planned_bases(tmp_path: Path) -> None:
    path = patches_folder(tmp_path) / "bases.toml"
    with pytest.raises(Problem, match="base '5' is unknown"):
        find_base("5", path)
    path.write_text('state = "planned"'.join(BASES.rsplit('state = "supported"', 1)))
    with pytest.raises(Problem, match=r"base 7\.2 is planned"):
        find_base("7.2", path)
    with pytest.raises(Problem, match="not found"):
        find_base("7.2", tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("version", "warns"),
    [("6.12.117-1~deb12u1", False), ("6.12.118-1", True), ("6.12.9-1", True), ("6.12.117", False)],
)
def test_other_point_releases_are_told(tmp_path: Path, version: str, warns: bool) -> None:
    base = load_bases(patches_folder(tmp_path) / "bases.toml")["6.12"]
    warning = release_warning(base, version)
    assert bool(warning) == warns
    assert not warns or point_release(version) in warning
