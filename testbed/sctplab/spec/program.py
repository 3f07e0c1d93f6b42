# SPDX-License-Identifier: GPL-2.0
"""Programs that people run, testbed/programs/NAME.toml: two ends that talk over the two paths of a run.

    packages = ["socat"]              # of Debian; the first one's version is told. Fetched, not installed
    polls = false                     # true: virtual time has to move with CPU use, too
    port = 5001                       # that the association is set up to
    one_way = false                   # true: the client tells how long its messages took, and not answers
    trouble = ["E .* disconnect"]     # regular expressions of lines of its log that mean trouble

    [server]
    run = ["{page}"]                  # commands, each after the one before is ready; the last one talks
    ready = "listening"               # text in its output; absent: at once
    settle_s = 0.2                    # after each command
    prepare = "openssl ..."           # optional; a shell command before
    files = { "a.cfg" = "..." }       # written to its working directory

    [client]
    run = ["{page}"]
    feeds = "lines"                   # lines "N NANOSECONDS FILLING" to the last command's input at each
                                      # interval; a signal, such as "USR1": sent to it; absent: none

Who has `counts` tells each message: a regular expression for lines of the last command's output, with groups
"number" and "sent" (nanoseconds) and maybe "filling", or "wait_s" or "wait_ms". counts_file: of a file in the
working directory, read at the end; then a group "since_ms" or "since_s" says when, after the start of the
command. A group "gap": each line tells that something has arrived.

{page} is what Documentation/programs.rst has for this end: a literal block after the comment

    .. program: NAME server

{root} is the folder with the packages' usr/, {here} the folder of this file; {messages}, {interval_ms},
{per_second} and {duration_s} are of the flow. Addresses are written as the page has them, 10.P.0.1 of the
client and 10.P.0.2 of the server on path P, and become those of the run.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field

from sctplab.errors import LabError
from sctplab.paths import ROOT
from sctplab.spec.schema import At, build, check, count, flag, mapping, names, nearest, number, table, text

FOLDER = ROOT / "testbed" / "programs"
PAGE = ROOT / "Documentation" / "programs.rst"
ENDS = ("server", "client")
BLOCK = re.compile(r"^\.\. program: (\S+) (\S+)\n(?:\n|[^\n]*::\n)+((?:    [^\n]*\n|\n)+)", re.MULTILINE)
ANY = r"(?s).*"


def _texts(value: object, at: At) -> dict[str, str]:
    """A table of name -> text."""
    found = mapping(value, at)
    for name, one in found.items():
        if not isinstance(one, str):
            raise at(name).refuse(one, "a text")
    return dict(found)


def _pattern(value: object, at: At) -> str:
    """A regular expression."""
    try:
        return re.compile(str(value)).pattern
    except re.error as error:
        raise at.refuse(value, f"a regular expression ({error})") from error


def _patterns(value: object, at: At) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise at.refuse(value, "a list of regular expressions")
    return tuple(_pattern(one, at) for one in value)


@dataclass(frozen=True)
class End:
    """One end of a program; see above."""

    run: tuple[str, ...] = field(metadata=names("commands", ANY))
    ready: str = field(default="", metadata=text(ANY, "a text"))
    settle_s: float = field(default=0.2, metadata=number(0, 60, "seconds"))
    prepare: str = field(default="", metadata=text(ANY, "a shell command"))
    files: dict[str, str] = field(default_factory=dict, metadata=check(_texts))
    feeds: str = field(default="", metadata=text(r"lines|[A-Z0-9]+|", "lines or the name of a signal"))
    counts: str = field(default="", metadata=check(_pattern))
    counts_file: str = field(default="", metadata=text(r"[^/]+|", "the name of a file, or a pattern of it"))


@dataclass(frozen=True)
class Program:
    """A program; see above."""

    packages: tuple[str, ...] = field(metadata=names("Debian packages", r"[a-z0-9][a-z0-9+.-]+"))
    port: int = field(metadata=count(1, 65535, "a port"))
    server: End = field(metadata=table(End))
    client: End = field(metadata=table(End))
    polls: bool = field(default=False, metadata=flag())
    one_way: bool = field(default=False, metadata=flag())
    trouble: tuple[str, ...] = field(default=(), metadata=check(_patterns))
    environment: dict[str, str] = field(default_factory=dict, metadata=check(_texts))

    @property
    def tells_bytes(self) -> bool:
        """Whether it tells when something arrived, and no single messages."""
        return "(?P<gap>" in self.server.counts + self.client.counts

    @property
    def tells_answers(self) -> bool:
        """Whether it tells the time from request to answer."""
        return bool(self.client.counts) and not self.one_way

    def validate(self, at: At) -> None:
        if not (self.server.counts or self.client.counts):
            raise at("counts").refuse("", "a regular expression at one of the ends", "see spec/program.py")


def known() -> list[str]:
    """The names of all programs."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def find(name: str) -> Program:
    """The program; raises LabError."""
    file = FOLDER / f"{name}.toml"
    if name not in known():
        raise LabError(
            f"program: got {name!r}, expected one of {', '.join(known())}; {nearest(name, known())}"
        )
    try:
        tree = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise LabError(f"{file}: cannot be read: {error}") from error
    return build(Program, tree, At(str(file), ""))


def blocks(page: str) -> dict[tuple[str, str], str]:
    """(name, end) -> what the page has for it, without the indentation."""
    return {
        (name, end): re.sub(r"(?m)^    ", "", lines).strip("\n") + "\n"
        for name, end, lines in BLOCK.findall(page)
    }


def from_page(name: str, end: str) -> str:
    """The same of this checkout's page; raises LabError."""
    try:
        return blocks(PAGE.read_text(encoding="utf-8"))[name, end]
    except (OSError, KeyError) as error:
        raise LabError(f"{PAGE}: no block after '.. program: {name} {end}'; add it") from error
