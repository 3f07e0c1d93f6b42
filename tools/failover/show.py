# SPDX-License-Identifier: GPL-2.0
"""A prediction for people: the steps as a table, the times and kinds of failure below, warnings last."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from failover.kinds import Kind
from failover.predict import Prediction, Range, answer
from failover.situation import Situation

PLAIN_WIDTH = 160  # of a file or a pipe


def show(found: Prediction, situation: Situation, others: list[Kind], warnings: list[str]) -> None:
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=PLAIN_WIDTH)
    console.print(steps(found, console.is_terminal))
    console.print(Text("\n".join(times(found, situation))))
    if others:
        console.print(by_kind(others, console.is_terminal))
    for line in warnings:
        console.print(Text(f"warning: {line}", style="yellow"))


def steps(found: Prediction, fancy: bool) -> Table:
    table = Table(box=box.SIMPLE_HEAD if fancy else box.ASCII2, header_style="bold")
    table.add_column("after the cut\n(s)", justify="right")
    table.add_column("path")
    table.add_column("event")
    table.add_row("0.000", "primary", f"cut; SRTT {found.srtt_ms:g} ms, RTO {found.rto_ms:g} ms")
    for one in found.steps:
        table.add_row(f"{one.t:.3f}", one.path, one.what)
    return table


def by_kind(others: list[Kind], fancy: bool) -> Table:
    table = Table(box=box.SIMPLE_HEAD if fancy else box.ASCII2, header_style="bold")
    for head in ("failure", "time", "rule"):
        table.add_column(head)
    for one in others:
        table.add_row(one.failure, f"{ranged(one.seconds)} {one.measure}", one.rule)
    return table


def times(found: Prediction, situation: Situation) -> list[str]:
    """The figures, one per line, as 'typical (lowest to highest)'."""
    lines = [
        f"failover          {ranged(found.failover_s)}: the first message sent after the cut arrives",
        f"longest message   {ranged(found.max_message_delay_s)}: from sending to arrival",
        f"longest answer    {ranged(answer(found, situation))}: from request to answer, one message each",
        f"path left         {ranged(found.leaves_s)}: new messages leave over the alternate",
    ]
    if situation.heal_s is not None:
        lines.append(
            f"return            {ranged(found.returns_s)}: new messages leave over the primary again"
        )
    if found.lost_s:
        lines.append(f"association ends  {ranged(found.lost_s)}: Association.Max.Retrans")
    return lines


def ranged(found: Range | None) -> str:
    return f"{found.typical:.3f} s ({found.low:.3f} to {found.high:.3f})" if found else "never"
