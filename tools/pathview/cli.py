# SPDX-License-Identifier: GPL-2.0
"""The commands."""

from __future__ import annotations

import argparse
import errno
import os
import sys
import time
from collections.abc import Callable, Sequence

from sctpkernel.errors import INTERRUPTED

from pathview import diag, netlink
from pathview.model import Event
from pathview.selection import asked, chosen, look, options, tell, wanted, with_json
from pathview.show import as_json, event_json, event_text, lost_json, lost_text, text


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
    except KeyboardInterrupt:
        return INTERRUPTED
