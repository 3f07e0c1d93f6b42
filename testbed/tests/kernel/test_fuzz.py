# SPDX-License-Identifier: GPL-2.0
"""The seeds of testbed/fuzz/corpus.txt: no splat, no hang."""

import pytest
from sctplab.spec.model import USUAL_BASE
from sctplab.stress import fuzz

pytestmark = pytest.mark.kernel


@pytest.mark.skipif(USUAL_BASE == "6.1", reason="its socket options differ; the fuzzers were not tried there")
@pytest.mark.parametrize("program", ["fuzz-wire", "fuzz-local"])
def test_corpus(program: str) -> None:
    records = fuzz.fuzz(fuzz.Asked(program, fuzz.corpus(program), build="uml"), lambda _: None)
    assert [fuzz.line(one) for one in records if fuzz.wrong(one)] == []
    assert len(records) == len(fuzz.corpus(program))
