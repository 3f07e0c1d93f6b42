# SPDX-License-Identifier: GPL-2.0
"""sctp-multipath top: the paths of all associations as they are now, again each second.

By curses, which is part of Python: a frame is lines of text, the same ones with --once. Of the libraries
that Debian has, rich reads no keys, and urwid would bring its own way to lay out what is one table.
"""

from __future__ import annotations

import argparse
import curses
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from pathview import show
from pathview.model import Association, Path
from pathview.selection import asked, chosen, look, options, tell

EACH_S = 1.0
HEADINGS = (
    *("ports", "path", "from", "use", "data/s", "state", "since", "why", "out/s", "in/s", "rtx/s"),
    *("rtt", "rto", "errors", "cwnd", "flight", "heard"),
)
WORST_FIRST = ("inactive", "potentially-failed", "unconfirmed", "active")
ESCAPE, ENTER, ERASE = 27, (10, 13), (8, 127)
MOST_LETTERS = 60  # of a filter
KEYS = "q quit, s sort, r reverse, / filter, arrows scroll"


@dataclass(frozen=True)
class Row:
    """A path and what it carries; a rate is None on its first look, and on a stock kernel."""

    one: Association
    path: Path
    data: float | None = None  # DATA chunks
    sent: float | None = None
    received: float | None = None
    repeated: float | None = None  # T3 timeouts and fast retransmissions


def key(one: Association, path: Path) -> tuple[int, int, int, str]:
    return one.assoc_id, one.local_port, one.peer_port, path.address


def grown(now: int | None, before: int | None, seconds: float) -> float | None:
    """Per second; none for a path that is another one of the same name."""
    if now is None or before is None or now < before:
        return None
    return (now - before) / seconds


def repeats(path: Path) -> int | None:
    if path.t3_timeouts is None or path.fast_retransmissions is None:
        return None
    return path.t3_timeouts + path.fast_retransmissions


def rows(before: Sequence[Association], now: Sequence[Association], seconds: float) -> list[Row]:
    """The paths of two looks that are SECONDS apart."""
    earlier = {key(one, path): path for one in before for path in one.paths}
    found = []
    for one in now:
        for path in one.paths:
            old = earlier.get(key(one, path))
            if old is None:
                found.append(Row(one, path))
                continue
            rates = (
                grown(path.out_chunks, old.out_chunks, seconds),
                grown(path.out_bytes, old.out_bytes, seconds),
                grown(path.in_bytes, old.in_bytes, seconds),
                grown(repeats(path), repeats(old), seconds),
            )
            found.append(Row(one, path, *rates))
    return found


def severity(row: Row) -> int:
    state = row.path.state
    return -WORST_FIRST.index(state) if state in WORST_FIRST else -len(WORST_FIRST)


# Name -> what is compared; the largest is first.
ORDERS = {
    "state": severity,
    "out": lambda row: row.sent or 0,
    "in": lambda row: row.received or 0,
    "rtx": lambda row: row.repeated or 0,
    "errors": lambda row: row.path.errors or 0,
    "rtt": lambda row: row.path.srtt_us or 0,
    "flight": lambda row: row.path.flight or 0,
}


def number(value: float | None) -> str:
    """A rate of bytes or chunks."""
    return show.size(None if value is None else round(value))


def cells(row: Row) -> tuple[str, ...]:
    """By HEADINGS."""
    path = row.path
    return (
        f"{row.one.local_port}>{row.one.peer_port}",
        path.address,
        path.source or show.UNKNOWN,
        show.use(path),
        number(row.data),
        path.state,
        show.duration(path.state_ms),
        show.why(path),
        number(row.sent),
        number(row.received),
        show.UNKNOWN if row.repeated is None else f"{row.repeated:.3g}",
        show.microseconds(path.srtt_us or path.rtt_min_us),
        show.duration(path.rto_ms),
        show.fraction(path.errors, path.error_limit),
        show.size(path.cwnd),
        show.size(path.flight),
        show.duration(path.heard_ms),
    )


@dataclass
class View:
    """The view that the keys have chosen. ASKED: the filter while it is typed, else None."""

    order: str = "state"
    reverse: bool = False
    words: str = ""
    asked: str | None = None
    top: int = 0

    def press(self, letter: int) -> bool:
        """Take a key; False: quit."""
        if self.asked is not None:
            self.type(letter)
            return True
        names = list(ORDERS)
        if letter == ord("s"):
            self.order = names[(names.index(self.order) + 1) % len(names)]
        elif letter == ord("r"):
            self.reverse = not self.reverse
        elif letter == ord("/"):
            self.asked = ""
        self.top += {curses.KEY_DOWN: 1, curses.KEY_UP: -1, curses.KEY_NPAGE: 10, curses.KEY_PPAGE: -10}.get(
            letter, 0
        )
        return letter != ord("q")

    def type(self, letter: int) -> None:
        """A key while the filter is asked for."""
        asked = self.asked or ""
        if letter == ESCAPE:
            self.asked = None
        elif letter in ENTER:
            self.words, self.asked, self.top = asked, None, 0
        elif letter in ERASE or letter == curses.KEY_BACKSPACE:
            self.asked = asked[:-1]
        elif 32 <= letter < 127 and len(asked) < MOST_LETTERS:
            self.asked = asked + chr(letter)


