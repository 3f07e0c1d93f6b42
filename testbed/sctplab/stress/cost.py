# SPDX-License-Identifier: GPL-2.0
"""Cost of a received packet, of a SACK, of a transfer: instructions of the kernel, cycles of this machine.

testbed/cost/steps.c carries out each call of sctp_rcv(), sctp_sendmsg() and SCTP's timers one instruction at
a time, so the count is exact whatever else the machine does. Cycles come from a boot without that.
"""

from __future__ import annotations

import json
import re
import resource
import statistics
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from sctplab.errors import LabError, RunError
from sctplab.paths import AGENT, SETUP
from sctplab.place.uml import BUILD, boot, boot_environment
from sctplab.processes import Processes, last_line
from sctplab.programs import made, missing, search_path
from sctplab.spec.model import USUAL_BASE
from sctplab.spec.profiles import settings_of

PROFILE = "25-cmt"
ENTRY = re.compile(r"sctp_(rcv|sendmsg|generate_\w+_event)$")
MARKER = "sys_sethostname"
WALL_S = 1800.0  # of a boot: instructions one by one take 10 to 60 us each
FUNCTIONS = 60  # kept of each case
SHORT = 1000  # messages
ADDRESSES = (2, 16, 64, 500)
# Chunks outstanding. Of few nothing waits. With 40000 a timeout takes stock a minute, as it sorts all of them
# into a list, and a SACK with 50 gaps 20 million instructions.
SACKS = {"sack": (4000, 40000), "sack-timeout": (4000,), "sack-gaps": (100, 4000)}
VARIANTS = ("stock", "off", "on")
ONE_PERCENT = 1.01
Record = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A load of testbed/cost/load.c. STEPPED, TIMED: packets, or messages, when counted and when timed."""

    kind: str
    addresses: int
    chunks: int
    stepped: int
    timed: int

    @property
    def name(self) -> str:
        if self.kind.startswith("send"):
            return self.kind
        size = (
            f"{self.chunks} chunks" if self.addresses == 2 and self.chunks else f"{self.addresses} addresses"
        )
        return f"{self.kind}, {size}"


@dataclass(frozen=True)
class Asked:
    """KINDS: those of load.c, () for all. REPEAT: boots with a seed each. TIMES: those without counting."""

    kinds: tuple[str, ...] = ()
    variants: tuple[str, ...] = VARIANTS
    most_chunks: int = 40000
    repeat: int = 1
    times: int = 5


@dataclass
class Result:
    """All of one case on one variant."""

    case: Case
    variant: str
    kernel: str = ""  # its name in the cache of kernels
    instructions: list[float] = field(default_factory=list)  # of a packet, one mean per boot
    cycles: list[float] = field(default_factory=list)  # of a packet, one median per boot
    cpu_us: list[float] = field(default_factory=list)  # of a message, peer and links included, one per boot
    outstanding: int = 0  # chunks before the first SACK
    retransmitted: int = 0  # of them
    sacks: int = 0  # of the peer
    functions: Counter[str] = field(default_factory=Counter)  # instructions of a packet in it


def cases(asked: Asked) -> list[Case]:
    """The cases of the kinds asked for, the cheap ones first; raises LabError for an unknown kind."""
    every = [Case(kind, a, 0, 8, 200) for kind in ("data", "heartbeat") for a in ADDRESSES]
    every += [Case("sack", a, 100, 4, 40) for a in ADDRESSES]
    every += [Case(kind, 2, 0, 150, 15000) for kind in ("send", "send-per-path")]
    every += [
        Case(kind, 2, chunks, 2 if chunks < 40000 else 1, min(200, chunks // 4))
        for kind, sizes in SACKS.items()
        for chunks in sizes
        if chunks <= asked.most_chunks
    ]
    known = list(dict.fromkeys(one.kind for one in every))
    for kind in asked.kinds:
        if kind not in known:
            raise LabError(f"--kind: got {kind!r}, expected one of {', '.join(known)}")
    return [one for one in every if not asked.kinds or one.kind in asked.kinds]


def symbols(listing: str) -> str:
    """The symbol file of cost-steps from the output of nm -n; raises RunError without MARKER or functions."""
    lines: dict[str, tuple[str, str]] = {}
    for line in listing.splitlines():
        address, kind, name = [*line.split(), "", "", ""][:3]
        if kind not in ("t", "T"):
            continue
        word = "entry" if ENTRY.match(name) else "marker" if name == MARKER else "text"
        if address not in lines or word != "text":
            lines[address] = (word, name)
    words = [word for word, _ in lines.values()]
    if words.count("marker") != 1 or "entry" not in words:
        raise RunError(f"nm: expected {MARKER} and functions of SCTP among the kernel's symbols, found none")
    return "".join(f"{address} {word} {name}\n" for address, (word, name) in lines.items())


def programs() -> Path:
    """The folder of cost-load and cost-steps, made when they are not up to date."""
    lack = missing(["make", "cc", "nm", "setarch"], search_path())
    if lack:
        raise RunError(lack)
    return made("testbed/cost", "cost")


class Counting:
    """Common to all boots: kernels, their symbols, programs."""

    def __init__(self, asked: Asked, processes: Processes) -> None:
        self.processes = processes
        self.folder = programs()
        self.iproute2 = last_line([str(SETUP), "--iproute2"], "tools/setup --iproute2") + "/sbin"
        self.linux: dict[str, str] = {}
        self.symbols: dict[str, str] = {}
        for flavour in dict.fromkeys(flavour_of(variant) for variant in asked.variants):
            words = ["--base", USUAL_BASE, "--flavour", flavour, "--variant", "uml"]
            folder = last_line([str(BUILD), *words], f"tools/build/kernel {' '.join(words)}")
            linux = str(Path(folder).resolve() / "linux")  # cost-steps compares it with /proc
            self.linux[flavour] = linux
            listing = subprocess.run(["nm", "-n", linux], capture_output=True, text=True, check=True).stdout
            self.symbols[flavour] = symbols(listing)

    def kernel(self, variant: str) -> str:
        return Path(self.linux[flavour_of(variant)]).parent.name

    def boot(self, case: Case, variant: str, seed: int, stepped: bool) -> tuple[Record, Record]:
        """(what the load wrote, what cost-steps wrote); raises RunError."""
        linux = self.linux[flavour_of(variant)]
        number = case.stepped if stepped else case.timed
        words = [case.kind, str(case.addresses), str(case.chunks), str(number)]
        if variant == "on":
            words += [
                f"{key.removeprefix('net.sctp.')}={value}" for key, value in settings_of(PROFILE).items()
            ]
        with tempfile.TemporaryDirectory(prefix="sctplab-cost-") as name:
            folder = Path(name)
            plan = {"path": self.iproute2, "program": str(self.folder / "cost-load"), "words": words}
            (folder / "plan.json").write_text(json.dumps(plan))
            (folder / "symbols").write_text(self.symbols[flavour_of(variant)])
            argv = boot(linux, name, seed, True, AGENT / "cost.py")
            if stepped:
                argv = [
                    str(self.folder / "cost-steps"),
                    f"{name}/symbols",
                    f"{name}/steps.json",
                    linux,
                    *argv,
                ]
            ended = self.processes.run(argv, boot_environment(folder), folder, WALL_S)
            result = read(folder / "result.json")
            steps = read(folder / "steps.json") if stepped else {}
        if result.get("status") != "ok" or (stepped and not steps):
            why = result.get("reason") or (ended.console.strip().splitlines() or ["no result"])[-1]
            raise RunError(f"{case.name} on {variant}: {'no end' if ended.timed_out else why}")
        return result["load"], steps

    def take_time(self, result: Result, seed: int) -> None:
        """One boot without counting; of a transfer what a long one takes more than a short one."""
        case = result.case
        if not case.kind.startswith("send"):
            load, _ = self.boot(case, result.variant, seed, False)
            result.cycles.append(statistics.median(load["cycles"]))
            return
        spent = []
        for number in (SHORT, case.timed):
            before = cpu_s()
            self.boot(replace(case, timed=number), result.variant, seed, False)
            spent.append(cpu_s() - before)
        result.cpu_us.append((spent[1] - spent[0]) / (case.timed - SHORT) * 1e6)


def cpu_s() -> float:
    """CPU time of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def flavour_of(variant: str) -> str:
    return "stock" if variant == "stock" else "patched"


