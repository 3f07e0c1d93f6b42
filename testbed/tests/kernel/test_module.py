# SPDX-License-Identifier: GPL-2.0
"""The package's modules, compiled against the headers of stock Debian kernels: they fit these alone."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from sctpkernel.errors import Problem
from sctpkernel.headers import compile_module, headers_in, kernels, make_module

pytestmark = pytest.mark.kernel


@dataclass(frozen=True)
class Built:
    """NAME of the stock kernel, ROOT with its headers, WORK with the sources and the modules."""

    name: str
    root: Path
    work: Path

    @property
    def headers(self) -> Path:
        return self.root / headers_in(self.root).lstrip("/")

    @property
    def modversions(self) -> bool:
        return "CONFIG_MODVERSIONS=y" in (self.headers / ".config").read_text()


@pytest.fixture(scope="module", params=kernels())
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Built]:
    work = tmp_path_factory.mktemp("module")
    yield Built(request.param, compile_module(request.param, work), work)
    shutil.rmtree(work)


def said_of(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def symbols(text: str) -> dict[str, str]:
    """Symbol -> checksum of lines that begin with the checksum and the symbol."""
    return {line.split()[1]: line.split()[0] for line in text.splitlines()}


@pytest.mark.parametrize("module", ["sctp", "sctp_diag"])
def test_the_modules_are_for_this_kernel(built: Built, module: str) -> None:
    vermagic = said_of("modinfo", "-F", "vermagic", built.work / f"{module}.ko").split()
    assert f"linux-headers-{vermagic[0]}" == built.headers.name
    assert ("modversions" in vermagic) == built.modversions


@pytest.mark.parametrize("module", ["sctp", "sctp_diag"])
def test_every_symbol_is_one_that_the_kernel_gives_to_modules(built: Built, module: str) -> None:
    file = built.work / f"{module}.ko"
    offered = symbols((built.headers / "Module.symvers").read_text())
    if module == "sctp_diag":  # from our sctp, not from the stock one
        (own,) = built.work.glob("*/net/sctp/Module.symvers")
        offered = {**offered, **symbols(own.read_text())}
    wanted = set(re.findall(r"^ +U (\S+)$", said_of("nm", "-u", file), re.MULTILINE))
    assert len(wanted) > 10
    assert wanted <= offered.keys() | {"module_layout"}
    if built.modversions:
        checked = symbols(said_of("modprobe", "--dump-modversions", file))
        assert wanted <= checked.keys()
        assert {name: int(value, 16) for name, value in checked.items()} == {
            name: int(offered[name], 16) for name in checked
        }


def test_the_settings_are_in_it(built: Built) -> None:
    names = said_of("nm", built.work / "sctp.ko")
    assert " sctp_mp_init" in names
    assert said_of("modinfo", "-F", "version", built.work / "sctp.ko").strip() == "test"


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ("u32 secid;", "u32 moved; u32 secid;"),
        ("\t__u16\tnodelay:1,", "\t__u16\tmoved:1, nodelay:1,"),
        ("struct sctp_endpoint *ep;", "long moved; struct sctp_endpoint *ep;"),
    ],
)
def test_structures_that_moved_are_refused(built: Built, tmp_path: Path, was: str, becomes: str) -> None:
    shutil.copytree(built.work, tmp_path, dirs_exist_ok=True)
    (header,) = tmp_path.glob("*/include/net/sctp/structs.h")
    text = header.read_text()
    assert was in text
    header.write_text(text.replace(was, becomes))
    with pytest.raises(Problem, match="sctp-multipath: this kernel reads SCTP's structures at other places"):
        make_module(built.name, built.root, tmp_path, [])
