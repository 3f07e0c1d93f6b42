# SPDX-License-Identifier: GPL-2.0
"""tools/build/module: the package's modules, compiled against the headers of a stock Debian kernel.

The headers and the compiler they ask for are in a small Debian of their own in the cache; nothing is
installed on the machine.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from sctpkernel.bases import point_release
from sctpkernel.deb import TEMPLATE, bases_with_series, module_sources
from sctpkernel.debian import KEYRING, machine_lines
from sctpkernel.errors import FAILED, Problem, last_line, run_main, warn
from sctpkernel.image import IMAGES, Image
from sctpkernel.make import first_error
from sctpkernel.origin import origin
from sctpkernel.paths import cache_root, locked, need_space, new_folder
from sctpkernel.series import load_series
from sctpkernel.source import unpacked

RECIPE = 1  # raise when this file makes another folder from the same inputs
ROOT_GB = 1.5
PACKAGES = ("make", "ccache", "kmod")
# Everything below KERNEL is the root's; /work and /ccache are bound into it, and gone with the namespace.
ENTER = """
mount --bind "$2" "$1/work"
mount --bind "$3" "$1/ccache"
root=$1
shift 3
exec chroot "$root" "$@"
"""


def kernels() -> dict[str, Image]:
    """The stock kernels of the bases there is a module for, by the names of tools/build/image."""
    names = {base.name for base in bases_with_series()}
    return {name: image for name, image in IMAGES.items() if name.rpartition("-")[2] in names}


def root(name: str) -> Path:
    """A folder with a Debian that has the headers of a stock kernel and what compiles modules for it."""
    image = kernels()[name]
    lines = machine_lines(image.suites)
    inputs = json.dumps([RECIPE, image.release, image.headers, PACKAGES, lines])
    result = cache_root() / "headers" / f"{name}-{hashlib.sha256(inputs.encode()).hexdigest()[:12]}"
    with locked(cache_root() / "lock" / f"headers-{name}.lock"):
        if not result.is_dir():
            need_space(result.parent, ROOT_GB, f"the headers of {name}")
            warn(f"fetching the headers of {name} ...")
            with new_folder(result) as temporary:
                bootstrap(image, lines, temporary, cache_root() / "log" / f"headers-{name}.log")
    return result


def bootstrap(image: Image, lines: Sequence[str], folder: Path, log: Path) -> None:
    """Fill the empty `folder` with the Debian."""
    command = [
        *("mmdebstrap", "--variant=apt", "--format=directory", f"--keyring={KEYRING}"),
        *("--dpkgopt=path-exclude=/usr/share/locale/*", "--dpkgopt=path-exclude=/usr/share/doc/*"),
        f"--include={','.join([*PACKAGES, image.headers])}",
        "--customize-hook=mkdir $1/work $1/ccache",
        *(image.release, str(folder), *lines),
    ]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w", encoding="utf-8") as out:
        # the kernel that some headers ask for needs no initramfs here
        env = {**os.environ, "LC_ALL": "C.UTF-8", "INITRD": "No"}
        code = subprocess.run(
            command, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=False
        ).returncode
    if code:
        said = last_line(log.read_text(encoding="utf-8", errors="replace"))
        raise Problem(
            f"the headers of {folder.name}: mmdebstrap failed: {said} (all of it is in {log})", FAILED
        )


def enter(place: Path, work: Path, command: Sequence[str], log: Path) -> int:
    """Run a command in the root `place`, with the folder `work` as /work; its exit code."""
    ccache = cache_root() / "ccache"
    ccache.mkdir(parents=True, exist_ok=True)
    words = ["unshare", "--mount", "sh", "-euc", ENTER, "sh", str(place), str(work), str(ccache), *command]
    env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", "CCACHE_DIR": "/ccache"}
    with log.open("w", encoding="utf-8") as out:
        return subprocess.run(
            words, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=False
        ).returncode


def headers_in(place: Path) -> str:
    """The folder with the headers, as it is named in the root `place`."""
    (found,) = (path.name for path in (place / "usr" / "src").glob("linux-headers-*-amd64"))
    return f"/usr/src/{found}"


def compile_module(name: str, work: Path) -> Path:
    """Compile the modules for stock kernel `name` in the empty folder `work`; the root with its headers."""
    place = root(name)
    base = next(base for base in bases_with_series() if base.name == name.rpartition("-")[2])
    point = point_release(origin(base).version)
    shutil.copy(TEMPLATE / "dkms" / "Makefile", work)
    module_sources(unpacked(base), load_series(base.name), point, "test", work / base.name)
    make_module(name, place, work, [])
    return place


def make_module(name: str, place: Path, work: Path, words: Sequence[str]) -> None:
    """Run the package's Makefile in `work`, in the root `place`."""
    log = cache_root() / "log" / f"module-{name}.log"
    jobs = len(os.sched_getaffinity(0))
    code = enter(
        place, work, ["make", "-C", "/work", f"-j{jobs}", f"KERNEL={headers_in(place)}", *words], log
    )
    if code:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        ours = [line for line in lines if line.startswith("sctp-multipath: ")]
        reason = ours[0] if ours else first_error(log)
        raise Problem(f"the modules for {name}: {reason}; the whole output is in {log}", FAILED)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: prints the folder with sctp.ko and sctp_diag.ko."""
    known = kernels()
    parser = argparse.ArgumentParser(
        prog="tools/build/module",
        description="Compile the modules of the package sctp-multipath-dkms against the headers of a stock "
        "Debian kernel, as dkms does on a host. The last line printed is the folder with sctp.ko and "
        "sctp_diag.ko.",
    )
    parser.add_argument("kernel", choices=tuple(known), help="one of %(choices)s", metavar="KERNEL")
    given = parser.parse_args(arguments)
    result = cache_root() / "build" / f"module-{given.kernel}"
    with locked(cache_root() / "lock" / f"module-{given.kernel}.lock"):
        shutil.rmtree(result, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=cache_root()) as folder, new_folder(result) as temporary:
            compile_module(given.kernel, Path(folder))
            for file in ("sctp.ko", "sctp_diag.ko"):
                shutil.copy(Path(folder) / file, temporary)
    print(result)
    return 0


if __name__ == "__main__":
    run_main("tools/build/module", main)
