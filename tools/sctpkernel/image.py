# SPDX-License-Identifier: GPL-2.0
"""tools/build/image: a disk with Debian and one of its stock kernels, for virtual machines; cached.

The kernel is installed inside the image only. sshd lets in the key that lies beside the image and no other.
Machines write to a layer of their own and never to the image.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sctpkernel.debian import KEYRING, machine_lines, newest
from sctpkernel.errors import FAILED, Parser, Problem, last_line, run_main, warn
from sctpkernel.paths import ROOT, cache_root, locked, need_space, new_folder

RECIPE = 1  # raise when this file makes another image from the same inputs
IMAGE_GB = 3.0  # while it is being made
DISK = "8G"  # as the machine sees it; the file holds only what is written
PREPARE = ROOT / "tools" / "build" / "image-prepare"
# Packages of every machine beside the kernel, with the reason.
PACKAGES = {
    "systemd-sysv": "first process",
    "udev": "names network cards",
    "dbus": "systemctl",
    "openssh-server": "the way in",
    "kmod": "modules",
    "initramfs-tools": "finds the disk",
    "procps": "sysctl",
    "iproute2": "links, addresses, qdiscs",
    "ethtool": "offloads",
    "tcpdump": "captures",
    "iperf3": "flows",
    "iputils-ping": "round trips",
    "nftables": "packets lost by their kind",
    "python3": "the agent",
    "python3-rich": "failover-time, which the package of modules brings",
    "libsctp1": "mpflow",
    "lksctp-tools": "checksctp, sctp_darn",
    "dkms": "builds modules for the kernel",
    "gcc": "the same",
    "make": "the same",
    "patch": "the same",
    "zstd": "initramfs",
    "less": "people",
    "man-db": "manual pages",
}


@dataclass(frozen=True)
class Image:
    """A Debian release with one of its kernels; `suites` as apt knows them, the release first.

    kernel  its package as apt-get takes it; "*" for the highest number there is
    """

    release: str
    suites: tuple[str, ...]
    kernel: str


BOOKWORM = ("bookworm", "bookworm-security")
IMAGES = {
    "debian-12-6.1": Image("bookworm", BOOKWORM, "linux-image-amd64"),
    "debian-12-6.12": Image("bookworm", BOOKWORM, "linux-image-6.12-amd64"),
    "debian-13-6.12": Image("trixie", ("trixie", "trixie-security"), "linux-image-amd64"),
    "debian-13-7.2": Image(
        "trixie",
        ("trixie", "trixie-security", "trixie-backports"),
        "linux-image-7.2.*+deb13-amd64/trixie-backports",
    ),
}


def key(name: str, image: Image, sources: Sequence[str], prepare: str) -> str:
    """Name of the cached folder: readable, and different whenever an input is."""
    inputs = [
        RECIPE,
        image.suites,
        image.kernel,
        sorted(PACKAGES),
        list(sources),
        DISK,
        prepare,
    ]
    return f"{name}-{hashlib.sha256(json.dumps(inputs).encode()).hexdigest()[:12]}"


def bootstrap(image: Image, sources: Sequence[str], folder: Path) -> list[str]:
    """The mmdebstrap command that puts the disk, the kernel and its initramfs into `folder`."""
    kernel, slash, suite = image.kernel.partition("/")
    if "*" in kernel:
        kernel = newest(kernel, image.suites, folder)
    kernel += slash + suite
    include = ",".join([*PACKAGES, kernel, kernel.replace("-image-", "-headers-")])
    return [
        *("mmdebstrap", "--variant=minbase", "--format=null", f"--include={include}"),
        "--aptopt=Acquire::Languages \"none\"",
        f"--keyring={KEYRING}",
        '--dpkgopt=path-exclude=/usr/share/locale/*',
        f"--essential-hook={PREPARE} early \"$1\" {folder}",
        f"--customize-hook={PREPARE} late \"$1\" {folder} {DISK}",
        *(image.release, "/dev/null", *sources),
    ]  # fmt: skip


def make(name: str, image: Image, sources: Sequence[str], result: Path) -> None:
    """Make the folder `result`: root.img, vmlinuz, initrd, config, id_ed25519, known_hosts, info.json."""
    title = f"making the image {name}"
    start = time.monotonic()
    need_space(result.parent, IMAGE_GB, title)
    log = cache_root() / "log" / f"image-{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    warn(f"{title} (some minutes) ...")
    with new_folder(result) as temporary, log.open("w", encoding="utf-8") as out:
        new_key = [
            "ssh-keygen",
            "-q",
            "-t",
            "ed25519",
            "-N",
            "",
            "-C",
            "sctplab",
            "-f",
            str(temporary / "id_ed25519"),
        ]
        subprocess.run(new_key, check=True)
        code = subprocess.run(
            bootstrap(image, sources, temporary),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            check=False,
            env={**os.environ, "LC_ALL": "C.UTF-8", "TMPDIR": str(result.parent)},
        ).returncode
        if code:
            reason = last_line(log.read_text(encoding="utf-8", errors="replace"))
            raise Problem(f"{title}: mmdebstrap failed: {reason} (all of it is in {log})", FAILED)
        info = {"image": name, "key": result.name, "release": image.release, **kernel_of(temporary)}
        (temporary / "info.json").write_text(json.dumps(info, indent=1) + "\n")
    log.unlink()
    warn(f"{title}: done in {time.monotonic() - start:.0f} s")


def kernel_of(folder: Path) -> dict[str, str]:
    """The image's kernel, from `release.txt`: uname -r, the version of its package, and the base."""
    text = (folder / "release.txt").read_text(encoding="ascii").split()
    (folder / "release.txt").unlink()
    base = re.match(r"\d+\.\d+", text[0])
    return {"kernel_release": text[0], "kernel_package": text[1], "base": base[0] if base else ""}


def cached(name: str) -> Path:
    """The folder with the image, made when it is not there yet."""
    image = IMAGES[name]
    sources = machine_lines(image.suites)
    result = cache_root() / "image" / key(name, image, sources, PREPARE.read_text(encoding="utf-8"))
    if result.is_dir():
        return result
    if not shutil.which("mmdebstrap"):
        raise Problem("mmdebstrap is not installed: run tools/setup --with vm")
    with locked(cache_root() / "lock" / f"image-{name}.lock"):
        if not result.is_dir():
            make(name, image, sources, result)
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: prints the path of the cached folder."""
    parser = Parser(
        prog="tools/build/image",
        description="Make the disk of a virtual machine with Debian and one of its stock kernels, or find it "
        "in the cache. The last line printed is the folder with root.img, vmlinuz, initrd, config, "
        "id_ed25519, known_hosts and info.json.",
    )
    parser.add_argument("image", choices=tuple(IMAGES), help="one of %(choices)s", metavar="IMAGE")
    given = parser.parse_args(arguments)
    print(cached(given.image))
    return 0


if __name__ == "__main__":
    run_main("tools/build/image", main)
