# SPDX-License-Identifier: GPL-2.0
"""From settings of net.sctp to the socket options that say the same for one socket. Pure."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from failover.options import (
    ASSOCINFO,
    DELAYED_SACK,
    NODELAY,
    OURS,
    PATHMAXRXT_ZERO,
    PEER_ADDR_PARAMS,
    PEER_ADDR_THLDS,
    RTOINFO,
)
from failover.settings import DORMANT, PREFIX

HEARTBEATS_ON, PATHMAXRXT_ZERO_MEANT = 1, 1 << 10  # flags of SCTP_PEER_ADDR_PARAMS
WORDS = {
    "rtx_policy": (
        *("kernel", "same", "alternate", "fr-same-rto-alt"),
        *("ssthresh", "cwnd", "asap", "lossrate"),
    ),
    "dormant_policy": DORMANT,
    "cmt_scheduler": ("round-robin", "primary-first", "lowest-rtt", "redundant"),
    "cmt_sack": ("standard", "delayed", "per-path"),
}


# Fields of 16 bits; others are of 32.
MOST = dict.fromkeys(("association_max_retrans", "path_max_retrans", "pf_retrans"), (1 << 16) - 1)
MOST_ELSE = (1 << 31) - 1
# An option takes 0 for no change.
NOT_ZERO = (
    "rto_initial",
    "rto_max",
    "rto_min",
    "hb_interval",
    "sack_timeout",
)


class Refused(Exception):
    """One line: which key, what was got and what was expected."""


@dataclass(frozen=True)
class Option:
    """At level IPPROTO_SCTP."""

    number: int
    value: bytes

    def text(self) -> str:
        """As the library reads it."""
        return f"{self.number}:{self.value.hex()}"


def nodelay() -> Option:
    return Option(NODELAY, struct.pack("=i", 1))


def future(number: int, value: int) -> Option:
    """struct sctp_assoc_value, for associations to come."""
    return Option(number, struct.pack("=iI", 0, value))


def whole(key: str, word: str) -> int:
    least, most = int(key in NOT_ZERO), MOST.get(key, MOST_ELSE)
    if not re.fullmatch(r"[0-9]{1,10}", word) or not least <= int(word) <= most:
        raise Refused(f"{PREFIX}{key}: got {word!r}, expected a whole number from {least} to {most}")
    return int(word)


def numbered(key: str, word: str) -> int:
    """The number of a setting that may be a word."""
    words = WORDS.get(key)
    if words is None:
        return whole(key, word)
    if word not in words:
        raise Refused(f"{PREFIX}{key}: got {word!r}, expected one of {', '.join(words)}")
    return words.index(word)


def _rto(found: Mapping[str, int]) -> list[Option]:
    values = (found.get(f"rto_{which}", 0) for which in ("initial", "max", "min"))
    return [Option(RTOINFO, struct.pack("=iIII", 0, *values))]


def _association(found: Mapping[str, int]) -> list[Option]:
    return [Option(ASSOCINFO, struct.pack("=iHHIII", 0, found["association_max_retrans"], 0, 0, 0, 0))]


def _paths(found: Mapping[str, int]) -> list[Option]:
    interval, limit = found.get("hb_interval", 0), found.get("path_max_retrans")
    flags = HEARTBEATS_ON if interval else 0
    before = []
    if limit == 0:
        flags |= PATHMAXRXT_ZERO_MEANT
        before = [future(PATHMAXRXT_ZERO, 1)]
    packed = struct.pack("=i128sIHIIIIBx", 0, b"", interval, limit or 0, 0, 0, flags, 0, 0)
    return [*before, Option(PEER_ADDR_PARAMS, packed)]


def _thresholds(found: Mapping[str, int]) -> list[Option]:
    return [Option(PEER_ADDR_THLDS, struct.pack("=i4x128sHH4x", 0, b"", 0, found["pf_retrans"]))]


def _sack(found: Mapping[str, int]) -> list[Option]:
    return [Option(DELAYED_SACK, struct.pack("=iII", 0, found["sack_timeout"], 0))]


# Settings that share an option of every kernel.
SHARED: dict[tuple[str, ...], Callable[[Mapping[str, int]], list[Option]]] = {
    ("rto_initial", "rto_max", "rto_min"): _rto,
    ("association_max_retrans",): _association,
    ("hb_interval", "path_max_retrans"): _paths,
    ("pf_retrans",): _thresholds,
    ("sack_timeout",): _sack,
}


def of_settings(values: Mapping[str, str]) -> tuple[list[Option], list[str]]:
    """Options that say the same as VALUES, and the settings that have none; raises Refused."""
    found = {key.removeprefix(PREFIX): word for key, word in values.items()}
    made: list[Option] = []
    for keys, make in SHARED.items():
        own = {key: whole(key, found[key]) for key in keys if key in found}
        made += make(own) if own else []
    made += [future(OURS[key], numbered(key, word)) for key, word in found.items() if key in OURS]
    covered = {*OURS, *(key for keys in SHARED for key in keys)}
    return made, [key for key in found if key not in covered]
