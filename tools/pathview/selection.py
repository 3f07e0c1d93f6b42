# SPDX-License-Identifier: GPL-2.0
"""Which associations and paths a command shows: its options, the look at the kernel, and what that found."""

from __future__ import annotations

import argparse
import ipaddress
import socket
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path as File

from sctpkernel.errors import Parser

from pathview import diag, stock
from pathview.model import STATES, Association, Path

USE = (
    "use: P primary, A new data may take it (with CMT each path that works), R retransmissions do; "
    "data: DATA chunks that it was sent."
)


def port(word: str) -> int:
    if not word.isdecimal() or not 0 < int(word) < 1 << 16:
        raise argparse.ArgumentTypeError(f"got {word!r}, expected a port from 1 to 65535")
    return int(word)


def address(word: str) -> str:
    """As the kernel has it: with the number of the interface that a scope names."""
    try:
        bare, _, scope = str(ipaddress.ip_address(word)).partition("%")
    except ValueError:
        raise argparse.ArgumentTypeError(f"got {word!r}, expected an IPv4 or IPv6 address") from None
    try:
        index = scope if not scope or scope.isdecimal() else socket.if_nametoindex(scope)
    except OSError:
        raise argparse.ArgumentTypeError(
            f"got {word!r}, expected an interface of this host after %"
        ) from None
    return f"{bare}%{index}" if scope else bare


def wanted(path: Path, given: argparse.Namespace) -> bool:
    """Whether a path is among those asked for."""
    if given.state and path.state not in given.state:
        return False
    bare, _, scope = path.address.partition("%")
    own = {path.address, bare, path.source, f"{path.source}%{scope}"}
    return not given.addr or bool(own & set(given.addr))


def chosen(found: Sequence[Association], given: argparse.Namespace) -> tuple[Association, ...]:
    """Those asked for, with the paths asked for."""
    by_port = [one for one in found if not given.port or given.port in (one.local_port, one.peer_port)]
    if not given.state and not given.addr:
        return tuple(by_port)
    cut = (replace(one, paths=tuple(p for p in one.paths if wanted(p, given))) for one in by_port)
    return tuple(replace(one, path_count=len(one.paths)) for one in cut if one.paths)


def asked(given: argparse.Namespace) -> diag.Filter:
    """As much of the selection as the kernel can make: of several addresses none."""
    only = given.addr[0].partition("%")[0] if given.addr and len(given.addr) == 1 else None
    return diag.Filter(tuple(given.state or ()), given.port, only)


def look(filter_: diag.Filter = diag.ALL, proc: File = File("/proc")) -> tuple[tuple[Association, ...], str]:
    """The associations, and why this kernel does not tell all of their paths, "" if it does.

    FILTER_ leaves out what the kernel need not show; a kernel may show it nevertheless.
    """
    folder = proc / "net" / "sctp"
    if not folder.is_dir():
        return (), ""
    try:
        found = diag.associations(diag.dump(filter_))
        said = "the loaded SCTP is without the multipath patches"
    except OSError as error:
        found, said = None, f"sock_diag: {error.strerror}"
    if found is not None:
        return found, ""
    return stock.read(folder), said


def tell(missing: str) -> None:
    """Why look() found less than there is, if it did."""
    if missing:
        print(f"sctp-multipath: {missing}: only addresses and states of paths are known", file=sys.stderr)


def options(name: str, description: str) -> argparse.ArgumentParser:
    """Those that all commands about single paths have."""
    parser = Parser(
        prog=f"sctp-multipath {name}",
        description=description,
        epilog=f"{USE} --addr and --state may be repeated: any of them.",
    )
    parser.add_argument("--port", type=port, help="of either end")
    parser.add_argument("--addr", type=address, action="append", help="of either end of the path")
    parser.add_argument(
        "--state", choices=STATES, action="append", help="one of %(choices)s", metavar="STATE"
    )
    return parser


def with_json(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument("--json", action="store_true", help="all fields; see sctp-multipath(8)")
    return parser
