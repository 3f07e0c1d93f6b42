# SPDX-License-Identifier: GPL-2.0
"""Paths as a stock kernel shows them: /proc/net/sctp/assocs and remaddr."""

from __future__ import annotations

import ipaddress
from pathlib import Path as File

from pathview.files import text_of
from pathview.model import ASSOCIATION_STATES, STATES, Association, Path, word


def is_address(text: str) -> bool:
    return "." in text or ":" in text


def usual(text: str) -> str:
    """An address as ip prints it; /proc/net/sctp has all zeros of an IPv6 address."""
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return text


def states(remaddr: str) -> dict[tuple[str, str], str]:
    """(association, address) -> state."""
    found = {}
    for line in remaddr.splitlines()[1:]:
        words = line.split()
        if len(words) >= 8 and words[7].isdigit():
            found[words[1], words[0]] = word(STATES, int(words[7]))
    return found


def association(line: str, known: dict[tuple[str, str], str]) -> Association | None:
    before, arrow, after = line.partition("<->")
    words = before.split()
    if not arrow or len(words) < 14:
        return None
    remote = [text for text in after.split() if is_address(text)]
    paths = tuple(
        Path(
            address=usual(text.lstrip("*")),
            state=known.get((words[6], text.lstrip("*")), "unknown"),
            marks=("primary",) if text.startswith("*") else (),
        )
        for text in remote
    )
    return Association(
        assoc_id=int(words[6]),
        local_port=int(words[11]),
        peer_port=int(words[12]),
        state=word(ASSOCIATION_STATES, int(words[4])),
        path_count=len(paths),
        paths=paths,
    )


def associations(assocs: str, remaddr: str) -> tuple[Association, ...]:
    """From the text of both files."""
    known = states(remaddr)
    found = (association(line, known) for line in assocs.splitlines()[1:])
    return tuple(one for one in found if one)


def read(folder: File) -> tuple[Association, ...]:
    """From FOLDER, /proc/net/sctp."""
    return associations(text_of(folder / "assocs"), text_of(folder / "remaddr"))
