# SPDX-License-Identifier: GPL-2.0
"""README and Documentation: generated tables between markers, and figures within sentences.

A table stands between two comments, in reStructuredText and in Markdown:

    .. evidence: NAME                      <!-- evidence: NAME -->
    (the table, and where it comes from)
    .. end of evidence                     <!-- end of evidence -->

so that a page reads the same as text, in a forge and built. A sentence with figures is in the manifest:

    [[figures]]
    page = "README.md"
    text = "{a} s on stock, {b} s with CMT"
    a = { runs = "demo-cut", kernel = "stock", variant = "kernel", cell = "{transfer_s:.0f}" }
    b = { runs = "demo-cut", kernel = "patched", variant = "cmt", cell = "{transfer_s:.0f}" }

The page has the sentence once, wrapped as it likes; its figures are put in and checked.

All other numbers of a page are given: settings, figures of papers and of other commands.
Documentation/tables/given.txt lists them, so that a changed digit is found; 'evidence --accept' takes them
over after a look at 'git diff'.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sctplab.errors import LabError
from sctplab.evidence import cell, data, plot, table
from sctplab.evidence.data import Data
from sctplab.evidence.manifest import Manifest
from sctplab.paths import ROOT

MARKED = re.compile(
    r"^(?P<open>\.\. evidence: |<!-- evidence: )(?P<name>[a-z0-9-]+)(?: -->)?\n"
    r"(?P<body>.*?)"
    r"^(?P<close>\.\. end of evidence|<!-- end of evidence -->)\n",
    re.MULTILINE | re.DOTALL,
)
LITERAL = re.compile(
    r"``.*?``|`[^`\n]*`|^```.*?^```$|::\n\n(?:[ \t]+[^\n]*\n|\n)+|^    [^\n]*$|<[^>\n]*>",
    re.MULTILINE | re.DOTALL,
)
NUMBER = re.compile(r"\d+(?:\.\d+)?")
GIVEN = "given.txt"
SLOT = re.compile(r"\{([a-z0-9_]+)\}")


@dataclass(frozen=True)
class Summaries:
    """The manifest with its summaries, each read once."""

    manifest: Manifest
    folder: Path = data.FOLDER

    def load(self, name: str) -> Data:
        if name not in self.manifest.runs:
            raise LabError(f"{self.manifest.file}: runs: got {name!r}, expected a [runs.{name}]")
        return _read(self.folder / f"{name}.csv")


@cache
def _read(path: Path) -> Data:
    return data.read(path)


def pages() -> list[Path]:
    """All that may have tables."""
    return [ROOT / "README.md", *sorted((ROOT / "Documentation").glob("*.rst"))]


def metrics(manifest: Manifest) -> dict[str, set[str]]:
    """Set of runs -> metrics that a table or figure shows."""
    wanted: dict[str, set[str]] = {name: set() for name in manifest.runs}
    for runs, template in _templates(manifest):
        if runs in wanted:
            wanted[runs] |= cell.metrics_of(template)
    return wanted


def _templates(manifest: Manifest) -> Iterator[tuple[str, str]]:
    for name, found in manifest.tables.items():
        yield from table.read(name, found, str(manifest.file)).templates()
    for name, found in manifest.plots.items():
        drawn = plot.read(name, found, str(manifest.file))
        yield drawn.runs, f"{{{drawn.metric}}}"
    for figure in manifest.figures:
        for one in figure.values():
            if isinstance(one, Mapping):
                yield one.get("runs", ""), one.get("cell", "")


def written(page: Path, old: str, known: Summaries) -> str:
    """The page's text OLD with all its tables and figures as the summaries have them; raises LabError."""

    def fill(found: re.Match[str]) -> str:
        name = found["name"]
        if name not in known.manifest.tables:
            raise LabError(f"{page}: evidence {name}: no [tables.{name}] in {known.manifest.file}")
        body = block(name, known, markdown=found["open"].startswith("<"))
        return old[found.start() : found.start("body")] + body + found["close"] + "\n"

    new = MARKED.sub(fill, old)
    for number, figure in enumerate(known.manifest.figures, 1):
        if ROOT / str(figure.get("page")) == page:
            new = sentence(new, figure, f"{known.manifest.file}: [figures {number}]", known)
    return new


def drawings(known: Summaries) -> Iterator[tuple[Path, str]]:
    """(file, content) of each plot; raises LabError."""
    for name, found in known.manifest.plots.items():
        drawn = plot.read(name, found, str(known.manifest.file))
        yield known.folder / f"{name}.svg", plot.svg(name, drawn, known.load)


def block(name: str, known: Summaries, markdown: bool) -> str:
    """A table and its source, with empty lines around."""
    found = table.read(name, known.manifest.tables[name], str(known.manifest.file))
    grid = table.fill(name, found, known.load)
    lines = table.markdown(grid) if markdown else table.rst(grid)
    told = [source(runs, known) for runs in grid.runs]
    return "\n".join(["", *lines, "", *told, ""]) + "\n"


