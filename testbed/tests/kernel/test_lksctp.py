# SPDX-License-Identifier: GPL-2.0
"""lksctp-tools' functional tests: patched kernels pass what stock passes, settings off and on."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from sctpkernel.lksctp import functional_tests
from tests.kernel_run import linux, run_work

pytestmark = pytest.mark.kernel

LIMIT_S = 60  # virtual time of one program; the longest takes 5 s on stock
WALL_S = 120  # all programs; a second on an idle machine
# Addresses beside 127.0.0.1, so that sockets bound to any address make associations with several paths.
ADDRESSES = ("10.1.0.1/32", "10.2.0.1/32", "fd01::1/128", "fd02::1/128")
SETTINGS = {
    "off": {},
    "same": {"net.sctp.rtx_policy": "same"},
    "alternate": {"net.sctp.rtx_policy": "alternate"},
    "fr-same-rto-alt+mfr": {"net.sctp.rtx_policy": "fr-same-rto-alt", "net.sctp.multiple_fast_rtx": "1"},
    "failover": {
        "net.sctp.path_max_retrans": "0",
        "net.sctp.failover_heartbeat": "1",
        "net.sctp.dormant_policy": "hop",
        "net.sctp.rtx_policy": "fr-same-rto-alt",
        "net.sctp.multiple_fast_rtx": "1",
    },
    "cmt": {"net.sctp.cmt": "1"},
    "cmt+delayed": {"net.sctp.cmt": "1", "net.sctp.cmt_sack": "delayed"},
    "cmt+per-path": {
        "net.sctp.cmt": "1",
        "net.sctp.cmt_sack": "per-path",
        "net.sctp.cmt_scheduler": "primary-first",
        "net.sctp.rtx_policy": "asap",
    },
}
Verdicts = dict[str, tuple[int | str | None, dict[str, int]]]  # program -> exit code, results by kind


def setup(settings: dict[str, str]) -> list[dict[str, Any]]:
    argvs = [["ip", "link", "set", "lo", "up"]]
    argvs += [["ip", "address", "add", address, "dev", "lo"] for address in ADDRESSES]
    argvs += [["sysctl", "-w", f"{name}={value}"] for name, value in settings.items()]
    return [{"where": "", "argv": argv} for argv in argvs]


def verdicts(flavour: str, settings: dict[str, str], folder: Path) -> Verdicts:
    """The verdict of every program on a kernel with these settings; "crashed" for one without a result."""
    programs = functional_tests()
    found: Verdicts = {path.name: ("crashed", {}) for path in programs}
    plan = {"setup": setup(settings), "programs": [str(path) for path in programs], "limit_s": LIMIT_S}
    result = run_work("programs", linux(flavour), folder, WALL_S, **plan)
    assert {name: result["sysctls"].get(name) for name in settings} == settings
    for name, one in result["programs"].items():
        kinds = re.findall(r"^\S+ +\d+ +([A-Z]+) *:", one["output"], re.MULTILINE)
        found[name] = (one["exit"], dict(Counter(kinds)))
    return found


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Verdicts:
    return verdicts("stock", {}, tmp_path_factory.mktemp("stock"))


def test_every_program_passes_on_stock(stock: Verdicts) -> None:
    assert len(stock) >= 43
    assert {name: said for name, said in stock.items() if said[0] != 0 or not said[1].get("PASS")} == {}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS.keys())
def test_verdicts_are_those_of_stock(settings: dict[str, str], stock: Verdicts, tmp_path: Path) -> None:
    assert verdicts("patched", settings, tmp_path) == stock
