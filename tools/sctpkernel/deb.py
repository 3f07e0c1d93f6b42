# SPDX-License-Identifier: GPL-2.0
"""tools/build/deb: a Debian package with net/sctp as a module for stock kernels, the profiles and the tools.

The package has the sources of each base with the series applied, made here; dkms compiles them where the
package is installed.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from datetime import datetime
from email.utils import format_datetime
from pathlib import Path

from sctpkernel.bases import Base, load_bases, point_release
from sctpkernel.errors import FAILED, Parser, Problem, last_line, run_main, warn
from sctpkernel.git import git
from sctpkernel.origin import origin
from sctpkernel.patchfile import parse
from sctpkernel.paths import ROOT, cache_root, locked
from sctpkernel.series import Patch, load_series
from sctpkernel.source import apply_patch, copy_touched, unpacked

NAME = "sctp-multipath"
PACKAGE = f"{NAME}-dkms"
OUT = ROOT / "build" / "deb"
TEMPLATE = ROOT / "tools" / "deb"
PAGES = (
    "Documentation/operator.rst",
    "Documentation/slow-failover.rst",
    "Documentation/monitoring.rst",
    "sysctl/README.md",
)
MONITORING = ("Documentation/alerts.yml", "Documentation/grafana.json")  # data, not compressed
SETTINGS = "Documentation/networking/sctp-multipath.rst"  # a file of the series
# The package is made of these: a commit that touches none of them makes the same package again.
INPUTS = (
    "patches",
    "sysctl",
    "tools/deb",
    "tools/doctor",
    "tools/failover",
    "tools/launch",
    "tools/mpflow",
    "tools/pathview",
    "tools/sctpkernel/deb.py",
    "tools/sctpkernel/errors.py",
    *PAGES,
    *MONITORING,
)


def version_of(moment: str, changed: bool) -> str:
    """The version of a package by the moment of the newest commit of its inputs, as git writes it (%cI)."""
    stamp = datetime.fromisoformat(moment).strftime("%Y%m%d%H%M%S")
    return f"1.0~git{stamp}{'+local' if changed else ''}"


def bases_with_series() -> list[Base]:
    """The bases a module is made for."""
    return [base for base in load_bases().values() if base.state == "supported" and load_series(base.name)]


def module_version(version: str, point: str) -> str:
    """A C file with what modinfo shows of the module: the package's version, the SCTP it is made of."""
    return (
        "// SPDX-License-Identifier: GPL-2.0\n#include <linux/module.h>\n"
        f'MODULE_VERSION("{version}");\nMODULE_INFO(sctp_source, "{point}");\n'
    )


def module_sources(source: Path, patches: Sequence[Patch], point: str, version: str, target: Path) -> Path:
    """Write what one base's module is built from to the new folder `target`, and return that.

    source  the unpacked kernel source, of the point release `point`
    """
    with tempfile.TemporaryDirectory(prefix="module-") as folder:
        patched = Path(folder)
        for name in ("net/sctp", "include/net/sctp"):
            shutil.copytree(source / name, patched / name)
        copy_touched(source, patches, patched)
        for patch in patches:
            apply_patch(patched, patch, source.name)
        for name in ("net/sctp", "include"):
            shutil.copytree(patched / name, target / name)
        shutil.copy(patched / SETTINGS, target)
    for name in ("Kbuild", "outside.c", "outside_stock.c"):
        shutil.copy(TEMPLATE / "dkms" / name, target / "net" / "sctp")
    for module in ("sctp", "sctp_diag"):
        place = target / "net" / "sctp" / f"{module}_version.c"
        place.write_text(module_version(version, point), encoding="utf-8")
    (target / "net" / "sctp" / ".kunitconfig").unlink(missing_ok=True)
    return target


def sources(bases: Sequence[Base], version: str, target: Path) -> None:
    """Write to TARGET what dkms compiles: a folder for each base, and the Makefile that chooses one."""
    target.mkdir(parents=True)
    shutil.copy(TEMPLATE / "dkms" / "Makefile", target)
    for base in bases:
        point = point_release(origin(base).version)
        module_sources(unpacked(base), load_series(base.name), point, version, target / base.name)


def fill(folder: Path, values: Mapping[str, str]) -> None:
    """Replace @NAME@ in the files of a folder."""
    for path in (path for path in folder.iterdir() if path.is_file()):
        text = path.read_text(encoding="utf-8")
        for name, value in values.items():
            text = text.replace(f"@{name}@", value)
        path.write_text(text, encoding="utf-8")


