# SPDX-License-Identifier: GPL-2.0
"""The tables of ratios that a scenario asks for: a value or a variant against the others. Pure."""

from collections.abc import Sequence

from sctplab.report.naming import Metric, factor_axis, factor_setting, metric, range_text, ratio_text
from sctplab.report.stats import paired, ratio_over_cells
from sctplab.report.summary import Line, Section
from sctplab.report.tables import Cell, Table, heads, paired_cell, settings
from sctplab.spec.report_spec import VARIANT, Contrast

Pair = tuple[dict[int, float], dict[int, float]]  # seed -> value: what is compared against, and what with it
Row = tuple[tuple[str, ...], tuple[Pair, ...]]
Rows = tuple[tuple[str, ...], tuple[str, ...], list[Row]]  # heads of the settings, columns, rows


def contrast_table(section: Section, contrast: Contrast) -> Table:
    """Everything else against one value of a factor or one variant, over the seeds both have; then over rows.

    No rows where that value or variant is missing.
    """
    make = _variant_rows if contrast.factor == VARIANT else _factor_rows
    shown = metric(contrast.metric)
    named, columns, found = make(section, contrast, shown)
    rows = [row for row in found if any(before.keys() & after.keys() for before, after in row[1])]
    cells = [(names, tuple(paired_cell(*pair, shown) for pair in pairs)) for names, pairs in rows]
    if len(rows) > 1:
        columns_of_pairs = zip(*(pairs for _, pairs in rows), strict=True)
        over_all = tuple(_over_rows(pairs, shown) for pairs in columns_of_pairs)
        cells.append((("all rows", *[""] * (len(named) - 1)), over_all))
    against = factor_setting(contrast.factor, contrast.against)
    return Table(
        f"{shown.title} against {against}",
        "Ratio over the common seeds [95 % interval], then the difference; "
        "over all rows the geometric mean, then the range",
        named,
        columns,
        tuple(cells) if columns else (),
    )


def _over_rows(pairs: Sequence[Pair], shown: Metric) -> Cell:
    """The geometric mean of a column; no interval, for rows are other settings, not samples of one."""
    found = ratio_over_cells([pair for one in pairs if (pair := paired(*one, shown.skewed))])
    return Cell(ratio_text(found), range_text(found)) if found else Cell("")


def _factor_rows(section: Section, contrast: Contrast, shown: Metric) -> Rows:
    """A row per line and setting of the other factors, a column per other value of the factor."""
    place = section.factors.index(contrast.factor)
    others = [value for value in section.values(contrast.factor) if value != contrast.against]
    rows = []
    for line, point in section.cells:
        if point[place] != contrast.against:
            continue
        before = section.by_seed(line, point, shown.name)
        changed = [(*point[:place], value, *point[place + 1 :]) for value in others]
        pairs = tuple((before, section.by_seed(line, other, shown.name)) for other in changed)
        kept = [text for name, text in zip(section.varying, settings(section, point), strict=True)
                if name != contrast.factor]  # fmt: skip
        rows.append(((section.label(line), *kept), pairs))
    named = ("", *(factor_axis(name) for name in section.varying if name != contrast.factor))
    return named, tuple(factor_setting(contrast.factor, value) for value in others), rows


def _variant_rows(section: Section, contrast: Contrast, shown: Metric) -> Rows:
    """A row per point, a column per other line, against that variant: on the same kernel where it can be."""
    named = [line for line in section.lines if line.variant == contrast.against]
    others = [line for line in section.lines if line not in named] if named else []
    lines = [(max(named, key=lambda one: _alike(one, line)), line) for line in others]
    rows = [
        (
            settings(section, point),
            tuple(
                (section.by_seed(against, point, shown.name), section.by_seed(line, point, shown.name))
                for against, line in lines
            ),
        )
        for point in section.points
    ]
    return heads(section), tuple(section.label(line) for line in others), rows


def _alike(one: Line, other: Line) -> tuple[bool, bool, bool]:
    """How much two lines have in common apart from the variant, the most telling first."""
    return (one.base == other.base, one.place == other.place, one.kernel == other.kernel)
