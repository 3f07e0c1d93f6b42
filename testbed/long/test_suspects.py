# SPDX-License-Identifier: GPL-2.0
"""Paths that become longer, answer late or lose data, two hundred each: failover_suspect does no harm."""

from collections.abc import Iterator

import pytest
from sctplab.random import suspects
from sctplab.run import runner
from sctplab.spec.scenario import Choice
from tests.suspects_run import NAMES, check

pytestmark = pytest.mark.kernel


@pytest.fixture(scope="module")
def bench() -> Iterator[runner.Bench]:
    with runner.bench_for([suspects.spec(1, "patched", Choice(), suspects.LONGER)]) as made:
        yield made


@pytest.mark.parametrize("seed", range(1, 201))
@pytest.mark.parametrize("name", NAMES)
def test_a_path_is_taken_for_what_it_is(name: str, seed: int, bench: runner.Bench) -> None:
    check(name, seed, bench)
