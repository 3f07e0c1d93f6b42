# SPDX-License-Identifier: GPL-2.0
"""The functional test programs of lksctp-tools, built from Debian's source package into the cache."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

from sctpkernel.bases import package_version
from sctpkernel.debian import fetch_source
from sctpkernel.errors import FAILED, Problem, last_line, warn
from sctpkernel.paths import cache_root, locked, new_folder

SOURCE = "lksctp-tools"
LIBRARY = "libsctp-dev"  # built from the same source; the programs use its header and library
_VERSION_6 = ("-DCONFIG_IPV6=1", "-DTEST_V6=1")


def functional_tests() -> list[Path]:
    """All programs of the version whose library is installed; built when they are not there."""
    version = re.sub(r"\+b\d+$", "", package_version(LIBRARY))  # a rebuild has the source of the first build
    folder = cache_root() / "lksctp" / version
    if not folder.is_dir():
        with locked(cache_root() / "lock" / "lksctp.lock"):
            if not folder.is_dir():
                _make(version, folder)
    return sorted(folder.iterdir())


def programs(makefile: str) -> list[str]:
    """The names that the lists of the programs' Makefile.am have."""
    return re.findall(r"^\t(test_\w+)", makefile, re.MULTILINE)


def _make(version: str, folder: Path) -> None:
    """Fetch, unpack and build; Debian's changes to the source concern packaging only."""
    warn(f"building the functional tests of {SOURCE} {version} ...")
    with tempfile.TemporaryDirectory(prefix="lksctp-") as name:
        source = Path(name)
        fetch_source(SOURCE, version, source)
        tests = source / "src/func_tests"
        with new_folder(folder) as temporary:
            for program in programs((tests / "Makefile.am").read_text(encoding="utf-8")):
                compile_program(tests, program, temporary / program)


def compile_program(tests: Path, program: str, target: Path) -> None:
    """One program as its Makefile.am has it; those for IPv6 are the others with two macros."""
    base = program.removesuffix("_v6")
    macros = _VERSION_6 if base != program else ()
    sources = [str(tests / f"{base}.c"), str(tests.parent / "testlib/sctputil.c")]
    command = ["gcc", "-w", "-O2", "-fno-strict-aliasing", *macros, f"-I{tests.parent}/testlib"]
    command += ["-o", str(target), *sources, "-lsctp", "-lpthread"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Problem(f"{SOURCE}: {program} cannot be built: {last_line(done.stderr)}", FAILED)
