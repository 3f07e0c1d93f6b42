# SPDX-License-Identifier: GPL-2.0
"""The package: its version, its sources, what refuses a kernel, and what says what is in the way."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from deb import status
from deb.status import Host
from doctor import host as facts_of_host
from doctor.host import Module
from sctpkernel import deb
from sctpkernel.series import Patch

READY = Host(
    release="6.12.117+deb12-amd64",
    point="6.12.117",
    disk=Module("/lib/modules/x/updates/dkms/sctp.ko.xz", "1.0", "6.12.117"),
    loaded=False,
    loaded_version="",
    settings={},
    bans=(),
    secure_boot=False,
)
RUNNING = replace(READY, loaded=True, loaded_version="1.0", settings={"net.sctp.rtx_policy": "kernel"})
STOCK = {"net.sctp.rto_min": "1000"}


def test_a_version_grows_with_the_time_of_the_commit() -> None:
    assert deb.version_of("2026-11-21T05:36:50+00:00", False) == "1.0~git20261121053650"
    assert deb.version_of("2026-11-21T05:36:50+00:00", True) == "1.0~git20261121053650+local"


def test_values_are_filled_in(tmp_path: Path) -> None:
    (tmp_path / "control").write_text("for @BASES@, by @WHOM@ and <me@host>\n")
    deb.fill(tmp_path, {"BASES": "6.1, 6.12", "WHOM": "us"})
    assert (tmp_path / "control").read_text() == "for 6.1, 6.12, by us and <me@host>\n"


def test_the_date_of_the_changelog_is_the_one_given() -> None:
    text = deb.changelog("1.0", "Me <me@host>", "2026-11-21T05:36:50+00:00")
    assert text.splitlines()[0] == "sctp-multipath (1.0) unstable; urgency=medium"
    assert text.splitlines()[-1] == " -- Me <me@host>  Sat, 21 Nov 2026 05:36:50 +0000"


def fake_headers(folder: Path, version: str, config: str) -> Path:
    """Headers of a kernel as far as the package asks before it builds anything."""
    folder.mkdir()
    (folder / ".config").write_text(config)
    (folder / "Makefile").write_text(f"kernelversion:\n\t@echo {version}\n")
    return folder


@pytest.mark.parametrize(
    ("version", "config", "line"),
    [
        ("5.10.9", "CONFIG_IP_SCTP=m\n", "Linux 5.10.9 is none of 6.1 6.12: it keeps its own SCTP"),
        (
            "6.12.1",
            "CONFIG_IP_SCTP=m\nCONFIG_SCTP_MULTIPATH=y\n",
            "this kernel has multipath SCTP built in: no module is needed",
        ),
        (
            "6.12.1",
            "CONFIG_IP_SCTP=y\n",
            "SCTP is no module of this kernel (CONFIG_IP_SCTP): it cannot be replaced",
        ),
    ],
)
def test_a_kernel_that_does_not_fit_is_refused(tmp_path: Path, version: str, config: str, line: str) -> None:
    for base in ("6.1", "6.12"):
        (tmp_path / base / "net" / "sctp").mkdir(parents=True)
    shutil.copy(deb.TEMPLATE / "dkms" / "Makefile", tmp_path)
    headers = fake_headers(tmp_path / "headers", version, config)
    command = ["make", "-s", "-C", str(tmp_path), f"KERNEL={headers}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == f"sctp-multipath: {line}"


def test_missing_headers_are_named(tmp_path: Path) -> None:
    shutil.copy(deb.TEMPLATE / "dkms" / "Makefile", tmp_path)
    command = ["make", "-s", "-C", str(tmp_path), "KERNEL=/nowhere"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr.startswith("sctp-multipath: /nowhere: no kernel headers there: install linux-headers-")


def test_only_what_a_module_is_made_of_is_taken_from_a_tree(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for name in ("net/sctp/socket.c", "net/ipv4/tcp.c", "include/net/sctp/sctp.h", "include/net/tcp.h"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("int one;\n")
    diff = f"diff --git a/{deb.SETTINGS} b/{deb.SETTINGS}\nnew file mode 100644\n--- /dev/null\n"
    patch = Patch(Path("one"), f"{diff}+++ b/{deb.SETTINGS}\n@@ -0,0 +1 @@\n+text\n")
    deb.module_sources(source, [patch], "6.12.1", "1.0", tmp_path / "module")
    made = {str(path.relative_to(tmp_path / "module")) for path in (tmp_path / "module").rglob("*.[ch]")}
    assert made == {
        "include/net/sctp/sctp.h",
        "net/sctp/socket.c",
        "net/sctp/outside.c",
        "net/sctp/outside_stock.c",
        "net/sctp/sctp_diag_version.c",
        "net/sctp/sctp_version.c",
    }


@pytest.mark.parametrize("host", [READY, RUNNING])
def test_nothing_is_noted_where_all_is_well(host: Host) -> None:
    assert list(status.notes(host)) == []


@pytest.mark.parametrize(
    ("host", "part"),
    [
        (
            replace(READY, disk=Module("/lib/x/sctp.ko.xz", "", "")),
            "no multipath module for 6.12.117+deb12-amd64",
        ),
        (
            replace(READY, loaded=True, settings=STOCK),
            "is the stock one, not the one on disk; a loaded SCTP",
        ),
        (replace(RUNNING, loaded_version="0.9"), "version 0.9, not the one on disk; a loaded SCTP"),
        (replace(READY, bans=("blacklist sctp",)), "'blacklist sctp'"),
        (replace(READY, secure_boot=True), "mokutil --import /var/lib/dkms/mok.pub"),
        (replace(RUNNING, point="6.12.118"), "the SCTP of Linux 6.12.117, this kernel is 6.12.118"),
    ],
)
def test_what_is_in_the_way_is_one_line(host: Host, part: str) -> None:
    (line,) = status.notes(host)
    assert part in line


def test_a_kernel_with_the_series_built_in_needs_nothing() -> None:
    host = replace(RUNNING, disk=Module("(builtin)", "", ""), loaded_version="")
    assert list(status.notes(host)) == []


def test_the_report_names_settings_that_are_not_off() -> None:
    off = {"net.sctp.rtx_policy": "kernel", "net.sctp.cmt": "0"}
    host = replace(RUNNING, settings={"net.sctp.rtx_policy": "kernel", "net.sctp.cmt": "1"})
    assert list(status.report(RUNNING, off))[-1] == "settings  all off"
    assert list(status.report(host, off))[-1] == "settings  net.sctp.cmt = 1"


@pytest.mark.parametrize(
    ("release", "version", "point"),
    [
        ("6.1.0-56-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.192-2 (2026-11-01)", "6.1.192"),
        ("6.12.117+deb12-amd64", "#1 SMP", "6.12.117"),
        ("custom", "#1", ""),
    ],
)
def test_the_point_release_is_found(release: str, version: str, point: str) -> None:
    assert facts_of_host.point_release(release, version) == point


def test_bans_are_found_in_the_configuration_of_modprobe() -> None:
    text = "blacklist pcspkr\nblacklist sctp\ninstall sctp /bin/false\ninstall sctp_diag /bin/true\n"
    assert facts_of_host.bans(text, "sctp") == ("blacklist sctp", "install sctp /bin/false")


def test_a_profile_is_read_as_sysctl_reads_it() -> None:
    assert status.profile("# a = 1\n\nnet.sctp.cmt = 1\n;b=2\nc=3\n") == {"net.sctp.cmt": "1", "c": "3"}
