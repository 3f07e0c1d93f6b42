# SPDX-License-Identifier: GPL-2.0
"""The command."""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from pathview import selection
from sctpkernel.errors import Parser, Problem

from doctor import expected
from doctor.facts import look
from doctor.findings import Finding, findings

EPILOG = (
    "Without addresses: all associations of this host and network namespace. Exit code 0: nothing found; "
    "1: findings; 2: wrong use."
)


def address(word: str) -> str:
    """As ip prints it, with the name of the interface that a scope means."""
    bare, _, index = selection.address(word).partition("%")
    try:
        return f"{bare}%{socket.if_indextoname(int(index))}" if index else bare
    except OSError:
        raise argparse.ArgumentTypeError(
            f"got {word!r}, expected an interface of this host after %"
        ) from None


def text(found: Sequence[Finding]) -> str:
    """Three lines for each."""
    blocks = [f"{one.name}: {one.found}\n  why: {one.why}\n  do:  {one.remedy}" for one in found]
    return "\n".join(blocks) if blocks else "nothing found"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = Parser(
        prog="sctp-multipath doctor",
        description="Find what defeats multihoming on this host: timers, routes, addresses, filters, paths. "
        "Reads only, but for --probe; packet filters are read as root only.",
        epilog=EPILOG,
    )
    parser.add_argument("--local", nargs="+", default=[], type=address, metavar="ADDRESS", help="to use here")
    parser.add_argument("--peer", nargs="+", default=[], type=address, metavar="ADDRESS", help="of the peer")
    parser.add_argument(
        "--probe",
        action="store_true",
        help="send echo requests between the addresses, small ones and such as fill the MTU; root only",
    )
    parser.add_argument(
        "--expect",
        type=Path,
        metavar="FILE",
        help="peers, one on each line: a port, then the addresses that it should announce "
        f"(default: {expected.FILE})",
    )
    parser.add_argument("--json", action="store_true", help="a list of name, found, why, remedy")
    options = parser.parse_args(arguments)
    if bool(options.local) != bool(options.peer):
        parser.error("--local and --peer: got one of them, expected both or none")
    if options.probe and os.geteuid():
        parser.error("--probe: only root may send echo requests: use sudo, or leave it out")
    try:
        peers = expected.peers(options.expect)
    except Problem as problem:
        parser.error(str(problem))
    found = findings(look(options.local, options.peer, options.probe, peers))
    if options.json:
        json.dump([asdict(one) for one in found], sys.stdout, indent=2)
        print()
    else:
        print(text(found))
    return 1 if found else 0
