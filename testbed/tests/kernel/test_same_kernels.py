# SPDX-License-Identifier: GPL-2.0
"""Off is stock, byte for byte; same seed, same record. Needs built kernels."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sctplab import cli, runner, scenario
from sctplab.compare import differences
from sctplab.model import RunSpec
from sctplab.same import captures_differ, kernels_differ, run_captured
from sctplab.scenario import Choice

pytestmark = pytest.mark.kernel
OFF = [name for name in scenario.names() if name.startswith("off-")]


def spec_of(name: str) -> RunSpec:
    return scenario.expand(
        scenario.load(scenario.find(name)),
        {},
        Choice(kernels=("stock",), repeat=1, pcap=True),
    )[0]


@pytest.fixture(scope="module")
def bench() -> Iterator[runner.Bench]:
    """Tools and both kernels."""
    found = scenario.expand(scenario.load(scenario.find(OFF[0])), {}, Choice(repeat=1, pcap=True))
    with cli.bench(found) as made:
        yield made


def test_there_are_enough_off_scenarios() -> None:
    assert len(OFF) >= 6


@pytest.mark.parametrize("name", OFF)
def test_patched_with_defaults_sends_what_stock_sends(name: str, bench: runner.Bench, tmp_path: Path) -> None:
    assert kernels_differ(spec_of(name), "stock", "patched", bench, tmp_path) == ""


@pytest.mark.parametrize("name", OFF)
def test_same_seed_same_record(name: str, bench: runner.Bench, tmp_path: Path) -> None:
    spec = spec_of(name)
    one, captured = run_captured(spec, "patched", bench, tmp_path / "1")
    other, again = run_captured(spec, "patched", bench, tmp_path / "2")
    assert one["status"] == "ok", one["reason"]
    assert list(differences(one, other)) == []
    assert captures_differ(captured, again) == ""
