# SPDX-License-Identifier: GPL-2.0
"""Seeds of flaps, cmt-random and both fuzzers at once, on several processors of one virtual machine.

In real time, so a seed repeats what is done and not when. The kernel is one that reports data races (KCSAN)
or the one with all other checks. A run has namespaces of its own and mostly waits: many go on at a time, and
RPS spreads the packets of each over the processors. The console has all reports, and the end of each seed.
"""

from __future__ import annotations

import itertools
import json
import re
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

from sctplab import programs
from sctplab.errors import LabError, RunError
from sctplab.paths import AGENT, ROOT, SETUP
from sctplab.place import get
from sctplab.place.qemu import IMAGES
from sctplab.place.uml import built
from sctplab.plan.link_commands import Command
from sctplab.plan.run_plan import Plan, as_json
from sctplab.plan.traffic import common_commands
from sctplab.processes import last_line
from sctplab.random import cmt, flaps
from sctplab.spec.model import USUAL_BASE
from sctplab.spec.scenario import Choice
from sctplab.stress import fuzz
from sctplab.vm.machine import Machine, image
from sctplab.vm.running import running

VARIANTS = {"kcsan": "x86-kcsan", "debug": "x86-debug"}
DRAWN = {"flaps": flaps.spec, "cmt-random": cmt.spec}
KINDS = (*DRAWN, "fuzz-local", "fuzz-wire")
RUN_S = 10.0  # of a run's flows, whatever its schedule
SEED_S = 180  # of a seed in all
MEMORY_MB = 4096
BOOT_S = 900.0  # a kernel with checks on processors that others use
END_S = SEED_S + 60.0  # for the last seeds to end
WORK = "/root/races"  # in the machine; a run has a /run of its own

OURS, SCTP, OTHER = "ours", "net/sctp", "elsewhere"
START = re.compile(
    r"(BUG: |WARNING: |UBSAN: |ODEBUG: |kernel BUG at |refcount_t: |Oops|general protection fault"
    r"|Kernel panic|list_(add|del) corruption|INFO: (task|rcu|possible|trying)|kmemleak: \d+ new).*"
)
LINES = 100  # of a report at most
RULE = "=========="
FRAME = re.compile(r"\b([A-Za-z_]\w*)(?:\.\w+)*\+0x[0-9a-f]+/0x[0-9a-f]+")
RACE = re.compile(r"KCSAN: (?:data-race|assert: race) in (\S+)(?: / (\S+))?$")
SAID = re.compile(r"races: (\S+) (\d+) (.*)")
Record = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """SEEDS of each kind, in turns, JOBS at a time; no other starts after MINUTES."""

    build: str = "kcsan"
    kernel: str = "patched"
    cpus: int = 4
    seeds: Sequence[int] = range(1, 201)
    minutes: float = 30.0
    jobs: int = 8


@dataclass(frozen=True)
class Report:
    """Something that the kernel complained of. TITLE: without what differs from time to time."""

    title: str
    place: str
    lines: tuple[str, ...]


def title(line: str) -> str:
    """A report's first line without processes, addresses, offsets and the compiler's suffixes."""
    found = START.search(line)
    text = found[0] if found else line
    text = re.sub(r"CPU: \d+ (UID: \d+ )?PID: \d+ (Comm: \S+ )?", "", text)
    text = re.sub(r"(task \S+?):\d+", r"\1", text)
    text = re.sub(r"\.(isra|constprop|part|cold)\b(\.\d+)?", "", text)
    text = re.sub(r"\+0x[0-9a-f]+/0x[0-9a-f]+", "", text)
    return re.sub(r"\b(0x[0-9a-f]+|[0-9a-f]{12,})\b", "ADDRESS", text).strip()


def place(lines: Sequence[str]) -> str:
    """Whose code a report is about: the two accesses of a race, else the first function of SCTP in it."""
    race = RACE.search(title(lines[0]))
    names = [name for name in race.groups() if name] if race else FRAME.findall("\n".join(lines))
    ours = [name.startswith("sctp_mp_") for name in names if re.match("_*sctp_", name)]
    if "net/sctp/multipath" in lines[0] or (any(ours) if race else ours[:1] == [True]):
        return OURS
    return SCTP if ours or "net/sctp/" in lines[0] else OTHER


def reports(console: str) -> Iterator[Report]:
    """The kernel's reports on the console, in order."""
    lines = [line.rstrip() for line in console.splitlines()]
    starts = [number for number, line in enumerate(lines) if START.search(line)]
    for start, following in itertools.pairwise([*starts, len(lines)]):
        part = lines[start : min(following, start + LINES)]
        end = next((number for number, line in enumerate(part) if RULE in line), len(part))
        yield Report(title(part[0]), place(part[:end]), tuple(part[:end]))


def ended(console: str) -> dict[str, dict[str, int]]:
    """How many seeds of each kind ended, and how."""
    found: dict[str, Counter[str]] = {}
    for kind, _, said in SAID.findall(console):
        found.setdefault(kind, Counter())[said.strip()] += 1
    return {kind: dict(counts) for kind, counts in sorted(found.items())}


def sorted_reports(console: str, baseline: Iterable[str] = ()) -> list[Record]:
    """Reports of the same title as one, ours first. STOCK: it is among the titles of the BASELINE."""
    found: dict[str, list[Report]] = {}
    for one in reports(console):
        found.setdefault(one.title, []).append(one)
    known = set(baseline)
    rows = [
        {
            "place": alike[0].place,
            "title": text,
            "times": len(alike),
            "stock": text in known,
            "lines": list(alike[0].lines),
        }
        for text, alike in found.items()
    ]
    return sorted(
        rows, key=lambda row: ((OURS, SCTP, OTHER).index(row["place"]), row["stock"], -row["times"])
    )


