# SPDX-License-Identifier: GPL-2.0
"""Closed windows: what is drawn keeps its promises and follows from the seed alone; waits are compared."""

from dataclasses import replace

import pytest
from sctplab.measure.judge import Judged, waits
from sctplab.random import closed
from sctplab.spec.model import RunSpec
from sctplab.spec.scenario import Choice
from sctplab.spec.schema import At, build, plain

SEEDS = range(1, 101)


def drawn(seed: int, kernel: str = "patched", variant: str = closed.OFF) -> RunSpec:
    return closed.spec(seed, kernel, Choice(), variant)


def test_a_spec_follows_from_its_seed() -> None:
    assert drawn(7) == drawn(7)
    assert drawn(7).flows != drawn(8).flows and drawn(7).topology != drawn(8).topology


def test_variants_and_kernels_differ_in_settings_only() -> None:
    off, stock = drawn(7), drawn(7, "stock")
    assert replace(off, kernel="stock") == stock
    for variant in closed.PROFILES:
        one = drawn(7, variant=variant)
        assert one.sysctl.host1 and replace(one, variant=closed.OFF, sysctl=off.sysctl) == off


def test_every_kernel_has_its_runs() -> None:
    assert [one.variant for one in closed.runs(1, "stock", Choice())] == [closed.OFF]
    assert [one.variant for one in closed.runs(1, "patched", Choice())] == [closed.OFF, *closed.PROFILES]


@pytest.mark.parametrize("seed", range(1, 11))
def test_a_spec_survives_its_file(seed: int) -> None:
    assert build(RunSpec, plain(drawn(seed)), At("spec", "")) == drawn(seed)


def test_cuts_are_before_at_and_after_the_wake_up() -> None:
    when = set()
    for spec in map(drawn, SEEDS):
        (flow,) = spec.flows
        assert flow.reader_sleeps_s and closed.CLOSED_S[0] <= flow.reader_sleeps_s <= closed.CLOSED_S[1]
        wakes_s = flow.reader_sleeps_s + closed.HANDSHAKE * spec.topology.paths[0].forward.delay_ms / 1000
        cut = spec.events[0].at_s - wakes_s
        when.add(0 if abs(cut) < 1e-6 else cut / abs(cut))
        assert flow.messages and flow.messages * flow.message_b > 2 * 1024 * flow.rcvbuf_kb
    assert when == {-1, 0, 1}


def judged(wait_s: float, seed: int = 1, kernel: str = "patched", variant: str = closed.OFF) -> Judged:
    return Judged(drawn(seed, kernel, variant), 1.0, (), wait_s)


def test_off_may_not_wait_longer_than_stock_for_any_seed() -> None:
    stock = [judged(1.0, 1, "stock"), judged(2.0, 2, "stock")]
    assert not list(waits([*stock, judged(1.005, 1), judged(2.0, 2)]))
    (told,) = waits([*stock, judged(1.5, 1)])
    assert "waits 1.500 s, stock 1.000" in told


def test_a_profile_may_not_have_a_longer_wait_than_stock_ever_has() -> None:
    stock = [judged(1.0, 1, "stock"), judged(2.0, 2, "stock")]
    assert not list(waits([*stock, judged(1.5, 1, variant="bulk")]))
    (told,) = waits([*stock, judged(1.5, 1, variant="bulk"), judged(2.5, 2, variant="bulk")])
    assert told == "bulk: waits 2.500 s, stock 2.000; longer in 2 of 2"
