# SPDX-License-Identifier: GPL-2.0
"""Debian packages: which are missing, installing them, and single ones from suites the machine does not use.

No address of an archive is written down here: all derive from what the machine's own apt is configured for.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sctpkernel.errors import FAILED, Problem, warn
from sctpkernel.paths import cache_root

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_PACKAGES = re.compile(r"^'([^']*?)/*/dists/([^/']+)/main/binary-[^/']+/Packages", re.MULTILINE)
_INSTALL = ("apt-get", "install", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=600")


def parse_packages(text: str) -> dict[str, str]:
    """Name -> reason of a package list; one package per line, the reason after "#"."""
    found = {}
    for line in text.splitlines():
        name, _, reason = line.partition("#")
        if name.strip():
            found[name.strip()] = reason.strip()
    return found


def missing(names: Iterable[str]) -> list[str]:
    """Those of `names` that are not installed."""
    wanted = list(names)
    result = subprocess.run(
        ["dpkg-query", "-W", "-f=${db:Status-Status} ${Package}\n", *wanted],
        capture_output=True,
        text=True,
        check=False,
    )
    installed = {
        line.partition(" ")[2] for line in result.stdout.splitlines() if line.startswith("installed ")
    }
    return [name for name in wanted if name not in installed]


def _run(command: Sequence[str], log: Path) -> bool:
    """Run a program of apt with its output into `log`; true when it succeeded."""
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a", encoding="utf-8") as out:
        out.write(f"$ {' '.join(command)}\n")
        out.flush()
        return (
            subprocess.run(
                command, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=False
            ).returncode
            == 0
        )


def _reason(log: Path) -> str:
    """The line of apt's output that tells what went wrong."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    errors = [line for line in lines if line.startswith(("E:", "dpkg:"))]
    return f"{errors[-1] if errors else 'no message'} (all of it is in {log})"


def known_to_apt(name: str) -> bool:
    """Whether the machine's apt could install `name`."""
    result = subprocess.run(
        ["apt-cache", "policy", name],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LC_ALL": "C"},
    )
    candidate = re.search(r"^\s+Candidate: (.*)$", result.stdout, re.MULTILINE)
    return candidate is not None and candidate[1] != "(none)"


def as_root(command: Sequence[str], purpose: str) -> list[str]:
    """The command as root may run it from here; refused where neither root nor sudo is at hand."""
    if os.geteuid() == 0:
        return list(command)
    if shutil.which("sudo"):
        return ["sudo", "env", "DEBIAN_FRONTEND=noninteractive", *command]
    raise Problem(f"{purpose} needs root, and there is no sudo: run as root: {' '.join(command)}")


def install(packages: dict[str, str]) -> None:
    """Install packages (name -> reason) that the machine's apt knows; lists that are too old are updated."""
    names = list(packages)
    log = cache_root() / "log" / "apt.log"
    command = as_root([*_INSTALL, *names], f"installing {', '.join(names)}")
    update = as_root(["apt-get", "update"], "apt-get update")
    for name, reason in packages.items():
        warn(f"installing Debian package {name}: {reason}")
    log.unlink(missing_ok=True)
    if all(known_to_apt(name) for name in names) and _run(command, log):
        return
    if not (_run(update, log) and _run(command, log)):
        raise Problem(f"Debian packages cannot be installed: {_reason(log)}", FAILED)


def suite_lines(uris: str, codename: str, suites: Sequence[str], kind: str = "deb") -> list[str]:
    """Lines of a sources.list for `suites` of the release `codename`, such as "bookworm-backports".

    kind  "deb" or, for source packages, "deb-src"
    uris  what apt-get update --print-uris says: the files it would fetch, whatever form the machine's
          configuration has, also before any was fetched
    A suite the machine has is taken as it has it. Others are next to the release itself, the security archive
    beside it under the name every mirror gives it.
    """
    found = _PACKAGES.findall(uris)
    offers = [address for address, suite in found if suite == codename]
    if not offers:
        raise Problem(f"apt is not configured for Debian {codename} main: see sources.list(5)")
    # other archives may have a suite of that name, too; Debian's has updates, and mirrors keep its name
    main = max(
        offers, key=lambda address: ((address, f"{codename}-updates") in found, address.endswith("/debian"))
    )
    security = re.sub(r"/debian$", "/debian-security", main)
    addresses = {suite: security for suite in suites if suite.endswith("-security")}
    addresses |= {suite: address for address, suite in found if suite != codename}
    options = f"[signed-by={KEYRING}] " if KEYRING.is_file() else ""
    return [f"{kind} {options}{addresses.get(suite, main)} {suite} main" for suite in suites]


def codename() -> str:
    """The machine's Debian release, such as "bookworm"."""
    match = re.search(r"^VERSION_CODENAME=(\w+)$", Path("/etc/os-release").read_text(), re.MULTILINE)
    if not match:
        raise Problem("/etc/os-release names no VERSION_CODENAME: this needs Debian")
    return match[1]


