# SPDX-License-Identifier: GPL-2.0
"""Fuzzing guided by edges of net/sctp, on the kernel that tells them: a derived case repeats alone."""

import pytest
from sctplab.stress import fuzz, guide

pytestmark = pytest.mark.kernel
FEW = 500  # blocks of multipath/, of more than 2000


@pytest.fixture(scope="module", params=["fuzz-wire", "fuzz-local"])
def guided(request: pytest.FixtureRequest) -> tuple[fuzz.Asked, guide.Guide, list[fuzz.Record]]:
    made = guide.Guide(iter(["1", "2", "3"]), derive=True)
    asked = fuzz.Asked(request.param, made.cases(), build="uml", edges=True)
    return asked, made, fuzz.fuzz(asked, made.learn)


def test_no_case_fails(guided: tuple[fuzz.Asked, guide.Guide, list[fuzz.Record]]) -> None:
    _, _, records = guided
    assert len(records) == 6
    assert [fuzz.line(one) for one in records if fuzz.wrong(one)] == []


def test_a_derived_case_repeats_alone(guided: tuple[fuzz.Asked, guide.Guide, list[fuzz.Record]]) -> None:
    asked, _, records = guided
    for case in [one for one in records if "@" in one["seed"]]:
        again = guide.Guide(iter([case["seed"]]), derive=False)
        (record,) = fuzz.fuzz(fuzz.Asked(asked.program, again.cases(), build="uml", edges=True), again.learn)
        assert {**record, "new": 0} == {**case, "new": 0}


def test_files_have_their_blocks(guided: tuple[fuzz.Asked, guide.Guide, list[fuzz.Record]]) -> None:
    asked, made, _ = guided
    found = made.record(fuzz.kernel(asked))
    assert all(0 <= ran <= size for ran, size in found["files"].values())
    assert sum(ran for file, (ran, _) in found["files"].items() if file.startswith("multipath")) > FEW
