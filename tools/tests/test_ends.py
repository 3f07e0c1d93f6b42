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
from sctpkernel.errors import Parser, Problem, run_main
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
    """run_main sets handlers; the test process keeps its own."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_ends(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(Problem("bad input"), capsys) == (2, "tools/x: bad input\n")
    assert ended(Problem("went wrong", 1), capsys) == (1, "tools/x: went wrong\n")
    assert ended(KeyboardInterrupt(), capsys) == (130, "tools/x: interrupted; nothing half-done was kept\n")
    code, text = ended(OSError(errno.ENOSPC, "full", "/some/file"), capsys)
    assert (code, text.count("\n")) == (1, 1)
    assert "/some/file: no space left on device; free some" in text
    code, text = ended(PermissionError(errno.EACCES, "no", "/root/.cache"), capsys)
    assert (code, text.count("\n")) == (1, 1) and "SCTPMP_CACHE" in text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_interrupts(number: signal.Signals, capsys: pytest.CaptureFixture[str]) -> None:
    signal.signal(number, signal.SIG_DFL)

    def main() -> int:
        try:
            signal.raise_signal(number)
        finally:
            if number == signal.SIGHUP:
                signal.raise_signal(number)  # a second one, while things are put in order
        return 0

    with pytest.raises(SystemExit) as caught:
        run_main("tools/x", main)
    assert caught.value.code == 130 and "interrupted" in capsys.readouterr().err


def test_an_ignored_hangup_stays_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with pytest.raises(SystemExit) as caught:
        run_main("tools/x", lambda: signal.raise_signal(signal.SIGHUP) or 0)
    assert caught.value.code == 0


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"HOME": "/proc/nohome"}, "tools/setup: /proc/nohome: no such file or directory; make or"),
        ({"SCTPMP_CACHE": "/etc/passwd"}, "tools/setup: /etc/passwd/"),
    ],
)
def test_a_cache_that_cannot_be(settings: dict[str, str], fault: str) -> None:
    others = {name: value for name, value in os.environ.items() if "CACHE" not in name}
    done = subprocess.run(
        [ROOT / "tools/setup", "--python"], capture_output=True, text=True, check=False, env=others | settings
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith(fault) and "SCTPMP_CACHE" in done.stderr


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


def test_nobodys_home(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SCTPMP_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.getuid", lambda: 12345)
    with pytest.raises(Problem, match="HOME: not set, and uid 12345 has no home: set it or SCTPMP_CACHE"):
        cache_root()


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
        (["tools/test", "--jobs", "x"], "tools/test: --jobs: got 'x', expected a whole number from 1"),
        (["tools/test", "--bogus"], "tools/test: unknown option --bogus"),
        (["tools/test-long", "--jobs", "2x"], "tools/test-long: --jobs: got '2x', expected a whole number"),
        (["tools/test-long", "--bogus"], "tools/test-long: unknown option --bogus; it takes --jobs N"),
    ],
)
def test_wrong_calls(command: list[str], fault: str) -> None:
    done = subprocess.run(
        [str(ROOT / command[0]), *command[1:]], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 2
    assert fault in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_usage_error_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        Parser(prog="tools/x").parse_args(["--y"])
    said = capsys.readouterr().err
    assert (caught.value.code, said) == (2, "tools/x: unrecognized arguments: --y; see tools/x --help\n")


def test_all_commands_say_usage_errors_so() -> None:
    sources = [*(ROOT / "tools").rglob("*.py"), *(ROOT / "testbed").rglob("*.py")]
    made = [path for path in sources if "ArgumentParser(" in path.read_text() and "tests" not in path.parts]
    assert made == [], "take sctpkernel.errors.Parser"
