# SPDX-License-Identifier: GPL-2.0
"""The kernel versions the series is kept for: patches/bases.toml, and what is installed of them."""

from __future__ import annotations

import re
import subprocess
import tomllib
from dataclasses import MISSING, dataclass, fields
from pathlib import Path

from sctpkernel.errors import Problem
from sctpkernel.paths import ROOT

STATES = ("supported", "planned")


@dataclass(frozen=True)
class Base:
    """One kernel version. `oldest` and `newest` are the point releases that were tested, "" for none yet.

    `suites`: those of Debian that have the package beside the machine's own release, separated by blanks.
    """

    name: str
    package: str
    state: str
    oldest: str
    newest: str
    suites: str = ""


def point_key(point: str) -> tuple[int, ...]:
    """ "6.12.117" as numbers, so that point releases compare."""
    return tuple(int(part) for part in point.split("."))


def _base(name: str, table: object, path: Path) -> Base:
    """Check one table of the file and turn it into a Base."""
    needed = {field.name for field in fields(Base) if field.default is MISSING} - {"name"}
    wanted = {field.name for field in fields(Base)} - {"name"}
    if not isinstance(table, dict):
        raise Problem(
            f'{path}: {name} is not a table: write ["{name}"] and below it {", ".join(sorted(needed))}'
        )
    for key in sorted(set(table) - wanted):
        raise Problem(f"{path}: [{name}] has an unknown key {key!r}: known are {', '.join(sorted(wanted))}")
    for key in sorted(needed - set(table)):
        raise Problem(f"{path}: [{name}] lacks the key {key!r}")
    for key, value in table.items():
        if not isinstance(value, str):
            raise Problem(f"{path}: [{name}] {key} = {value!r} is not a string in quotes")
    if table["state"] not in STATES:
        raise Problem(f"{path}: [{name}] state = {table['state']!r}: expected one of {', '.join(STATES)}")
    for key in ("oldest", "newest"):
        if not re.fullmatch(rf"({re.escape(name)}\.\d+)?", table[key]):
            raise Problem(
                f'{path}: [{name}] {key} = {table[key]!r}: expected a point release such as {name}.1, or ""'
            )
    return Base(name=name, **table)


def load_bases(path: Path = ROOT / "patches" / "bases.toml") -> dict[str, Base]:
    """All bases of the file by name, in its order."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise Problem(
            f"{path}: not found: it lists the kernel versions the series is maintained for"
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise Problem(f"{path}: not TOML: {error}") from None
    reference = data.pop("reference", None)
    bases = {name: _base(name, table, path) for name, table in data.items()}
    if reference not in bases:
        raise Problem(f"{path}: reference = {reference!r}: expected one of {', '.join(bases)}")
    return bases


def reference_base(path: Path = ROOT / "patches" / "bases.toml") -> str:
    """The base that patches/common/ is written on: its line numbers are those of this one."""
    return str(tomllib.loads(path.read_text(encoding="utf-8"))["reference"])


def find_base(name: str, path: Path = ROOT / "patches" / "bases.toml") -> Base:
    """The base called `name`; planned ones are refused."""
    bases = load_bases(path)
    usable = ", ".join(base.name for base in bases.values() if base.state == "supported")
    if name not in bases:
        raise Problem(f"base {name!r} is unknown: {path} has {', '.join(bases)} (supported now: {usable})")
    if bases[name].state != "supported":
        raise Problem(f"base {name} is {bases[name].state}, not supported yet: supported now: {usable}")
    return bases[name]


def package_version(package: str) -> str:
    """The version of an installed Debian package."""
    result = subprocess.run(
        ["dpkg-query", "-W", "-f=${db:Status-Status} ${Version}", package],
        capture_output=True,
        text=True,
        check=False,
    )
    status, _, version = result.stdout.partition(" ")
    if status != "installed":
        raise Problem(f"the package {package} is not installed: run tools/setup")
    return version


def point_release(version: str) -> str:
    """ "6.12.117-1~deb12u1" -> "6.12.117"."""
    return version.partition("-")[0]


def release_warning(base: Base, version: str) -> str:
    """A line when the source is outside the tested point releases, else ""."""
    point = point_release(version)
    if not base.oldest or not base.newest:
        return f"base {base.name}: no point release was tested yet, using {point}"
    if point_key(base.oldest) <= point_key(point) <= point_key(base.newest):
        return ""
    tested = f"{base.oldest} to {base.newest}"
    return f"base {base.name}: {point} was not tested (tested: {tested}), using it all the same"