def machine_lines(suites: Sequence[str], kind: str = "deb") -> list[str]:
    """suite_lines() for what this machine's apt is configured for."""
    uris = subprocess.run(
        ["apt-get", "update", "--print-uris"], capture_output=True, text=True, check=True
    ).stdout
    return suite_lines(uris, codename(), suites, kind)


@contextmanager
def _apart(kind: str, suites: Sequence[str], folder: Path) -> Iterator[list[str]]:
    """Options for programs of apt that know `suites` and nothing else; apt's own state is left alone.

    apt checks the archive's signature with Debian's keys as for any other suite.
    """
    log = cache_root() / "log" / "apt.log"
    log.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="apt-", dir=folder.absolute()) as state:
        sources = Path(state, "sources.list")
        sources.write_text("\n".join(machine_lines(suites, kind)) + "\n")
        Path(state, "lists", "partial").mkdir(parents=True)
        Path(state, "cache", "archives", "partial").mkdir(parents=True)
        options = [
            f"-oDir::Etc::SourceList={sources}",
            "-oDir::Etc::SourceParts=/dev/null",
            f"-oDir::State::Lists={state}/lists",
            f"-oDir::Cache={state}/cache",
            "-oAPT::Sandbox::User=root",
            "-oAcquire::Languages=none",
            "-oAcquire::IndexTargets::deb::DEP-11::DefaultEnabled=false",
        ]
        if not _run(["apt-get", *options, "update"], log):
            raise Problem(f"{', '.join(suites)}: {_reason(log)}", FAILED)
        yield options


def _fetch(words: Sequence[str], kind: str, suites: Sequence[str], folder: Path) -> None:
    """Run apt-get `words` in `folder` with nothing but `suites` configured."""
    log = cache_root() / "log" / "apt.log"
    with _apart(kind, suites, folder) as options:
        # apt-get writes what it fetches to the current directory
        if not _run(["env", "-C", str(folder.absolute()), "apt-get", *options, *words], log):
            raise Problem(f"{words[-1]} cannot be fetched from {', '.join(suites)}: {_reason(log)}", FAILED)


def highest(names: Iterable[str], pattern: str) -> str:
    """Of the names that match `pattern`, with "*" for a number, the one with the highest; "" for none."""
    match = re.compile(re.escape(pattern).replace(r"\*", r"([0-9.]+)")).fullmatch
    found = {name: matched[1] for name in names if (matched := match(name))}
    return max(found, key=lambda name: [int(part) for part in found[name].split(".")], default="")


def newest(pattern: str, suites: Sequence[str], folder: Path) -> str:
    """The package of `suites` that matches `pattern`, see highest(). `folder` is for a moment's use."""
    with _apart("deb", suites, folder) as options:
        names = subprocess.run(
            ["apt-cache", *options, "pkgnames", pattern.partition("*")[0]],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
    name = highest(names, pattern)
    if not name:
        raise Problem(f"{', '.join(suites)} have no package {pattern}", FAILED)
    return name


def download(package: str, suites: Sequence[str], folder: Path) -> Path:
    """Fetch the newest version of `package` that `suites` have into `folder`."""
    _fetch(["download", package], "deb", suites, folder)
    found = sorted(folder.glob(f"{package}_*.deb"))
    if len(found) != 1:
        raise Problem(f"{package}: {len(found)} files came instead of one from {', '.join(suites)}", FAILED)
    return found[0]


def download_with_needs(packages: Sequence[str], folder: Path) -> list[Path]:
    """Fetch packages of the machine's release, and those they need that are not installed, into `folder`.

    The packages themselves are fetched although they are installed.
    Nothing is installed; apt takes no lock, since it changes none of its own files.
    """
    suites = [codename(), f"{codename()}-security"]
    words = ["install", "--reinstall", "--download-only", "--no-install-recommends", "-y"]
    words.append("-oDebug::NoLocking=1")
    log = cache_root() / "log" / "apt.log"
    with _apart("deb", suites, folder) as options:
        archives = folder.absolute() / "archives"
        (archives / "partial").mkdir(parents=True)
        command = ["apt-get", *options, f"-oDir::Cache::Archives={archives}", *words, *packages]
        if not _run(command, log):
            raise Problem(f"{', '.join(packages)} cannot be fetched: {_reason(log)}", FAILED)
    return sorted(archives.glob("*.deb"))


def fetch_source(package: str, version: str, folder: Path, suite: str = "") -> None:
    """The unchanged source of a package of the machine's release, or of SUITE, into FOLDER."""
    words = ["source", "--download-only", "--tar-only", f"{package}={version}"]
    _fetch(words, "deb-src", [suite or codename()], folder)
    archive = next(folder.glob(f"{package}_*.orig.tar.*[!c]"))
    unpack = ["tar", "-C", str(folder), "--strip-components=1", "-xf", str(archive)]
    subprocess.run(unpack, check=True, stdin=subprocess.DEVNULL)
