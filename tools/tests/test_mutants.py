# SPDX-License-Identifier: GPL-2.0
"""Faults in C: where there can be one and where not, and what a table says of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from sctpkernel import kernel, mutate
from sctpkernel.mutants import Mutant, added, mutants

SOURCE = """\
/* a < b
 */
#define MOST(a, b) \\
	((a) > (b) ? (a) : (b))
static int limit = 3;

static bool f(struct sctp_association *asoc, int n)
{
	struct sctp_transport *t = asoc->peer.primary_path; /* n == 1 */
	int i = 0;

	if (n <= 1 && !asoc->cmt) {
		pr_debug("n > 1");
		return -n;
	}
	while (i < n) {
		if (t->state != SCTP_PF)
			continue;
		t->burst += n - 1;
		i++;
	}
	return n << 2;
}
"""


def made(number: int, kind: str = "") -> list[str]:
    """The texts that replace line NUMBER in its mutants, of one KIND or of all."""
    found = mutants("net/sctp/f.c", SOURCE)
    return [one.new.strip() for one in found if one.number == number and kind in ("", one.kind)]


def test_what_is_not_code_has_no_faults() -> None:
    assert [line for line in range(1, 10) if made(line)] == []


@pytest.mark.parametrize(
    ("number", "kind", "lines"),
    [
        (10, "", ["int i = 1;", "int i = -1;"]),
        (12, "compare", ["if (n < 1 && !asoc->cmt) {"]),
        (12, "join", ["if (n <= 1 || !asoc->cmt) {"]),
        (12, "constant", ["if (n <= 2 && !asoc->cmt) {", "if (n <= 0 && !asoc->cmt) {"]),
        (12, "negate", ["if (!(n <= 1 && !asoc->cmt)) {"]),
        (13, "", []),
        (14, "", []),
        (16, "", ["while (i <= n) {", "while (!(i < n)) {"]),
        (17, "", ["if (t->state == SCTP_PF)", "if (!(t->state != SCTP_PF))"]),
        (18, "", ["break;"]),
        (19, "add", ["t->burst -= n - 1;", "t->burst += n + 1;"]),
        (19, "drop", [";"]),
        (20, "", [";"]),
        (22, "", ["return n << 3;", "return n << 1;"]),
    ],
)
def test_faults(number: int, kind: str, lines: list[str]) -> None:
    assert made(number, kind) == lines


def test_a_fault_is_put_into_its_line_alone() -> None:
    found = next(one for one in mutants("f.c", SOURCE) if one.kind == "jump")
    assert found.put(SOURCE) == SOURCE.replace("continue;", "break;")
    assert found.diff == ["f.c:18 (jump)", "-\t\t\tcontinue;", "+\t\t\tbreak;"]


def test_hooks_are_the_lines_that_the_series_adds() -> None:
    old = SOURCE.replace("\t\tif (t->state != SCTP_PF)\n\t\t\tcontinue;\n", "").replace("n << 2", "n << 1")
    lines = added(old, SOURCE)
    assert lines == {17, 18, 22}
    assert {one.number for one in mutants("f.c", SOURCE, lines)} == lines


def test_a_verdict_holds_until_the_function_changes() -> None:
    keys = {one.key for one in mutants("f.c", SOURCE)}
    assert len(keys) == len(mutants("f.c", SOURCE))
    above = SOURCE.replace("static int limit = 3;", "static int limit = 3;\nstatic int most = 4;")
    assert {one.key for one in mutants("f.c", above)} == keys
    inside = SOURCE.replace("int i = 0;", "int i = 2;")
    assert not {one.key for one in mutants("f.c", inside)} & keys


def test_a_change_elsewhere_draws_the_same_mutants() -> None:
    every = mutants("f.c", SOURCE)
    whole = mutate.draw(every, len(every), 1)
    fewer = [one for one in every if one.number != 22]
    assert mutate.draw(fewer, 9, 1) == [one for one in whole if one in fewer][:9]
    assert whole != mutate.draw(every, len(every), 2)


def test_the_record_is_read_again(tmp_path: Path) -> None:
    (mutant, *_) = mutants("f.c", SOURCE)
    mutate.note(tmp_path / "record", mutant.key, mutate.SURVIVED, mutant.diff)
    assert mutate.verdicts(tmp_path / "record") == {mutant.key: mutate.SURVIVED}
    assert mutate.verdicts(tmp_path / "none") == {}


def test_the_table_counts_by_what_noticed_them() -> None:
    unit, other = f"{mutate.UNIT_TESTS}::test_case[a]", "testbed/tests/kernel/test_failover.py::test_a"
    verdicts = (unit, other, mutate.SURVIVED, mutate.SAME, mutate.BROKEN)
    results = [(Mutant("a.c", number, "drop", "\tf();", "\t;"), one) for number, one in enumerate(verdicts)]
    rows = mutate.table(results)
    assert rows[1:] == [("a.c", "3", "1", "1", "1"), ("all", "3", "1", "1", "1")]
    text = mutate.page(results, "tools/mutate --count 5 --seed 1", 99)
    assert (
        "Of 99 mutants 5 were drawn; 1 of these have the object code of the series, 1 do not build." in text
    )
    assert "    a.c:2 (drop)\n    -   f();\n    +   ;\n" in text


def test_a_given_kernel_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(kernel.KERNELS, raising=False)
    assert kernel.given_kernel("6.12", "patched", "uml") is None
    monkeypatch.setenv(kernel.KERNELS, str(tmp_path))
    (tmp_path / "6.12-patched-uml").mkdir()
    assert kernel.given_kernel("6.12", "patched", "uml") == tmp_path / "6.12-patched-uml"
    assert kernel.given_kernel("6.12", "stock", "uml") is None
