# SPDX-License-Identifier: GPL-2.0
"""sctp-multipath run: settings to socket options, what cannot be preloaded into, and its messages."""

import argparse
import os
import subprocess
from pathlib import Path

import pytest
from launch.cli import environment, main, options_of, parser, settings_of, start
from launch.options import Option, Refused, future, of_settings
from launch.program import obstacle
from sctpkernel.paths import ROOT

NO_OPTION = {"autocork", "cmt_loss_detection", "cmt_split_fast_rtx", "multiple_fast_rtx", "pf_enable"}


def given(*words: str) -> argparse.Namespace:
    return parser().parse_args([*words, "true"])


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """Settings of a patched kernel, as files."""
    for key in ("cmt", "cmt_scheduler", "cmt_sack", "failover_heartbeat", "autocork", "rto_min"):
        (tmp_path / key).write_text("0\n")
    return tmp_path


def test_settings_that_share_an_option_make_one() -> None:
    made, none = of_settings(
        {"net.sctp.rto_min": "200", "net.sctp.rto_max": "2000", "net.sctp.pf_enable": "1"}
    )
    assert [one.text() for one in made] == ["0:0000000000000000d0070000c8000000"]
    assert none == ["pf_enable"]


def test_words_are_numbers_of_the_kernel() -> None:
    made, none = of_settings(
        {"net.sctp.rtx_policy": "fr-same-rto-alt", "net.sctp.cmt_scheduler": "redundant"}
    )
    assert made == [future(0x1280, 3), future(0x1283, 3)]
    assert none == []


def test_a_path_max_retrans_of_0_is_meant() -> None:
    made, _ = of_settings({"net.sctp.path_max_retrans": "0"})
    assert made[0] == future(0x1284, 1)
    assert (made[1].number, len(made[1].value)) == (9, 156)


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "sysctl").glob("*.conf")))
def test_each_profile_can_be_options(name: str) -> None:
    made, none = of_settings(settings_of(name))
    assert all(isinstance(one, Option) for one in made)
    assert set(none) <= NO_OPTION


def test_words_that_no_kernel_has_are_refused() -> None:
    for values in ({"net.sctp.rtx_policy": "slow"}, {"net.sctp.rto_min": "soon"}):
        with pytest.raises(Refused, match=r"got 's.*expected"):
            of_settings(values)


@pytest.mark.parametrize(
    ("key", "word", "limits"),
    [
        ("path_max_retrans", "70000", "from 0 to 65535"),
        ("pf_retrans", "65536", "from 0 to 65535"),
        ("rto_min", "0", "from 1 to 2147483647"),
        ("rto_min", "\u00b2", "from 1 to 2147483647"),
        ("cmt", "9999999999", "from 0 to 2147483647"),
    ],
)
def test_numbers_have_the_limits_of_their_fields(key: str, word: str, limits: str) -> None:
    with pytest.raises(Refused, match=f"net.sctp.{key}: got '{word}', expected a whole number {limits}"):
        of_settings({f"net.sctp.{key}": word})


def test_a_program_of_another_machine_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = built(tmp_path)
    content = bytearray(program.read_bytes())
    content[18] = 183  # AArch64
    program.write_bytes(content)
    assert start(str(program), given("--nodelay"), []) == 126
    assert "cannot be started (Exec format error)" in capsys.readouterr().err


def test_options_of_the_command_line(proc: Path) -> None:
    made, none = options_of(given("--cmt", "--nodelay"), proc)
    assert [one.text() for one in made] == ["4608:0000000001000000", "3:01000000"]
    made, none = options_of(given("--profile", "25-cmt"), proc)
    assert (len(made), none) == (4, ["autocork"])


def test_an_unpatched_kernel_is_told(tmp_path: Path) -> None:
    with pytest.raises(
        Refused, match=r"--cmt: the loaded SCTP has no net.sctp.cmt; it is without the multipath"
    ):
        options_of(given("--cmt"), tmp_path)
    with pytest.raises(Refused, match="modprobe sctp"):
        options_of(given("--nodelay"), tmp_path / "none")


def test_a_profile_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"--profile: got 'nine', expected one of 00-off, 10-signalling"):
        settings_of("nine")
    wrong = tmp_path / "wrong.conf"
    wrong.write_text("# a comment\nvm.swappiness = 1\n")
    with pytest.raises(Refused, match=r"line 2: got 'vm.swappiness = 1', expected net.sctp.NAME = VALUE"):
        settings_of(str(wrong))


def test_the_programs_own_library_stays() -> None:
    found = environment({"LD_PRELOAD": "/x.so", "HOME": "/"}, [Option(3, b"\1")], convert=True)
    assert found["LD_PRELOAD"].endswith("libsctp-multipath-run.so:/x.so")
    assert (found["SCTPMP_RUN_OPTIONS"], found["SCTPMP_RUN_CONVERT"], found["HOME"]) == ("3:01", "1", "/")


def built(folder: Path, *words: str) -> Path:
    source, target = folder / "a.c", folder / "a"
    source.write_text("int main(void) { return 0; }\n")
    subprocess.run(["gcc", *words, "-o", str(target), str(source)], check=True)
    return target


def test_a_dynamic_program_and_a_script_of_one_are_fine(tmp_path: Path) -> None:
    program = built(tmp_path)
    assert obstacle(program) == ""
    script = tmp_path / "script"
    script.write_text(f"#!{program} -x\n")
    assert obstacle(script) == ""


def test_a_static_program_is_refused(tmp_path: Path) -> None:
    assert "linked statically" in obstacle(built(tmp_path, "-static"))


def test_others_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    for content, said in (
        (b"hello", "neither a program (ELF) nor a script"),
        (b"\x7fELF\x01" + bytes(80), "not a 64-bit program"),
        (b"\x7fELF\x02" + bytes(80) + b"\xff Go buildinf:", "made with Go"),
        (b"#!\n", "no interpreter after #!"),
        (b"#!/no/such/sh\n", "/no/such/sh: cannot be read (No such file or directory)"),
        (b"#!/tmp\n", "/tmp: cannot be read (Is a directory)"),
        (b"#!/bin/\0sh\n", "cannot be read (embedded null byte)"),
    ):
        file.write_bytes(content)
        assert said in obstacle(file)


def test_a_program_with_the_rights_of_another_is_refused(tmp_path: Path) -> None:
    program = built(tmp_path)
    program.chmod(0o4755)
    if os.geteuid() == 0:
        os.chown(program, 1, 0)
        program.chmod(0o4755)
        assert "set-user-ID" in obstacle(program)
    else:
        assert obstacle(program) == ""


def test_a_program_with_capabilities_of_its_own_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = built(tmp_path)
    monkeypatch.setattr(os, "getxattr", lambda *_: b"\1")
    for user, said in ((os.geteuid() or 1, "has file capabilities"), (0, "")):
        monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        assert said in obstacle(program) and bool(said) == bool(obstacle(program))


def test_a_command_without_an_option_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["true"]) == 2
    assert "got no option, expected --nodelay, --cmt, --profile or --convert" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main(["--nodelay"])
    assert ended.value.code == 2
