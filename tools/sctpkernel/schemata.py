# SPDX-License-Identifier: GPL-2.0
"""All mutants of a source in one program (mutant schemata; Untch, Offutt, Harrold: ISSTA 1993).

Each function with faults has a copy for each of them, and calls the one that the kernel's parameter
sctp_mutant names. So all mutants take one build. A line of a copy is known to the compiler as one of the file
mutant-N, which tells whose fault it is if it does not build.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sctpkernel.errors import FAILED, Problem
from sctpkernel.mutants import Mutant, code, functions

PARAMETER = "sctp_mutant"
DECLARED = f"extern int {PARAMETER};\n"
DEFINED = f"""
#include <linux/moduleparam.h>
int {PARAMETER};
core_param({PARAMETER}, {PARAMETER}, int, 0444);
"""
# An error, or where one comes from that is in a macro of a header.
BROKEN = re.compile(r"^mutant-(\d+):\d+:\d+: (?:error|note: in expansion of macro .BUILD_BUG)", re.MULTILINE)
_HEAD = re.compile(
    r"(?P<type>[\w\s*]+[\s*])(?P<name>\w+)\((?P<parameters>.*?)\)\s*"
    r"(?:__\w+\([^()]*\)\s*)*",  # what sparse is told of its locks
    re.DOTALL,
)
_LOCAL = re.compile(r"^(?:static|SCTP_MP_STATIC)\s")
_PARAMETER = re.compile(r".*?(?:\(\*(?P<pointer>\w+)\)\(.*\)|(?P<plain>\w+)(?:\[\w*\])*)\s*", re.DOTALL)


def arguments(parameters: str) -> str:
    """How a function passes on what it was given."""
    words, depth, begin = [], 0, 0
    for place, sign in enumerate(f"{parameters},"):
        depth += (sign == "(") - (sign == ")")
        if sign == "," and not depth:
            words.append(parameters[begin:place].strip())
            begin = place + 1
    found = [_PARAMETER.fullmatch(word) for word in words if word != "void"]
    return ", ".join(one["pointer"] or one["plain"] for one in found if one)


def chosen(file: str, text: str, numbered: Mapping[int, Mutant]) -> str:
    """The source TEXT of FILE with all its mutants, of which none runs unless its number is chosen."""
    lines, whole = code(text), text.splitlines()
    for function in reversed(list(functions(lines))):
        mine = {number: one for number, one in numbered.items() if one.number - 1 in function}
        if not mine:
            continue
        first = function.start - 1  # the line with {
        while lines[first - 1].strip() and not lines[first - 1].startswith("}"):
            first -= 1
        header = "\n".join(whole[first : function.start - 1])
        found = _HEAD.fullmatch(header)
        if not found:
            raise Problem(f"{file}:{first + 1}: expected the head of a function, got {header!r}", FAILED)
        copies, calls = [], []
        for number, one in sorted(mine.items()):
            name = f"{found['name']}__{number}"
            head = f"static {_LOCAL.sub('', found['type'])}{name}({found['parameters']})"
            copies += [f'#line 1 "mutant-{number}"', head]
            copies += [*whole[function.start - 1 : one.number - 1], one.new]
            copies += whole[one.number : function.stop + 1]
            call = f"{name}({arguments(found['parameters'])});"
            void = re.search(r"\bvoid\s*$", found["type"])
            then = f"{{ {call} return; }}" if void else f"return {call}"
            calls.append(f"\tif ({PARAMETER} == {number}) {then}")
        again = f'#line {function.start + 1} "{file}"'
        here = f'#line {first + 1} "{file}"'
        declared = f"{header};"  # it may call itself
        whole[first : function.start] = [declared, *copies, here, *header.splitlines(), "{", *calls, again]
    return "\n".join([DECLARED + f'#line 1 "{file}"', *whole]) + "\n"
