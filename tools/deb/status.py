#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""sctp-multipath: which SCTP this host runs, which one it would load, how it is set, and what is in the way.

Reads only. Standard library only: the package installs this file as it is, and tools/doctor as its library.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
LIBRARY = Path("/usr/share/sctp-multipath/lib")
sys.path.insert(0, str(CHECKOUT if (CHECKOUT / "doctor").is_dir() else LIBRARY))
sys.dont_write_bytecode = True

from doctor.host import Module, bans, module_on_disk, newer, output, point_release, text_of  # noqa: E402
from sctpkernel.errors import Parser, run_main  # noqa: E402

PROFILES = Path("/usr/share/sctp-multipath/sysctl")
# efivarfs: four bytes of attributes, then one that is 1 when Secure Boot is on
SECURE_BOOT = Path("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c")
LOADED_STAYS = "a loaded SCTP cannot be unloaded: restart the host"


@dataclass(frozen=True)
class Host:
    """The facts."""

    release: str
    point: str  # "6.12.117" also where the release is 6.1.0-56-amd64
    disk: Module
    loaded: bool
    loaded_version: str  # "" for the stock module
    settings: Mapping[str, str]  # net.sctp.* as they are, empty when SCTP is not loaded
    bans: tuple[str, ...]  # lines of modprobe.d(5) against sctp
    secure_boot: bool


def profile(text: str) -> dict[str, str]:
    """Key -> value of a file in the form of sysctl.d(5)."""
    pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line and line.strip()[0] not in "#;")
    return {key.strip(): value.strip() for key, value in pairs}


def look(sys_folder: Path = Path("/sys"), proc: Path = Path("/proc")) -> Host:
    """Gather the facts."""
    kernel = os.uname()
    settings = proc / "sys" / "net" / "sctp"
    flag = b""
    if SECURE_BOOT.exists():
        flag = SECURE_BOOT.read_bytes()[4:]
    return Host(
        release=kernel.release,
        point=point_release(kernel.release, kernel.version),
        disk=module_on_disk(),
        loaded=settings.is_dir(),
        loaded_version=text_of(sys_folder / "module" / "sctp" / "version"),
        settings={f"net.sctp.{path.name}": text_of(path) for path in sorted(settings.glob("*"))},
        bans=bans(output("modprobe", "--showconfig"), "sctp"),
        secure_boot=flag == b"\x01",
    )


def multipath(host: Host) -> bool:
    """Whether the SCTP that is loaded has the settings."""
    return "net.sctp.rtx_policy" in host.settings


def notes(host: Host) -> Iterator[str]:
    """Obstacles between this host and multipath SCTP, one line each, with the remedy."""
    built_in = host.disk.filename == "(builtin)"
    if not host.disk.version and not built_in and not multipath(host):
        yield f"there is no multipath module for {host.release}: see `dkms status` and `dkms autoinstall`"
    if host.loaded and not built_in and host.loaded_version != host.disk.version:
        which = f"version {host.loaded_version}" if host.loaded_version else "the stock one"
        yield f"the loaded SCTP is {which}, not the one on disk; {LOADED_STAYS}"
    for line in host.bans:
        yield f"modprobe.d(5) has {line!r}: SCTP is not loaded at boot; remove the line if you want it"
    if host.secure_boot and host.disk.version and not multipath(host):
        yield (
            "Secure Boot is on: the module is loaded only if its key is enrolled: "
            "mokutil --import /var/lib/dkms/mok.pub, then restart"
        )
    if host.disk.source and newer(host.point, host.disk.source):
        yield (
            f"the module has the SCTP of Linux {host.disk.source}, this kernel is {host.point}: "
            "later fixes are missing; look for a newer package"
        )


def report(host: Host, stock: Mapping[str, str]) -> Iterator[str]:
    """The lines for a reader; `stock` are the values that mean "off"."""
    yield f"kernel    {host.release} (Linux {host.point})"
    if not host.loaded:
        yield "SCTP      not loaded"
    elif multipath(host):
        version = f", version {host.loaded_version}" if host.loaded_version else ""
        yield f"SCTP      multipath, loaded{version}"
    else:
        yield "SCTP      stock, loaded"
    kind = f"multipath, version {host.disk.version}" if host.disk.version else "stock"
    yield f"on disk   {host.disk.filename or 'none'} ({kind})"
    changed = [
        f"{key} = {host.settings[key]}"
        for key in stock
        if key in host.settings and host.settings[key] != stock[key]
    ]
    if multipath(host):
        yield f"settings  {', '.join(changed) or 'all off'}"


def other(module: str, arguments: list[str]) -> int:
    """A command in a package of its own."""
    code: int = importlib.import_module(module).main(arguments)
    return code


def main() -> int:
    """The command."""
    if sys.argv[1:2] == ["doctor"]:
        return other("doctor.cli", sys.argv[2:])
    if sys.argv[1:2] == ["run"]:
        return other("launch.cli", sys.argv[2:])
    if sys.argv[1:2] and sys.argv[1] in ("paths", "top", "events", "exporter"):
        return other("pathview.cli", sys.argv[1:])
    parser = Parser(
        prog="sctp-multipath",
        description="Show the loaded SCTP, the one on disk, the settings, and obstacles. Changes nothing. "
        "Exit code 0: multipath SCTP is loaded, or will be with the next load. "
        "sctp-multipath doctor --help: find what defeats multihoming on this host. "
        "sctp-multipath paths --help, top, events, exporter: what each path does, and what happens to it. "
        "sctp-multipath run --help: a program with options of SCTP, or with SCTP in place of TCP.",
    )
    parser.add_argument("--notes", action="store_true", help="show only the obstacles")
    given = parser.parse_args()
    host = look()
    if not given.notes:
        for line in report(host, profile(text_of(PROFILES / "00-off.conf"))):
            print(line)
    for line in notes(host):
        print(f"sctp-multipath: {line}", file=sys.stderr)
    ready = not host.loaded and bool(host.disk.version) and not host.bans
    return 0 if multipath(host) or ready else 1


if __name__ == "__main__":
    run_main("sctp-multipath", main)