def read(file: Path) -> Record:
    try:
        found: Record = json.loads(file.read_text())
    except (OSError, ValueError):
        return {}
    return found


def take_steps(result: Result, load: Record, steps: Record) -> None:
    """One boot that counted; of a transfer: per message."""
    result.instructions.append(sum(count for _, count in steps["calls"]) / result.case.stepped)
    result.outstanding, result.retransmitted = load["outstanding"], load["retransmitted"]
    result.sacks = load["sacks"]
    result.functions = Counter()
    for name, count in steps["functions"]:
        result.functions[name] += count / result.case.stepped


def measure(asked: Asked, tell: Callable[[list[Result]], None]) -> list[Result]:
    """All cases; variants take turns, so that a machine that becomes busy is so for all of them."""
    processes = Processes()
    results = []
    try:
        shared = Counting(asked, processes)
        for case in cases(asked):
            row = [Result(case, variant, shared.kernel(variant)) for variant in asked.variants]
            for seed in range(1, asked.repeat + 1):
                for one in row:
                    take_steps(one, *shared.boot(case, one.variant, seed, True))
            for seed in range(1, asked.times + 1):
                for one in row:
                    shared.take_time(one, seed)
            results += row
            tell(row)
    finally:
        processes.stop()
    return results


def head(variants: Iterable[str]) -> str:
    names = list(variants)
    count = "".join(f"{name:>11}" for name in names)
    ratio = "".join(f"{name:>8}" for name in names[1:])
    return f"{'':28}{count}{ratio}   cycles{count}{ratio}"


