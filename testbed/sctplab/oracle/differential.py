# SPDX-License-Identifier: GPL-2.0
"""Is the series as stock while it is off, and no worse with a profile? Random runs, stock beside patched.

Off: the captures of both are equal, or those of stock with all fixes (fixes.py) are equal to the patched
kernel's. Then the fix with which the captures first differ is the explanation, found by halving the list of
fixes. A difference that stock with all fixes does not show is unexplained.

With a profile the captures differ by design, so only figures are compared, with those of stock as it is:
payload delivered, goodput, longest gap, longest delay of a message. Each may be worse by a bound.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from sctplab.errors import LabError
from sctplab.oracle.fixes import Fixes, first_that
from sctplab.random import differential
from sctplab.random.differential import ingredients
from sctplab.run import record, runner
from sctplab.run.identical import captures_differ, run_captured
from sctplab.spec import profiles
from sctplab.spec.model import USUAL_BASE, HostSettings, RunSpec
from sctplab.spec.scenario import Choice

OFF = "off"
STOCK, PATCHED = "stock", "patched"


@dataclass(frozen=True)
class Bound:
    """A figure is worse when it is so by more than SHARE of stock's and by more than so many seconds."""

    share: float
    seconds: float


BOUNDS = {OFF: Bound(0.02, 0.01)}
PROFILE_BOUND = Bound(0.1, 0.25)  # a cut meets other packets when these are elsewhere
MESSAGES = 2  # as many may be missing beyond the share: of PR-SCTP, or under way at an abort


@dataclass(frozen=True)
class Figures:
    """Of one flow. SECONDS: first send to last delivery; the gap and the delay are the longest."""

    name: str
    bytes: int
    messages: int
    seconds: float
    gap_s: float
    delay_s: float

    @property
    def goodput_mbit(self) -> float:
        return self.bytes * 8e-6 / self.seconds if self.seconds > 0 else 0.0


@dataclass(frozen=True)
class Finding:
    """The outcome of a seed. KIND: same, explained, worse, unexplained, failed.

    CAUSE: the subject of the fix with which it begins. WORSE: figures beyond the bound, in words.
    """

    seed: int
    against: str
    kind: str
    ingredients: tuple[str, ...]
    first: str = ""
    cause: str = ""
    worse: tuple[str, ...] = ()
    figures: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    kernel: str = ""

    @property
    def fault(self) -> bool:
        """Off: all that is not stock's, or a fix that is slower. A profile is a trade: it is listed."""
        return self.kind in ("unexplained", "failed") or (self.against == OFF and self.kind == "worse")

    def line(self) -> str:
        told = [*self.worse, *([f"first: {self.first}"] if self.first else [])]
        cause = f" [{self.cause}]" if self.cause else ""
        return f"seed {self.seed}, {self.against}: {self.kind}{cause}" + (
            f": {'; '.join(told)}" if told else ""
        )


@dataclass(frozen=True)
class Asked:
    """AGAINST: off, or names of files in sysctl/ without .conf."""

    seeds: tuple[int, ...]
    against: tuple[str, ...] = (OFF,)
    out: Path | None = None
    jobs: int = 1
    names: bool = True  # of the fixes that explain
    base: str = USUAL_BASE


def profile(name: str) -> dict[str, str]:
    """The sysctls of sysctl/NAME.conf; raises LabError for a name of none."""
    if name == OFF:
        return {}
    if name not in profiles.known():
        raise LabError(f"--against {name}: expected {OFF} or one of {', '.join(profiles.known())}")
    return profiles.settings_of(name)


def with_profile(spec: RunSpec, settings: dict[str, str]) -> RunSpec:
    """The profile's settings come last; what the run has drawn for them does not hold."""
    hosts = (
        {key: value for key, value in host.items() if key not in settings} | settings
        for host in (spec.sysctl.host1, spec.sysctl.host2)
    )
    return replace(spec, sysctl=HostSettings(*hosts))


def figures(made: dict[str, Any]) -> list[Figures]:
    """Of each flow of a record; a flow that brought nothing has no seconds."""
    found = []
    for flow in made.get("flows", []):
        send, recv = flow["sender"], flow["receiver"]
        whole = "first_t" in send and "last_t" in recv
        found.append(
            Figures(
                flow["name"],
                recv.get("bytes", 0),
                recv.get("messages", 0),
                round(recv["last_t"] - send["first_t"], 6) if whole else 0.0,
                round(recv.get("max_gap_s", 0.0), 6),
                round(recv.get("max_message_delay_s", 0.0), 6),
            )
        )
    return found


def worse(stock: Sequence[Figures], other: Sequence[Figures], bound: Bound) -> list[str]:
    """The figures of OTHER that are worse than stock's beyond the bound."""
    return [text for one, two in zip(stock, other, strict=True) for text in worse_flow(one, two, bound)]