def guilty(record: Record) -> list[Record]:
    """The reports in our files, and those in net/sctp that stock does not give."""
    return [row for row in record["reports"] if row["place"] != OTHER and not row["stock"]]


def spread(setup: Sequence[Command], cpus: int) -> list[Command]:
    """Packets that a namespace receives go to all processors, by their addresses."""
    made = sum(one.argv[:3] == ("ip", "netns", "add") for one in setup)  # which come first
    mask = f"net.core.rps_default_mask={(1 << cpus) - 1:x}"
    every = [Command(one.argv[3], ("sysctl", "-q", "-w", mask)) for one in setup[:made]]
    return [*setup[:made], *every, *setup[made:]]


def plan(kind: str, seed: int, asked: Asked) -> Plan:
    spec = DRAWN[kind](seed, asked.kernel, Choice(place="netns"))
    spec = replace(spec, limits=replace(spec.limits, virtual_s=RUN_S))
    found = get("netns").plan(spec, f"{WORK}/mpflow")
    return replace(found, setup=tuple(spread(found.setup, asked.cpus)))


def put(archive: tarfile.TarFile, name: str, text: str) -> None:
    member = tarfile.TarInfo(name)
    data = text.encode()
    member.size = len(data)
    archive.addfile(member, BytesIO(data))


def pack(asked: Asked, file: Path) -> None:
    """All that the machine needs: agent, programs, a plan for each run, and the queue of all seeds."""
    programs.build_mpflow(False)
    iproute2 = last_line([str(SETUP), "--iproute2"], "tools/setup --iproute2") + "/sbin"
    here = ROOT / "testbed" / "races"
    with tarfile.open(file, "w", dereference=True) as archive:
        archive.add(AGENT, "agent")
        archive.add(here / "guest.py", "agent/guest.py")
        archive.add(here / "job", "job")
        archive.add(iproute2, "iproute2")
        archive.add(programs.mpflow_path(), "mpflow")
        for name in ("fuzz-local", "fuzz-wire"):
            archive.add(fuzz.programs() / name, name)
        queue = [(kind, seed) for seed in asked.seeds for kind in KINDS]
        for kind, seed in queue:
            if kind in DRAWN:
                made = as_json(plan(kind, seed, asked)) | {"path": f"{WORK}/iproute2"}
                put(archive, f"{kind}-{seed}/plan.json", json.dumps(made))
        put(archive, "queue", "".join(f"{kind} {seed}\n" for kind, seed in queue))


def command(asked: Asked) -> str:
    """The machine's command line: it works off the queue, JOBS at a time."""
    shared = " ".join(f'"{one.argv[-1]}"' for one in common_commands() if not one.where)
    limits = f"LIMIT_S={SEED_S} END_S=$(($(cut -d. -f1 /proc/uptime) + {asked.minutes * 60:.0f}))"
    return (
        f"cd {WORK} && tar xf races.tar && sysctl -q -w {shared} && "
        f"export PATH={WORK}/iproute2:$PATH {limits} && "
        f"xargs -a queue -P {asked.jobs} -L 1 ./job >/dev/null 2>&1; sleep 5; true"
    )


def races(asked: Asked, baseline: Iterable[str] = ()) -> Record:
    """One boot; the record holds reports and seeds whether or not the kernel survived."""
    kernel = built(USUAL_BASE, asked.kernel, VARIANTS[asked.build])
    machine = Machine("races", image(IMAGES[USUAL_BASE]), kernel.folder, (), MEMORY_MB, asked.cpus, lean=True)
    with tempfile.TemporaryDirectory(prefix="sctplab-races-") as name:
        folder = Path(name)
        pack(asked, folder / "races.tar")
        console = folder / "races.console"
        end = "whole"
        with running([machine], folder, BOOT_S) as vms:
            vm = vms["races"]
            vm.put([folder / "races.tar"], WORK, BOOT_S)
            started = time.monotonic()
            try:
                vm.need(command(asked), asked.minutes * 60 + END_S)
            except RunError as error:
                end = f"{error}; {vm.story()}"
            took = time.monotonic() - started
        text = console.read_text(errors="replace")
    own = [one.title for one in reports(text)] if asked.kernel == "stock" else []
    return {
        "kernel": kernel.folder.name,
        "build": asked.build,
        "cpus": asked.cpus,
        "jobs": asked.jobs,
        "minutes": round(took / 60, 1),
        "end": end,
        "seeds": ended(text),
        "reports": sorted_reports(text, [*baseline, *own]),
    }


def titles(record: Record) -> list[str]:
    """Of all reports, for a run that is compared with this one."""
    return [row["title"] for row in record["reports"]]


def titles_of(file: Path) -> list[str]:
    """Those of a record that an earlier call has written; raises LabError."""
    try:
        return titles(json.loads(file.read_text(encoding="utf-8")))
    except OSError as error:
        raise LabError(f"{file}: cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise LabError(f"{file}: no record of lab races --out ({error})") from error


def table(record: Record) -> Iterator[str]:
    """The record in lines to read."""
    for kind, counts in record["seeds"].items():
        said = ", ".join(f"{number} {how}" for how, number in sorted(counts.items(), key=lambda one: -one[1]))
        yield f"{kind}: {sum(counts.values())} seeds: {said}"
    for row in record["reports"]:
        yield f"{row['times']:4} {row['place']:9} {'stock' if row['stock'] else '':6} {row['title']}"
    reported = Counter(row["place"] for row in record["reports"])
    counts = ", ".join(f"{reported[where]} {where}" for where in (OURS, SCTP, OTHER))
    yield f"{record['minutes']} minutes, end: {record['end']}; different reports: {counts}"