def line(row: list[Result]) -> str:
    """A case: instructions of each variant, their ratio to the first, cycles or CPU time likewise."""
    instructions = [statistics.median(one.instructions) for one in row]
    times = [statistics.median(one.cycles or one.cpu_us) for one in row if one.cycles or one.cpu_us]
    unit = "us CPU" if row[0].cpu_us else ""
    return f"{row[0].case.name:28}{figures(instructions)}   {unit:6}{figures(times)}".rstrip()


def figures(values: list[float]) -> str:
    if not values:
        return ""
    ratios = "".join(f"{value / values[0]:8.3f}" for value in values[1:])
    return "".join(f"{value:11.0f}" for value in values) + ratios


def differences(row: list[Result], most: int) -> Iterator[str]:
    """The functions in which variants differ most from the first one."""
    first = row[0]
    for other in row[1:] if most else ():
        names = set(first.functions) | set(other.functions)
        apart = {name: other.functions[name] - first.functions[name] for name in names}
        top = sorted(apart, key=lambda name: -abs(apart[name]))[:most]
        said = ", ".join(f"{name} {apart[name]:+.0f}" for name in top if abs(apart[name]) >= 1)
        yield f"  {other.variant} - {first.variant}: {said or 'none'}"


@dataclass(frozen=True)
class Target:
    text: str
    limit: float
    measured: float

    def __str__(self) -> str:
        verdict = "met" if self.measured <= self.limit else "MISSED"
        return f"{verdict:6} {self.text}: at most {self.limit:.2f}, measured {self.measured:.3f}"


def middle(result: Result | None, figures_of: str) -> float | None:
    values: list[float] = getattr(result, figures_of) if result else []
    return statistics.median(values) if values else None


def targets(results: list[Result]) -> list[Target]:
    """The cost limits of the series with the measured ratios, for the cases that were measured."""
    found = {(one.case.kind, one.case.addresses, one.case.chunks, one.variant): one for one in results}

    def count(*key: Any) -> float | None:
        return middle(found.get(key), "instructions")

    made = []

    def add(text: str, limit: float, above: float | None, below: float | None) -> None:
        if above is not None and below:
            made.append(Target(text, limit, above / below))

    for kind, chunks in (("data", 0), ("heartbeat", 0), ("sack", 100)):
        for variant in VARIANTS:
            text = f"{kind} with 500 addresses to 16, {variant}"
            add(text, 1.5, count(kind, 500, chunks, variant), count(kind, 16, chunks, variant))
    for kind in ("sack-timeout", "sack-gaps"):
        for variant in VARIANTS[1:]:
            text = f"{kind}, 4000 chunks, {variant} to stock"
            add(text, 2, count(kind, 2, 4000, variant), count(kind, 2, 4000, "stock"))
    for case in dict.fromkeys(one.case for one in results):
        key = (case.kind, case.addresses, case.chunks)
        add(f"{case.name}, off to stock", ONE_PERCENT, count(*key, "off"), count(*key, "stock"))
    for kind in ("send", "send-per-path"):
        add(f"{kind}, on to stock", 1.1, count(kind, 2, 0, "on"), count(kind, 2, 0, "stock"))
        on, stock = (found.get((kind, 2, 0, variant)) for variant in ("on", "stock"))
        add(f"{kind}, on to stock, all CPU time", 1.1, middle(on, "cpu_us"), middle(stock, "cpu_us"))
    return made


def plain(result: Result) -> Record:
    """As it is kept."""
    return {**asdict(result), "functions": dict(result.functions.most_common(FUNCTIONS))}
