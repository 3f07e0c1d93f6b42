# SPDX-License-Identifier: GPL-2.0
"""The package, installed natively in the images of stock Debian hosts: its modules fit them, and it goes."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from sctpkernel import deb, module
from sctpkernel.bases import find_base, point_release
from sctpkernel.errors import Problem
from sctpkernel.origin import origin
from sctpkernel.series import load_series
from sctpkernel.source import unpacked
from sctplab.spec.model import USUAL_BASE

pytestmark = pytest.mark.kernel
MODULES = ("sctp", "sctp_diag")


@pytest.fixture(scope="module")
def package() -> Path:
    return deb.made()


@pytest.fixture(scope="module")
def made(package: Path) -> Path:
    """The folder with the results of installing the package on a stock kernel of the base that is tested."""
    return module.installed(module.usual(USUAL_BASE), package)


def said_of(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def symbols(text: str) -> dict[str, int]:
    """Symbol -> checksum of lines that begin with the checksum and the symbol."""
    return {line.split()[1]: int(line.split()[0], 16) for line in text.splitlines()}


def fields(path: Path) -> dict[str, str]:
    """The fields in the output of modinfo, the first value of each."""
    pairs = (line.split(":", 1) for line in reversed(path.read_text().splitlines()))
    return {key: value.strip() for key, value in pairs}


def test_installing_puts_it_before_the_stock_module_and_removing_brings_that_back(
    made: Path, package: Path
) -> None:
    before, installed, removed = (fields(made / moment) for moment in ("before", "installed", "removed"))
    assert "/kernel/net/sctp/sctp.ko" in before["filename"]
    assert "/updates/dkms/sctp.ko" in installed["filename"]
    assert installed["version"] == package.name.split("_")[1]
    assert installed["vermagic"] == before["vermagic"]
    assert removed == before
    assert (made / "status").read_text() == ""


def given_by(module: Path) -> set[str]:
    """Symbols that a module exports."""
    return set(re.findall(r" __ksymtab_(sctp_\S+)$", said_of("nm", module), re.MULTILINE))


@pytest.mark.parametrize("one", MODULES)
def test_every_symbol_is_one_that_the_kernel_or_our_sctp_gives_to_modules(made: Path, one: str) -> None:
    file = made / f"{one}.ko"
    offered = symbols((made / "Module.symvers").read_text())
    own = given_by(made / "sctp.ko") if one == "sctp_diag" else set()
    wanted = set(re.findall(r"^ +U (\S+)$", said_of("nm", "-u", file), re.MULTILINE))
    assert len(wanted) > 10
    assert wanted <= offered.keys() | own
    if "CONFIG_MODVERSIONS=y" in (made / "config").read_text():
        checked = symbols(said_of("modprobe", "--dump-modversions", file))
        differing = {name for name in checked if checked[name] != offered.get(name)}
        # ours, so that it is not loaded with the stock sctp, or the stock one with ours
        assert differing == own & checked.keys()
        assert wanted <= checked.keys()


def test_lintian_has_nothing_to_say_of_the_package(package: Path) -> None:
    done = subprocess.run(["lintian", str(package)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_settings_are_in_it(made: Path) -> None:
    strings = (made / "sctp.ko").read_bytes()
    assert b"rtx_policy\0" in strings
    assert b"SctpMpFastRecoveries\0" in strings


def test_the_tracepoints_are_in_it(made: Path) -> None:
    assert "CONFIG_TRACEPOINTS=y" in (made / "config").read_text()
    assert "__tracepoint_sctp_mp_choice" in said_of("nm", made / "sctp.ko")


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ("u32 secid;", "u32 moved; u32 secid;"),
        ("\t__u16\tnodelay:1,", "\t__u16\tmoved:1, nodelay:1,"),
        ("struct sctp_endpoint *ep;", "long moved; struct sctp_endpoint *ep;"),
    ],
)
def test_structures_that_moved_are_refused(tmp_path: Path, was: str, becomes: str) -> None:
    base = find_base(USUAL_BASE)
    shutil.copy(deb.TEMPLATE / "dkms" / "Makefile", tmp_path)
    point = point_release(origin(base).version)
    deb.module_sources(unpacked(base), load_series(base.name), point, "1.0", tmp_path / base.name)
    header = tmp_path / base.name / "include" / "net" / "sctp" / "structs.h"
    text = header.read_text()
    assert was in text
    header.write_text(text.replace(was, becomes))
    with pytest.raises(Problem, match="sctp-multipath: this kernel reads SCTP's structures at other places"):
        module.compile_sources(module.usual(base.name), tmp_path)
