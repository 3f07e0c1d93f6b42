# SPDX-License-Identifier: GPL-2.0
"""The command line as a user meets it: answers, and one clear line for each mistake."""

from pathlib import Path

import pytest
from sctplab import programs
from tests.lab_run import lab


def test_list_names_every_scenario_with_its_question() -> None:
    done = lab("list")
    assert done.returncode == 0
    for name in ("demo", "rtx-policy", "failover-cut", "off-clean"):
        assert any(line.startswith(f"{name} ") and line.endswith("?") for line in done.stdout.splitlines())


def test_show_counts_the_runs() -> None:
    done = lab("show", "rtx-policy")
    assert "factor d2_ms: 10, 50, 100, 200" in done.stdout
    assert "runs: " in done.stdout


@pytest.mark.parametrize("name", ["flaps", "cmt-random"])
def test_show_tells_how_to_see_a_run_that_is_drawn(name: str) -> None:
    done = lab("show", name)
    assert done.returncode == 0 and f"testbed/lab run {name} --first-seed 1 --repeat 1" in done.stdout
    assert "runs: " in done.stdout


def test_dry_run_prints_every_command_and_needs_nothing(tmp_path: Path) -> None:
    words = (
        "--set",
        "d2_ms=50",
        "--set",
        "queue_pkts=100",
        "--repeat",
        "2",
        "--kernel",
        "stock",
        "--dry-run",
    )
    done = lab("run", "rtx-policy", *words, cwd=tmp_path)
    assert done.returncode == 0 and not list(tmp_path.iterdir())
    lines = done.stdout.splitlines()
    assert lines[0] == "# 4 runs"
    assert sum(line.startswith("setarch -R ") for line in lines) == 4
    assert "ip netns exec host1 ip route replace 10.2.2.0/24 via 10.2.1.254 dev path2 src 10.2.1.1" in lines


def test_pasted_words_with_spaces_are_quoted() -> None:
    done = lab("run", "off-clean", "--dry-run", "--kernel", "stock")
    assert "sysctl -q -w 'net.ipv4.tcp_rmem=4096 131072 67108864'" in done.stdout


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["run", "no-such"], "no-such: no such scenario"),
        (
            ["run", "demo", "--place", "moon"],
            "--place: got 'moon', expected one of ",
        ),
        (["run", "demo", "--set", "x=1"], "--set x: demo has no such factor"),
        (
            ["run", "demo", "--kernel", "new"],
            "argument --kernel: got 'new', expected stock, patched",
        ),
        (
            ["run", "demo", "--repeat", "0"],
            "argument --repeat: got '0', expected a whole number from 1",
        ),
        (["run", "demo", "--jobs", "two"], "argument --jobs: got 'two'"),
        (
            ["run", "demo", "--jobs", "\u00b2"],
            "argument --jobs: got '\u00b2', expected a whole number from 1",
        ),
        (["run", "demo", "--set", "d2_ms=10", "--set", "d2_ms=50"], "--set d2_ms: got it twice"),
        (
            ["run", "demo", "--set", "d2_ms=10,10.0"],
            "--set d2_ms: got '10,10.0', expected values",
        ),
        (["evidence", "--check", "--only", "demo"], "--only: got it with an option that takes all sets"),
        (["compare", "a", "b", "--seeds", "5"], "--seeds: got it without --set"),
        (["fuzz", "--out", "/dev/null/x.json"], "/dev/null/x.json: its folder cannot be made"),
        (["fuzz", "--cases", "/no/such"], "--cases: /no/such: cannot be read"),
        (["fuzz", "--seeds", "\u00b2-3"], "--seeds: got "),
        (["races", "--baseline", "/no/such"], "/no/such: cannot be read"),
        (["walk"], "invalid choice: 'walk'"),
        ([], "the following arguments are required: COMMAND"),
        (["run-one", "no-such.json", "out.json"], "no-such.json: cannot be read"),
    ],
)
def test_wrong_input_is_one_line_and_exit_2(words: list[str], complaint: str) -> None:
    done = lab(*words)
    assert done.returncode == 2 and done.stdout == ""
    assert complaint in done.stderr and done.stderr.count("\n") == 1


def test_broken_spec_is_refused(tmp_path: Path) -> None:
    spec = tmp_path / "spec.json"
    spec.write_text('{"format": 1, "scenario": "x", "colour": "red"}')
    done = lab("run-one", str(spec), str(tmp_path / "out.json"))
    assert done.returncode == 2
    assert "got 'colour', expected one of the keys format, scenario" in done.stderr
    assert not (tmp_path / "out.json").exists()


def test_a_missing_tool_is_named_with_its_package(tmp_path: Path) -> None:
    complaint = programs.missing(["tcpdump"], str(tmp_path))
    assert complaint == "tcpdump: not found; install it with: apt-get install tcpdump"
    assert programs.missing(["cc"], programs.search_path()) == ""


def test_every_tool_has_a_package() -> None:
    from tests.lab_run import small_spec

    assert set(programs.needed([small_spec(pcap=True)])) <= set(programs.PACKAGES)
