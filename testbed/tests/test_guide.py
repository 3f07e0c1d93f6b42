# SPDX-License-Identifier: GPL-2.0
"""Cases chosen by what they reach: their text, how one is derived, what is kept; blocks of object files."""

import itertools
import random

import pytest
from sctplab.errors import LabError
from sctplab.stress import edges, guide

OBJECT = """
outqueue.o:     file format elf64-x86-64

SYMBOL TABLE:
0000000000000000 l    d  .text\t0000000000000000 .text
0000000000000000 l     F .text\t0000000000000020 helper
0000000000000020 g     F .text\t0000000000000030 sctp_outq_flush
0000000000000000 l     F .text.unlikely\t0000000000000010 sctp_outq_flush.cold
0000000000000000 l     F .text.startup	0000000000000010 _sub_I_65535_1
0000000000000000 l     F .init.text\t0000000000000010 sctp_init
0000000000000000         *UND*\t0000000000000000 __sanitizer_cov_trace_pc

RELOCATION RECORDS FOR [.text]:
OFFSET           TYPE              VALUE
0000000000000005 R_X86_64_PLT32    __sanitizer_cov_trace_pc-0x0000000000000004
000000000000001c R_X86_64_PLT32    __sanitizer_cov_trace_pc-0x0000000000000004
0000000000000025 R_X86_64_PLT32    __sanitizer_cov_trace_pc-0x0000000000000004
000000000000002a R_X86_64_PLT32    kfree-0x0000000000000004

RELOCATION RECORDS FOR [.text.unlikely]:
OFFSET           TYPE              VALUE
0000000000000001 R_X86_64_PLT32    __sanitizer_cov_trace_pc-0x0000000000000004

RELOCATION RECORDS FOR [.text.startup]:
OFFSET           TYPE              VALUE
0000000000000001 R_X86_64_PLT32    __sanitizer_cov_trace_pc-0x0000000000000004

RELOCATION RECORDS FOR [.init.text]:
OFFSET           TYPE              VALUE
0000000000000001 R_X86_64_PLT32    __sanitizer_cov_trace_pc-0x0000000000000004
"""
NAMES = """
0000000000001000 T _stext
0000000000002000 t helper
0000000000003000 t helper
0000000000002020 T sctp_outq_flush
0000000000004000 t sctp_outq_flush.cold
                 U kfree
"""


@pytest.mark.parametrize("text", ["17", "17@40:991", "17@40:991@50:17"])
def test_text_of_a_case(text: str) -> None:
    assert guide.text(guide.streams(text)) == text


@pytest.mark.parametrize(
    "text", ["", "a", "17@", "17@4", "17@0:1", "17@5:1@5:2", "17@5:1@4:2", "1" + "@2:3" * 20]
)
def test_text_is_refused(text: str) -> None:
    with pytest.raises(LabError, match="--seed"):
        guide.streams(text)


def test_derived_cases_begin_as_their_parent() -> None:
    rng = random.Random(1)
    parent = guide.streams("17@40:991@5000:3")
    for _ in range(200):
        made = guide.derived(parent, rng)
        assert guide.streams(guide.text(made)) == made
        *before, (at, _) = made
        assert before == [one for one in parent if one[0] < at]


def test_a_derived_case_has_no_more_streams_than_the_fuzzer_takes() -> None:
    parent = [(at, 1) for at in range(guide.STREAMS)]
    assert all(len(guide.derived(parent, random.Random(seed))) <= guide.STREAMS for seed in range(50))


def record(seed: str, reached: str) -> dict[str, object]:
    return {"seed": seed, "edges": reached}


def test_what_reaches_more_is_kept() -> None:
    one = guide.Guide(iter(["1", "2", "3"]), derive=True)
    records = [record("1", "0:a a:b"), record("2", "a:b"), record("3", "a:b b:c"), {"seed": "4"}]
    for each in records:
        one.learn(each)
    assert [each["new"] for each in records] == [2, 0, 1, 0]
    assert list(one.kept) == ["1", "3"]
    assert one.smallest() == [("1", 2), ("3", 1)]


def test_every_other_case_is_fresh() -> None:
    one = guide.Guide(iter(["1", "2", "3"]), derive=True)
    cases = one.cases()
    assert next(cases) == "1"
    one.learn(record("1", "0:a"))
    rest = list(cases)
    assert rest[1::2] == ["2", "3"]
    assert all(case.startswith("1@") for case in rest[0::2])


def test_parents_are_those_with_edges_that_few_reach() -> None:
    one = guide.Guide(iter(["9"] * 40), derive=True)
    for seed, reached in [
        ("1", "0:a"),
        ("2", "0:a a:b"),
        ("3", "0:a a:c"),
        ("4", "0:a a:c"),
        ("5", "0:a a:c"),
    ]:
        one.learn(record(seed, reached))
    assert {case.partition("@")[0] for case in one.cases()} == {"9", "2"}


def test_without_deriving_there_are_fresh_cases_only() -> None:
    one = guide.Guide(map(str, itertools.count(1)), derive=False)
    one.learn(record("1", "0:a"))
    assert list(itertools.islice(one.cases(), 3)) == ["1", "2", "3"]


def test_blocks_of_an_object_file_in_the_kernel() -> None:
    known = edges.symbols(NAMES.splitlines()[1:])
    found = dict(edges.placed("outqueue", edges.object_file(OBJECT.splitlines()), known))
    flush = edges.Place("outqueue", "sctp_outq_flush")
    helper = edges.Place("outqueue", "helper")
    assert found == {0x1009: helper, 0x1020: helper, 0x1029: flush, 0x3005: flush}
