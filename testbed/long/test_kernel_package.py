# SPDX-License-Identifier: GPL-2.0
"""A kernel package with a small configuration: built, unpacked, booted; its SCTP has the settings."""

import subprocess
from pathlib import Path

import pytest
from sctplab.paths import ROOT
from sctplab.processes import last_line
from sctplab.vm.machine import Machine, image
from sctplab.vm.running import running

pytestmark = pytest.mark.kernel
BUILD = ROOT / "tools" / "build"


def test_the_kernel_of_the_package_boots_and_has_the_settings(tmp_path: Path) -> None:
    small = Path(last_line([str(BUILD / "kernel"), "--variant", "x86"], "tools/build/kernel")) / "config"
    words = [str(BUILD / "kernel-deb"), "--config", str(small)]
    made = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    (package,) = (name for name in made if Path(name).name.startswith("linux-image-"))
    subprocess.run(["dpkg-deb", "-x", package, str(tmp_path)], check=True)
    (kernel,) = (tmp_path / "boot").glob("vmlinuz-*-sctp-multipath")
    kernel.rename(kernel.with_name("bzImage"))
    machine = Machine("one", image("debian-12-6.12"), kernel=tmp_path / "boot", lean=True)
    with running([machine], tmp_path) as vms:
        assert vms["one"].need("uname -r").strip().endswith("-sctp-multipath")
        assert vms["one"].need("cat /proc/sys/net/sctp/cmt").strip() == "0"
