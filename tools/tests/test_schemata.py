# SPDX-License-Identifier: GPL-2.0
"""Many faults in one program: each runs alone when its number is chosen, and none without."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from sctpkernel.errors import Problem
from sctpkernel.mutants import mutants
from sctpkernel.schemata import BROKEN, arguments, chosen

SOURCE = """\
/* a < b
 */
#define MOST(a, b) \\
	((a) > (b) ? (a) : (b))
#define __acquires(lock)
static int sum;
#define SCTP_MP_STATIC static
static void count(int n)
{
	sum += n;
}

/* Calls itself, and
 * through a pointer.
 */
SCTP_MP_STATIC int f(int n, int (*g)(int, int),
		const int a[2]) __acquires(RCU)
{
	if (n == 0)
		return a[0];
	count(n);
	return g(f(n - 1, g, a), a[1]);
}
"""
REST = """
#include <stdlib.h>
#include <stdio.h>
int sctp_mutant;
static int g(int a, int b) { return a * 10 + b; }
int main(int number, char **words)
{
	int result, a[3] = { 5, 2, 7 };
	sctp_mutant = number > 1 ? atoi(words[1]) : 0;
	result = f(2, g, a);
	printf("%d %d\\n", result, sum);
	return 0;
}
"""


def built(folder: Path, text: str) -> Path:
    (folder / "f.c").write_text(text + REST)
    subprocess.run(["gcc", "-o", folder / "f", folder / "f.c"], check=True)
    return folder / "f"


def said(program: Path, number: int = 0) -> str:
    return subprocess.run([program, str(number)], capture_output=True, text=True, timeout=10).stdout


def test_each_fault_is_that_of_a_program_of_its_own(tmp_path: Path) -> None:
    numbered = {
        number: one
        for number, one in enumerate(mutants("f.c", SOURCE), 1)
        if one.number != 19 and one.new.strip() != ";"
    }
    assert len(numbered) > 5
    all_in_one = built(tmp_path, chosen("f.c", SOURCE, numbered))
    assert said(all_in_one) == "522 3\n"
    alone = tmp_path / "alone"
    alone.mkdir()
    differ = 0
    for number, one in numbered.items():
        expected = said(built(alone, one.put(SOURCE)))
        assert said(all_in_one, number) == expected, one
        differ += expected != "522 3\n"
    assert differ > 3


def test_an_error_of_the_compiler_says_whose_fault_it_is(tmp_path: Path) -> None:
    found = mutants("f.c", SOURCE)
    broken = found[0].__class__("f.c", 21, "drop", "	count(n);", "	count(;")
    text = chosen("f.c", SOURCE, {3: found[0], 7: broken})
    (tmp_path / "f.c").write_text(text)
    done = subprocess.run(["gcc", "-c", "f.c"], cwd=tmp_path, capture_output=True, text=True)
    assert set(BROKEN.findall(done.stderr)) == {"7"}
    (tmp_path / "f.c").write_text(chosen("f.c", SOURCE, {}).replace("return a[0];", "return a[;"))
    done = subprocess.run(["gcc", "-c", "f.c"], cwd=tmp_path, capture_output=True, text=True)
    assert "f.c:20:" in done.stderr


@pytest.mark.parametrize(
    ("parameters", "names"),
    [
        ("void", ""),
        ("struct sock *sk", "sk"),
        ("const __u8 *a, int n[4],\n\t u32 (*fn)(struct x *, int)", "a, n, fn"),
    ],
)
def test_arguments(parameters: str, names: str) -> None:
    assert arguments(parameters) == names


def test_a_head_that_is_not_understood_is_named() -> None:
    source = SOURCE.replace("static void count(int n)", "DEFINE(count) int n;")
    with pytest.raises(Problem, match=r"f\.c:8: expected the head of a function"):
        chosen("f.c", source, {1: next(one for one in mutants("f.c", source) if one.number == 10)})
