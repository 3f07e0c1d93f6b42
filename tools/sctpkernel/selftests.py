# SPDX-License-Identifier: GPL-2.0
"""The series' own tests in tools/testing/selftests/net/sctp, built and installed into the cache.

They are those of the reference base on every base: older ones lack the helpers of their scripts.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from sctpkernel.bases import find_base, reference_base
from sctpkernel.errors import FAILED, Problem
from sctpkernel.kernel import compiler_version
from sctpkernel.make import begin_log, make
from sctpkernel.origin import origin
from sctpkernel.paths import cache_root, locked, new_folder
from sctpkernel.series import load_series, short_id
from sctpkernel.source import patched_tree, unpacked

TARGET = "net/sctp"
LIST = "kselftest-list.txt"  # of the installed folder: a test per line, FOLDER:NAME


def listed(text: str) -> list[str]:
    """The names of the tests of TARGET in such a list."""
    tests = [line.partition(":") for line in text.splitlines()]
    return [name for folder, _, name in tests if folder == TARGET]


def installed() -> Path:
    """The folder as `make install` leaves it, built when it is not there."""
    base = find_base(reference_base())
    series = load_series(base.name)
    inputs = f"{origin(base).version} {short_id(series, 'stock')} {compiler_version()}"
    folder = cache_root() / "selftests" / hashlib.sha256(inputs.encode()).hexdigest()[:12]
    if folder.is_dir():
        return folder
    title = f"building the selftests of {TARGET}"
    log = cache_root() / "log" / "selftests.log"
    with locked(cache_root() / "lock" / "selftests.lock"):
        if not folder.is_dir():
            begin_log(log, title)
            tree = patched_tree(unpacked(base), series, cache_root() / "build" / "selftests")
            if not (tree / "tools/testing/selftests" / TARGET).is_dir():
                raise Problem(f"series-{base.name}: no patch adds tools/testing/selftests/{TARGET}", FAILED)
            make(tree, ["headers"], log, title, {"ARCH": "x86"})
            with new_folder(folder) as temporary:
                settings = {"TARGETS": TARGET, "INSTALL_PATH": str(temporary), "FORCE_TARGETS": "1"}
                make(tree / "tools/testing/selftests", ["install"], log, title, settings)
            log.unlink()
    return folder
