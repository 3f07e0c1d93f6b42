# SPDX-License-Identifier: GPL-2.0
"""Inputs of compare --set: series by name, the set of runs; processor time measured in turns."""

import subprocess
from functools import partial
from pathlib import Path

import pytest
from sctplab.errors import LabError
from sctplab.oracle import bench, series
from sctplab.paths import ROOT
from tests.lab_run import lab

TINY = '[runs.one]\nscenarios = ["lsfr"]\nkernels = ["patched"]\nset = { size_mb = [1] }\n'


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Two commits: without patches/ and with it."""
    folder = tmp_path / "checkout"

    def git(*words: str) -> None:
        identity = ("-c", "user.name=Tester", "-c", "user.email=tester@localhost")
        subprocess.run(["git", "-C", str(folder), *identity, *words], check=True, capture_output=True)

    (folder / "patches").mkdir(parents=True)
    git("init", "--quiet")
    (folder / "README").write_text("none yet\n")
    git("add", "README")
    git("commit", "--quiet", "--message", "empty")
    git("tag", "before")
    (folder / "patches" / "series-6.12").write_text("0010-one.patch\n")
    git("add", "patches")
    git("commit", "--quiet", "--message", "a series")
    git("tag", "after")
    return folder


def test_the_series_of_a_revision(checkout: Path, tmp_path: Path) -> None:
    found = series.patches("after", tmp_path / "out", checkout)
    assert found.parent == tmp_path / "out" / "patches"
    assert (found / "series-6.12").read_text() == "0010-one.patch\n"
    assert series.patches("HEAD", tmp_path / "out", checkout) == found
    assert [path.name for path in found.parent.iterdir()] == [found.name]


def test_a_folder_is_taken_as_it_is(checkout: Path, tmp_path: Path) -> None:
    assert series.patches(str(checkout / "patches"), tmp_path / "out", checkout) == checkout / "patches"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("word", "complaint"),
    [("nonsense", "neither a folder nor a revision"), ("before", "has no folder patches/")],
)
def test_what_is_no_series(word: str, complaint: str, checkout: Path, tmp_path: Path) -> None:
    with pytest.raises(LabError, match=f"^{word}: {complaint}"):
        series.patches(word, tmp_path / "out", checkout)


def test_the_set_is_of_patched_kernels_and_of_an_hour() -> None:
    found = bench.specs_of("bench")
    assert {"jungmaier", "cmt-buffers-long", "caro", "cmt-random"} <= found.keys()
    every = [spec for specs in found.values() for spec in specs]
    assert {(spec.kernel, spec.place, spec.build) for spec in every} == {("patched", "uml", "plain")}
    assert len({spec.run_id for spec in every}) == len(every) < 1500


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", r"no \[runs.NAME\]"),
        (TINY.replace('"patched"', '"stock", "patched"'), "runs.one: got kernels = "),
        (TINY + 'build = "debug"\n', "runs.one: got .*build = debug, expected .* the plain build"),
    ],
)
def test_sets_that_are_none(text: str, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "set.toml").write_text(text)
    with pytest.raises(LabError, match=complaint):
        bench.specs_of(str(tmp_path / "set.toml"))


def test_a_set_by_its_path(tmp_path: Path) -> None:
    (tmp_path / "set.toml").write_text(TINY)
    assert {spec.variant for spec in bench.specs_of(str(tmp_path / "set.toml"))["one"]} == {
        "sharing",
        "sharing-rack",
        "sharing-no-split",
    }


def test_more_seeds_for_each_cell(tmp_path: Path) -> None:
    (tmp_path / "set.toml").write_text(TINY)
    usual, more = (bench.specs_of(str(tmp_path / "set.toml"), seeds)["one"] for seeds in (1, 5))
    assert {spec.seed for spec in more} == {1, 2, 3, 4, 5}
    assert {(spec.variant, spec.flows) for spec in more} == {(spec.variant, spec.flows) for spec in usual}


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--set", "none", "a", "b"), "lab: --set none: no file"),
        (("--jobs", "2", "a", "b"), "lab: --jobs: got it without --set, expected both or neither"),
        (("--set", "bench", "no-such", "b"), "lab: no-such: neither a folder nor a revision"),
    ],
)
def test_one_line_says_what_is_wrong(words: tuple[str, ...], complaint: str, tmp_path: Path) -> None:
    done = lab("compare", *words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(complaint) and done.stderr.count("\n") == 1


def test_a_and_b_take_turns() -> None:
    order: list[str] = []

    def measure(name: str) -> float:
        order.append(name)
        return float(len(order))

    keys = (("cmt", "a"), ("cmt", "b"))
    spent = bench.in_turns(3, {key: partial(measure, key[1]) for key in keys})
    assert "".join(order) == "abbaab"
    assert list(spent.values()) == [{1: 1, 2: 4, 3: 5}, {1: 2, 2: 3, 3: 6}]


def test_the_ratio_of_processor_times() -> None:
    line = bench.cpu_line("cmt", {1: 4.0, 2: 5.0}, {1: 4.4, 2: 5.5})
    assert line == "  cmt: A 4.50 s, B 4.95 s, × 1.100 [1.100, 1.100]"
    assert bench.cpu_line("cmt", {1: 0.0}, {1: 0.1}).endswith("no ratio, the runs are too short")


def test_cpu_of_cmt_is_told_against_none() -> None:
    spent = {
        ("off", "A"): {1: 4.0, 2: 5.0},
        ("off", "B"): {1: 4.0, 2: 5.0},
        ("cmt", "A"): {1: 4.4, 2: 5.5},
        ("cmt", "B"): {1: 6.0, 2: 7.5},
    }
    lines = bench.cpu_lines(spent)
    assert [line.split(":")[0].strip() for line in lines] == ["off", "cmt", "cmt to off"]
    assert "A × 1.100" in lines[2] and "B × 1.500" in lines[2]


def test_processor_time_is_of_two_sizes() -> None:
    specs = bench.cpu_specs()
    assert list(specs) == ["off", "cmt", "cmt-per-path"]
    assert all([spec.flows[0].size_mb for spec in sizes] == [20, 120] for sizes in specs.values())
    assert (ROOT / "testbed" / "scenarios" / f"{bench.CPU}.toml").is_file()
