# SPDX-License-Identifier: GPL-2.0
"""How far a long sweep is: a bar with the time left on a terminal, one line per run elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

from sctplab.run.runner import Job


class Progress:
    """Counts runs and tells the user about each."""

    def __init__(self, total: int, bar: RichProgress | None) -> None:
        self.total, self.done, self.bad = total, 0, 0
        self.started = time.monotonic()
        self.bar = bar
        self.task = bar.add_task("runs", total=total) if bar else None

    def ended(self, job: Job, record: dict[str, Any]) -> None:
        self.step(line(job, record), record["status"] == "ok")

    def step(self, text: str, good: bool = True) -> None:
        """One more is done; TEXT says what."""
        self.done += 1
        self.bad += not good
        if self.bar and self.task is not None:
            self.bar.update(self.task, advance=1)
            if not good:
                self.bar.console.print(text, markup=False, highlight=False)
        else:
            left = (time.monotonic() - self.started) / self.done * (self.total - self.done)
            eta = timedelta(seconds=round(left))
            print(f"[{self.done}/{self.total}] {text}; {eta} left", flush=True)


def line(job: Job, record: dict[str, Any]) -> str:
    if record["status"] != "ok":
        return f"{record['status']}: {job.spec.run_id}: {record['reason']}"
    goodput = record["metrics"].get("goodput_mbit")
    return f"ok: {job.spec.run_id}" + (f": {goodput:.2f} Mbit/s" if goodput is not None else "")


@contextmanager
def progress(total: int, kept: int) -> Iterator[Progress]:
    """Progress of TOTAL runs; KEPT others have good records already."""
    if kept:
        print(f"{kept} good records kept, {total} runs to do", flush=True)
    if not sys.stdout.isatty():
        yield Progress(total, None)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
               TextColumn("left"), TimeRemainingColumn())  # fmt: skip
    with RichProgress(*columns, console=Console()) as bar:
        yield Progress(total, bar)
