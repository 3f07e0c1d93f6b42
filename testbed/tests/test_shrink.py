# SPDX-License-Identifier: GPL-2.0
"""A failing run becomes a scenario file, and that file smaller, as a judge made of a few lines wants it."""

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sctplab.errors import LabError
from sctplab.measure.judge import Judged
from sctplab.oracle import failing
from sctplab.oracle.as_file import Tree, toml
from sctplab.oracle.failing import Asked
from sctplab.oracle.shrink import Case, one_digit, shrink, steps
from sctplab.random.scenarios import specs_named
from sctplab.spec import scenario
from sctplab.spec.schema import plain
from tests.lab_run import lab

RACE = 3  # eight paths, seven of them beside which it is judged
CUTS = 2  # of flaps: 56 events


def quiet(_: str) -> None:
    pass


def shrunk(case: Case, fails: Any, tries: int = 5000) -> Case:
    return shrink(case, fails, tries, quiet)


@pytest.mark.parametrize("name", failing.SHRINKABLE)
@pytest.mark.parametrize("kernel", ["stock", "patched"])
def test_the_file_gives_the_same_runs(name: str, kernel: str) -> None:
    for seed in range(1, 41):
        choice = scenario.Choice((kernel,), repeat=1, first_seed=seed)
        drawn = specs_named(name, [], choice)
        case = failing.drawn(Asked(name, seed, kernel))
        read = tomllib.loads(toml(case.tree))
        again = failing.runs(Case(read, seed), kernel)
        as_drawn = {"scenario": name, "question": drawn[0].question, "factors": drawn[0].factors}
        assert [plain(replace(one, **as_drawn)) for one in again] == [plain(one) for one in drawn], seed


def test_every_step_makes_a_file() -> None:
    for name, seed in (("cmt-random", RACE), ("flaps", CUTS)):
        case = failing.drawn(Asked(name, seed))
        found = list(steps(case))
        assert len(found) > 20 and len({step.text for step in found}) == len(found)
        for step in found:
            assert step.case != case
            text = toml(step.case.tree)
            assert tomllib.loads(text) == step.case.tree
            if "one digit" not in step.text:  # a message has 24 bytes at least: 20 are refused
                assert failing.runs(step.case, "patched")


def test_two_paths_are_left_where_two_are_needed() -> None:
    def fails(case: Case) -> bool:
        names = {path["name"] for path in case.tree["topology"]["paths"]}
        return {"path4", "path6"} <= names and "path6" in case.tree["variants"]

    case = shrunk(failing.drawn(Asked("cmt-random", RACE)), fails)
    assert [path["name"] for path in case.tree["topology"]["paths"]] == ["path4", "path6"]
    assert [name for name, one in case.tree["variants"].items() if "flow" in one] == ["path6"]
    assert case.tree["topology"].keys() == {"paths"}
    assert case.tree["sysctl"] == {"net.sctp.cmt": "1"}
    for path in case.tree["topology"]["paths"]:
        assert path.keys() == {"name", "rate_mbit", "delay_ms"}
        assert path["rate_mbit"] == one_digit(path["rate_mbit"])
    assert case.seed == 1
    assert len(failing.runs(case, "patched")) == 2


def test_the_end_of_an_outage_keeps_its_begin() -> None:
    case = failing.drawn(Asked("flaps", CUTS))
    last = max(one["at_s"] for one in case.tree["events"])

    def fails(one: Case) -> bool:
        found = [event["at_s"] for event in one.tree["events"]]
        return last in found

    case = shrunk(case, fails)
    assert [event["action"] for event in case.tree["events"]] == ["carrier-down", "carrier-up"]
    assert case.tree["events"][1]["at_s"] == last


def test_halves_stop_where_the_fault_does() -> None:
    def fails(case: Case) -> bool:
        return bool(case.tree["flows"][0]["size_mb"] > 0.3)

    drawn = failing.drawn(Asked("cmt-random", RACE))
    case = shrunk(drawn, fails)
    assert 0.3 < case.tree["flows"][0]["size_mb"] <= 0.6 < drawn.tree["flows"][0]["size_mb"]


