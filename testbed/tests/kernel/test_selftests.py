# SPDX-License-Identifier: GPL-2.0
"""The selftests that the series adds to the kernel: all pass with it, and skip without."""

import re
from pathlib import Path

import pytest
from sctpkernel.selftests import LIST, TARGET, installed, listed
from tests.kernel_run import linux, run_work

pytestmark = pytest.mark.kernel

WALL_S = 400  # all of them; half a minute on an idle machine
SKIPPED = 4  # exit code
TESTS = {"mp_cmt.sh": 11, "mp_failover.sh": 8, "mp_sockopt": 78, "mp_sysctl.sh": 49}  # results of each


def run(flavour: str, folder: Path) -> dict[str, tuple[int, str]]:
    """Exit code and output of every test."""
    tests = listed((installed() / LIST).read_text(encoding="utf-8"))
    scripts = [f"cd {installed() / TARGET} && ./{test}" for test in tests]
    ended = run_work("shell", linux(flavour), folder, WALL_S, scripts=scripts, environment={})["ended"]
    return {
        test: (one["exit"], one["output"] + one["errors"]) for test, one in zip(tests, ended, strict=True)
    }


@pytest.fixture(scope="module")
def patched(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str]]:
    return run("patched", tmp_path_factory.mktemp("patched"))


def test_these_are_all(patched: dict[str, tuple[int, str]]) -> None:
    assert sorted(patched) == sorted(TESTS)


@pytest.mark.parametrize("test", TESTS)
def test_they_pass(test: str, patched: dict[str, tuple[int, str]]) -> None:
    code, output = patched[test]
    passed = re.findall(r"^ok \d+ (?!.*# SKIP)", output, re.MULTILINE)
    assert (code, len(passed)) == (0, TESTS[test]), output


def test_they_skip_on_stock(tmp_path: Path) -> None:
    ended = run("stock", tmp_path)
    assert {test: code for test, (code, _) in ended.items()} == dict.fromkeys(TESTS, SKIPPED)
