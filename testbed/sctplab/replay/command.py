# SPDX-License-Identifier: GPL-2.0
"""testbed/lab from-pcap: captures in, a scenario file and a summary out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from sctplab.errors import LabError
from sctplab.files import ready, write_text
from sctplab.replay import scenario_file
from sctplab.replay.figures import Figure, Figures, figures
from sctplab.replay.scenario_file import File
from sctplab.replay.story import tell
from sctplab.replay.survey import survey
from sctplab.spec import scenario

NAME = r"[A-Za-z0-9][A-Za-z0-9._+-]*\.toml"


def from_pcap(paths: Sequence[Path], wanted: str | None, out: Path) -> str:
    """Write OUT, and what happened beside it; a summary of what was found."""
    if not re.fullmatch(NAME, out.name):
        raise LabError(
            f"--out: got {out.name!r}, expected a name of letters, digits and . _ + - that ends in .toml"
        )
    found = figures(tell(survey(paths, wanted)))
    if not found.story.messages.get("host1"):
        raise LabError(f"{', '.join(map(str, paths))}: no DATA in the association; nothing can be replayed")
    what = scenario_file.reference(found)
    beside = scenario_file.reference_path(out).resolve()
    file = File(found, out.stem, scenario_file.sources_of(found), str(beside) if what else "")
    text = file.text()
    scenario.checked(f"what is seen in {', '.join(map(str, paths))}", out.stem, text)
    for name, content in ((out, text), *(((beside, what),) if what else ())):
        ready(name)
        write_text(name, content)
    return "\n".join([*summary(found, file), f"{out}: see how others fare: testbed/lab run {out}"])


def summary(found: Figures, file: File) -> Iterator[str]:
    story = found.story
    yield f"{story.survey.association}: captured at {' and '.join(sorted(set(story.survey.files.values())))}"
    for seen in file.order:
        path = found.paths[seen]
        for way, values in path.ways.items():
            said = f"delay {mark(values.delay_ms)} ms, rate {mark(values.rate_mbit)} Mbit/s"
            yield f"{file.path(seen)} {way}: {said}, loss {mark(values.loss_pct)} %"
    for cut in found.outages:
        until = f"{file.at_s(cut.end_ns):.3f} s" if cut.end_ns else "the end"
        yield f"{file.path(cut.path)} {cut.way}: outage from {file.at_s(cut.start_ns):.3f} s to {until}"
    for name, one in found.settings.items():
        yield f"{name} {one.value:g}: {one.why}"
    if found.failover_s:
        yield f"failover took {found.failover_s.value:.3f} s"


def mark(one: Figure) -> str:
    return f"{one.value:.4g}{' (assumed)' if one.assumed else ''}"
