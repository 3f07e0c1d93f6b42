# SPDX-License-Identifier: GPL-2.0
"""Effects of each setting of the series on a transfer: path of a retransmission, and what it waits for."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sctplab.run import runner
from sctplab.run.identical import captures_differ, run_captured
from sctplab.spec import scenario
from sctplab.spec.model import HostSettings, RunSpec
from sctplab.spec.scenario import Choice

pytestmark = pytest.mark.kernel
LOSS = {"loss_pct": (10,), "d2_ms": (50,), "size_mb": (3,)}


def variants(name: str, given: dict[str, tuple[Any, ...]]) -> dict[str, RunSpec]:
    found = scenario.expand(
        scenario.load(scenario.find(name)), given, Choice(kernels=("patched",), repeat=1, pcap=True)
    )
    return {spec.variant: spec for spec in found}


@pytest.fixture(scope="module")
def bench() -> Iterator[runner.Bench]:
    """Tools and both kernels."""
    with runner.bench_for(
        scenario.expand(scenario.load(scenario.find("off-clean")), {}, Choice(pcap=True))
    ) as made:
        yield made


@pytest.fixture(scope="module")
def lossy(bench: runner.Bench, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, int]]:
    """Counters of the sender, 10 % loss each way on both paths, same losses for every variant."""
    found = {}
    for name, spec in variants("rtx-policy-loss", LOSS).items():
        record, _ = run_captured(spec, "patched", bench, tmp_path_factory.mktemp("lossy"))
        assert record["status"] == "ok", f"{name}: {record['reason']}"
        found[name] = record["counters"]["host1"]
    return found


def count(counters: dict[str, int], name: str) -> int:
    return counters.get(name, 0)


@pytest.mark.parametrize("variant", ["kernel", "single-homed"])
def test_without_a_policy_or_a_second_path_nothing_is_counted(
    lossy: dict[str, dict[str, int]], variant: str
) -> None:
    assert count(lossy[variant], "SctpFastRetransmits") > 0
    assert [name for name in lossy[variant] if name.startswith("SctpMp") and lossy[variant][name]] == []


def test_fast_retransmissions_take_the_path_of_the_policy(lossy: dict[str, dict[str, int]]) -> None:
    same, alternate = lossy["same+mfr"], lossy["alternate+mfr"]
    assert count(same, "SctpMpRtxSame") > 10 * count(same, "SctpMpRtxAlternate")
    assert count(alternate, "SctpMpRtxAlternate") > 5 * count(alternate, "SctpMpRtxSame")


def test_what_timed_out_takes_an_alternate_path(bench: runner.Bench, tmp_path: Path) -> None:
    """One path is cut one way: its data goes over the other, by policy or, with same, by fallback."""
    cut = variants("demo-cut", {"size_mb": (4,), "cut_s": (0.5,)})["fr-same-rto-alt+mfr"]
    cut = replace(cut, events=tuple(replace(event, direction="forward") for event in cut.events))
    same = {"net.sctp.rtx_policy": "same"}
    found = []
    for number, spec in enumerate([cut, replace(cut, sysctl=HostSettings(same, same))]):
        record, _ = run_captured(spec, "patched", bench, tmp_path / str(number))
        assert record["status"] == "ok", record["reason"]
        found.append(record["counters"]["host1"])
    by_policy, by_fallback = found
    assert count(by_policy, "SctpT3RtxExpireds") > 0
    assert count(by_policy, "SctpMpRtxAlternate") > count(by_policy, "SctpMpRtxFallback")
    assert 0 < count(by_fallback, "SctpMpRtxAlternate") == count(by_fallback, "SctpMpRtxFallback")


def test_what_is_lost_twice_does_not_wait_for_a_timeout(lossy: dict[str, dict[str, int]]) -> None:
    without, with_it = lossy["fr-same-rto-alt"], lossy["fr-same-rto-alt+mfr"]
    assert count(without, "SctpMpMultipleFastRtx") == 0
    assert count(with_it, "SctpMpMultipleFastRtx") > 0
    assert count(with_it, "SctpT3RtxExpireds") < count(without, "SctpT3RtxExpireds") / 2


def test_multiple_fast_rtx_works_with_the_kernels_own_policy(bench: runner.Bench, tmp_path: Path) -> None:
    on = {"net.sctp.multiple_fast_rtx": "1"}
    spec = replace(variants("rtx-policy-loss", LOSS)["kernel"], sysctl=HostSettings(on, on))
    record, _ = run_captured(spec, "patched", bench, tmp_path)
    assert record["status"] == "ok", record["reason"]
    assert count(record["counters"]["host1"], "SctpMpMultipleFastRtx") > 0


def test_fast_recovery_is_kept_per_path_under_a_policy_only(lossy: dict[str, dict[str, int]]) -> None:
    assert count(lossy["same"], "SctpMpFastRecoveries") > 0
    assert count(lossy["kernel"], "SctpMpFastRecoveries") == 0


def test_a_single_path_is_left_alone(bench: runner.Bench, tmp_path: Path) -> None:
    """All settings on, one address: the packets of a stock kernel."""
    spec = variants("rtx-policy-loss", LOSS)["single-homed"]
    on = {"net.sctp.rtx_policy": "fr-same-rto-alt", "net.sctp.multiple_fast_rtx": "1"}
    # As many as stock knows, with their defaults: to write a setting takes a moment of virtual time.
    known = {"net.sctp.rto_min": "1000", "net.sctp.rto_max": "60000"}
    _, stock = run_captured(replace(spec, sysctl=HostSettings(known, known)), "stock", bench, tmp_path / "1")
    record, patched = run_captured(
        replace(spec, sysctl=HostSettings(on, on)), "patched", bench, tmp_path / "2"
    )
    assert record["status"] == "ok", record["reason"]
    assert captures_differ(stock, patched) == ""
