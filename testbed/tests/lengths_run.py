# SPDX-License-Identifier: GPL-2.0
"""A path gets another length for good: what is carried afterwards, beside the same paths from the start."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sctplab.random import lengths
from sctplab.run import runner
from sctplab.spec.model import RunSpec
from sctplab.spec.scenario import Choice
from tests.failover_run import good

# Of what the same paths carry from the start: their windows have grown from other ones, and a long path wins
# back a packet per round trip. Of what the better one does alone.
LEAST, LEAST_ALONE = 0.9, 0.98


def drawn(seed: int) -> list[RunSpec]:
    return lengths.runs(seed, "patched", Choice(), {})


@contextmanager
def open_bench() -> Iterator[runner.Bench]:
    with runner.bench_for(drawn(1)) as made:
        yield made


def check(seed: int, bench: runner.Bench) -> None:
    """From twenty round trips after the change on.

    A path that was left alone for its length is measured by HEARTBEATs only, one every 30 s: when it becomes
    shorter the others go on without it. Where the same paths are slower from the start than the better one
    alone, that is not for their lengths of before.
    """
    specs = drawn(seed)
    carried = {spec.variant: lengths.goodput_mbit(good(bench, spec)) for spec in specs}
    changed, start = carried.pop(lengths.CHANGED), carried.pop(lengths.FROM_START)
    assert changed >= LEAST_ALONE * min(start, max(carried.values())), (changed, start, carried)
    (event,) = specs[0].events
    if event.values["delay_ms"] >= lengths.LONG_MS[0]:
        assert changed >= LEAST * start, (changed, start)
