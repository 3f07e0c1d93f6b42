# SPDX-License-Identifier: GPL-2.0
"""The Python half of the fuzzers: seeds, batches, and what a boot that died leaves behind."""

import json

import pytest
from sctplab.errors import LabError
from sctplab.processes import Ended
from sctplab.stress import fuzz, guide

GOOD = {"seed": "1", "packets": 5, "outcome": "done", "failure": "", "splats": [], "log": []}


def test_seed_range_has_both_ends() -> None:
    assert list(fuzz.seed_range("3-5")) == [3, 4, 5]


@pytest.mark.parametrize("word", ["5", "5-3", "a-b", "-1-3", ""])
def test_seed_range_refuses(word: str) -> None:
    with pytest.raises(LabError, match="--seeds"):
        fuzz.seed_range(word)


def test_batches() -> None:
    assert list(fuzz.batches("abcde", 2)) == [["a", "b"], ["c", "d"], ["e"]]


def test_corpus_names_seeds_of_both() -> None:
    assert fuzz.corpus("fuzz-wire")
    assert fuzz.corpus("fuzz-local")


@pytest.mark.parametrize("program", ["fuzz-wire", "fuzz-local"])
def test_cases_that_reach_most_can_be_read(program: str) -> None:
    cases = fuzz.corpus(program, fuzz.CORPUS.with_name("reached.txt"))
    assert cases
    assert cases == [guide.text(guide.streams(one)) for one in cases]


def test_records_of_a_whole_boot() -> None:
    assert fuzz.of_boot(["1"], [json.dumps(GOOD)], Ended(0, False, 1.0, "")) == [GOOD]


def test_the_missing_seed_is_guilty() -> None:
    found = fuzz.of_boot(
        ["1", "2", "3"], [json.dumps(GOOD), '{"seed": "2", "pa'], Ended(1, False, 1.0, "panic")
    )
    assert [one["seed"] for one in found] == ["1", "2"]
    assert fuzz.wrong(found[1]) == "the kernel died, exit 1"


def test_a_splat_is_wrong() -> None:
    assert fuzz.wrong({**GOOD, "splats": ["BUG: KASAN"]}) == "BUG: KASAN"
    assert fuzz.wrong(GOOD) == ""


def test_summary() -> None:
    bad = {**GOOD, "seed": "2", "failure": "hang"}
    found = fuzz.summary(fuzz.Asked("fuzz-wire", ["1", "2"]), [GOOD, bad])
    assert (found["packets"], found["failed"]) == (10, ["2"])
