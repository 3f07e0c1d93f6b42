# SPDX-License-Identifier: GPL-2.0
"""The series' own unit tests, which the kunit variant runs when it starts: one test here for each."""

import re

import pytest
from sctpkernel.series import load_series
from sctplab.spec.model import USUAL_BASE
from tests import ktap
from tests.kernel_run import linux, run_work

pytestmark = pytest.mark.kernel

SUITES = ("sctp-multipath", "sctp-multipath-cmt", "sctp-multipath-bounds")
WALL_S = 120  # a second on an idle machine
# The names stand in the patches, so they are known before a kernel is built and none can go missing.
CASES = [
    name
    for patch in load_series(USUAL_BASE)
    for name in re.findall(r"^\+\s*KUNIT_CASE\w*\((\w+)", patch.text, re.MULTILINE)
]


@pytest.fixture(scope="module")
def suites(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ktap.Result]:
    result = run_work("log", linux("patched", "kunit"), tmp_path_factory.mktemp("kunit"), WALL_S)
    return ktap.read(result["log"])


@pytest.fixture(scope="module")
def parts(suites: dict[str, ktap.Result]) -> dict[str, ktap.Result]:
    """The cases of all suites by their names, which differ."""
    return {name: part for suite in SUITES for name, part in suites[suite].parts.items()}


def test_all_cases_ran(parts: dict[str, ktap.Result]) -> None:
    assert CASES and sorted(parts) == sorted(CASES)


@pytest.mark.parametrize("case", CASES)
def test_case(parts: dict[str, ktap.Result], case: str) -> None:
    found = parts[case]
    if found.verdict != "ok":
        pytest.fail(f"{found.verdict}:\n{found.diagnosis}", pytrace=False)


def test_suite(suites: dict[str, ktap.Result]) -> None:
    """Its verdict covers what runs around the cases, too."""
    assert {name: found.verdict for name, found in suites.items()} == dict.fromkeys(suites, "ok")
