# SPDX-License-Identifier: GPL-2.0
"""Outages of the kernel that is tested raise the alerts of Documentation/alerts.yml."""

from pathlib import Path

import pytest
from tests.alerts_run import FIRING, SCRAPE_S, Look, check, firing, outages, scrape
from tests.kernel_run import linux, run_work

pytestmark = pytest.mark.kernel
WALL_S = 500
# Outage -> alerts that have to be among those that fire; how many more do depends on single timeouts.
EXPECTED = {
    "healthy": (),
    "cut": ("SctpPathDown", "SctpOnePathLeft", "SctpPrimaryNotUsed"),
    "flaps": ("SctpPathFlapping",),
    "loss": ("SctpRetransmissionsHigh",),
    "both": ("SctpAssociationNearLimit",),
}


@pytest.fixture(scope="module")
def looked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Look]]:
    folder = tmp_path_factory.mktemp("outage")
    return outages(run_work("outage", linux("patched"), folder, WALL_S)["outages"])


@pytest.mark.parametrize("name", EXPECTED)
def test_alerts_fire(looked: dict[str, list[Look]], name: str, tmp_path: Path) -> None:
    found = [scrape(look) for look in looked[name]]
    last = (len(found) - 1) * SCRAPE_S
    names = EXPECTED[name]
    some = f'{{alertstate="firing",alertname=~"{"|".join(names) or ".+"}"}}'
    some_time = firing(names, last, f"max_over_time(ALERTS{some}[1h])")
    check(tmp_path, found, promql_expr_test=[firing((), 60, FIRING), some_time])
