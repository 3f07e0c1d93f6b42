# SPDX-License-Identifier: GPL-2.0
"""Documentation/alerts.yml on outages that were recorded in the laboratory, evaluated by promtool."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path as File
from typing import Any

import pytest
from pathview.metrics import Scrape, families
from pathview.model import Association, Path
from sctplab.paths import ROOT
from settings import COUNTERS
from tests.alerts_run import (
    ALERTS,
    SCRAPE_S,
    check,
    check_outage,
    firing,
    promtool,
    recorded,
    scrape,
)

# Outage -> the alerts that fire at some time of it. All but the first begin at 60 s.
EXPECTED = {
    "healthy": set(),
    "cut": {"SctpPathDown", "SctpOnePathLeft", "SctpPrimaryNotUsed"},
    "flaps": {"SctpPathFlapping"},
    "loss": {"SctpRetransmissionsHigh"},
    "both": {"SctpPathDown", "SctpOnePathLeft", "SctpAssociationNearLimit"},
}
LASTING = {"flaps"}  # the alert looks back on 15 minutes
SEES_LESS = 'ALERTS{alertstate="firing",alertname="SctpExporterSeesLess"}'
BOARD = ROOT / "Documentation" / "grafana.json"


def scrapes(name: str) -> list[Scrape]:
    return [scrape(look) for look in recorded()[name]]


@pytest.mark.parametrize("name", EXPECTED)
def test_each_outage_raises_its_alerts_and_no_others(name: str, tmp_path: File) -> None:
    found = scrapes(name)
    last = (len(found) - 1) * SCRAPE_S
    check_outage(tmp_path, found, [60] if name in LASTING else [60, last], EXPECTED[name])


def alert(name: str, at_s: int, severity: str, labels: dict[str, str], *said: str) -> dict[str, object]:
    """One alert as promtool expects it; SAID: summary and description."""
    one = {
        "exp_labels": {"severity": severity, "job": "sctp", "instance": "a", **labels},
        "exp_annotations": dict(zip(("summary", "description"), said, strict=True)),
    }
    return {"eval_time": f"{at_s}s", "alertname": name, "exp_alerts": [one]}


def ends(name: str) -> dict[str, str]:
    """The labels of the association that sends."""
    one = next(one for one in recorded()[name][0] if one.peer_port == 5000)
    return {"local_port": str(one.local_port), "peer_port": "5000", "peer": "10.1.0.2"}


FIRST = {"path": "10.1.0.2"}


def test_path_down_says_which_path(tmp_path: File) -> None:
    labels = ends("cut")
    port = labels["local_port"]
    told = (
        alert(
            *("SctpPathDown", 105, "warning", labels | FIRST, "SCTP path to 10.1.0.2 is down"),
            f"The path of the association from port {port} to 10.1.0.2 port 5000 has not been active for "
            "30 s. `sctp-multipath paths` tells why, `sctp-multipath doctor` what to do.",
        ),
        alert(
            *(
                "SctpOnePathLeft",
                105,
                "critical",
                labels,
                "SCTP association with 10.1.0.2 has 1 active path(s)",
            ),
            f"One more failure stops the association from port {port} to port 5000.",
        ),
        alert(
            *("SctpPrimaryNotUsed", 210, "warning", labels | FIRST),
            "The primary SCTP path to 10.1.0.2 carries no data",
            f"Other paths of the association from port {port} to port 5000 do.",
        ),
    )
    check(tmp_path, scrapes("cut"), alert_rule_test=list(told))


def test_flapping_says_how_often(tmp_path: File) -> None:
    told = alert(
        *("SctpPathFlapping", 420, "warning", ends("flaps") | FIRST),
        "SCTP path to 10.1.0.2 fails and comes back again and again",
        "It has changed its state at least 8 times in 15 minutes. Look for a link that flaps, or for an "
        "RTO that is too short for this path.",
    )
    check(tmp_path, scrapes("flaps"), alert_rule_test=[told])


def busy(name: str, at_s: int) -> Association:
    """The association that sends, as it is at a time."""
    return next(one for one in recorded()[name][at_s // SCRAPE_S] if one.peer_port == 5000)


def test_retransmissions_are_told_as_a_share(tmp_path: File) -> None:
    """Of all that is between the first look and the one at 180 s: the alert looks back on 5 minutes."""
    one = busy("loss", 180).paths[0]
    share = ((one.t3_timeouts or 0) + (one.fast_retransmissions or 0)) / (one.out_chunks or 0)
    told = alert(
        *("SctpRetransmissionsHigh", 180, "warning", ends("loss") | FIRST),
        "SCTP path to 10.1.0.2 retransmits",
        f"{100 * share:.4g}% of the DATA chunks sent in 5 minutes led to a retransmission. The network "
        "loses packets, or the RTO is shorter than round trip and SACK delay.",
    )
    check(tmp_path, scrapes("loss"), alert_rule_test=[told])


def test_an_association_near_its_limit_says_how_near(tmp_path: File) -> None:
    one, labels = busy("both", 75), ends("both")
    told = alert(
        *(
            "SctpAssociationNearLimit",
            75,
            "critical",
            labels,
            "SCTP association with 10.1.0.2 is about to end",
        ),
        f"{100 * (one.errors or 0) / (one.error_limit or 1):.4g}% of Association.Max.Retrans are used up: "
        f"the peer answers over no path. The association is from port {labels['local_port']} to port 5000.",
    )
    check(tmp_path, scrapes("both"), alert_rule_test=[told])


@pytest.mark.parametrize("some", [{"complete": False}, {"limit": 1}])
def test_an_exporter_that_sees_less_says_so(some: dict[str, Any], tmp_path: File) -> None:
    """On a stock kernel, and with more associations than it has series for."""
    looks = recorded()["cut"]
    found = [scrape(look, **some) for look in looks]
    check(
        tmp_path,
        found,
        promql_expr_test=[firing((), 285, SEES_LESS), firing(["SctpExporterSeesLess"], 345, SEES_LESS)],
    )


def test_a_stock_kernel_s_states_raise_alerts(tmp_path: File) -> None:
    """The states of paths are all that it tells."""

    def less(one: Association) -> Association:
        paths = (Path(path.address, path.state, marks=("primary",)) for path in one.paths)
        return Association(
            one.assoc_id, one.local_port, one.peer_port, one.state, one.path_count, tuple(paths)
        )

    found = [scrape(tuple(map(less, look)), complete=False) for look in recorded()["cut"]]
    expected = {"SctpPathDown", "SctpOnePathLeft", "SctpExporterSeesLess"}
    check_outage(tmp_path, found, [60], expected)


def with_cmt(one: Association, at: int) -> Association:
    """Both paths work, new data may take each, and light traffic takes the second one."""
    first, second = one.paths
    return replace(
        one,
        paths=(
            replace(first, marks=("primary", "active"), out_chunks=0),
            replace(second, marks=("active", "retransmission"), out_chunks=100 * at),
        ),
    )


def test_a_primary_that_works_and_carries_nothing_is_no_alert(tmp_path: File) -> None:
    looks = recorded()["healthy"]
    found = [scrape(tuple(with_cmt(one, at) for one in look)) for at, look in enumerate(looks)]
    check_outage(tmp_path, found, [], ())


def known() -> set[str]:
    """The names that a scrape has."""
    counters = dict.fromkeys(
        ("SctpT3RtxExpireds", "SctpFastRetransmits", *(f"SctpMp{name}" for name in COUNTERS)), 0
    )
    one = replace(scrapes("cut")[-1], counters=counters)
    return {sample.name for family in families(one) for sample in family.samples}


def expressions(board: Any) -> list[str]:
    found = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    return [text.replace("$__rate_interval", "1m") for text in found]


def test_alerts_and_board_use_metrics_that_exist() -> None:
    board = json.loads(BOARD.read_text())
    queries = [one["query"] for one in board["templating"]["list"]]
    texts = " ".join([ALERTS.read_text(), *expressions(board), *queries])
    used = set(re.findall(r"\bsctp_[a-z0-9_]+", texts))
    assert len(used) > 20
    assert used <= known()


def test_the_board_s_expressions_can_be_parsed(tmp_path: File) -> None:
    texts = expressions(json.loads(BOARD.read_text()))
    rules = [{"record": f"board:{number}", "expr": text} for number, text in enumerate(texts)]
    (tmp_path / "board.yml").write_text(json.dumps({"groups": [{"name": "board", "rules": rules}]}))
    for file in (ALERTS, tmp_path / "board.yml"):
        done = subprocess.run([promtool(), "check", "rules", str(file)], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_board_shows_what_is_down(tmp_path: File) -> None:
    """Its expressions have results, and the table has the reason."""
    board = json.loads(BOARD.read_text())
    texts = [text.replace("$instance", ".*").replace("$peer", ".*") for text in expressions(board)]
    down = next(text for text in texts if text.startswith("sctp_path_reason"))
    labels = (
        ends("cut") | FIRST | {"job": "sctp", "instance": "a", "source": "10.1.0.1", "reason": "heartbeat"}
    )
    labels["sctp_path_state"] = "inactive"
    said = ",".join(f'{key}="{value}"' for key, value in labels.items())
    one = {
        "expr": f'{down} and on (peer_port) sctp_association_paths{{peer_port="5000"}}',
        "eval_time": "150s",
    }
    check(
        tmp_path,
        scrapes("cut"),
        promql_expr_test=[{**one, "exp_samples": [{"labels": f"{{{said}}}", "value": 1}]}],
    )
