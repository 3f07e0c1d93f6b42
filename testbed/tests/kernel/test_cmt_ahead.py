# SPDX-License-Identifier: GPL-2.0
"""CMT with a receive window that is small for its paths: the slow one is sent what is due when it arrives."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace
from statistics import median, quantiles
from typing import Any

import pytest
from sctplab.measure.capture import Chunk
from sctplab.random import cmt
from sctplab.spec.model import RunSpec
from tests.cmt_run import MESSAGE_B, Lab, Seen, bulk, cell, metrics_of, open_lab, paths, spec

pytestmark = pytest.mark.kernel
FAST_MS, SLOW_MS = 10.0, 50.0
WINDOW_KB = 64  # of which the fast path needs 24; in 60 ms it is less than that carries
RATE_MBIT = 10.0
MESSAGES_PER_MS = RATE_MBIT * 1000 / 8 / (MESSAGE_B + 62)  # with the headers of SCTP, IP and Ethernet
SETTLED_S = 1.0
PER_PATH = {"cmt_sack": "per-path"}
SENT_AHEAD = "SctpMpSentAhead"
DEFAULT_PRINFO, TTL_POLICY, LONG_MS = 114, 0x10, 100000
ROUND_ROBIN = 2
LIFETIME = f"sctp:{DEFAULT_PRINFO}:{struct.pack('=iIH2x', 0, LONG_MS, TTL_POLICY).hex()}"
SCHEDULER = cmt.association(cmt.STREAM_SCHEDULER, ROUND_ROBIN)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with open_lab(tmp_path_factory) as opened:
        yield opened


def small_window(size_mb: float = 4, loss_pct: float = 0, **keys: Any) -> RunSpec:
    """KEYS: of the flow."""
    flow = bulk(size_mb, rcvbuf_kb=WINDOW_KB, sndbuf_kb=1024)
    return spec(
        paths(FAST_MS, SLOW_MS, rate_mbit=RATE_MBIT, loss_pct=loss_pct), replace(flow, **keys), PER_PATH
    )


def ahead_by(seen: Seen) -> list[int]:
    """How many messages each chunk that went to the slow path was ahead of the newest of the fast one."""
    steps, newest = [], 0
    for one in seen.new:
        if one.path == "path1":
            newest = message(one)
        elif seen.seconds(one) > SETTLED_S:
            steps.append(message(one) - newest)
    return steps


def waits_s(seen: Seen) -> list[float]:
    """How long each message that came over the slow path waited in the receiver for those before it."""
    arrived = {message(one): one for one in reversed(seen.answers()) if one.kind == "DATA"}
    waits, handed_on = [], 0.0
    for number in range(len(arrived)):
        here = seen.seconds(arrived[number])
        handed_on = max(handed_on, here)
        if arrived[number].path == "path2" and here > SETTLED_S:
            waits.append(handed_on - here)
    return waits


def message(one: Chunk) -> int:
    """Its number; each is a chunk, in the one stream."""
    assert one.ssn is not None
    return one.ssn


def test_the_slow_path_is_sent_what_is_due_when_it_arrives(lab: Lab) -> None:
    """Its messages are ahead of the fast path's, by what that delivers until they are there."""
    seen = lab.see(small_window())
    assert seen.record["metrics"]["rtx_ratio"] == 0
    assert seen.share("path2", SETTLED_S) > 0.2
    steps = quantiles(ahead_by(seen), n=20)
    due = (SLOW_MS - FAST_MS) * MESSAGES_PER_MS
    assert steps[0] >= 1
    assert due / 2 < steps[9] < due * 3 / 2


def test_the_receiver_keeps_them_for_a_short_time(lab: Lab) -> None:
    """Half of the time, at most, that one sent in its turn would keep the others."""
    assert median(waits_s(lab.see(small_window()))) < (SLOW_MS - FAST_MS) / 1000 / 2


@pytest.mark.parametrize(
    "keys",
    [
        {"unordered": True},
        {"message_b": 5000},
        {"message_b": 100},
        {"sockopts": (LIFETIME,)},
        {"streams": 2, "sockopts": (SCHEDULER,)},
        {"rcvbuf_kb": 4096},
        {"sndbuf_kb": 64},
    ],
    ids=["unordered", "fragments", "small", "lifetime", "scheduler", "large window", "small send buffer"],
)
def test_where_order_or_window_do_not_ask_for_it_nothing_is(lab: Lab, keys: dict[str, Any]) -> None:
    """But for the message of one packet with which a flow ends: it may pass fragments."""
    assert lab.see(small_window(size_mb=1, **keys)).counter(SENT_AHEAD) <= 1


def test_it_goes_on_with_losses(lab: Lab) -> None:
    seen, clean = lab.see(small_window(loss_pct=2)), lab.see(small_window())
    assert seen.record["metrics"]["rtx_ratio"] > 0
    assert seen.counter(SENT_AHEAD) > clean.counter(SENT_AHEAD) / 2


@pytest.mark.parametrize(("d2_ms", "rcvbuf_kb"), [(50, 256), (200, 1024)])
def test_it_is_more_than_the_window_carries_in_order(lab: Lab, d2_ms: int, rcvbuf_kb: int) -> None:
    """In order all of the window waits until the slow path delivers, and its SACK has come back at best."""
    factors = {"d2_ms": d2_ms, "size_mb": 40, "rcvbuf_kb": rcvbuf_kb}
    metrics = metrics_of(lab.bench, cell("cmt-buffers", "cmt-per-path", **factors))
    in_order_mbit = rcvbuf_kb * 1024 * 8 / (d2_ms + FAST_MS) / 1000
    assert metrics["goodput_mbit"] > 1.2 * in_order_mbit
