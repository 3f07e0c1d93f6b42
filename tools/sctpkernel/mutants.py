# SPDX-License-Identifier: GPL-2.0
"""Small faults in C, one line at a time: where a source can have them, and the line with the fault."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

_SILENT = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'", re.DOTALL)
_SWAPS = {
    "compare": {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="},
    "join": {"&&": "||", "||": "&&"},
    "add": {"+": "-", "-": "+", "+=": "-=", "-=": "+="},
    "jump": {"continue;": "break;", "break;": "continue;"},
}
# An operator between blanks is one of two operands, not a sign, a pointer or part of another operator.
_WORD = re.compile(r"(?<=\s)(<=|>=|==|!=|<|>|&&|\|\||\+=|-=|\+|-)(?=\s|$)|\b(continue;|break;)$")
_NUMBER = re.compile(r"(?<![\w.])(\d+)(?![\w.])")
_CONDITION = re.compile(r"^(\s*(?:\} else )?(?:if|while) )(\(.*\))( \{)?$")
_CALL = re.compile(r"^\s+(?!return\b|goto\b|case\b|else\b|struct\b|if\b|for\b|while\b)[\w>.\[\]()*-]+"
                   r"(?:\(.*\)|(?: [-+|&]?= .*)|\+\+|--);$")  # fmt: skip
_SAYS = re.compile(r"^\s+(?:pr_debug|lockdep_\w+|\w+_assert_\w+)\(")  # they do nothing
_DECLARES = re.compile(
    r"^\s+(?:const |static |unsigned )*(?:struct |enum )?\w+ \**\w+(?:\[\w*\])?(?: = .*|, .*)?;$"
)


@dataclass(frozen=True)
class Mutant:
    """FILE has NEW in place of OLD in line NUMBER, by the operator KIND; WITHIN: the text of the function."""

    file: str
    number: int
    kind: str
    old: str
    new: str
    within: str = ""  # with an empty line before the one with the fault

    @property
    def key(self) -> str:
        """Of the function with the fault: what changes elsewhere changes nothing."""
        text = "\0".join((self.file, self.kind, self.old, self.new, self.within))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def diff(self) -> list[str]:
        return [f"{self.file}:{self.number} ({self.kind})", f"-{self.old}", f"+{self.new}"]

    def put(self, text: str) -> str:
        """The source TEXT with the fault."""
        lines = text.splitlines(keepends=True)
        assert lines[self.number - 1] == self.old + "\n", self
        lines[self.number - 1] = self.new + "\n"
        return "".join(lines)


def code(text: str) -> list[str]:
    """The lines of a source with blanks for comments and strings, and none for the preprocessor."""
    silent = _SILENT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    lines, goes_on = [], False
    for line in silent.splitlines():
        directive = goes_on or line.lstrip().startswith("#")
        goes_on = directive and line.endswith("\\")
        lines.append("" if directive else line.rstrip())
    return lines


def balanced(text: str) -> bool:
    """Whether TEXT is in one pair of parentheses."""
    depth = 0
    for place, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if not depth and place < len(text) - 1:
            return False
    return not depth


def faults(line: str) -> Iterator[tuple[str, int, int, str]]:
    """(operator, begin, end, what stands there instead) for a line of code inside a function."""
    if _SAYS.match(line):
        return
    for found in _WORD.finditer(line):
        word = found[0]
        for kind, swaps in _SWAPS.items():
            if word in swaps:
                yield kind, found.start(), found.end(), swaps[word]
    for found in _NUMBER.finditer(line):
        for step in (1, -1):
            yield "constant", found.start(), found.end(), str(int(found[0]) + step)
    condition = _CONDITION.match(line)
    if condition and balanced(condition[2]):
        yield "negate", condition.start(2), condition.end(2), f"(!{condition[2]})"
    if _CALL.match(line) and not _DECLARES.match(line):
        begin = len(line) - len(line.lstrip())
        yield "drop", begin, len(line), ";"


def functions(lines: list[str]) -> Iterator[range]:
    """Indices of the lines of each function, as kernel code is laid out: between { and } at the left."""
    begin = 0
    for index, line in enumerate(lines):
        if line == "{":
            begin = index + 1
        elif line.startswith("}") and begin:
            yield range(begin, index)
            begin = 0


def mutants(file: str, text: str, only: set[int] | None = None) -> list[Mutant]:
    """All faults of a source. ONLY: in lines with these numbers, from 1."""
    lines, found = code(text), []
    whole = text.splitlines()
    for function in functions(lines):
        for index in function:
            if only is not None and index + 1 not in only:
                continue
            line = whole[index]
            within = "\n".join((*whole[function.start : index], "", *whole[index : function.stop]))
            found += [
                Mutant(file, index + 1, kind, line, line[:begin] + instead + line[end:], within)
                for kind, begin, end, instead in faults(lines[index])
            ]
    return found


def added(old: str, new: str) -> set[int]:
    """Numbers of the lines of NEW that OLD has not."""
    matcher = SequenceMatcher(None, old.splitlines(), new.splitlines(), autojunk=False)
    return {
        number + 1
        for tag, _, _, begin, end in matcher.get_opcodes()
        if tag in ("insert", "replace")
        for number in range(begin, end)
    }
