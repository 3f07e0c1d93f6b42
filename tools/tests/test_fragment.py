# SPDX-License-Identifier: GPL-2.0
"""Every option of a fragment must have reached the .config."""

from __future__ import annotations

from pathlib import Path

import pytest
from sctpkernel.errors import Problem
from sctpkernel.fragment import (
    load_fragments,
    options_added,
    options_known,
    parse_config,
    parse_fragment,
    verify,
)

PATH = Path("Kconfig.fragment")
CONFIG = 'CONFIG_NET=y\n# CONFIG_SMP is not set\nCONFIG_HZ=100\nCONFIG_NAME="a b"\n# a comment\n'


def check(fragment: str, known: set[str] | None = None, brought: set[str] | None = None) -> None:
    """Verify a fragment against CONFIG."""
    verify(parse_fragment(fragment, PATH), CONFIG, lambda: known or set(), brought or set())


def test_parse() -> None:
    options = parse_fragment("# why\nCONFIG_A=y\n\n# CONFIG_B is not set\nCONFIG_C=m\n", PATH)
    assert [option.line for option in options] == ["CONFIG_A=y", "# CONFIG_B is not set", "CONFIG_C=m"]
    assert parse_config(CONFIG) == {"NET": "y", "SMP": "n", "HZ": "100", "NAME": '"a b"'}


@pytest.mark.parametrize("line", ["CONFIG_A", "A=y", "CONFIG A=y", "nonsense"])
def test_a_line_that_is_no_option(line: str) -> None:
    with pytest.raises(Problem, match=r"Kconfig\.fragment:2: .* is not an option"):
        parse_fragment(f"CONFIG_X=y\n{line}\n", PATH)


def test_said_twice_counts_once(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text("CONFIG_A=y\n")
    assert len(load_fragments([tmp_path / "one", tmp_path / "two"], "6.12")) == 1


def test_for_some_bases_only(tmp_path: Path) -> None:
    path = tmp_path / "one"
    path.write_text("# Bases: 6.1 6.12\nCONFIG_A=y\nCONFIG_B=y\n")
    assert [option.name for option in load_fragments([path], "6.1")] == ["A", "B"]
    assert [option.name for option in load_fragments([path], "7.2")] == ["B"]


def test_same_option_twice(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("CONFIG_A=y\n")
    two.write_text("# CONFIG_A is not set\n")
    with pytest.raises(Problem, match=r"CONFIG_A is y in .*one and n in .*two"):
        load_fragments([one, two], "6.12")


def test_all_there() -> None:
    check('CONFIG_NET=y\n# CONFIG_SMP is not set\nCONFIG_HZ=100\nCONFIG_NAME="a b"\n')
    check("# CONFIG_HIDDEN is not set\n", known={"HIDDEN"})


@pytest.mark.parametrize(
    ("fragment", "known", "fault"),
    [
        ("CONFIG_NET=m", set(), "'CONFIG_NET=m' did not reach the .config, which has 'y'"),
        ("# CONFIG_NET is not set", set(), "'# CONFIG_NET is not set' did not reach"),
        ("CONFIG_VETH=y", {"VETH"}, "'CONFIG_VETH=y' did not reach the .config, which has 'n'"),
        ("CONFIG_IP_SCPT=y", {"IP_SCTP"}, "CONFIG_IP_SCPT is not an option of this kernel"),
        ("# CONFIG_SMPP is not set", {"SMP"}, "CONFIG_SMPP is not an option of this kernel"),
    ],
)
def test_faults_name_option_and_file(fragment: str, known: set[str], fault: str) -> None:
    with pytest.raises(Problem) as caught:
        check(fragment, known)
    assert str(caught.value).startswith(f"Kconfig.fragment: {fault}")


def test_options_of_the_series() -> None:
    """Nothing is asked of them where their patch is not applied; where it is, they count like any other."""
    check("CONFIG_SCTP_MULTIPATH=y", brought={"SCTP_MULTIPATH"})
    with pytest.raises(Problem, match="did not reach"):
        check("CONFIG_SCTP_MULTIPATH=y", known={"SCTP_MULTIPATH"}, brought={"SCTP_MULTIPATH"})


def test_options_of_patches_and_trees(tmp_path: Path) -> None:
    assert options_added(["+config A\n+\tbool\n config B\n", "+menuconfig C\n"]) == {"A", "C"}
    (tmp_path / "net").mkdir()
    (tmp_path / "Kconfig").write_text("config A\n\tbool\nmenuconfig B\n")
    (tmp_path / "net/Kconfig.debug").write_text("\tconfig C\n")
    assert options_known(tmp_path) == {"A", "B", "C"}
