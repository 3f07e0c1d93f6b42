# SPDX-License-Identifier: GPL-2.0
"""Sockets that wait to fill a packet: their options by pidfd_getfd(2), their messages by sock_diag(7)."""

from __future__ import annotations

from failover import live
from pathview.model import Association
from sctpkernel.errors import Problem

MOST = 32  # associations whose sockets are looked for


def message_b(one: Association) -> int:
    """Bytes of a DATA chunk of the association, on average; 0 if it has sent none, or several in a packet."""
    packets = sum(path.out_packets or 0 for path in one.paths)
    chunks = sum(path.out_chunks or 0 for path in one.paths)
    size_b = sum(path.out_bytes or 0 for path in one.paths)
    if not chunks or 2 * chunks > 3 * packets:
        return 0
    return max(1, round((size_b - live.HEADERS_B * packets) / chunks) - live.CHUNK_B)


def waiting() -> tuple[tuple[str, int], ...]:
    """(identity, bytes) of those with lone messages and without SCTP_NODELAY; () where nobody tells."""
    try:
        found = live.associations()[:MOST]
    except Problem:
        return ()
    return tuple(
        (str(one.assoc_id), size_b)
        for one, inode in found
        if (size_b := message_b(one)) and not live.options_of(inode, one.assoc_id).get("nodelay", 1)
    )
