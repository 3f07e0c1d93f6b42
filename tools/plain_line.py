# SPDX-License-Identifier: GPL-2.0
"""pytest plugin: the output ends with the line "N passed, N failed", and in CI a skipped test has failed."""

import os

import pytest

FAILED = ("failed", "error")


class PlainLine:
    """Counts reports as the terminal does; lives in the process that prints."""

    def __init__(self, skips_fail: bool) -> None:
        self.failed_kinds = (*FAILED, "skipped", "xfailed") if skips_fail else FAILED
        self.passed = 0
        self.failed = 0

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is None:
            return
        self.passed = len(reporter.stats.get("passed", []))
        self.failed = sum(len(reporter.stats.get(kind, [])) for kind in self.failed_kinds)
        if self.failed and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_unconfigure(self) -> None:
        print(f"{self.passed} passed, {self.failed} failed")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # a worker of xdist prints nothing
        config.pluginmanager.register(PlainLine(bool(os.environ.get("CI"))))