def test_no_more_tries_than_allowed() -> None:
    tried: list[Tree] = []

    def fails(case: Case) -> bool:
        tried.append(case.tree)
        return True

    shrink(failing.drawn(Asked("cmt-random", RACE)), fails, 7, quiet)
    assert len(tried) == 7


def test_where_nothing_smaller_fails_the_case_is_as_it_was() -> None:
    case = failing.drawn(Asked("cmt-random", RACE))
    said: list[str] = []
    assert shrink(case, lambda _: False, 1000, said.append) == case
    assert len(said) == len(list(steps(case))) and all(line.startswith("undone: ") for line in said)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.0173, 0.02),
        (1462, 1000),
        (12.5, 10.0),
        (7, 7),
        (0, 0),
        (True, True),
        ("ipv6", "ipv6"),
        (96.5, 100.0),
    ],
)
def test_one_digit(value: Any, expected: Any) -> None:
    assert one_digit(value) == expected and type(one_digit(value)) is type(expected)


def test_kinds_know_no_numbers() -> None:
    spec = specs_named("cmt-random", [], scenario.Choice(("patched",), repeat=1))[0]
    other = "failed: kernel: WARNING: CPU: 1 PID: 99 at net/sctp/outqueue.c:17"
    one, two = (
        failing.kinds([Judged(spec, 0.0, (text,))])
        for text in ("failed: kernel: WARNING: CPU: 0 PID: 7 at net/sctp/outqueue.c:17", other)
    )
    assert one.keys() == two.keys() and list(two.values()) == [f"all-paths: {other}"]
    waits = failing.kinds([Judged(spec, 1.0, ("flow2: nothing arrived for 4.00 s at 2.00 s; explained: x",))])
    assert list(waits) == [failing.WAIT]


def test_a_lost_race_is_a_kind() -> None:
    specs = specs_named("cmt-random", [], scenario.Choice(("patched",), repeat=1, first_seed=RACE))
    judged = [Judged(specs[0], 0.8, ()), Judged(specs[1], 1.0, ())]
    assert list(failing.kinds(judged)) == [failing.BEHIND]
    assert not failing.kinds([Judged(specs[0], 1.0, ()), Judged(specs[1], 1.0, ())])


def test_the_file_says_how_to_run_it(tmp_path: Path) -> None:
    asked = Asked("cmt-random", RACE, out=Path("small.toml"))
    case = failing.drawn(asked)
    text = failing.text(case, asked, failing.BEHIND, "shrunk-6.12-patched-all-paths-s3-1: 1.0 Mbit/s over")
    lines = text.splitlines()
    assert lines[0] == "# Why is this slower than a single path? Shrunk from cmt-random, seed 3."
    assert "#     testbed/lab run small.toml --first-seed 3 --out results/small" in lines
    assert "# 1.0 Mbit/s over" in lines
    (tmp_path / "small.toml").write_text(text)
    listed = lab("run", str(tmp_path / "small.toml"), "--first-seed", "3", "--dry-run")
    assert listed.stdout.startswith(f"# {len(failing.runs(case, 'patched'))} runs\n"), listed.stderr


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (
            ("path-lengths", "--seed", "1"),
            "lab: path-lengths: is not drawn from seeds as one file; expected one of cmt-random, ",
        ),
        (
            ("flaps", "--seed", "1", "--out", "x.txt"),
            "lab: --out: got x.txt, expected a name that ends in .toml",
        ),
    ],
)
def test_one_line_says_what_is_wrong(words: tuple[str, ...], complaint: str) -> None:
    done = lab("shrink", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(complaint) and done.stderr.count("\n") == 1


def test_what_is_refused_does_not_fail() -> None:
    case = failing.drawn(Asked("cmt-random", RACE))
    case.tree["flows"][0]["no-such-key"] = 1
    with pytest.raises(LabError):
        failing.runs(case, "patched")
    assert failing.wrong(case, Asked("cmt-random", RACE), None) == {}  # type: ignore[arg-type]