def worse_flow(stock: Figures, other: Figures, bound: Bound) -> Iterator[str]:
    """Where stock never delivers a message, it has no time for it that could be compared."""
    lost = stock.messages - other.messages
    if lost < 0:
        return
    if lost > MESSAGES and lost > bound.share * stock.messages:
        yield f"{stock.name}: {other.messages} messages of {stock.messages}"
    elif later(other.seconds, stock.seconds, bound) and other.goodput_mbit < stock.goodput_mbit * (
        1 - bound.share
    ):
        yield f"{stock.name}: {other.goodput_mbit:.3f} Mbit/s, stock {stock.goodput_mbit:.3f}"
    for word, one, two in (("gap", stock.gap_s, other.gap_s), ("delay", stock.delay_s, other.delay_s)):
        if later(two, one, bound):
            yield f"{stock.name}: longest {word} {two:.3f} s, stock {one:.3f} s"


def later(seconds: float, stock_s: float, bound: Bound) -> bool:
    return seconds > stock_s * (1 + bound.share) and seconds > stock_s + bound.seconds


@dataclass(frozen=True)
class Made:
    """A run that was made: its figures, the reason if it is not ok, its captures if any were wanted."""

    figures: list[Figures]
    wrong: str
    captures: Path | None


class Runs:
    """The runs of one seed, each made once, in a folder of their own."""

    def __init__(self, spec: RunSpec, bench: runner.Bench, fixes: Fixes, folder: Path) -> None:
        self.spec, self.bench, self.fixes, self.folder = spec, bench, fixes, folder
        self.done: dict[str, Made] = {}

    def stock(self, captured: bool = True) -> Made:
        """To compare with a run that is CAPTURED as well: captures take time, and change some runs."""
        return self.fixed(0) if captured else self.made(STOCK, self.spec, STOCK, self.bench)

    def fixed(self, count: int) -> Made:
        """Stock with the first COUNT fixes: for the spec, a stock kernel."""
        kernels = self.bench.kernels
        if count:
            key = runner.kernel_key(replace(self.spec, kernel=STOCK))
            kernels = {**kernels, key: self.fixes.kernel(count)}
        return self.made(f"fixes-{count}", self.spec, STOCK, replace(self.bench, kernels=kernels))

    def patched(self, name: str, settings: dict[str, str]) -> Made:
        return self.made(name, with_profile(self.spec, settings), PATCHED, self.bench)

    def made(self, name: str, spec: RunSpec, kernel: str, bench: runner.Bench) -> Made:
        if name not in self.done:
            folder = self.folder / name
            if name.startswith("fixes-") or name == OFF:
                one, captures = run_captured(spec, kernel, bench, folder)
            else:
                spec = replace(spec, kernel=kernel)
                one, captures = (
                    runner.perform(runner.Job(spec, folder / "record.json", folder), bench),
                    folder,
                )
            wrong = "" if one["status"] == "ok" else f"{one['status']}: {one['reason']}"
            self.done[name] = Made(figures(one), wrong, captures)
        return self.done[name]


def compare(runs: Runs, against: str) -> Finding:
    """A seed off, or with a profile."""
    stock, other = runs.stock(captured=against == OFF), runs.patched(against, profile(against))
    bound = BOUNDS.get(against, PROFILE_BOUND)
    found = Finding(
        runs.spec.seed,
        against,
        "same",
        ingredients(runs.spec),
        figures={
            STOCK: [asdict(one) for one in stock.figures],
            PATCHED: [asdict(one) for one in other.figures],
        },
    )
    if stock.wrong or other.wrong:
        return replace(found, kind="failed", first=f"{other.wrong or 'ok'}, stock {stock.wrong or 'ok'}")
    slower = tuple(worse(stock.figures, other.figures, bound)) if stock.figures else ()
    if against != OFF:
        return replace(found, kind="worse" if slower else "same", worse=slower)
    return explained(runs, replace(found, worse=slower))


def explained(runs: Runs, found: Finding) -> Finding:
    """A run off: whether its captures are stock's, or those of stock with all fixes."""
    first = differ(runs.stock(), runs.patched(OFF, {}))
    if not first:
        return found
    beyond = differ(runs.fixed(len(runs.fixes.names)), runs.patched(OFF, {}))
    if beyond:
        return replace(found, kind="unexplained", first=beyond)
    return replace(found, kind="worse" if found.worse else "explained", first=first)


def unnamed(found: Finding) -> bool:
    """Whether a fix is the cause, and which one is not known."""
    return bool(found.against == OFF and found.kind in ("explained", "worse") and not found.cause)


def named(runs: Runs, found: Finding) -> Finding:
    """With the fix from which on the captures are others, or the figures worse."""

    def shows(number: int) -> bool:
        one = runs.fixed(number)
        if found.worse:
            return bool(worse(runs.stock().figures, one.figures, BOUNDS[OFF]))
        return bool(differ(runs.stock(), one))

    number = first_that(len(runs.fixes.names), shows, runs.fixes.cached)
    return replace(found, cause=runs.fixes.subject(number))


def differ(one: Made, other: Made) -> str:
    assert one.captures and other.captures
    return captures_differ(one.captures, other.captures)


