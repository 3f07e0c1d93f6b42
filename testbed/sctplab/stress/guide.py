# SPDX-License-Identifier: GPL-2.0
"""Cases of a fuzzer that are chosen by what those before have reached in net/sctp.

A case is a text, which testbed/fuzz/common.h defines: a seed, and other seeds whose streams of draws take its
place from a draw on. A case that reached an edge before all others is kept. Others are derived from those
with edges that few reach.
"""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sctplab.errors import LabError
from sctplab.stress import edges

STREAMS = 16  # of a case at most, as in testbed/fuzz/common.c
DRAW_BITS = 8  # another stream begins at a draw below 2**this; the first ones decide about settings
RARE = 2  # an edge that at most so many cases reach
SEED_BITS = 32
TEXT = re.compile(r"\d+(@\d+:\d+)*")
EVERY = 20  # cases between two points of the record

Streams = list[tuple[int, int]]  # (draw, seed whose stream begins there); the first begins at 0


def streams(text: str) -> Streams:
    """Those of a case."""
    if not TEXT.fullmatch(text):
        raise LabError(f"--seed: got {text!r}, expected a seed, or SEED@DRAW:SEED such as 17@40:991")
    first, *others = text.split("@")
    found = [(0, int(first)), *((int(at), int(seed)) for at, seed in (word.split(":") for word in others))]
    if len(found) > STREAMS or any(a[0] >= b[0] for a, b in itertools.pairwise(found)):
        raise LabError(f"--seed: got {text!r}, expected up to {STREAMS} seeds, at draws that rise from 1")
    return found


def text(case: Streams) -> str:
    (_, first), *others = case
    return str(first) + "".join(f"@{at}:{seed}" for at, seed in others)


def derived(parent: Streams, rng: random.Random) -> Streams:
    """PARENT up to a draw, then another stream."""
    at = int(2 ** rng.uniform(0, DRAW_BITS))
    before = [one for one in parent if one[0] < at]
    return [*before[: STREAMS - 1], (at, rng.getrandbits(SEED_BITS))]


@dataclass
class Guide:
    """Choice of the next case, and the coverage so far. FRESH: cases; not DERIVE: these only."""

    fresh: Iterator[str]
    derive: bool
    rng: random.Random = field(default_factory=lambda: random.Random(1))
    reached: edges.Reached = field(default_factory=edges.Reached)
    kept: dict[str, int] = field(default_factory=dict)  # case -> its edges
    count: Counter[str] = field(default_factory=Counter)  # edge -> cases that reached it
    first: dict[str, str] = field(default_factory=dict)  # edge -> the first of them
    growth: list[tuple[int, int, int]] = field(default_factory=list)  # cases, blocks, edges
    learnt: int = 0

    def cases(self) -> Iterator[str]:
        """Every other one is fresh."""
        for case in self.fresh:
            yield case
            rare = [edge for edge, count in self.count.items() if count <= RARE] if self.derive else []
            if rare:
                yield text(derived(streams(self.first[self.rng.choice(rare)]), self.rng))

    def learn(self, record: dict[str, Any]) -> None:
        """Take a record's edges, and put their number in their place; those of a crash are unknown."""
        words = record.pop("edges", "").split()
        mask = self.reached.mask(words)
        record["edges"], record["new"] = len(words), self.reached.add(mask)
        self.count.update(words)
        for word in words:
            self.first.setdefault(word, record["seed"])
        if record["new"]:
            self.kept[record["seed"]] = mask
        self.learnt += 1
        if self.learnt % EVERY == 0:
            every = self.reached.all
            self.growth.append((self.learnt, len(self.reached.blocks(every)), every.bit_count()))

    def smallest(self) -> list[tuple[str, int]]:
        """Few of the kept cases that ran all blocks, each with how many those before it had not."""
        chosen: list[tuple[str, int]] = []
        left = {case: self.reached.blocks(mask) for case, mask in self.kept.items()}
        while left:
            best = max(left, key=lambda case: len(left[case]))
            ran = left.pop(best)
            if ran:
                chosen.append((best, len(ran)))
            left = {case: blocks - ran for case, blocks in left.items() if blocks - ran}
        return chosen

    def record(self, kernel: Path) -> dict[str, Any]:
        """The coverage, for JSON; "cases" is a small set that runs all blocks, "never" functions not run."""
        places = edges.blocks(kernel)
        ran = [places[at] for at in self.reached.blocks(self.reached.all) if at in places]
        of_file = Counter(place.file for place in ran)
        functions = set(ran)
        return {
            "edges": self.reached.all.bit_count(),
            "files": {
                file: [of_file[file], size] for file, size in Counter(p.file for p in places.values()).items()
            },
            "growth": self.growth,
            "cases": self.smallest(),
            "never": [
                [place.file, place.function, size]
                for place, size in Counter(places.values()).most_common()
                if place not in functions
            ],
        }


def page(program: str, record: dict[str, Any]) -> str:
    """A file like testbed/fuzz/corpus.txt of a guide's RECORD."""
    rows = [f"{program} {case} {new} blocks\n" for case, new in record["cases"]]
    return f"# {line(record)}. Each has so many that those before it had not.\n" + "".join(rows)


def line(record: dict[str, Any]) -> str:
    """RECORD: that of a guide."""
    files = record["files"]
    both = (sum(shares[of] for shares in files.values()) for of in (0, 1))
    own = (sum(shares[of] for file, shares in files.items() if edges.is_own(file)) for of in (0, 1))
    had, size = both
    own_had, own_size = own
    return (
        f"{record['edges']} edges; {had} of {size} blocks of net/sctp, {own_had} of {own_size} in "
        f"{edges.OWN}.c; {len(record['cases'])} cases ran them all"
    )
