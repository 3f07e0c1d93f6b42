# SPDX-License-Identifier: GPL-2.0
"""tools/build/module: the package as a stock Debian host installs it, in the disk image of tools/build/image.

The image is mounted where only the commands run here see it, under a layer that is thrown away. They have no
network.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from sctpkernel import deb, image
from sctpkernel.errors import FAILED, Parser, Problem, last_line, run_main, warn
from sctpkernel.paths import cache_root, locked, new_folder

RECIPE = 2  # raise when this file makes another folder from the same inputs
ENTER = """
mkdir "$2/disk" "$2/upper" "$2/work" "$2/root"
mount -o loop,ro "$1" "$2/disk"
mount -t overlay -o "lowerdir=$2/disk,upperdir=$2/upper,workdir=$2/work" overlay "$2/root"
mount -t proc proc "$2/root/proc"
for node in null zero urandom; do
	touch "$2/root/dev/$node"
	mount --bind "/dev/$node" "$2/root/dev/$node"
done
mkdir "$2/root/given"
mount --bind "$3" "$2/root/given"
root=$2/root
shift 3
exec chroot "$root" "$@"
"""
# Install, keep what came of it, remove. dkms keeps modules compressed where the kernel's are.
INSTALL = """
set -eu
kernel=$(ls /lib/modules)
headers=/usr/src/linux-headers-$kernel
modinfo -k "$kernel" sctp >before
apt-get install -y ./*.deb
version=$(dpkg-query -W -f '${Version}' sctp-multipath-dkms)
modinfo -k "$kernel" sctp >installed
dkms mktarball -m sctp-multipath -v "$version" -k "$kernel" --binaries-only --archive binaries.tar.gz
find /var/lib/dkms/sctp-multipath -name '*binaries.tar.gz' -exec cp {} dkms.tar.gz \\;
cp "/lib/modules/$kernel/updates/dkms/"sctp* .
find . -name 'sctp*.ko.xz' -exec unxz {} \\;
cp "$headers/.config" config
cp "$headers/Module.symvers" .
apt-get remove -y sctp-multipath-dkms
modinfo -k "$kernel" sctp >removed
dkms status >status
"""


def enter(disk: Path, given: Path, command: Sequence[str], log: Path) -> int:
    """Run a command in the disk image `disk`, with the folder `given` as /given; its exit code."""
    env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    apart = ["unshare", "--mount", "--net", "--ipc", "--uts", "--pid", "--fork", "--kill-child"]
    log.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="layer-", dir=cache_root()) as layer, log.open("w") as out:
        words = [*apart, "sh", "-euc", ENTER, "sh", str(disk), layer, str(given.absolute()), *command]
        return subprocess.run(
            words, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=False
        ).returncode


def kernels() -> list[str]:
    """The stock kernels there is a module for, by the names of tools/build/image."""
    names = {base.name for base in deb.bases_with_series()}
    return [name for name in image.IMAGES if name.rpartition("-")[2] in names]


def usual(base: str) -> str:
    """The oldest Debian among the stock kernels of a base."""
    return next(name for name in kernels() if name.rpartition("-")[2] == base)


def reason(log: Path) -> str:
    """The line that says best what went wrong: ours, the compiler's, or the last."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    for sign in ("sctp-multipath: ", "error: ", "Error! ", "E: "):
        for line in lines:
            if sign in line:
                return line.strip()
    return last_line("\n".join(lines))


def installed(name: str, package: Path) -> Path:
    """A cached folder with what installing `package` on stock kernel `name` makes, and what removing leaves.

    sctp.ko, sctp_diag.ko       without debugging information
    config, Module.symvers      of the kernel
    dkms.tar.gz                 the modules as `dkms ldtarball` takes them
    before, installed, removed  what modinfo said of sctp then
    status                      what dkms knows in the end
    """
    disk = image.cached(name)
    key = hashlib.sha256(f"{RECIPE} {disk.name}".encode() + package.read_bytes()).hexdigest()[:12]
    result = cache_root() / "module" / f"{name}-{key}"
    with locked(cache_root() / "lock" / f"module-{name}.lock"):
        if not result.is_dir():
            warn(f"installing {package.name} in {name}, to compile the modules there ...")
            log = cache_root() / "log" / f"module-{name}.log"
            with new_folder(result) as folder:
                (folder / package.name).write_bytes(package.read_bytes())
                if enter(disk / "root.img", folder, ["env", "-C", "/given", "sh", "-c", INSTALL], log):
                    raise Problem(f"{package.name} in {name}: {reason(log)} (all of it is in {log})", FAILED)
                (folder / package.name).unlink()
    return result


def compile_sources(name: str, folder: Path) -> None:
    """Run the package's Makefile in `folder` against the headers of stock kernel `name`; raises Problem."""
    log = cache_root() / "log" / f"compile-{name}.log"
    make = f'make -C /given -j{len(os.sched_getaffinity(0))} KERNEL="$(echo /usr/src/linux-headers-*-amd64)"'
    if enter(image.cached(name) / "root.img", folder, ["sh", "-c", make], log):
        raise Problem(f"the modules for {name}: {reason(log)} (all of it is in {log})", FAILED)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: prints the folder."""
    parser = Parser(
        prog="tools/build/module",
        description="Install the package sctp-multipath-dkms in the image of a stock Debian host, which "
        "compiles its modules, and remove it again; no machine is started. The last line printed is the "
        "folder with sctp.ko, sctp_diag.ko, dkms.tar.gz and modinfo's output.",
    )
    names = {base.name: usual(base.name) for base in deb.bases_with_series()}
    choices = [*kernels(), *names]
    parser.add_argument(
        "kernel", choices=choices, help="one of %(choices)s; a base for its oldest Debian", metavar="KERNEL"
    )
    given = parser.parse_args(arguments)
    print(installed(names.get(given.kernel, given.kernel), deb.made()))
    return 0


if __name__ == "__main__":
    run_main("tools/build/module", main)
