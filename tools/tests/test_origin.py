# SPDX-License-Identifier: GPL-2.0
"""A source that the user names: a git tree or an archive of the right kernel, and nothing else."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from fakes import git_tree, write_source
from sctpkernel import source as source_module
from sctpkernel.bases import Base
from sctpkernel.errors import Problem
from sctpkernel.origin import origin, point_of, unpack

BASE = Base("7.2", "linux-source-7.2", "supported", "", "")
MAKEFILE = "# SPDX\nVERSION = 7\nPATCHLEVEL = 2\nSUBLEVEL = 14\nEXTRAVERSION =\n"


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    """The files of a small kernel 7.2.14."""
    folder = write_source(tmp_path / "linux-7.2.14")
    (folder / "Makefile").write_text(MAKEFILE)
    return folder


def archive(kernel: Path) -> Path:
    path = kernel.parent / "linux.tar.xz"
    subprocess.run(["tar", "-C", str(kernel.parent), "-cJf", str(path), kernel.name], check=True)
    return path


def test_git_tree(
    tmp_path: Path, kernel: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    tree = git_tree(tmp_path / "git", kernel)
    monkeypatch.setenv("SCTPMP_LINUX_7_2", str(tree))
    found = origin(BASE)
    assert found.version.startswith("7.2.14-") and found.name == f"linux-{found.version}"
    (tree / "net/sctp/a.c").write_text("edited\n")
    assert origin(BASE) == found
    assert "not committed are not used" in capfd.readouterr().err
    (tmp_path / "out").mkdir()
    unpack(found, tmp_path / "out")
    assert (tmp_path / "out/net/sctp/a.c").read_text() == (kernel / "net/sctp/a.c").read_text()


def test_archive_is_unpacked_once(tmp_path: Path, kernel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCTPMP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SCTPMP_LINUX_7_2", str(archive(kernel)))
    monkeypatch.setattr(source_module, "SOURCE_GB", 0.0)
    folder = source_module.unpacked(BASE)
    assert folder.parent == tmp_path / "cache/src" and folder.name.startswith("linux-7.2.14-")
    assert (folder / "Makefile").read_text() == MAKEFILE
    stamp = folder.stat().st_mtime_ns
    assert source_module.unpacked(BASE) == folder and folder.stat().st_mtime_ns == stamp


def test_what_is_no_such_kernel(tmp_path: Path, kernel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for named in (tmp_path / "nowhere", tmp_path, kernel / "Makefile"):
        monkeypatch.setenv("SCTPMP_LINUX_7_2", str(named))
        with pytest.raises(
            Problem, match=r"SCTPMP_LINUX_7_2=/.*: expected a git tree of Linux 7\.2 or a tar archive"
        ):
            origin(BASE)
    (kernel / "Makefile").write_text(MAKEFILE.replace("= 2", "= 3"))
    monkeypatch.setenv("SCTPMP_LINUX_7_2", str(archive(kernel)))
    with pytest.raises(Problem, match=r"this is Linux 7\.3\.14: expected 7\.2"):
        origin(BASE)
    (kernel / "Makefile").write_text("all:\n")
    archive(kernel)
    with pytest.raises(Problem, match=r"this is no kernel: expected 7\.2"):
        origin(BASE)


def test_point_release() -> None:
    assert point_of(MAKEFILE) == "7.2.14"
    assert point_of("VERSION = 7\n") == ""