@dataclass(frozen=True)
class Search:
    """A call: what was asked, and what is known by (seed, against). KERNEL: of the findings, by its key."""

    asked: Asked
    say: Callable[[str], None]
    bench: runner.Bench
    fixes: Fixes
    kernel: str
    known: dict[tuple[int, str], Finding]

    @contextmanager
    def runs_of(self, seed: int) -> Iterator[Runs]:
        spec = differential.spec(seed, STOCK, Choice(base=self.asked.base))
        with tempfile.TemporaryDirectory(prefix="sctplab-differential-") as name:
            yield Runs(spec, self.bench, self.fixes, Path(name))

    def compare(self, seed: int) -> list[Finding]:
        todo = [name for name in self.asked.against if (seed, name) not in self.known]
        if not todo:
            return []
        with self.runs_of(seed) as runs:
            return [replace(compare(runs, one), kernel=self.kernel) for one in todo]

    def tell(self, one: Finding) -> None:
        self.known[one.seed, one.against] = one
        if one.kind != "same":
            self.say(one.line())
        keep(self.asked.out, self.known.values())

    def compare_all(self) -> None:
        with ThreadPoolExecutor(max_workers=self.asked.jobs) as pool:
            waiting = [pool.submit(self.compare, seed) for seed in self.asked.seeds]
            try:
                for future in as_completed(waiting):
                    for one in future.result():
                        self.tell(one)
            except BaseException:
                self.bench.processes.stop()
                for future in waiting:
                    future.cancel()
                raise

    def name_all(self) -> None:
        """Last, since kernels are built for it."""
        for one in self.wanted():
            if unnamed(one):
                with self.runs_of(one.seed) as runs:
                    self.tell(named(runs, one))

    def wanted(self) -> list[Finding]:
        keys = sorted((name, seed) for name in self.asked.against for seed in self.asked.seeds)
        return [self.known[seed, name] for name, seed in keys]


def perform(asked: Asked, say: Callable[[str], None]) -> list[Finding]:
    """Compare all seeds; those that OUT knows of the same kernel are not run again."""
    for name in asked.against:
        profile(name)
    old = list(kept(asked.out))
    first = differential.spec(asked.seeds[0], STOCK, Choice(base=asked.base))
    with (
        tempfile.TemporaryDirectory(prefix="sctplab-fixes-") as place,
        runner.bench_for([replace(first, kernel=kernel) for kernel in (STOCK, PATCHED)]) as bench,
    ):
        kernel = str(bench.kernel(replace(first, kernel=PATCHED)).info["key"])
        known = {(one.seed, one.against): one for one in old if one.kernel == kernel}
        search = Search(asked, say, bench, Fixes(asked.base, Path(place)), kernel, known)
        search.compare_all()
        if asked.names:
            search.name_all()
        return search.wanted()


def kept(out: Path | None) -> Iterator[Finding]:
    """The findings of an earlier call; raises LabError."""
    for file in sorted(out.glob("*.json")) if out else []:
        try:
            for one in json.loads(file.read_text(encoding="utf-8"))["findings"]:
                lists = {key: tuple(one[key]) for key in ("ingredients", "worse")}
                yield Finding(**{**one, **lists})
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise LabError(
                f"{file}: no findings of lab differential ({error}); choose another --out"
            ) from error


def keep(out: Path | None, found: Iterable[Finding]) -> None:
    """A file for each of what was compared with."""
    if out is None:
        return
    each = list(found)
    for name in sorted({one.against for one in each}):
        own = sorted((one for one in each if one.against == name), key=lambda one: one.seed)
        record.write(out / f"{name}.json", {"findings": [asdict(one) for one in own]})


def summary(found: Sequence[Finding]) -> list[str]:
    """A line for each of what was compared with, then the causes, then the ingredients of what is worse."""
    lines = []
    for name in dict.fromkeys(one.against for one in found):
        own = [one for one in found if one.against == name]
        kinds = Counter(one.kind for one in own)
        lines.append(
            f"{name}: {len(own)} seeds: {', '.join(f'{n} {kind}' for kind, n in sorted(kinds.items()))}"
        )
        causes = Counter(one.cause for one in own if one.cause)
        lines += [f"  {n} by: {cause}" for cause, n in causes.most_common()]
        lines += [f"  worse with {text}" for text in often(own)]
    return lines


def often(found: Sequence[Finding], most: int = 5) -> list[str]:
    """The ingredients that are in more of the worse seeds than in all, with both shares."""
    bad = [one for one in found if one.kind == "worse"]
    every = Counter(name for one in found for name in one.ingredients)
    shares = {
        name: (n / len(bad), every[name] / len(found))
        for name, n in Counter(name for one in bad for name in one.ingredients).items()
    }
    over = sorted(shares.items(), key=lambda item: item[1][1] - item[1][0])
    return [f"{name}: {a:.0%} of these seeds, {b:.0%} of all" for name, (a, b) in over[:most] if a > b]
