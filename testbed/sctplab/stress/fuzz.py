# SPDX-License-Identifier: GPL-2.0
"""Seeds of testbed/fuzz on kernels in virtual time: a hostile peer, or a hostile program.

A seed may be several, whose streams of draws follow one another: see guide.py. It has namespaces of its own
and repeats alone. A boot takes several; those behind a crash get another.
"""

from __future__ import annotations

import itertools
import json
import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sctplab.errors import LabError, RunError
from sctplab.paths import AGENT, ROOT, SETUP
from sctplab.place.uml import boot, boot_environment, built
from sctplab.processes import Ended, Processes, last_line
from sctplab.programs import made, missing, search_path
from sctplab.spec.model import USUAL_BASE
from sctplab.stress.guide import streams

NUMBER = re.compile(r"[0-9]{1,9}")
PER_BOOT = 5  # seeds
WALL_S = {"uml": 20.0, "debug": 60.0}  # of a seed; more is a loop, in the kernel or in the fuzzer
VARIANTS = ("debug", "uml")
CORPUS = ROOT / "testbed" / "fuzz" / "corpus.txt"
Record = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """SEEDS on a kernel; PROGRAM: fuzz-wire or fuzz-local. MINUTES: after them no other boot starts.

    EDGES: the kernel of this build that tells which edges of net/sctp ran. A boot has one seed then: the end
    of another would count, and what it left behind would decide about packets.
    """

    program: str
    seeds: Iterable[str]
    kernel: str = "patched"
    build: str = "debug"
    jobs: int = 1
    minutes: float | None = None
    edges: bool = False


def seed_range(word: str) -> range:
    """An argparse type: A-B, both included."""
    first, dash, last = word.partition("-")
    if not (dash and NUMBER.fullmatch(first) and NUMBER.fullmatch(last) and int(first) <= int(last)):
        raise LabError(f"--seeds: got {word!r}, expected A-B with A not above B, such as 1-100")
    return range(int(first), int(last) + 1)


def corpus(program: str, file: Path = CORPUS) -> list[str]:
    """The cases of FILE for PROGRAM: lines `PROGRAM CASE why`."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LabError(f"--cases: {file}: cannot be read: {error}") from error
    lines = (line.split() for line in text.splitlines() if not line.startswith("#"))
    return [words[1] for words in lines if words and words[0] == program]


def programs() -> Path:
    """The folder of both fuzzers, made when they are not up to date."""
    lack = missing(["make", "cc", "setarch"], search_path())
    if lack:
        raise RunError(lack)
    return made("testbed/fuzz", "fuzz")


def batches(seeds: Iterable[str], size: int = PER_BOOT) -> Iterator[list[str]]:
    left = iter(seeds)
    while batch := list(itertools.islice(left, size)):
        yield batch


def wrong(record: Record) -> str:
    """Why a record is a failure in one line, "" when it is none."""
    return str(record.get("failure") or (record["splats"] or [""])[0])


def of_boot(seeds: list[str], lines: list[str], ended: Ended) -> list[Record]:
    """The records of a boot; where one is missing, the kernel died or hung with that seed."""
    found: list[Record] = [json.loads(line) for line in lines if line.endswith("}")]
    if len(found) < len(seeds):
        how = "no end" if ended.timed_out else f"the kernel died, exit {ended.returncode}"
        log = ended.console.splitlines()[-80:]
        found.append(
            {"seed": seeds[len(found)], "outcome": "crash", "failure": how, "splats": log[-3:], "log": log}
        )
    return found


def kernel(asked: Asked) -> Path:
    """Its folder, made when it is not in the cache."""
    return built(USUAL_BASE, asked.kernel, asked.build + ("-kcov" if asked.edges else "")).folder


class Fuzz:
    """Common to all runs: the kernel, the programs, the time at which to stop."""

    def __init__(self, asked: Asked, processes: Processes) -> None:
        self.asked = asked
        self.processes = processes
        self.program = programs() / asked.program
        self.linux = str(kernel(asked) / "linux")
        self.iproute2 = last_line([str(SETUP), "--iproute2"], "tools/setup --iproute2") + "/sbin"
        self.until = time.monotonic() + asked.minutes * 60 if asked.minutes else None

    def over(self) -> bool:
        return self.until is not None and time.monotonic() > self.until

    def boot(self, seeds: list[str]) -> list[Record]:
        """One kernel for SEEDS; those behind a crash are done in a further one."""
        if self.over():
            return []
        with tempfile.TemporaryDirectory(prefix="sctplab-fuzz-") as name:
            folder = Path(name)
            plan = {"path": self.iproute2, "program": str(self.program), "seeds": seeds}
            (folder / "plan.json").write_text(json.dumps(plan))
            argv = boot(self.linux, name, 1, True, AGENT / "fuzz.py")
            wall_s = WALL_S[self.asked.build] * (PER_BOOT if self.asked.edges else len(seeds))
            ended = self.processes.run(argv, boot_environment(folder), folder, wall_s)
            file = folder / "records.jsonl"
            lines = file.read_text(errors="replace").splitlines() if file.exists() else []
        found = of_boot(seeds, lines, ended)
        rest = seeds[len(found) :]
        return found + (self.boot(rest) if rest else [])


def fuzz(asked: Asked, tell: Callable[[Record], None]) -> list[Record]:
    """All records, each told when its boot has ended."""
    processes = Processes()
    shared = Fuzz(asked, processes)
    lock = threading.Lock()
    todo = batches(asked.seeds, 1 if asked.edges else PER_BOOT)
    records: list[Record] = []

    def work() -> None:
        while not shared.over():
            with lock:
                batch = next(todo, None)
            if batch is None:
                return
            found = shared.boot(batch)
            with lock:
                records.extend(found)
                for one in found:
                    tell(one)

    with ThreadPoolExecutor(asked.jobs) as pool:
        try:
            for one in [pool.submit(work) for _ in range(asked.jobs)]:
                one.result()
        finally:
            processes.stop()  # before the pool waits for all of them
    return sorted(records, key=lambda one: streams(one["seed"]))


def line(record: Record) -> str:
    count = record.get("packets", record.get("calls", 0))
    said = wrong(record)
    new = f", {record['new']} new edges" if record.get("new") else ""
    return f"seed {record['seed']}: {record['outcome']}, {count}{new}" + (f": {said}" if said else "")


def summary(asked: Asked, records: list[Record]) -> Record:
    """The file of a session: program, kernel, build, totals, seeds that failed, all RECORDS."""
    return {
        "program": asked.program,
        "kernel": asked.kernel,
        "build": asked.build,
        "seeds": len(records),
        "packets": sum(one.get("packets", 0) for one in records),
        "calls": sum(one.get("calls", 0) for one in records),
        "failed": [one["seed"] for one in records if wrong(one)],
        "records": records,
    }