def changelog(version: str, maintainer: str, moment: str) -> str:
    """debian/changelog; its date makes the package the same whenever it is built."""
    date = format_datetime(datetime.fromisoformat(moment))
    return (
        f"{NAME} ({version}) unstable; urgency=medium\n\n  * Made from the series as it is in git.\n\n"
        f" -- {maintainer}  {date}\n"
    )


def copy_checked_in(folder: str, target: Path) -> None:
    """Copy the files below `folder` of the checkout that git knows, not what was built beside them."""
    for name in git(ROOT, "ls-files", "-z", folder).split("\0"):
        if name and (ROOT / name).is_file():
            place = target / Path(name).relative_to(folder)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, place)


def copy_tools(place: Path) -> None:
    """Copy what the checkout has as the package needs it."""
    for folder, target in (
        ("tools/deb/debian", "debian"),
        ("tools/deb/helper", "helper"),
        ("tools/deb/bin", "bin"),
        ("tools/deb/man", "man"),
        ("tools/mpflow", "mpflow"),
        ("tools/failover", "lib/failover"),
        ("tools/doctor", "lib/doctor"),
        ("tools/launch", "lib/launch"),
        ("tools/launch/library", "library"),
        ("tools/pathview", "lib/pathview"),
        ("sysctl", "sysctl"),
    ):
        copy_checked_in(folder, place / target)
    shutil.rmtree(place / "lib" / "launch" / "library")  # compiled, not installed as source
    (place / "lib" / "sctpkernel").mkdir()
    for name in ("__init__.py", "errors.py"):
        shutil.copy(ROOT / "tools" / "sctpkernel" / name, place / "lib" / "sctpkernel")
    (place / "monitoring").mkdir()
    for page in MONITORING:
        shutil.copy(ROOT / page, place / "monitoring")
    shutil.copy(TEMPLATE / "status.py", place / "bin" / NAME)


def assemble(bases: Sequence[Base], version: str, moment: str, place: Path) -> None:
    """Put everything the package is built from into the folder `place`."""
    names = [base.name for base in bases]
    sources(bases, version, place / "src")
    copy_tools(place)
    (place / "doc").mkdir()
    pages = [place / "src" / name / Path(SETTINGS).name for name in names]
    for path in (*(ROOT / page for page in PAGES), pages[-1]):
        shutil.copy(path, place / "doc")
    for path in pages:
        path.unlink()
    maintainer = parse(load_series(names[0])[0].text, ROOT / "patches").author
    pattern = "|".join(name.replace(".", r"\.") for name in names)
    fill(place / "debian", {"MAINTAINER": maintainer, "BASES": ", ".join(names), "PATTERN": pattern})
    (place / "debian" / "changelog").write_text(changelog(version, maintainer, moment), encoding="utf-8")


def build(place: Path, log: Path) -> Path:
    """Run dpkg-buildpackage in `place`; the package, beside it."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w", encoding="utf-8") as out:
        command = ["env", "-C", str(place), "dpkg-buildpackage", "--build=binary", "--no-sign"]
        code = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=False
        ).returncode
    if code:
        said = last_line(log.read_text(encoding="utf-8", errors="replace"))
        raise Problem(f"the package cannot be built: {said} (all of it is in {log})", FAILED)
    return next(place.parent.glob(f"{PACKAGE}_*.deb"))


def made() -> Path:
    """The package as the checkout is now, built unless it is there already."""
    moment = git(ROOT, "log", "-1", "--format=%cI", "--", *INPUTS).strip()
    changed = bool(git(ROOT, "status", "--porcelain", "--", *INPUTS))
    version, bases = version_of(moment, changed), bases_with_series()
    OUT.mkdir(parents=True, exist_ok=True)
    with locked(cache_root() / "lock" / "deb.lock"), tempfile.TemporaryDirectory(dir=OUT) as folder:
        found = list(OUT.glob(f"{PACKAGE}_{version}_*.deb"))
        if found and not changed:
            return found[0]
        warn(f"building {PACKAGE} {version} for Linux {', '.join(base.name for base in bases)} ...")
        place = Path(folder) / NAME
        assemble(bases, version, moment, place)
        new = build(place, cache_root() / "log" / "deb.log")
        for old in OUT.glob(f"{PACKAGE}_*.deb"):
            old.unlink()
        return new.rename(OUT / new.name)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: prints the path of the package."""
    parser = Parser(
        prog="tools/build/deb",
        description=f"Build the Debian package {PACKAGE}: SCTP with the series as a module for Debian's "
        "stock kernels, compiled by dkms where it is installed, with profiles, tools and manual pages. "
        "The last line printed is the file.",
    )
    parser.parse_args(arguments)
    print(made())
    return 0


if __name__ == "__main__":
    run_main("tools/build/deb", main)
