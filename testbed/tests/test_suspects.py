# SPDX-License-Identifier: GPL-2.0
"""Runs in which a path is suspected of what it is not, drawn from seeds, and what is wrong with them."""

from typing import Any

import pytest
from sctplab.random import suspects
from sctplab.spec.model import RunSpec
from sctplab.spec.scenario import Choice

NAMES = (suspects.LONGER, suspects.LATE, suspects.HOLE)


def drawn(name: str, seed: int = 1) -> RunSpec:
    return suspects.spec(seed, "patched", Choice(), name)


def record(delay_s: float = 0.02, **counters: int) -> dict[str, Any]:
    delays = [(number / 100, delay_s) for number in range(2000)]
    return {"series": {"message_delay": delays}, "counters": {"host1": counters}}


@pytest.mark.parametrize("name", NAMES)
def test_a_run_is_a_function_of_its_seed(name: str) -> None:
    assert drawn(name) == drawn(name) != drawn(name, 2)


@pytest.mark.parametrize("seed", range(1, 50))
def test_data_is_in_time_where_answers_are_late(seed: int) -> None:
    whole = drawn(suspects.LATE, seed)
    first, second = whole.topology.paths
    assert whole.events[0].direction == "reverse"
    assert first.forward.delay_ms < second.forward.delay_ms


def test_both_runs_of_a_seed_differ_in_the_setting_alone() -> None:
    off, on = suspects.runs(1, "patched", Choice(), {}, suspects.LONGER)
    values = [one.sysctl.host1["net.sctp.failover_suspect"] for one in (off, on)]
    assert (off.variant, on.variant, values) == ("off", "suspect", ["0", "1"])
    assert (off.topology, off.flows, off.events) == (on.topology, on.flows, on.events)


def test_a_delay_that_is_longer_is_worse() -> None:
    (mean, tail) = suspects.complaints(record(), record(0.03), drawn(suspects.LATE))
    assert mean.startswith("mean delay: got 0.0300") and tail.startswith("p99 delay")


def test_many_copies_are_too_many() -> None:
    whole = drawn(suspects.LONGER)
    assert suspects.complaints(record(), record(SctpMpCopies=20), whole) == []
    assert suspects.complaints(record(), record(SctpMpCopies=1000), whole)


def test_a_path_with_a_hole_is_to_be_left_if_it_is_used() -> None:
    whole = drawn(suspects.HOLE)
    assert suspects.complaints(record(), record(), whole) == []
    assert suspects.complaints(record(SctpT3RtxExpireds=1), record(SctpMpSuspectsMoved=1), whole) == []
    assert suspects.complaints(record(SctpT3RtxExpireds=1), record(SctpMpSuspects=1), whole)
    assert suspects.complaints(record(SctpT3RtxExpireds=1), record(), whole) == []
