# SPDX-License-Identifier: GPL-2.0
"""The laboratory's kernel: all random numbers are a function of uml_seed=, and only of it."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from sctpkernel.paths import ROOT

pytestmark = pytest.mark.kernel

# Random values of a run: bytes for processes; tags and TSNs of an SCTP handshake, read from the INIT and
# INIT ACK chunks on the loopback interface.
DRAW = """
import os, socket, struct, subprocess
print("getrandom", os.getrandom(16).hex())
print("urandom", open("/dev/urandom", "rb").read(16).hex())
print("uuid", open("/proc/sys/kernel/random/uuid").read().strip())
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
tap = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
tap.bind(("lo", 0))
listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132)
listener.bind(("127.0.0.1", 5000))
listener.listen()
sender = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132)
sender.connect(("127.0.0.1", 5000))
tap.settimeout(1)
seen = set()
while len(seen) < 2:
    packet = tap.recv(2000)
    chunk = packet[20 + 12:]
    if packet[9] == 132 and chunk[0] in (1, 2) and chunk[0] not in seen:
        seen.add(chunk[0])
        tag, window, streams, tsn = struct.unpack("!IIII", chunk[4:20])
        print("INIT" if chunk[0] == 1 else "INIT ACK", hex(tag), hex(tsn))
print("later", end=" ")
import time
time.sleep(200)
print(os.getrandom(16).hex(), flush=True)
"""


@cache
def kernel() -> Path:
    """The stock kernel of the laboratory."""
    command = [str(ROOT / "tools/build/kernel"), "--flavour", "stock"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return Path(done.stdout.splitlines()[-1], "linux")


def boot(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Boot, draw, power off; what was printed."""
    script, init = folder / "draw.py", folder / "init"
    script.write_text(DRAW)
    init.write_text(f"#!/bin/sh\nmount -t proc proc /proc\n{sys.executable} -S {script}\npoweroff -f\n")
    init.chmod(0o755)
    command = [
        "setarch",
        "-R",
        str(kernel()),
        "mem=256M",
        "root=/dev/root",
        "rootfstype=hostfs",
        "rootflags=/",
        "rw",
    ]
    command += [f"init={init}", "time-travel=inf-cpu", "time-travel-start=1700000000"]
    command += ["con=null", "con0=null,fd:1", "quiet", *arguments]
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        errors="replace",
    )


def drawn(folder: Path, *arguments: str) -> dict[str, str]:
    """Name -> numbers of one boot."""
    output = boot(folder, *arguments).stdout
    lines = [line.rsplit(" ", 2 if line.startswith("INIT") else 1) for line in output.splitlines()]
    names = ("getrandom", "urandom", "uuid", "INIT", "INIT ACK", "later")
    found = {line[0]: " ".join(line[1:]) for line in lines if line[0] in names}
    assert set(found) == set(names), output
    return found


def test_same_seed_same_numbers(tmp_path: Path) -> None:
    assert drawn(tmp_path, "uml_seed=7") == drawn(tmp_path, "uml_seed=7")


def test_other_seed_other_numbers(tmp_path: Path) -> None:
    one, two = drawn(tmp_path, "uml_seed=7"), drawn(tmp_path, "uml_seed=8")
    assert [name for name in one if one[name] == two[name]] == []


def test_without_seed_numbers_are_random(tmp_path: Path) -> None:
    one, two = drawn(tmp_path), drawn(tmp_path)
    assert [name for name in one if one[name] == two[name]] == []


@pytest.mark.parametrize("seed", ["", "-1", "x", "1x", "18446744073709551616"])
def test_bad_seed_is_refused(tmp_path: Path, seed: str) -> None:
    done = boot(tmp_path, f"uml_seed={seed}")
    assert done.returncode == 1
    assert f"uml_seed={seed}: not a number of 64 bits" in done.stdout + done.stderr


@pytest.mark.parametrize("seed", ["0", "0xffffffffffffffff"])
def test_ends_of_the_range(tmp_path: Path, seed: str) -> None:
    assert drawn(tmp_path, f"uml_seed={seed}")
