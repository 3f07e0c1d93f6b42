# SPDX-License-Identifier: GPL-2.0
"""sctp-multipath run: options on the sockets of an unchanged program, and TCP programs over SCTP."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from sctpkernel.packaged import ensure_packaged
from sctplab.paths import ROOT
from sctplab.plan.link_commands import Command
from sctplab.plan.packaged import PYTHON
from sctplab.programs import made
from sctplab.spec.model import HOSTS, Direction
from tests.kernel_run import WORK, run_scripts

pytestmark = pytest.mark.kernel
WALL_S = 240
PACKAGES = ("rsync", "openssh-server", "openssh-client", "curl")
PROGRAMS = ("curl", "python3", "rsync", "ssh")
LINK = Direction(rate_mbit=100, delay_ms=20)
RUN = " ".join([*PYTHON, f"{ROOT}/tools/deb/status.py", "run"])
HERE = f"ip netns exec host1 {RUN}"
SHOW = (
    "import socket, sys; s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132); "
    "print(*(s.getsockopt(132, int(one), 16).hex() for one in sys.argv[1:]))"
)
TYPES = (
    "import socket; s = socket.socket(type=socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC); "
    "print(s.getsockopt(socket.SOL_SOCKET, 38), s.getblocking())"
)


def done(kernel: str, folder: Path, scripts: dict[str, str], **environment: str) -> dict[str, Any]:
    """How SCRIPTS ended on a kernel with two hosts and two paths, under the signalling profile if patched."""
    made("tools/launch/library", "launch", "all", flags="")
    profile = str(ROOT / "sysctl" / "10-signalling.conf")
    load = [Command("", ("ip", "netns", "exec", host, "sysctl", "-q", "-p", profile)) for host in HOSTS]
    return run_scripts(
        kernel, LINK, folder, WALL_S, scripts, environment, load if kernel == "patched" else ()
    )


@pytest.fixture(scope="module")
def transfers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    root = ensure_packaged(PACKAGES)
    scripts = {
        name: f"mkdir /run/{name}; T=/run/{name} timeout 60 {WORK}/launch.sh {name}" for name in PROGRAMS
    }
    libraries = f"{root}/usr/lib/x86_64-linux-gnu"
    folder = tmp_path_factory.mktemp("transfers")
    return done("patched", folder, scripts, RUN=RUN, ROOT=str(root), LD_LIBRARY_PATH=libraries)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_tcp_program_goes_on_over_the_other_path(transfers: dict[str, Any], name: str) -> None:
    """Unchanged, at both ends: 2 MB in ten seconds or so, path 1 cut after six."""
    found = transfers[name]
    assert found["exit"] == 0, found
    lines = found["output"].splitlines()
    assert {"10.1.2.1 2", "10.2.2.1 2", "same"} <= set(lines), found
    took_ms = next(int(line.split()[1]) for line in lines if line.startswith("took "))
    print(f"{name}: {took_ms} ms")
    assert 6000 < took_ms < 16000


def test_options_are_set_and_what_cannot_be_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "static.c"
    source.write_text("int main(void) { return 0; }\n")
    subprocess.run(["gcc", "-static", "-o", str(tmp_path / "static"), str(source)], check=True)
    scripts = {
        "nodelay": f'{HERE} --nodelay python3 -c "$SHOW" 3',
        "profile": f'{HERE} --profile 10-signalling python3 -c "$SHOW" 0 4741',
        "cmt": f'{HERE} --cmt python3 -c "$SHOW" 4608',
        "convert": f'{HERE} --convert python3 -c "$TYPES"',
        "static": f"{HERE} --nodelay {tmp_path}/static",
        "absent": f"{HERE} --nodelay nosuchprogram",
    }
    found = done("patched", tmp_path, scripts, SHOW=SHOW, TYPES=TYPES)
    said = {name: (one["exit"], (one["output"] + one["errors"]).strip()) for name, one in found.items()}
    assert said["nodelay"] == (0, "01000000")
    assert said["cmt"][0] == 0
    assert said["cmt"][1].endswith("01000000")  # after the identity of no association
    assert said["convert"] == (0, "132 False")
    code, text = said["profile"]
    assert code == 0
    assert "f4010000d0070000c8000000" in text
    assert "net.sctp.multiple_fast_rtx, net.sctp.pf_enable: no socket option" in text
    assert said["static"][0] == 126
    assert "linked statically" in said["static"][1]
    line = "sctp-multipath run: nosuchprogram: not found, expected a program in PATH or a path"
    assert said["absent"] == (127, line)


def test_a_kernel_without_the_series_is_told(tmp_path: Path) -> None:
    found = done("stock", tmp_path, {"cmt": f"{HERE} --cmt true"})["cmt"]
    assert found["exit"] == 2
    line = (
        "sctp-multipath run: --cmt: the loaded SCTP has no net.sctp.cmt; it is without the multipath patches"
    )
    assert found["errors"].strip() == line
