# SPDX-License-Identifier: GPL-2.0
"""The tables of ratios that a scenario asks for: a value or a variant against the others. Pure."""

from sctplab.labels import Metric, factor_axis, factor_setting, metric
from sctplab.page import Cell, Table, heads, paired_cell, settings
from sctplab.summary import Line, Section
from sctplab.wanted import VARIANT, Contrast

Row = tuple[tuple[str, ...], tuple[Cell, ...]]
Rows = tuple[tuple[str, ...], tuple[str, ...], tuple[Row, ...]]  # heads of the settings, columns, rows


def contrast_table(section: Section, contrast: Contrast) -> Table:
    """Everything else against one value of a factor or one variant, over the seeds both have.

    No rows where that value or variant is missing.
    """
    make = _variant_rows if contrast.factor == VARIANT else _factor_rows
    named, columns, rows = make(section, contrast, metric(contrast.metric))
    against = factor_setting(contrast.factor, contrast.against)
    return Table(
        f"{metric(contrast.metric).title} against {against}",
        "Ratio over the common seeds [95 % interval], then the difference",
        named,
        columns,
        rows if columns else (),
    )


def _factor_rows(section: Section, contrast: Contrast, shown: Metric) -> Rows:
    """A row per line and setting of the other factors, a column per other value of the factor."""
    place = section.factors.index(contrast.factor)
    others = [value for value in section.values(contrast.factor) if value != contrast.against]
    rows = []
    for line, point in section.cells:
        if point[place] != contrast.against:
            continue
        before = section.by_seed(line, point, shown.name)
        cells = tuple(
            paired_cell(
                before,
                section.by_seed(line, (*point[:place], value, *point[place + 1 :]), shown.name),
                shown,
            )
            for value in others
        )
        kept = [text for name, text in zip(section.varying, settings(section, point), strict=True)
                if name != contrast.factor]  # fmt: skip
        rows.append(((section.label(line), *kept), cells))
    named = ("", *(factor_axis(name) for name in section.varying if name != contrast.factor))
    return named, tuple(factor_setting(contrast.factor, value) for value in others), tuple(rows)


def _variant_rows(section: Section, contrast: Contrast, shown: Metric) -> Rows:
    """A row per point, a column per other line, against that variant: on the same kernel where it can be."""
    named = [line for line in section.lines if line.variant == contrast.against]
    others = [line for line in section.lines if line not in named] if named else []
    pairs = [(max(named, key=lambda one: _alike(one, line)), line) for line in others]
    rows = tuple(
        (
            settings(section, point),
            tuple(
                paired_cell(
                    section.by_seed(against, point, shown.name),
                    section.by_seed(line, point, shown.name),
                    shown,
                )
                for against, line in pairs
            ),
        )
        for point in section.points
    )
    kept = tuple(row for row in rows if any(cell.text for cell in row[1]))
    return heads(section), tuple(section.label(line) for line in others), kept


def _alike(one: Line, other: Line) -> tuple[bool, bool, bool]:
    """How much two lines have in common apart from the variant, the most telling first."""
    return (one.base == other.base, one.place == other.place, one.kernel == other.kernel)
