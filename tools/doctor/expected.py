# SPDX-License-Identifier: GPL-2.0
"""Addresses that peers should announce, from a file: a line for each peer, its port and its addresses.

    # sctp_expect
    2905 10.1.0.2 10.2.0.2

PORT is the peer's or ours, whichever is the fixed one; # begins a comment.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path as File

from sctpkernel.errors import Problem

FILE = File("/etc/sctp_expect")


@dataclass(frozen=True)
class Peer:
    """WHERE: the file and the line."""

    where: str
    port: int
    addresses: frozenset[str]

    def is_it(self, ports: tuple[int, int], addresses: Iterable[str]) -> bool:
        """An association with this port that has one of these addresses."""
        return self.port in ports and not self.addresses.isdisjoint(addresses)


def peers(file: File | None = None) -> tuple[Peer, ...]:
    """Those of FILE, which has to be there; of the usual one if there is one. Raises Problem."""
    try:
        text = (file or FILE).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        if file is None and isinstance(error, FileNotFoundError):
            return ()
        raise Problem(f"{file or FILE}: {getattr(error, 'strerror', 'is no text')}") from error
    return tuple(parsed(text, str(file or FILE)))


def parsed(text: str, name: str) -> Iterator[Peer]:
    for number, line in enumerate(text.splitlines(), start=1):
        port, *addresses = line.partition("#")[0].split() or [""]
        if not port:
            continue
        where = f"{name}:{number}"
        if not (re.fullmatch(r"[0-9]{1,5}", port) and 0 < int(port) < 1 << 16):
            raise Problem(f"{where}: got {port!r}, expected a port, then the addresses of the peer")
        if not addresses:
            raise Problem(f"{where}: got no address, expected those of the peer behind the port")
        yield Peer(where, int(port), frozenset(address(word, where) for word in addresses))


def address(word: str, where: str) -> str:
    """Without its scope, which /proc/net/sctp does not have."""
    try:
        return str(ipaddress.ip_address(word)).partition("%")[0]
    except ValueError as error:
        raise Problem(f"{where}: got {word!r}, expected an IPv4 or IPv6 address") from error
