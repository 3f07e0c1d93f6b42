# SPDX-License-Identifier: GPL-2.0
"""The series' own unit tests, which the kunit variant runs when it starts: one test here for each.

The kernel's own parser reads what they print, tools/testing/kunit/kunit_parser.py of the reference base:
later ones are called in another way.
"""

import importlib
import re
import sys
from collections import Counter
from typing import Any

import pytest
from sctpkernel.bases import find_base, reference_base
from sctpkernel.series import load_series
from sctpkernel.source import unpacked
from sctplab.spec.model import USUAL_BASE
from tests.kernel_run import linux, run_work

pytestmark = pytest.mark.kernel

PARTS = ("", "-bounds", "-cmt", "-diag", "-link", "-suspect", "-twice")
SUITES = [f"sctp-multipath{part}" for part in PARTS]
WALL_S = 120  # a second on an idle machine


def cases() -> list[str]:
    """Those of the whole series: a patch may take back what one before it brought.

    The names stand in the patches, so they are known before a kernel is built and none can go missing.
    """
    count: Counter[str] = Counter()
    for patch in load_series(USUAL_BASE):
        for way, name in re.findall(r"^([+-])\s*KUNIT_CASE\w*\((\w+)", patch.text, re.MULTILINE):
            count[name] += 1 if way == "+" else -1
    return [name for name, times in count.items() if times > 0]


CASES = cases()


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """All that was printed, as the parser's Test: name, status, subtests, log, counts."""
    folder = str(unpacked(find_base(reference_base())) / "tools/testing/kunit")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        patch.setattr(sys, "dont_write_bytecode", True)
        parser = importlib.import_module("kunit_parser")
    result = run_work("log", linux("patched", "kunit"), tmp_path_factory.mktemp("kunit"), WALL_S)
    return parser.parse_run_tests(result["log"])


@pytest.fixture(scope="module")
def suites(every: Any) -> dict[str, Any]:
    return {suite.name: suite for suite in every.subtests}


@pytest.fixture(scope="module")
def parts(suites: dict[str, Any]) -> dict[str, Any]:
    """The cases of all suites by their names, which differ."""
    return {part.name: part for suite in SUITES for part in suites[suite].subtests}


def test_all_cases_ran(every: Any, parts: dict[str, Any]) -> None:
    """And nothing is out of order, missing from a plan, or beyond it."""
    assert CASES and sorted(parts) == sorted(CASES)
    assert every.counts.errors == 0


@pytest.mark.parametrize("case", CASES)
def test_case(parts: dict[str, Any], case: str) -> None:
    found = parts[case]
    if found.status.name != "SUCCESS":
        pytest.fail("\n".join([found.status.name, *found.log]), pytrace=False)


def test_suite(suites: dict[str, Any]) -> None:
    """Its verdict covers what runs around the cases, too."""
    verdicts = {name: suite.status.name for name, suite in suites.items()}
    assert set(SUITES) <= verdicts.keys() and set(verdicts.values()) == {"SUCCESS"}