def kept(found: Sequence[Row], view: View) -> list[Row]:
    """Those with all words of the filter in some column, in the order of the view."""
    words, some = view.words.split(), list(found)
    if words:
        some = [row for row in found if all(any(word in cell for cell in cells(row)) for word in words)]
    some.sort(key=lambda row: (row.one.local_port, row.one.peer_port))
    some.sort(key=ORDERS[view.order], reverse=not view.reverse)
    return some


def summary(found: Sequence[Row], view: View) -> str:
    """The first line, of all paths, whatever the filter."""
    counts = Counter(row.path.state for row in found)
    said = ", ".join(f"{counts[state]} {state}" for state in WORST_FIRST if counts[state]) or "none"
    sums = [sum(getattr(row, name) or 0 for row in found) for name in ("sent", "received")]
    filtered = f"; only {view.words!r}" if view.words else ""
    return (
        f"associations: {len({id(row.one) for row in found})}; paths: {said}; "
        f"out {number(sums[0])}/s, in {number(sums[1])}/s; "
        f"by {view.order}{' reversed' if view.reverse else ''}{filtered}"
    )


@dataclass(frozen=True)
class Frame:
    """Lines of text; the rows of BODY have the states of STATES."""

    first: str
    heading: str
    body: list[str] = field(default_factory=list)
    states: list[str] = field(default_factory=list)


def frame(found: Sequence[Row], view: View, room: int | None = None) -> Frame:
    """With ROOM for so many rows, from the one on that VIEW has scrolled to."""
    some = kept(found, view)
    if room is not None:
        view.top = max(min(view.top, len(some) - room), 0)
        some = some[view.top : view.top + room]
    lines = show.table([HEADINGS, *map(cells, some)])
    return Frame(summary(found, view), lines[0], lines[1:], [row.path.state for row in some])


def as_text(made: Frame) -> str:
    return "\n".join((made.first, made.heading, *made.body) if made.body else (made.first,))


def put(screen: curses.window, line: int, text: str, style: int = 0) -> None:
    """Write what fits of TEXT. The last place of a screen cannot be written; a small one has fewer lines."""
    height, width = screen.getmaxyx()
    if 0 <= line < height:
        screen.addnstr(line, 0, text, width - 1, style)


def draw(screen: curses.window, found: Sequence[Row], view: View, note: str) -> None:
    room = max(screen.getmaxyx()[0] - 3, 0)
    made = frame(found, view, room)
    styles = {"inactive": 1, "potentially-failed": 1, "unconfirmed": 2}
    screen.erase()
    put(screen, 0, made.first, curses.A_BOLD)
    put(screen, 1, made.heading, curses.A_REVERSE)
    for at, (text, state) in enumerate(zip(made.body, made.states, strict=True)):
        colour = styles.get(state, 0)
        put(screen, 2 + at, text, curses.color_pair(colour) if colour and curses.has_colors() else 0)
    last = f"filter: {view.asked}_" if view.asked is not None else f"{KEYS}{f'  ({note})' if note else ''}"
    put(screen, room + 2, last, curses.A_DIM)
    screen.refresh()


def colours() -> None:
    """Red for what has failed, yellow for what never worked."""
    if curses.has_colors():
        curses.use_default_colors()
        for pair, colour in ((1, curses.COLOR_RED), (2, curses.COLOR_YELLOW)):
            curses.init_pair(pair, colour, -1)


def live(screen: curses.window, given: argparse.Namespace) -> None:
    """Look each second and draw, at each key draw only, until q."""
    colours()
    view = View(given.sort)
    found, note = look(asked(given))
    before, at = chosen(found, given), time.monotonic()
    shown = rows((), before, EACH_S)
    while True:
        draw(screen, shown, view, note)
        screen.timeout(max(int((at + EACH_S - time.monotonic()) * 1000), 0))
        letter = screen.getch()
        if letter != -1:
            if not view.press(letter):
                return
            continue
        found, note = look(asked(given))
        now, moment = chosen(found, given), time.monotonic()
        shown, before, at = rows(before, now, moment - at), now, moment


def once(given: argparse.Namespace) -> int:
    """One frame; rates are those of a second."""
    before, at = chosen(look(asked(given))[0], given), time.monotonic()
    time.sleep(EACH_S)
    found, note = look(asked(given))
    print(as_text(frame(rows(before, chosen(found, given), time.monotonic() - at), View(given.sort))))
    tell(note)
    return 0


def main(arguments: Sequence[str]) -> int:
    parser = options(
        "top",
        "Show the paths of the SCTP associations of this network namespace, what they carry and how they "
        f"are, again each second. Keys: {KEYS}. Reads only, as any user.",
    )
    parser.add_argument(
        "--sort", choices=tuple(ORDERS), default="state", metavar="ORDER", help="one of %(choices)s"
    )
    parser.add_argument("--once", action="store_true", help="print one frame as text, after a second")
    given = parser.parse_args(arguments)
    if given.once:
        return once(given)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        print(
            "sctp-multipath: top: this is no terminal: use --once, or sctp-multipath paths", file=sys.stderr
        )
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # the terminal is restored
    try:
        curses.wrapper(live, given)
    except KeyboardInterrupt:
        return 0
    except curses.error as error:
        print(f"sctp-multipath: top: the terminal cannot be used: {error}", file=sys.stderr)
        return 2
    return 0
