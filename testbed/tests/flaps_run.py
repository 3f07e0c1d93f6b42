# SPDX-License-Identifier: GPL-2.0
"""Paths that come and go at random, with the settings drawn for it and all of failover's own on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sctplab.random import flaps
from sctplab.run import runner
from sctplab.spec.model import RunSpec
from sctplab.spec.scenario import Choice
from tests.failover_run import good, with_more_settings

FAILOVER = dict.fromkeys(
    ("failover_suspect", "failover_link", "failover_return", "failover_useless", "init_alternate"), "1"
)
PATHS = ({}, {"cmt": "1"}, {"cmt": "1", "cmt_scheduler": "redundant"}, {"redundant_bytes": "200"})


@contextmanager
def open_bench() -> Iterator[runner.Bench]:
    with runner.bench_for([drawn(1)]) as made:
        yield made


def drawn(seed: int) -> RunSpec:
    return flaps.spec(seed, "patched", Choice())


def with_failover(seed: int) -> RunSpec:
    """One path in use, several, each message over two of them, and the small ones, in turn."""
    return with_more_settings(drawn(seed), FAILOVER | PATHS[seed % len(PATHS)])


def check(spec: RunSpec, bench: runner.Bench) -> None:
    """Everything arrives once and in order, the association lives, the kernel has no complaint."""
    assert len(good(bench, spec)["events"]) == len(spec.events)