def source(runs: str, known: Summaries) -> str:
    """The source of a set of runs; the same line in both kinds of page."""
    where = known.load(runs).source
    present = where["series"] in (data.series_id(), "none")
    older = "" if present else known.manifest.runs[runs].older
    return (
        f"``testbed/lab evidence --only {runs}``: series {where['series']}, Linux {where['kernel']},"
        f" laboratory {where['laboratory']}, {where['runs']} records {where['records']}."
        + (f" An earlier series: {older}." if older else "")
    )


def sentence(text: str, figure: Mapping[str, Any], at: str, known: Summaries) -> str:
    """TEXT with the figures of one sentence."""
    template = str(figure.get("text", ""))
    slots = SLOT.findall(template)
    found = list(re.finditer(_pattern(template), text))
    if not slots or not SLOT.split(template)[-1].strip():
        raise LabError(f"{at}: text: got {template!r}, expected figures {{a}} and words after the last")
    if len(found) != 1:
        raise LabError(f"{at}: text: {len(found)} times on {figure.get('page')}, expected once: {template!r}")
    values = [_value(figure, slot, at, known) for slot in slots]
    for number in range(len(values), 0, -1):
        start, end = found[0].span(number)
        text = text[:start] + values[number - 1] + text[end:]
    return text


def _pattern(template: str) -> str:
    """The sentence with a group for each figure, in whatever lines."""
    parts = [re.escape(part) for part in SLOT.split(template)[::2]]
    return "([^\n]*?)".join(re.sub(r"(\\ |\\?\n)+", r"\\s+", part) for part in parts)


def _value(figure: Mapping[str, Any], slot: str, at: str, known: Summaries) -> str:
    chosen = figure.get(slot)
    if not isinstance(chosen, Mapping) or "runs" not in chosen or "cell" not in chosen:
        raise LabError(f"{at}: {slot}: got {chosen!r}, expected runs, settings and cell")
    spec = table.Table(
        runs=chosen["runs"],
        rows=({"head": ""},),
        columns=({"head": "", **{key: one for key, one in chosen.items() if key != "runs"}},),
    )
    return table.fill(slot, spec, known.load).rows[0][1]


def given(page: Path, text: str, manifest: Manifest) -> list[str]:
    """The numbers of a page that are from no record, in their order; not those in code and commands."""
    rest = MARKED.sub("\n", text)
    for figure in manifest.figures:
        if ROOT / str(figure.get("page")) == page:
            rest = re.sub(_pattern(str(figure.get("text", ""))), " ", rest)
    return NUMBER.findall(LITERAL.sub(" ", rest))


def given_lines(manifest: Manifest) -> list[str]:
    """The content of given.txt: a line per page."""
    found = ((page, given(page, page.read_text(encoding="utf-8"), manifest)) for page in pages())
    return [f"{page.relative_to(ROOT)}: {' '.join(numbers)}" for page, numbers in found if numbers]


def not_given(known: Summaries) -> Iterator[str]:
    """A line for each page whose given numbers are not those of given.txt."""
    path = known.folder / GIVEN
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    accepted = dict(line.split(": ", 1) for line in lines)
    for line in given_lines(known.manifest):
        page, numbers = line.split(": ", 1)
        now, before = Counter(numbers.split()), Counter(accepted.get(page, "").split())
        if now != before:
            new, gone = (_told(one - other) for one, other in ((now, before), (before, now)))
            yield (
                f"{page}: numbers from no record: new {new}, gone {gone}; put them in [[figures]], or take"
                " them over with testbed/lab evidence --accept"
            )


def _drawn_otherwise(known: Summaries) -> Iterator[str]:
    try:
        for file, content in drawings(known):
            if not file.is_file() or file.read_text(encoding="utf-8") != content:
                yield f"{file}: not the plot of its summary; run testbed/lab evidence --write"
    except LabError as error:
        yield str(error)


def _told(numbers: Counter[str]) -> str:
    return " ".join(numbers.elements()) or "none"


def faults(known: Summaries, series: str) -> Iterator[str]:
    """Lines about pages that are not what the summaries say, and summaries of another series than SERIES."""
    shown: set[str] = set()
    for page in pages():
        old = page.read_text(encoding="utf-8")
        shown |= {found["name"] for found in MARKED.finditer(old)}
        try:
            if written(page, old, known) != old:
                yield f"{page}: not the tables and figures of its summaries; run testbed/lab evidence --write"
        except LabError as error:
            yield str(error)
    yield from _drawn_otherwise(known)
    yield from not_given(known)
    for name in sorted(set(known.manifest.tables) - shown):
        yield f"{known.manifest.file}: [tables.{name}]: on no page; show it or remove it"
    for name, runs in known.manifest.runs.items():
        try:
            found = known.load(name).source.get("series", "")
        except LabError as error:
            yield str(error)
            continue
        if found not in (series, "none") and not runs.older:
            yield (
                f"{data.path_of(name)}: of series {found}, patches/ is {series}; run testbed/lab evidence"
                f" --only {name}, or say why in [runs.{name}] older"
            )
