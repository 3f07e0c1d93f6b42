# SPDX-License-Identifier: GPL-2.0
"""Package sources that tools/setup derives from the machine's apt, and its refusals."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from sctpkernel import debian, setup
from sctpkernel.errors import Problem


def uris(*suites: str) -> str:
    """The output of apt-get update --print-uris for "address suite component"."""
    lines = []
    for entry in suites:
        address, suite, component = entry.split()
        lines.append(f"'{address}/dists/{suite}/InRelease' mirror_{suite}_InRelease 0 ")
        lines.append(
            f"'{address}/dists/{suite}/{component}/binary-amd64/Packages.xz' mirror_{suite}_Packages 0 "
        )
    return "\n".join(lines)


MIRROR = "http://mirror.example/debian"
ONE_MIRROR = (f"{MIRROR} bookworm main", f"{MIRROR} bookworm contrib", f"{MIRROR} bookworm-updates main")
BACKPORTS = [f"deb {MIRROR} bookworm-backports main"]


def addresses(text: str, *suites: str) -> list[str]:
    """The lines without the keyring, which depends on the machine."""
    lines = debian.suite_lines(text, "bookworm", suites)
    return [line.replace(f"[signed-by={debian.KEYRING}] ", "") for line in lines]


def test_backports_are_beside_the_release() -> None:
    assert addresses(uris(*ONE_MIRROR), "bookworm-backports") == BACKPORTS


def test_backports_the_machine_has() -> None:
    entries = (*ONE_MIRROR, "https://other.example/debian bookworm-backports main")
    expected = ["deb https://other.example/debian bookworm-backports main"]
    assert addresses(uris(*entries), "bookworm-backports") == expected


def test_security_is_where_the_machine_has_it() -> None:
    entries = (*ONE_MIRROR, "https://other.example/security bookworm-security main")
    expected = ["deb https://other.example/security bookworm-security main"]
    assert addresses(uris(*entries), "bookworm-security") == expected


def test_security_by_its_usual_name() -> None:
    expected = [f"deb {MIRROR}-security bookworm-security main"]
    assert addresses(uris(f"{MIRROR} bookworm main"), "bookworm-security") == expected


def test_archives_of_others_are_not_debian() -> None:
    entries = ("https://tools.example bookworm main", *ONE_MIRROR, "https://more.example bookworm main")
    assert addresses(uris(*entries), "bookworm-backports") == BACKPORTS


@pytest.mark.parametrize(
    "address", ["file:/srv/mirror/debian", "https://user:pass@proxy.example:3142/deb/debian"]
)
def test_any_kind_of_address(address: str) -> None:
    assert addresses(uris(f"{address} bookworm main"), "bookworm-backports")[0].startswith(f"deb {address} ")


def test_no_debian_configured() -> None:
    with pytest.raises(Problem, match="apt is not configured for Debian bookworm main"):
        debian.suite_lines(uris(f"{MIRROR} trixie main"), "bookworm", ["bookworm-backports"])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.list", "deb [arch=amd64] http://mirror.example/debian bookworm main contrib\n"),
        (
            "a.sources",
            "Types: deb\nURIs: http://mirror.example/debian/\nSuites: bookworm\n"
            "Components: main\nSigned-By: /k.gpg\n",
        ),
    ],
)
def test_both_forms_of_apt_configuration(tmp_path: Path, name: str, text: str) -> None:
    """apt itself reads them, here without ever having fetched a list."""
    (tmp_path / name).write_text(text)
    options = [
        f"-oDir::Etc::SourceParts={tmp_path}",
        "-oDir::Etc::SourceList=/dev/null",
        f"-oDir::State={tmp_path}",
    ]
    command = ["apt-get", *options, "update", "--print-uris"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert addresses(text, "bookworm-backports") == BACKPORTS


def test_package_list_gives_every_reason() -> None:
    packages = debian.parse_packages((setup.TOOLS / "packages").read_text())
    assert "gcc" in packages
    assert all(packages.values())


def test_missing_packages() -> None:
    assert debian.missing(["dpkg", "no-such-package-at-all"]) == ["no-such-package-at-all"]


def test_neither_root_nor_sudo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr("shutil.which", lambda _name: None)
    with pytest.raises(Problem, match=r"run as root: apt-get install -y --no-install-recommends .* bc$"):
        debian.install({"bc": "computes"})


def test_a_path_with_a_space_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCTPMP_CACHE", "/my cache")
    with pytest.raises(
        Problem, match="/my cache: make takes no path with spaces or colons: point SCTPMP_CACHE"
    ):
        setup.main(["--python"])
    monkeypatch.setenv("SCTPMP_CACHE", "/cache")
    monkeypatch.setattr(setup, "ROOT", Path("/my checkout"))
    with pytest.raises(Problem, match=r"/my checkout: .*: move the checkout to another"):
        setup.main(["--python"])


def test_nothing_to_do_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    assert setup.main([]) == 0
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["k-7.2.9+deb13-amd64", "k-7.2.12+deb13-amd64", "k-7.2.13+deb14-amd64"], "k-7.2.12+deb13-amd64"),
        (["k-7.2.12+deb13-rt-amd64", "k-7.2.12+deb13-amd64-dbg", "k-7.3.4+deb13-amd64"], ""),
    ],
)
def test_the_highest_of_several_kernels_is_taken(names: list[str], expected: str) -> None:
    assert debian.highest(names, "k-7.2.*+deb13-amd64") == expected
