# SPDX-License-Identifier: GPL-2.0
"""How commands end: one line on stderr and an exit code, no traceback, nothing half-done."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from sctpkernel.errors import Problem, run_main
from sctpkernel.paths import ROOT, cache_root, need_space, new_folder


def ended(exception: BaseException, capsys: pytest.CaptureFixture[str]) -> tuple[int | str | None, str]:
    """Exit code and stderr of a command whose main function raises."""

    def main() -> int:
        raise exception

    with pytest.raises(SystemExit) as caught:
        run_main("tools/x", main)
    return caught.value.code, capsys.readouterr().err


@pytest.fixture(autouse=True)
def keep_signal() -> Iterator[None]:
    """run_main sets a handler; the test process keeps its own."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def test_ends(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(Problem("bad input"), capsys) == (2, "tools/x: bad input\n")
    assert ended(Problem("went wrong", 1), capsys) == (1, "tools/x: went wrong\n")
    assert ended(KeyboardInterrupt(), capsys) == (130, "tools/x: interrupted; nothing half-done was kept\n")
    code, text = ended(OSError(errno.ENOSPC, "full", "/some/file"), capsys)
    assert (code, text.count("\n")) == (1, 1)
    assert "/some/file: no space left on device; free some" in text
    code, text = ended(PermissionError(errno.EACCES, "no", "/root/.cache"), capsys)
    assert (code, text.count("\n")) == (1, 1) and "SCTPMP_CACHE" in text


def test_new_folder_is_whole_or_absent(tmp_path: Path) -> None:
    with new_folder(tmp_path / "good") as folder:
        (folder / "file").touch()
    assert (tmp_path / "good/file").exists()
    with pytest.raises(KeyboardInterrupt), new_folder(tmp_path / "bad") as folder:
        (folder / "file").touch()
        raise KeyboardInterrupt
    assert [path.name for path in tmp_path.iterdir()] == ["good"]


def test_too_little_space(tmp_path: Path) -> None:
    with pytest.raises(Problem, match=r"the tree needs 1000000\.0 GB, .* GB are free"):
        need_space(tmp_path, 1e6, "the tree")


def test_cache_root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SCTPMP_CACHE", str(tmp_path / "own"))
    assert cache_root() == tmp_path / "own"
    monkeypatch.delenv("SCTPMP_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_root() == tmp_path / "sctp-multipath"


@pytest.mark.parametrize(
    ("command", "fault"),
    [
        (["tools/build/kernel", "--base", "5.4"], "base '5.4' is unknown"),
        (["tools/build/kernel", "--flavour", "salty"], "invalid choice: 'salty'"),
        (["tools/build/lint", "5.4"], "base '5.4' is unknown"),
        (["tools/patch/tree", "5.4"], "base '5.4' is unknown"),
        (["tools/patch/check", "5.4"], "base '5.4' is unknown"),
        (["tools/patch/export", "6.12", "--tree", "/nonexistent"], "/nonexistent: not a git tree"),
        (["tools/patch/bump", "5.4"], "base '5.4' is unknown"),
        (["tools/patch/bump", "6.12"], "base 6.12 is the reference"),
        (["tools/setup", "--perl"], "unrecognized arguments: --perl"),
    ],
)
def test_wrong_calls(command: list[str], fault: str) -> None:
    done = subprocess.run(
        [str(ROOT / command[0]), *command[1:]], capture_output=True, text=True, check=False, env=os.environ
    )
    assert done.returncode == 2
    assert fault in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
