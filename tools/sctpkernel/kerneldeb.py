# SPDX-License-Identifier: GPL-2.0
"""tools/build/kernel-deb: a base with the series as Debian packages of a kernel, by its own bindeb-pkg."""

from __future__ import annotations

import lzma
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from sctpkernel.bases import Base, find_base, point_release
from sctpkernel.debian import codename, download
from sctpkernel.errors import FAILED, Parser, Problem, run_main
from sctpkernel.fragment import Option, load_fragments, options_added, options_known, parse_config, verify
from sctpkernel.make import begin_log, make
from sctpkernel.origin import origin
from sctpkernel.paths import ROOT, cache_root, locked, need_space
from sctpkernel.series import load_series
from sctpkernel.source import patched_tree, unpacked

OUT = ROOT / "build" / "kernel-deb"
BUILD_GB = 12.0  # objects with a distribution's configuration; a small one takes a tenth
SUFFIX = "-sctp-multipath"
DEBIAN_CONFIG = "config.amd64_none_amd64.xz"
# Instead of what a distribution's configuration says of its own keys, and of debugging, which takes the disk.
OWN = {
    "SYSTEM_TRUSTED_KEYS": '""',
    "SYSTEM_REVOCATION_KEYS": '""',
    "MODULE_SIG_KEY": '"certs/signing_key.pem"',
    "DEBUG_INFO_NONE": "y",
    "DEBUG_INFO_DWARF_TOOLCHAIN_DEFAULT": "n",
    "DEBUG_INFO_BTF": "n",
}


def debian_config(base: Base) -> str:
    """The configuration of Debian's own kernel of a base."""
    package = f"linux-config-{base.name}"
    release = codename()
    suites = [*base.suites.split(), release, f"{release}-security", f"{release}-backports"]
    with tempfile.TemporaryDirectory(prefix="config-") as folder:
        archive = download(package, suites, Path(folder))
        subprocess.run(["dpkg-deb", "-x", str(archive), folder], check=True)
        packed = Path(folder, "usr", "src", package, DEBIAN_CONFIG)
        if not packed.is_file():
            raise Problem(f"{archive.name} has no {DEBIAN_CONFIG}: name a file with --config", FAILED)
        return lzma.decompress(packed.read_bytes()).decode()


def wanted(fragment: Sequence[Option], have: Mapping[str, str]) -> list[Option]:
    """The options of the fragment; what the configuration has as a module stays one."""
    return [
        replace(option, value="m") if option.value == "y" and have.get(option.name) == "m" else option
        for option in fragment
    ]


def configure(tree: Path, base: Base, config: str, log: Path, title: str) -> None:
    """Give the tree the configuration with what the series needs; raises Problem where that is impossible."""
    options = wanted(load_fragments([ROOT / "Kconfig.fragment"], base.name), parse_config(config))
    lines = [Option(name, value, tree).line for name, value in OWN.items()]
    lines += [option.line for option in options]
    (tree / ".config").write_text("\n".join([config, *lines, ""]), encoding="utf-8")
    make(tree, ["olddefconfig"], log, title)
    brought = options_added(patch.read_text() for patch in (ROOT / "patches").rglob("*.patch"))
    verify(options, (tree / ".config").read_text(), lambda: options_known(tree), brought)


def build(base: Base, config: str) -> list[Path]:
    """Build the packages below build/kernel-deb/; their files."""
    point = point_release(origin(base).version)
    title = f"packaging Linux {point}{SUFFIX}"
    place = cache_root() / "build" / f"{base.name}-kernel-deb"
    log = cache_root() / "log" / f"kernel-deb-{base.name}.log"
    with locked(cache_root() / "lock" / f"kernel-deb-{base.name}.lock"):
        need_space(cache_root(), BUILD_GB, title)
        begin_log(log, title)
        tree = patched_tree(unpacked(base), load_series(base.name), place)
        configure(tree, base, config, log, title)
        for old in place.glob("linux-*"):
            old.unlink()
        make(tree, ["bindeb-pkg"], log, title, {"LOCALVERSION": SUFFIX, "KDEB_PKGVERSION": f"{point}-1"})
        OUT.mkdir(parents=True, exist_ok=True)
        return [Path(shutil.copy(path, OUT)) for path in sorted(place.glob("linux-*.deb"))]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: prints each package."""
    parser = Parser(
        prog="tools/build/kernel-deb",
        description="Build a kernel with the series as Debian packages, into build/kernel-deb/: linux-image, "
        "linux-headers, linux-libc-dev. With Debian's configuration this takes hours and 12 GB. "
        "The last lines printed are the files.",
    )
    parser.add_argument(
        "--base", default="6.12", help="kernel version, see patches/bases.toml (default: %(default)s)"
    )
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="its configuration (default: that of Debian's kernel)"
    )
    given = parser.parse_args(arguments)
    base = find_base(given.base)
    if given.config and not given.config.is_file():
        raise Problem(f"--config: {given.config}: not found; expected a .config such as /boot/config-*")
    config = given.config.read_text(encoding="utf-8") if given.config else debian_config(base)
    for path in build(base, config):
        print(path)
    return 0


if __name__ == "__main__":
    run_main("tools/build/kernel-deb", main)
