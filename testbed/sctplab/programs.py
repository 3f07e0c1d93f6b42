# SPDX-License-Identifier: GPL-2.0
"""Programs that runs need: found, built, or missed with the name of the package that has them."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from sctpkernel.packaged import ensure_packaged, versions

from sctplab.errors import RunError
from sctplab.paths import ROOT, SETUP
from sctplab.processes import last_line
from sctplab.spec.model import PROGRAM, WITH_USRSCTP, RunSpec
from sctplab.spec.program import find

USRSCTP_HEADER = Path("/usr/include/usrsctp.h")
PACKAGES = {
    "setarch": "util-linux",
    "taskset": "util-linux",
    "ethtool": "ethtool",
    "tcpdump": "tcpdump",
    "iperf3": "iperf3",
    "make": "make",
    "cc": "gcc",
    "/usr/bin/python3": "python3",
}


@dataclass(frozen=True)
class Tools:
    """Programs that runs use: mpflow, the folder of tc and ip, and what is recorded about them."""

    mpflow: Path
    iproute2: Path
    versions: dict[str, str]


def missing(programs: list[str], path: str) -> str:
    """One line that names the first program not found on PATH and its Debian package; "" = all there."""
    for program in programs:
        if shutil.which(program, path=path) is None:
            package = PACKAGES[program]
            return f"{program}: not found; install it with: apt-get install {package}"
    return ""


def uses_usrsctp(specs: list[RunSpec]) -> bool:
    return any(flow.kind in WITH_USRSCTP for spec in specs for flow in spec.flows)


def needed(specs: list[RunSpec]) -> list[str]:
    """Programs that these runs use beside those that the laboratory builds itself."""
    programs = ["setarch", "taskset", "/usr/bin/python3", "ethtool", "make", "cc"]
    if any(spec.pcap for spec in specs):
        programs.append("tcpdump")
    if any(flow.kind.startswith("iperf3") for spec in specs for flow in spec.flows):
        programs.append("iperf3")
    return programs


def search_path() -> str:
    """PATH with the folders that a user's shell may leave out."""
    return os.environ.get("PATH", "") + ":/usr/local/sbin:/usr/sbin:/sbin"


def collect(specs: list[RunSpec]) -> Tools:
    """All tools for these runs, built where needed; raises RunError."""
    lack = missing(needed(specs), search_path())
    if lack:
        raise RunError(lack)
    iproute2 = Path(last_line([str(SETUP), "--iproute2"], "tools/setup --iproute2")) / "sbin"
    programs = build_mpflow(uses_usrsctp(specs))
    version = last_line([str(iproute2 / "tc"), "-V"], "tc -V").split("iproute2-")[-1].split(",")[0]
    digests = {one.name: hashlib.sha256(one.read_bytes()).hexdigest()[:12] for one in programs}
    return Tools(mpflow_path(), iproute2, {"iproute2": version, **digests, **packaged(specs)})


def packaged(specs: list[RunSpec]) -> dict[str, str]:
    """Version by name of the programs that people run, fetched where they are not there."""
    if any(flow.run_with for spec in specs for flow in spec.flows):
        made("tools/launch/library", "launch", "all", flags="")
    found = {}
    for name in sorted({flow.program or "" for spec in specs for flow in spec.flows if flow.kind == PROGRAM}):
        packages = find(name).packages
        found[name] = versions(ensure_packaged(packages))[packages[0]]
    return found


def build_mpflow(usrsctp: bool) -> list[Path]:
    """tools/mpflow, made when it is not up to date. USRSCTP: its other form too."""
    if usrsctp and not USRSCTP_HEADER.exists():
        raise RunError("usrsctp.h: not found; install it with: apt-get install libusrsctp-dev")
    folder = made("tools/mpflow", mpflow_path().parent.name, "all", *(["usrsctp"] if usrsctp else []))
    return [mpflow_path(), *([folder / "mpflow-usrsctp"] if usrsctp else [])]


def made(source: str, name: str, *targets: str, flags: str = "-static") -> Path:
    """build/NAME with what the Makefile in SOURCE makes, linked with FLAGS; two callers take turns."""
    folder = ROOT / "build" / name
    folder.mkdir(parents=True, exist_ok=True)
    make = ["make", "-s", "-C", str(ROOT / source), f"BUILD={folder}", f"LDFLAGS={flags}", *targets]
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(make, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        last = (done.stdout.strip().splitlines() or ["no output"])[-1]
        raise RunError(f"make -C {source} failed: {last}")
    return folder


def mpflow_path() -> Path:
    """Linked statically: it is also sent to machines with other libraries, or none."""
    return ROOT / "build" / "mpflow-static" / "mpflow"
