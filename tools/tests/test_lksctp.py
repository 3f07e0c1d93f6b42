# SPDX-License-Identifier: GPL-2.0
"""Programs named in lksctp-tools' source package, and where that comes from."""

from __future__ import annotations

from pathlib import Path

import pytest
from sctpkernel import debian, lksctp
from sctpkernel.errors import Problem

MAKEFILE = """\
PASSING_KERN_TESTS = \\
	test_basic \\
	test_tcp_style\\
	test_1_to_1_send

if HAVE_SCTP_SENDV
PASSING_V6_KERN_TESTS += \\
	test_basic_v6
endif

test_basic_SOURCES = test_basic.c
	@for a in $^;				\\
"""
URIS = "'http://mirror.example/debian/dists/bookworm/main/binary-amd64/Packages.xz' name 0 "


def test_programs_of_a_makefile() -> None:
    found = lksctp.programs(MAKEFILE)
    assert found == ["test_basic", "test_tcp_style", "test_1_to_1_send", "test_basic_v6"]


def test_source_packages_are_beside_the_others() -> None:
    line = debian.suite_lines(URIS, "bookworm", ["bookworm"], "deb-src")[0]
    assert line.startswith("deb-src ") and line.endswith(" http://mirror.example/debian bookworm main")


def test_a_program_that_cannot_be_built(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="lksctp-tools: test_basic_v6 cannot be built: "):
        lksctp.compile_program(tmp_path, "test_basic_v6", tmp_path / "out")
