# SPDX-License-Identifier: GPL-2.0
"""Off is stock, byte for byte; same seed, same record. Needs built kernels."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from sctplab.report.compare import differences
from sctplab.run import runner
from sctplab.run.identical import captures_differ, kernels_differ, run_captured
from sctplab.spec import scenario
from sctplab.spec.model import RunSpec
from sctplab.spec.profiles import settings_of
from sctplab.spec.scenario import Choice
from tests.cmt_run import with_settings

pytestmark = pytest.mark.kernel
OFF = [name for name in scenario.names() if name.startswith("off-")]
# The series' settings and as many of stock's, at their defaults: to write one takes a moment of virtual time.
PROFILE = {key.removeprefix("net.sctp."): value for key, value in settings_of("00-off").items()}
STOCKS_OWN = ("association_max_retrans", "hb_interval", "path_max_retrans", "pf_enable", "pf_retrans")
STOCKS_OWN += ("rto_initial", "rto_max", "rto_min", "sack_timeout")
MORE_OF_STOCK = {"max_burst": "4", "max_init_retransmits": "8", "rwnd_update_shift": "4"}  # in no profile
MORE_OF_STOCK |= {"prsctp_enable": "1", "ps_retrans": "65535", "sndbuf_policy": "0", "rcvbuf_policy": "0"}
MORE_OF_STOCK |= {"cookie_preserve_enable": "1", "addip_enable": "0"}
DEFAULTS = {name: value for name, value in PROFILE.items() if name not in STOCKS_OWN}
STOCK_DEFAULTS = dict(
    islice(({name: PROFILE[name] for name in STOCKS_OWN} | MORE_OF_STOCK).items(), len(DEFAULTS))
)


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
    with runner.bench_for(found) as made:
        yield made


def test_there_are_enough_off_scenarios() -> None:
    assert len(OFF) >= 6 and len(DEFAULTS) == len(STOCK_DEFAULTS)


@pytest.mark.parametrize("name", OFF)
def test_patched_with_defaults_sends_what_stock_sends(name: str, bench: runner.Bench, tmp_path: Path) -> None:
    assert kernels_differ(spec_of(name), "stock", "patched", bench, tmp_path) == ""


@pytest.mark.parametrize(
    "more",
    [
        {},
        {
            "cmt_split_fast_rtx": "0",
            "cmt_loss_detection": "missing-reports",
            "cmt_scheduler": "primary-first",
        },
    ],
    ids=["defaults", "idle"],
)
def test_what_is_written_means_nothing_while_cmt_is_0(
    more: dict[str, str], bench: runner.Bench, tmp_path: Path
) -> None:
    captures = []
    for kernel, values in (("stock", STOCK_DEFAULTS), ("patched", DEFAULTS | more)):
        spec = with_settings(spec_of("off-three"), **values)
        record, folder = run_captured(spec, kernel, bench, tmp_path / kernel)
        assert record["status"] == "ok", record["reason"]
        captures.append(folder)
    assert captures_differ(*captures) == ""


@pytest.mark.parametrize("name", OFF)
def test_same_seed_same_record(name: str, bench: runner.Bench, tmp_path: Path) -> None:
    spec = spec_of(name)
    one, captured = run_captured(spec, "patched", bench, tmp_path / "1")
    other, again = run_captured(spec, "patched", bench, tmp_path / "2")
    assert one["status"] == "ok", one["reason"]
    assert list(differences(one, other)) == []
    assert captures_differ(captured, again) == ""
