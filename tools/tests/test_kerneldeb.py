# SPDX-License-Identifier: GPL-2.0
"""Kernel packages: what the configuration of a distribution keeps, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from sctpkernel.errors import Problem
from sctpkernel.fragment import Option
from sctpkernel.kerneldeb import main, wanted

SCTP = Option("IP_SCTP", "y", Path("fragment"))
SERIES = Option("SCTP_MULTIPATH", "y", Path("fragment"))


def test_what_is_a_module_in_the_configuration_stays_one() -> None:
    assert [option.value for option in wanted([SCTP, SERIES], {"IP_SCTP": "m"})] == ["m", "y"]
    assert [option.value for option in wanted([SCTP, SERIES], {"IP_SCTP": "n"})] == ["y", "y"]


def test_a_configuration_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Problem, match=r"--config: .*/none: not found"):
        main(["--config", str(tmp_path / "none")])
