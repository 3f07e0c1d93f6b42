# SPDX-License-Identifier: GPL-2.0
"""tools/build/qemu: an emulator with the igb network card: the machine's own, or a newer one.

igb came with QEMU 8.0. The newer one is unpacked from the backports suite; it uses the libraries of the
machine's own, which is installed and stays as it is.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from sctpkernel.debian import codename, download
from sctpkernel.errors import FAILED, Parser, Problem, run_main, warn
from sctpkernel.paths import cache_root, locked, new_folder

PROGRAM = "qemu-system-x86_64"
PACKAGES = ("qemu-system-x86", "qemu-system-common", "qemu-system-data", "seabios")
WRAPPER = f"""#!/bin/sh
# Started from here it finds its own modules and firmware.
here=$(dirname "$0")
QEMU_MODULE_DIR=$(echo "$here"/usr/lib/*/qemu) exec "$here/usr/bin/{PROGRAM}" \\
	-L "$here/usr/share/qemu" -L "$here/usr/share/seabios" "$@"
"""


def has_igb(program: str) -> bool:
    """Whether this emulator runs and knows the card."""
    command = [program, "-device", "igb,help"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return False
    return done.stdout.startswith("igb options")


def unpack(parent: Path) -> None:
    """Put the emulator of the backports suite below `parent`."""
    parent.mkdir(parents=True, exist_ok=True)
    suite = f"{codename()}-backports"
    warn(f"fetching QEMU of {suite} for virtual machines (igb; the system's own stays) ...")
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=parent) as folder:
        archives = [download(package, [suite], Path(folder)) for package in PACKAGES]
        version = archives[0].name.split("_")[1].removeprefix("1%3a").partition("-")[0]
        with new_folder(parent / version) as temporary:
            for archive in archives:
                subprocess.run(["dpkg-deb", "-x", str(archive), str(temporary)], check=True)
            (temporary / PROGRAM).write_text(WRAPPER)
            (temporary / PROGRAM).chmod(0o755)
            if not has_igb(str(temporary / PROGRAM)):
                raise Problem(f"QEMU {version} of {suite} does not run here or has no igb", FAILED)


def emulator() -> Path:
    """The program to start."""
    own = shutil.which(PROGRAM)
    if own and has_igb(own):
        return Path(own)
    parent = cache_root() / "qemu"
    with locked(cache_root() / "lock" / "qemu.lock"):
        if not list(parent.glob(f"[0-9]*/{PROGRAM}")):
            unpack(parent)
    return sorted(parent.glob(f"[0-9]*/{PROGRAM}"))[-1]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: prints the path of the program."""
    Parser(
        prog="tools/build/qemu",
        description="Find an emulator of x86-64 machines with the igb network card: the machine's own, or "
        "Debian's newer one, unpacked into the cache. The last line printed is the program.",
    ).parse_args(arguments)
    print(emulator())
    return 0


if __name__ == "__main__":
    run_main("tools/build/qemu", main)
