# SPDX-License-Identifier: GPL-2.0
"""Strict reader of what KUnit prints, KTAP (the kernel's Documentation/dev-tools/ktap.rst)."""

import re
from dataclasses import dataclass, field

PLAN = re.compile(r"1\.\.(\d+)$")
RESULT = re.compile(r"(ok|not ok) (\d+) ([^ #]+)(?: # (SKIP|skip|TODO).*)?$")


@dataclass(frozen=True)
class Result:
    """One test. VERDICT: "ok" or what else it was; DIAGNOSIS: what was printed since the one before it."""

    name: str
    verdict: str
    diagnosis: str
    parts: dict[str, "Result"] = field(default_factory=dict)


class Broken(Exception):
    """The text is no complete KTAP."""


def read(lines: list[str]) -> dict[str, Result]:
    """Top-level results by name in a kernel's log; raises Broken. A plan that is not kept is broken too."""
    starts = [number for number, line in enumerate(lines) if line.startswith("KTAP version ")]
    if len(starts) != 1:
        raise Broken(f"{len(starts)} times KTAP at the top level")
    found, rest = _level(lines[starts[0] + 1 :], "")
    if any(RESULT.match(line.strip()) for line in rest):
        raise Broken("results beyond the plan")
    return found


def _level(lines: list[str], indent: str) -> tuple[dict[str, Result], list[str]]:
    """(results of one level, lines after its last); LINES begin after its version line."""
    found: dict[str, Result] = {}
    planned: int | None = None
    diagnosis: list[str] = []
    parts: dict[str, Result] = {}
    while planned is None or len(found) < planned:
        if not lines:
            raise Broken(f"ends after {len(found)} of {planned} results; {' | '.join(diagnosis[-5:])}")
        line, lines = lines[0], lines[1:]
        text = line.removeprefix(indent)
        if text.startswith("    KTAP version "):
            parts, lines = _level(lines, indent + "    ")
        elif planned is None and (plan := PLAN.match(text)):
            planned = int(plan[1])
        elif result := RESULT.match(text):
            word, number, name, directive = result.groups()
            if int(number) != len(found) + 1 or name in found:
                raise Broken(f"out of order: {text}")
            verdict = directive.lower() if directive else word
            found[name] = Result(name, verdict, "\n".join(diagnosis), parts)
            diagnosis, parts = [], {}
        else:
            diagnosis.append(line)
    return found, lines
