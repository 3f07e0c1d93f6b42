# SPDX-License-Identifier: GPL-2.0
"""tools/setup: what the project needs from outside, put in place once; a fraction of a second after that."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from sctpkernel.bases import load_bases, reference_base
from sctpkernel.debian import codename, download, install, missing, parse_packages
from sctpkernel.errors import FAILED, Parser, Problem, last_line, run_main, warn
from sctpkernel.origin import ensure_package
from sctpkernel.paths import ROOT, cache_root, locked, need_space, new_folder

TOOLS = ROOT / "tools"
IPROUTE2_OLDEST = (6, 6)  # the first whose netem takes a seed
VENV_GB = 1.0


def extras() -> list[str]:
    """Purposes that need more than all the rest: the X of tools/packages-X and tools/requirements-X.txt."""
    found = {path.name.removeprefix("packages-") for path in TOOLS.glob("packages-*")}
    found |= {path.stem.removeprefix("requirements-") for path in TOOLS.glob("requirements-*.txt")}
    return sorted(found)


def refuse_paths() -> None:
    """Refuse a checkout or a cache at a path that make takes for several."""
    remedies = {ROOT: "move the checkout", cache_root(): "point SCTPMP_CACHE"}
    for path, remedy in remedies.items():
        if re.search(r"[\s:]", str(path)):
            raise Problem(f"{path}: make takes no path with spaces or colons: {remedy} to another")


def ensure_packages(extra: str | None) -> None:
    """Install the Debian packages of tools/packages, and of the extra's list, that are missing."""
    lists = [TOOLS / "packages", *([TOOLS / f"packages-{extra}"] if extra else [])]
    text = "".join(path.read_text(encoding="utf-8") for path in lists if path.exists())
    packages = parse_packages(text)
    absent = missing(packages)
    if absent:
        install({name: packages[name] for name in absent})


def ensure_venv(extra: str | None) -> Path:
    """The Python of the environment that tools/requirements.txt describes, and the extra's list if any."""
    names = ["requirements.txt", *([f"requirements-{extra}.txt"] if extra else [])]
    lists = [TOOLS / name for name in names if (TOOLS / name).exists()]
    requirements = b"".join(path.read_bytes() for path in lists)
    key = hashlib.sha256(requirements + sys.version.encode()).hexdigest()[:12]
    folder = cache_root() / "venv" / key
    complete = folder / ".complete"  # an environment cannot be moved into place: it knows its own path
    if complete.exists():
        return folder / "bin" / "python"
    with locked(cache_root() / "lock" / "venv.lock"):
        if not complete.exists():
            _make_venv(folder, lists)
            complete.touch()
    return folder / "bin" / "python"


def _make_venv(folder: Path, lists: Sequence[Path]) -> None:
    """Make the environment from scratch."""
    need_space(folder.parent, VENV_GB, "the Python environment")
    shutil.rmtree(folder, ignore_errors=True)
    warn(f"making the Python environment ({', '.join(f'tools/{path.name}' for path in lists)}) ...")
    python = str(folder / "bin" / "python")
    pip = [
        python,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--quiet",
        "install",
        *(word for path in lists for word in ("-r", str(path))),
    ]
    for command in (["/usr/bin/python3", "-m", "venv", str(folder)], pip):
        result = subprocess.run(
            command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
        )
        if result.returncode:
            log = cache_root() / "log" / "pip.log"
            log.parent.mkdir(parents=True, exist_ok=True)
            log.write_text(result.stdout + result.stderr)
            reason = last_line(result.stderr)
            raise Problem(f"the Python environment cannot be made: {reason} (all of it is in {log})", FAILED)


def fetched(name: str, file: str, unpack: Callable[[Path], None]) -> Path:
    """FILE of the newest version in the cache's folder NAME; UNPACK puts one there if there is none."""
    parent = cache_root() / name
    pattern = f"[0-9]*/{file}"
    if not list(parent.glob(pattern)):
        with locked(cache_root() / "lock" / f"{name}.lock"):
            if not list(parent.glob(pattern)):
                unpack(parent)
    return sorted(parent.glob(pattern))[-1]


def ensure_iproute2() -> Path:
    """The folder with sbin/ip and sbin/tc of an iproute2 whose netem takes a seed."""
    return fetched("iproute2", "sbin/tc", _unpack_iproute2).parents[1]


def ensure_promtool() -> Path:
    """promtool of the machine's release; its package, when installed, would start a server."""
    return fetched("promtool", "promtool", _unpack_promtool)


def _unpack_promtool(parent: Path) -> None:
    parent.mkdir(parents=True, exist_ok=True)
    warn("fetching promtool for the tests of metrics and alerts (nothing is installed) ...")
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=parent) as folder:
        archive = download("prometheus", [codename()], Path(folder))
        subprocess.run(["dpkg-deb", "-x", str(archive), folder], check=True)
        with new_folder(parent / archive.name.split("_")[1]) as temporary:
            shutil.move(Path(folder, "usr", "bin", "promtool"), temporary)


def _unpack_iproute2(parent: Path) -> None:
    """Put iproute2 of the backports suite below `parent`; the system's own is not replaced."""
    parent.mkdir(parents=True, exist_ok=True)
    suite = f"{codename()}-backports"
    warn(f"fetching iproute2 of {suite} for the laboratory (netem with a seed; the system's own stays) ...")
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=parent) as folder:
        archive = download("iproute2", [suite], Path(folder))
        version = archive.name.split("_")[1].partition("-")[0]
        if tuple(int(part) for part in version.split(".")[:2]) < IPROUTE2_OLDEST:
            raise Problem(f"iproute2 of {suite} is {version}: netem takes a seed from 6.6 on", FAILED)
        with new_folder(parent / version) as temporary:
            subprocess.run(["dpkg-deb", "-x", str(archive), str(temporary)], check=True)
            # the package keeps its programs in /usr/sbin and /bin, or all in one
            (temporary / "sbin").mkdir(exist_ok=True)
            for name in ("ip", "tc", "ss"):
                found = sorted(
                    path
                    for path in temporary.rglob(name)
                    if path.is_file() and path.parent.name in ("bin", "sbin")
                )
                if not (temporary / "sbin" / name).exists():
                    (temporary / "sbin" / name).symlink_to(Path("..") / found[0].relative_to(temporary))
            subprocess.run([temporary / "sbin" / "tc", "-V"], check=True, capture_output=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = Parser(
        prog="tools/setup",
        description="Install the Debian packages, make the Python environment and fetch the newer "
        "iproute2 that the project needs. Prints nothing if all is installed.",
    )
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--python", action="store_true", help="print the path of the environment's Python")
    group.add_argument(
        "--iproute2",
        action="store_true",
        help="fetch only iproute2 and print its folder, with sbin/ip and sbin/tc",
    )
    group.add_argument(
        "--promtool", action="store_true", help="fetch only promtool, for tests, and print its path"
    )
    parser.add_argument(
        "--with",
        dest="extra",
        choices=extras(),
        help="also install the requirements of one purpose: %(choices)s",
    )
    given = parser.parse_args(arguments)
    refuse_paths()
    if given.iproute2:  # without the rest: a machine that only runs scenarios needs no compilers
        print(ensure_iproute2())
        return 0
    if given.promtool:
        print(ensure_promtool())
        return 0
    ensure_packages(given.extra)
    ensure_package(load_bases()[reference_base()])
    python = ensure_venv(given.extra)
    ensure_iproute2()
    if given.python:
        print(python)
    return 0


if __name__ == "__main__":
    run_main("tools/setup", main)
