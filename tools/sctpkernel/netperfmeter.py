# SPDX-License-Identifier: GPL-2.0
"""netperfmeter, built from Debian's source against the series' header: a flow can use all paths at once.

Debian's own package is built against a header without SCTP_CMT_ON_OFF, and leaves the option out.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import tempfile
from pathlib import Path

from sctpkernel.bases import find_base, reference_base
from sctpkernel.debian import fetch_source, install, missing
from sctpkernel.errors import FAILED, Problem, last_line, warn
from sctpkernel.paths import cache_root, locked, new_folder
from sctpkernel.series import load_series
from sctpkernel.source import apply_patch, copy_touched, unpacked

NAME, VERSION, SUITE = "netperfmeter", "1.9.6-1", "trixie"
HEADER = "include/uapi/linux/sctp.h"
NEEDS = {"g++": "compiles netperfmeter", "libbz2-dev": "netperfmeter packs its results with it"}
_SOURCES = re.compile(rf"ADD_EXECUTABLE\({NAME}\n([^)]*)\)")


def header() -> str:
    """The header of programs that use SCTP, as the series has it."""
    base = find_base(reference_base())
    source, patches = unpacked(base), load_series(base.name)
    with tempfile.TemporaryDirectory(prefix="header-") as name:
        tree = Path(name)
        copy_touched(source, patches, tree)
        for patch in patches:
            apply_patch(tree, patch, source.name)
        return (tree / HEADER).read_text(encoding="utf-8")


def sources(cmake: str) -> list[str]:
    """The C++ files that its CMakeLists.txt makes the program of."""
    found = _SOURCES.search(cmake)
    return re.findall(r"\S+\.cc", found[1]) if found else []


def built() -> Path:
    """The program; built when it is not there."""
    text = header()
    key = hashlib.sha256(f"{VERSION}\n{text}".encode()).hexdigest()[:12]
    folder = cache_root() / NAME / key
    if not folder.is_dir():
        with locked(cache_root() / "lock" / f"{NAME}.lock"):
            if not folder.is_dir():
                _make(text, folder)
    return folder / NAME


def _make(text: str, folder: Path) -> None:
    if lacks := missing(NEEDS):
        install({name: NEEDS[name] for name in lacks})
    warn(f"building {NAME} {VERSION} against the series' {HEADER} ...")
    with tempfile.TemporaryDirectory(prefix=f"{NAME}-") as name:
        there = Path(name)
        fetch_source(NAME, VERSION, there, SUITE)
        (there / "linux").mkdir()
        (there / "linux" / Path(HEADER).name).write_text(text, encoding="utf-8")
        with new_folder(folder) as temporary:
            compile_program(there, temporary / NAME)


def compile_program(there: Path, target: Path) -> None:
    """TARGET of the source in THERE, whose linux/ has our header; options as its CMakeLists.txt has them."""
    command = ["g++", "-w", "-O2", "-std=c++14", f"-I{there}", f"-I{there}/src"]
    command += ["-DHAVE_KERNEL_SCTP", "-DHAVE_NETINET_SCTP_H", "-o", str(target)]
    command += sources((there / "src/CMakeLists.txt").read_text(encoding="utf-8"))
    command += ["-lsctp", "-lbz2", "-lpthread"]
    done = subprocess.run(command, cwd=there / "src", capture_output=True, text=True, check=False)
    if done.returncode:
        raise Problem(f"{NAME} {VERSION} cannot be built: {last_line(done.stderr)}", FAILED)
