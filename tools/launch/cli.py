# SPDX-License-Identifier: GPL-2.0
"""The command."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from failover.options import OURS
from failover.settings import PREFIX, PROC, lines_of
from sctpkernel.errors import USAGE, Parser, Problem

from launch.options import Option, Refused, future, nodelay, of_settings
from launch.program import obstacle

NAME = "sctp-multipath run"
TOP = Path(__file__).resolve().parents[2]  # the checkout, or /usr/share/sctp-multipath
CHECKOUT = (TOP / "tools" / "launch").is_dir()
LIBRARY_NAME = "libsctp-multipath-run.so"
LIBRARY = (TOP / "build" / "launch" if CHECKOUT else Path("/usr/lib/sctp-multipath")) / LIBRARY_NAME
PROFILES = TOP / "sysctl"
NOT_FOUND, REFUSED = 127, 126
DESCRIPTION = (
    "Run an unchanged program with options of SCTP on each SCTP socket that it opens, or with SCTP in place "
    "of TCP (--convert). The program's own options come later and override these. The host is left as it is."
)


def parser() -> Parser:
    made = Parser(prog=NAME, description=DESCRIPTION)
    option = made.add_argument
    option("--nodelay", action="store_true", help="SCTP_NODELAY: a small message does not wait for a SACK")
    option("--cmt", action="store_true", help="concurrent multipath transfer: all paths at once")
    option("--profile", metavar="NAME", help="settings of a profile such as 10-signalling, or of a file")
    option("--convert", action="store_true", help="make its TCP sockets SCTP's; both ends have to be")
    option("program", metavar="PROGRAM", help="name or path")
    option("arguments", nargs=argparse.REMAINDER, metavar="ARGUMENT", help="its arguments")
    return made


def settings_of(name: str) -> dict[str, str]:
    """The settings of a profile; raises Refused."""
    file = Path(name) if "/" in name else PROFILES / f"{name.removesuffix('.conf')}.conf"
    if not file.is_file():
        known = ", ".join(sorted(path.stem for path in PROFILES.glob("*.conf"))) or "a file"
        raise Refused(f"--profile: got {name!r}, expected one of {known}, or a path with a slash")
    try:
        lines = lines_of(file)
    except Problem as error:
        raise Refused(str(error)) from error
    for key, (number, value) in lines.items():
        if not key.startswith(PREFIX):
            raise Refused(f"{file}: line {number}: got '{key} = {value}', expected {PREFIX}NAME = VALUE")
    return {key: value for key, (_, value) in lines.items()}


def options_of(given: argparse.Namespace, proc: Path = PROC) -> tuple[list[Option], list[str]]:
    """Options for the program's sockets, and settings that have none; raises Refused."""
    values = settings_of(given.profile) if given.profile else {}
    asked = {**values, **({f"{PREFIX}cmt": "1"} if given.cmt else {})}
    if not proc.is_dir():
        raise Refused(f"{proc}: not there, expected a loaded SCTP; run modprobe sctp")
    absent = [
        key
        for key in asked
        if key.removeprefix(PREFIX) in OURS and not (proc / key.removeprefix(PREFIX)).exists()
    ]
    if absent:
        option = "--cmt" if given.cmt and not given.profile else "--profile"
        raise Refused(f"{option}: the loaded SCTP has no {absent[0]}; it is without the multipath patches")
    made, none = of_settings(values)
    made += [future(OURS["cmt"], 1)] if given.cmt else []
    return [*made, *([nodelay()] if given.nodelay else [])], none


def environment(old: Mapping[str, str], options: Sequence[Option], convert: bool) -> dict[str, str]:
    """For the program and all that it starts."""
    others = old.get("LD_PRELOAD", "")
    return {
        **old,
        "LD_PRELOAD": f"{LIBRARY}:{others}" if others else str(LIBRARY),
        "SCTPMP_RUN_OPTIONS": ",".join(one.text() for one in options),
        "SCTPMP_RUN_CONVERT": "1" if convert else "0",
    }


def refuse(line: str, code: int) -> int:
    print(f"{NAME}: {line}", file=sys.stderr)
    return code


def main(arguments: Sequence[str] | None = None) -> int:
    """Becomes the program, or returns a code."""
    given = parser().parse_args(arguments)
    if not (given.nodelay or given.cmt or given.profile or given.convert):
        return refuse("got no option, expected --nodelay, --cmt, --profile or --convert", USAGE)
    try:
        options, none = options_of(given)
    except Refused as error:
        return refuse(str(error), USAGE)
    found = shutil.which(given.program)
    if found is None:
        return refuse(f"{given.program}: not found, expected a program in PATH or a path", NOT_FOUND)
    if reason := obstacle(Path(found)):
        return refuse(reason, REFUSED)
    if not LIBRARY.is_file():
        remedy = "make it: make -C tools/launch/library BUILD=$PWD/build/launch" if CHECKOUT else "reinstall"
        return refuse(f"{LIBRARY}: not there; {remedy}", REFUSED)
    if none:
        named = ", ".join(PREFIX + key for key in none)
        print(f"{NAME}: {named}: no socket option; as the host has it", file=sys.stderr)
    return start(found, given, options)


def start(found: str, given: argparse.Namespace, options: Sequence[Option]) -> int:
    try:
        os.execve(found, [given.program, *given.arguments], environment(os.environ, options, given.convert))
    except OSError as error:
        why = f"cannot be started ({error.strerror}), expected a program of this host"
        return refuse(f"{found}: {why}", REFUSED)
