# SPDX-License-Identifier: GPL-2.0
"""tools/patch/hooks: the stock functions that the series hooks into, and whether the bases agree on them.

A patch that applies can still be wrong: what stands around it may mean something else than where it was
written. So the text of each function, structure and table that the series changes is kept as a fingerprint
per base in patches/hooks; tools/patch/check names those that are no longer what was looked at.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from sctpkernel.bases import Base, load_bases, reference_base
from sctpkernel.errors import Parser, run_main
from sctpkernel.series import PATCHES, Patch, load_series
from sctpkernel.source import apply_patch, copy_touched, touched_files, unpacked

FILE = PATCHES / "hooks"
ABSENT = "absent"
HEAD = """\
# The series' changes of the stock kernel: file, name, and a fingerprint of the text on each base.
# Equal ones are the same text; tools/patch/hooks --write renews this file, after a look at what differs.
"""
_TYPE = re.compile(r"((?:struct|enum|union) \w+) \{")
_TABLE = re.compile(r"\w.*?(\w+)\[\w*\] = \{")
_FUNCTION = re.compile(r"(\w+)\s*\(")
Hook = tuple[str, str]  # file, name
Hooks = dict[Hook, dict[str, str]]  # -> base -> fingerprint


def definitions(text: str) -> Iterator[tuple[str, str]]:
    """(name, text) of every function, type and table of a C file in the kernel's style.

    Their last line is the first one that begins with }, a function's body begins with a line that is { alone.
    """
    lines = text.splitlines()
    for number, line in enumerate(lines):
        found = _TYPE.fullmatch(line) or _TABLE.fullmatch(line)
        first = number
        if line == "{":
            while first and lines[first - 1] and lines[first - 1][-1] not in ";}/\\":
                first -= 1
            found = _FUNCTION.search(" ".join(lines[first:number]))
        if found:
            last = next((n for n in range(number, len(lines)) if lines[n].startswith("}")), len(lines))
            yield found[1], "\n".join(lines[first : last + 1])


def _all(tree: Path, files: Sequence[str]) -> dict[Hook, str]:
    """Every definition in those of `files` that are there, as text."""
    found = {}
    for file in files:
        if (tree / file).is_file():
            for name, text in definitions((tree / file).read_text(encoding="utf-8")):
                found[(file, name)] = text
    return found


def touched(source: Path, series: Sequence[Patch]) -> list[Hook]:
    """The definitions of `source` that `series` changes or removes."""
    files = [name for name in touched_files(series) if name.endswith((".c", ".h"))]
    with tempfile.TemporaryDirectory(prefix="hooks-") as folder:
        copy_touched(source, series, Path(folder))
        for patch in series:
            apply_patch(Path(folder), patch, source.name)
        after = _all(Path(folder), files)
    return sorted(hook for hook, text in _all(source, files).items() if after.get(hook) != text)


def fingerprints(source: Path, hooks: Sequence[Hook]) -> dict[Hook, str]:
    """Hook -> fingerprint of its text in a stock source; ABSENT when that does not have it."""
    texts = _all(source, sorted({file for file, _ in hooks}))
    return {
        hook: hashlib.sha256(texts[hook].encode()).hexdigest()[:12] if hook in texts else ABSENT
        for hook in hooks
    }


def parse(text: str) -> Hooks:
    """The stored table."""
    rows = [line.split("\t") for line in text.splitlines() if line and not line.startswith("# ")]
    bases = rows[0][2:] if rows else []
    return {(row[0], row[1]): dict(zip(bases, row[2:], strict=True)) for row in rows[1:]}


def render(hooks: Hooks) -> str:
    """The table as it is stored."""
    bases = sorted(
        {base for row in hooks.values() for base in row}, key=lambda name: [*map(int, name.split("."))]
    )
    rows = ["\t".join(["file", "name", *bases])]
    rows += ["\t".join([*hook, *(row[base] for base in bases)]) for hook, row in sorted(hooks.items())]
    return HEAD + "".join(f"{row}\n" for row in rows)


def measure(bases: Sequence[Base]) -> Hooks:
    """The table of these bases as their sources are now."""
    found: Hooks = {}
    for base in bases:
        source = unpacked(base)
        for hook, text in fingerprints(source, touched_anywhere(bases)).items():
            found.setdefault(hook, {})[base.name] = text
    return found


def touched_anywhere(bases: Sequence[Base]) -> list[Hook]:
    """The definitions that the series of any of these bases changes."""
    return sorted({hook for base in bases for hook in touched(unpacked(base), load_series(base.name))})


def faults(base: Base, stored: Hooks) -> list[str]:
    """Hooks of a base that the stored table lacks, or has otherwise."""
    source = unpacked(base)
    found = []
    for hook, text in fingerprints(source, touched(source, load_series(base.name))).items():
        known = stored.get(hook, {}).get(base.name)
        if known != text:
            what = (
                "is not in it" if known is None else f"is another text in {source.name} than when it was made"
            )
            found.append(f"{FILE}: {hook[0]}: {hook[1]} {what}: look at it, then tools/patch/hooks --write")
    return found


def load() -> Hooks:
    """The stored table; empty when there is none."""
    return parse(FILE.read_text(encoding="utf-8")) if FILE.is_file() else {}


def summary(hooks: Hooks, reference: str) -> list[str]:
    """One line per hook: on which bases it is the same as on the reference."""
    lines = []
    for (file, name), row in sorted(hooks.items()):
        others = {
            base: "same" if text == row[reference] else text if text == ABSENT else "differs"
            for base, text in row.items()
            if base != reference
        }
        lines.append(f"{file}: {name}: " + ", ".join(f"{base} {word}" for base, word in others.items()))
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = Parser(
        prog="tools/patch/hooks",
        description="List the stock functions that the series changes, and on which bases they are the same.",
    )
    parser.add_argument("--write", action="store_true", help="renew patches/hooks")
    given = parser.parse_args(arguments)
    hooks = measure([base for base in load_bases().values() if base.state == "supported"])
    for line in summary(hooks, reference_base()):
        print(line)
    if given.write:
        FILE.write_text(render(hooks), encoding="utf-8")
    return 0


if __name__ == "__main__":
    run_main("tools/patch/hooks", main)
