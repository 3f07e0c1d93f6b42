# SPDX-License-Identifier: GPL-2.0
"""The commands."""

from __future__ import annotations

import argparse
import errno
import ipaddress
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path as File

from pathview import diag, netlink, stock
from pathview.model import STATES, Association, Event, Path
from pathview.show import as_json, event_json, event_text, lost_json, lost_text, text

USE = "use: P primary, A carries new data, R carries retransmissions."


def port(word: str) -> int:
    if not word.isdecimal() or not 0 < int(word) < 1 << 16:
        raise argparse.ArgumentTypeError(f"got {word!r}, expected a port from 1 to 65535")
    return int(word)


def address(word: str) -> str:
    try:
        return str(ipaddress.ip_address(word))
    except ValueError:
        raise argparse.ArgumentTypeError(f"got {word!r}, expected an IPv4 or IPv6 address") from None


def wanted(path: Path, given: argparse.Namespace) -> bool:
    """Whether a path is among those asked for."""
    if given.state and path.state not in given.state:
        return False
    return not given.addr or bool({path.address.partition("%")[0], path.source} & set(given.addr))


def chosen(found: Sequence[Association], given: argparse.Namespace) -> tuple[Association, ...]:
    """Those asked for, with the paths asked for."""
    by_port = [one for one in found if not given.port or given.port in (one.local_port, one.peer_port)]
    if not given.state and not given.addr:
        return tuple(by_port)
    cut = (replace(one, paths=tuple(p for p in one.paths if wanted(p, given))) for one in by_port)
    return tuple(replace(one, path_count=len(one.paths)) for one in cut if one.paths)


def asked(given: argparse.Namespace) -> diag.Filter:
    """As much of the selection as the kernel can make: of several addresses none."""
    only = given.addr[0] if given.addr and len(given.addr) == 1 else None
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
    parser = argparse.ArgumentParser(
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


def paths(arguments: Sequence[str]) -> int:
    parser = options(
        "paths",
        "Show the paths of the SCTP associations of this network namespace: state, why and since when, "
        "times, windows, counters. Reads only, as any user.",
    )
    given = with_json(parser).parse_args(arguments)
    found, missing = look(asked(given))
    shown = chosen(found, given)
    print(as_json(shown, not missing) if given.json else text(shown))
    tell(missing)
    return 0


def moment(time_ns: int) -> float:
    """A time of CLOCK_MONOTONIC in seconds since 1970."""
    return time.time() - (time.monotonic_ns() - time_ns) / 1e9


def show_event(one: Event, given: argparse.Namespace) -> None:
    if wanted(one.path, given) and (not given.port or given.port in (one.local_port, one.peer_port)):
        show = event_json if given.json else event_text
        print(show(one, moment(one.time_ns)), flush=True)


def show_all(given: argparse.Namespace) -> None:
    """Events were lost: what is, instead."""
    found = chosen(look(asked(given))[0], given)
    shown = lost_json(time.time(), found) if given.json else f"{lost_text(time.time())}\n{text(found)}"
    print(shown, flush=True)


def follow(receive: Callable[[int], bytes], given: argparse.Namespace) -> None:
    """Show what RECEIVE brings, until it raises another error than ENOBUFS."""
    while True:
        try:
            data = receive(netlink.BUFFER)
        except OSError as error:
            if error.errno != errno.ENOBUFS:
                raise
            show_all(given)
            continue
        for message in netlink.messages(data):
            if one := diag.event(message.payload):
                show_event(one, given)


def events(arguments: Sequence[str]) -> int:
    parser = options(
        "events",
        "Show each change of a path's state in this network namespace as it happens, and paths that come "
        "or go, one line each, with the reason. Runs until it is ended. Reads only, as any user.",
    )
    given = with_json(parser).parse_args(arguments)
    try:
        with netlink.listener(diag.FAMILY, diag.GROUP) as sock:
            follow(sock.recv, given)
    except KeyboardInterrupt:
        return 0
    except BrokenPipeError:
        raise
    except OSError as error:
        said = "the loaded SCTP tells of none" if error.errno == errno.ENOENT else error.strerror
        print(f"sctp-multipath: events: {said}", file=sys.stderr)
        return 1
    return 0


def top(arguments: Sequence[str]) -> int:
    from pathview.top import main

    return main(arguments)


def exporter(arguments: Sequence[str]) -> int:
    """The only command that needs more than Python's own library."""
    try:
        from pathview.exporter import main
    except ModuleNotFoundError as error:
        if error.name != "prometheus_client":
            raise
        print(
            "sctp-multipath: exporter: prometheus_client is missing: "
            "apt-get install python3-prometheus-client",
            file=sys.stderr,
        )
        return 1
    return main(arguments)


COMMANDS = {"paths": paths, "top": top, "events": events, "exporter": exporter}


def main(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] not in COMMANDS:
        got = words[0] if words else "nothing"
        print(f"sctp-multipath: got {got}, expected one of {', '.join(COMMANDS)}", file=sys.stderr)
        return 2
    try:
        return COMMANDS[words[0]](words[1:])
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
