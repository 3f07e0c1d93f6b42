# SPDX-License-Identifier: GPL-2.0
"""sctp-multipath top: rates, order, filter, keys, and the terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path as File

import pytest
from pathview import cli, top
from pathview.model import Association, Path
from tests.test_pathview import recorded

TOOLS = File(__file__).resolve().parent.parent
LATER = replace(
    recorded(),
    paths=(
        replace(recorded().paths[0], t3_timeouts=2, fast_retransmissions=1, errors=3),
        replace(
            recorded().paths[1],
            out_bytes=(recorded().paths[1].out_bytes or 0) + 5000,
            out_chunks=(recorded().paths[1].out_chunks or 0) + 30,
        ),
    ),
)
# Started in a terminal: one association, which is there whatever the host has.
PROGRAM = """
import sys
from pathview import cli, top
from tests.test_pathview import recorded
top.look = lambda wanted: ((recorded(),), "")
sys.exit(cli.main(["top"]))
"""


def rows(seconds: float = 2.0) -> list[top.Row]:
    return top.rows((recorded(),), (LATER,), seconds)


def test_rates_are_those_between_two_looks() -> None:
    first, second = rows()
    assert (first.sent, first.received, first.repeated) == (0, 0, 1)
    assert (second.sent, second.repeated) == (2500, 0)
    assert (first.data, second.data) == (0, 15)


def test_what_is_new_or_has_begun_again_has_no_rate() -> None:
    assert top.rows((), (LATER,), 1)[0].sent is None
    assert top.rows((LATER,), (recorded(),), 1)[1].sent is None
    other = replace(LATER, assoc_id=4)
    assert top.rows((recorded(),), (other,), 1)[1].sent is None


def paths(frame: top.Frame) -> list[str]:
    return [line.split()[1] for line in frame.body]


@pytest.mark.parametrize(
    ("order", "reverse", "first"),
    [
        ("state", False, "10.1.0.2"),
        ("state", True, "10.2.0.2"),
        ("out", False, "10.2.0.2"),
        ("rtx", False, "10.1.0.2"),
        ("errors", False, "10.1.0.2"),
        ("rtt", False, "10.2.0.2"),
    ],
)
def test_orders(order: str, reverse: bool, first: str) -> None:
    assert paths(top.frame(rows(), top.View(order=order, reverse=reverse)))[0] == first


def test_the_worst_state_is_first_and_a_later_one_after_all() -> None:
    one = recorded()
    states = ("active", "unconfirmed", "9", "inactive", "potentially-failed")
    many = replace(one, paths=tuple(Path(f"10.0.0.{n}", state) for n, state in enumerate(states)))
    shown = top.frame(top.rows((), (many,), 1), top.View())
    assert shown.states == ["inactive", "potentially-failed", "unconfirmed", "active", "9"]


@pytest.mark.parametrize(
    ("words", "count"),
    [("", 2), ("10.2.0.2", 1), ("57241", 2), ("potentially t3-rtx", 1), ("active t3-rtx", 0), ("no", 0)],
)
def test_a_filter_keeps_rows_with_all_its_words(words: str, count: int) -> None:
    assert len(top.frame(rows(), top.View(words=words)).body) == count


def test_a_frame() -> None:
    made = top.frame(rows(), top.View())
    assert made.first == (
        "associations: 1; paths: 1 potentially-failed, 1 active; out 2.5k/s, in 0/s; by state"
    )
    assert made.heading.index("why") == made.body[0].index("t3-rtx 1") == made.body[1].index("heartbeat-ack")
    assert top.as_text(top.frame((), top.View())) == (
        "associations: 0; paths: none; out 0/s, in 0/s; by state"
    )


def typed(view: top.View, text: str) -> bool:
    return [view.press(ord(letter)) for letter in text] == [True] * len(text)


def test_keys() -> None:
    view = top.View()
    assert typed(view, "sr")
    assert (view.order, view.reverse) == ("out", True)
    assert typed(view, "/qq\x7f\r")
    assert (view.words, view.asked) == ("q", None)
    assert typed(view, "/xyz\x1b")
    assert (view.words, view.asked) == ("q", None)
    assert not typed(view, "q")


def test_scrolling_stops_at_both_ends() -> None:
    view = top.View(order="errors")
    view.press(top.curses.KEY_NPAGE)
    assert paths(top.frame(rows(), view, 1)) == ["10.2.0.2"]
    view.press(top.curses.KEY_PPAGE)
    assert paths(top.frame(rows(), view, 1)) == ["10.1.0.2"]
    assert top.frame(rows(), view, 0).body == []


def test_once_prints_a_frame(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    looks = iter([((recorded(),), ""), ((LATER,), "it is a stock one")])
    monkeypatch.setattr(top, "look", lambda wanted: next(looks))
    monkeypatch.setattr(top, "EACH_S", 0.01)
    assert cli.main(["top", "--once", "--sort", "out", "--addr", "10.2.0.2"]) == 0
    told = capsys.readouterr()
    lines = told.out.splitlines()
    assert lines[0].startswith("associations: 1; paths: 1 active; out ")
    assert lines[2].split()[1] == "10.2.0.2"
    assert len(lines) == 3
    assert told.err == "sctp-multipath: it is a stock one: only addresses and states of paths are known\n"


def test_once_may_be_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(top, "look", lambda wanted: ((recorded(),), ""))
    monkeypatch.setattr(top.time, "sleep", interrupted)
    assert cli.main(["top", "--once"]) == 130


def test_without_a_terminal_it_says_so() -> None:
    command = [sys.executable, "-m", "pathview", "top"]
    done = subprocess.run(
        command, cwd=TOOLS, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    said = "sctp-multipath: top: this is no terminal: use --once, or sctp-multipath paths\n"
    assert done.stderr == said


class Terminal:
    """A program in a terminal of 30 lines."""

    def __init__(self, kind: str = "xterm") -> None:
        self.child, self.end = pty.fork()
        if not self.child:
            os.environ.update(TERM=kind, LINES="30", COLUMNS="200", PYTHONPATH=f"{TOOLS}")
            os.execv(sys.executable, [sys.executable, "-c", PROGRAM])
        self.seen = ""

    def until(self, pattern: str, wait_s: float = 60) -> None:
        end = time.monotonic() + wait_s
        while not re.search(pattern, self.seen):
            assert time.monotonic() < end, repr(self.seen)
            if select.select([self.end], [], [], 0.1)[0]:
                try:
                    self.seen += os.read(self.end, 65536).decode()
                except OSError:  # it has ended
                    assert re.search(pattern, self.seen), repr(self.seen)

    def type(self, text: str) -> None:
        self.seen = ""
        os.write(self.end, text.encode())

    def ended(self) -> int:
        return os.waitstatus_to_exitcode(os.waitpid(self.child, 0)[1])


def test_in_a_terminal() -> None:
    one = Terminal()
    one.until(r"associations: 1; paths: 1 potentially-failed(?s:.)*10\.2\.0\.2")
    one.until("\x1b\\[31m")  # what has failed is red
    one.until("out 0/s")  # the second look
    one.type("s")
    one.until("out")
    one.type("/10.2\r")
    one.until("10.2")
    one.type("q")
    one.until("\x1b\\[\\?1049l")  # the terminal has what it had before
    assert one.ended() == 0


def test_a_terminal_that_cannot_be_used_is_one_line() -> None:
    one = Terminal("no-such-terminal")
    one.until("sctp-multipath: top: the terminal cannot be used: .*\n")
    assert one.ended() == 2


def test_a_dump_of_another_association_is_not_compared() -> None:
    before: tuple[Association, ...] = (replace(recorded(), local_port=1),)
    assert top.rows(before, (recorded(),), 1)[0].sent is None
