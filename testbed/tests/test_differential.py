# SPDX-License-Identifier: GPL-2.0
"""Random runs for two kernels, and what a comparison of them makes of differences."""

import json
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from sctplab.errors import LabError
from sctplab.oracle import as_file, fixes
from sctplab.oracle import differential as oracle
from sctplab.oracle.differential import Bound, Figures, Finding, Made
from sctplab.plan import run_plan
from sctplab.random import differential
from sctplab.spec import scenario
from sctplab.spec.model import RunSpec
from sctplab.spec.scenario import Choice
from sctplab.spec.schema import At, build, plain
from tests.lab_run import lab

SEEDS = range(1, 301)
DRAWN = Path(__file__).parent / "golden" / "differential.json"  # seed -> the run
SPECS = {seed: differential.spec(seed, "stock", Choice()) for seed in SEEDS}
FLOW = Figures("flow1", bytes=1_000_000, messages=1000, seconds=10.0, gap_s=1.0, delay_s=2.0)
BOUND = Bound(share=0.02, seconds=0.01)


def test_a_spec_follows_from_its_seed() -> None:
    assert differential.spec(7, "stock", Choice()) == SPECS[7] != SPECS[8]


@pytest.mark.parametrize("seed", ["1", "6"])
def test_a_seed_means_the_same_for_ever(seed: str) -> None:
    assert plain(SPECS[int(seed)]) == json.loads(DRAWN.read_text())[seed]


def test_kernels_differ_in_nothing_else() -> None:
    for seed in (1, 2, 3):
        assert replace(differential.spec(seed, "patched", Choice()), kernel="stock") == SPECS[seed]


def test_specs_survive_their_files_and_have_plans() -> None:
    for seed, spec in SPECS.items():
        assert build(RunSpec, plain(spec), At("spec", "")) == spec
        assert run_plan.make(spec, "mpflow").steady
        tree = as_file.tree_of(spec, [])
        found = scenario.expand(
            scenario.parse("a.toml", differential.NAME, "# ?", tree),
            {},
            Choice(("stock",), repeat=1, first_seed=seed),
        )
        assert found[0].flows == spec.flows and found[0].events == spec.events


def test_each_ingredient_is_met_and_missed() -> None:
    found = Counter(name for spec in SPECS.values() for name in differential.ingredients(spec))
    assert set(found) == set(differential.INGREDIENTS)
    assert 0.03 * len(SEEDS) < min(found.values()) and max(found.values()) < 0.9 * len(SEEDS)


def test_runs_are_short() -> None:
    for spec in SPECS.values():
        sent = sum((flow.messages or 0) * flow.message_b for flow in spec.flows)
        assert sent < 2 * len(spec.flows) * differential.MOST_MB * 1e6
        assert max((event.at_s for event in spec.events), default=0) < 100


def test_a_path_is_given_back() -> None:
    """Of a run that is compared, nothing is to depend on when programs give up."""
    for spec in SPECS.values():
        last = {event.path: event.action for event in spec.events if event.action != "change"}
        assert set(last.values()) <= {"heal", "carrier-up"}


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (FLOW, []),
        (replace(FLOW, seconds=10.2), []),
        (replace(FLOW, seconds=10.5), ["flow1: 0.762 Mbit/s, stock 0.800"]),
        (replace(FLOW, seconds=5.0, gap_s=1.03), ["flow1: longest gap 1.030 s, stock 1.000 s"]),
        (replace(FLOW, delay_s=2.5), ["flow1: longest delay 2.500 s, stock 2.000 s"]),
        (replace(FLOW, messages=979, bytes=979_000), ["flow1: 979 messages of 1000"]),
        (replace(FLOW, messages=0, bytes=0, seconds=0.0), ["flow1: 0 messages of 1000"]),
    ],
)
def test_figures_that_are_worse(other: Figures, words: list[str]) -> None:
    assert oracle.worse([FLOW], [other], BOUND) == words


def test_a_message_that_stock_never_delivers_is_not_late() -> None:
    other = replace(FLOW, messages=FLOW.messages + 1, seconds=2 * FLOW.seconds, gap_s=9.0, delay_s=9.0)
    assert oracle.worse([FLOW], [other], BOUND) == []


def test_little_is_not_worse() -> None:
    """A short transfer may take a few milliseconds longer, and a message that was under way be lost."""
    short = replace(FLOW, messages=10, bytes=10_000, seconds=0.1, gap_s=0.02, delay_s=0.03)
    other = replace(short, messages=8, bytes=8_000, seconds=0.109, gap_s=0.029, delay_s=0.039)
    assert oracle.worse([short], [other], BOUND) == []


def test_the_figures_of_a_record() -> None:
    flow = {
        "name": "flow1",
        "sender": {"first_t": 5.0},
        "receiver": {"bytes": 10, "messages": 2, "last_t": 7.5, "max_gap_s": 1.0, "max_message_delay_s": 0.5},
    }
    nothing = {"name": "flow2", "sender": {}, "receiver": {"bytes": 0, "messages": 0}}
    assert oracle.figures({"flows": [flow, nothing]}) == [
        Figures("flow1", 10, 2, 2.5, 1.0, 0.5),
        Figures("flow2", 0, 0, 0.0, 0.0, 0.0),
    ]
    assert oracle.figures({"status": "crashed"}) == []


SERIES = """# head

## fixes: a
0010-one.patch
# note
0020-two.patch
## races: b
0030-three.patch
## cmt: c
0040.patch
"""


def test_the_fixes_are_those_of_two_postings() -> None:
    assert fixes.named(SERIES) == ["0010-one.patch", "0020-two.patch", "0030-three.patch"]
    real = fixes.Fixes("6.12", Path("/nonexistent"))
    assert len(real.names) > 20 and real.subject(1).startswith("sctp: ")


def test_a_copy_has_the_first_fixes_only(tmp_path: Path) -> None:
    folder = fixes.Fixes("6.12", tmp_path).copy(3)
    names = (folder / "series-6.12").read_text().split()
    assert names == fixes.Fixes("6.12", tmp_path).names[:3]
    assert sorted(path.name for path in folder.glob("*/*.patch")) == sorted(names)


@pytest.mark.parametrize("cause", range(1, 25))
def test_halving_finds_the_first(cause: int) -> None:
    asked: list[int] = []

    def shows(number: int) -> bool:
        asked.append(number)
        return number >= cause

    assert fixes.first_that(24, shows) == cause
    assert len(asked) <= 5


def test_what_is_built_is_asked_first() -> None:
    asked: list[int] = []

    def shows(number: int) -> bool:
        asked.append(number)
        return number >= 7

    assert fixes.first_that(24, shows, {24, 3, 6, 7}) == 7
    assert set(asked) <= {3, 6, 7}


@dataclass
class Faked:
    """Runs of a seed where fix CAUSE makes a difference, and BEYOND the rest of the series one too."""

    cause: int
    slower: bool = False
    beyond: bool = False
    wrong: str = ""

    @property
    def spec(self) -> RunSpec:
        return SPECS[1]

    @property
    def fixes(self) -> Any:
        return SimpleNamespace(names=["patch"] * 24, cached=set(), subject=lambda number: f"fix {number}")

    def stock(self, captured: bool = True) -> Made:
        return self.fixed(0) if captured else replace(self.fixed(0), captures=None)

    def fixed(self, number: int) -> Made:
        changed = number >= self.cause
        seconds = 20.0 if changed and self.slower else 10.0
        return Made([replace(FLOW, seconds=seconds)], "", Path("changed" if changed else "stock"))

    def patched(self, name: str, settings: dict[str, str]) -> Made:
        made = self.fixed(24)
        return replace(made, wrong=self.wrong, captures=Path("beyond") if self.beyond else made.captures)


@pytest.mark.parametrize(
    ("runs", "kind", "cause"),
    [
        (Faked(25), "same", ""),
        (Faked(11), "explained", "fix 11"),
        (Faked(11, slower=True), "worse", "fix 11"),
        (Faked(25, beyond=True), "unexplained", ""),
        (Faked(11, beyond=True), "unexplained", ""),
        (Faked(25, wrong="crashed: oops"), "failed", ""),
    ],
)
def test_what_a_seed_is_found_to_be(
    runs: Faked, kind: str, cause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        oracle, "differ", lambda a, b: "" if a.captures == b.captures else f"{a.captures}, {b.captures}"
    )
    found = oracle.compare(cast(oracle.Runs, runs), "off")
    assert found.kind == kind and not found.cause
    assert oracle.unnamed(found) == bool(cause)
    if cause:
        assert oracle.named(cast(oracle.Runs, runs), found) == replace(found, cause=cause)
    assert found.fault == (kind not in ("same", "explained"))


@pytest.mark.parametrize("against", ["off", "25-cmt"])
def test_both_runs_are_captured_or_neither(
    against: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: dict[str, str] = {}  # kernel -> how

    def captured(spec: RunSpec, kernel: str, bench: object, folder: Path) -> tuple[dict[str, Any], Path]:
        made[kernel] = "captured"
        return {"status": "ok"}, folder

    def plain(job: Any, bench: object) -> dict[str, Any]:
        made[job.spec.kernel] = "plain"
        return {"status": "ok"}

    monkeypatch.setattr(oracle, "run_captured", captured)
    monkeypatch.setattr(oracle.runner, "perform", plain)
    monkeypatch.setattr(oracle, "figures", lambda record: [FLOW])
    monkeypatch.setattr(oracle, "differ", lambda a, b: "")
    nothing = cast(Any, None)
    bench = oracle.runner.Bench(nothing, {}, nothing)
    oracle.compare(oracle.Runs(SPECS[1], bench, nothing, tmp_path), against)
    assert set(made.values()) == {"captured" if against == "off" else "plain"} and len(made) == 2


def test_a_profile_is_listed_and_no_fault() -> None:
    found = oracle.compare(cast(oracle.Runs, Faked(11, slower=True)), "25-cmt")
    assert (found.kind, found.worse) == ("worse", ("flow1: 0.400 Mbit/s, stock 0.800",))
    assert not found.fault


def test_a_profile_comes_after_what_is_drawn() -> None:
    spec = next(spec for spec in SPECS.values() if "own timers" in differential.ingredients(spec))
    settings = oracle.profile("10-signalling")
    made = oracle.with_profile(spec, settings).sysctl
    assert made.host1 == made.host2
    assert list(made.host1)[-len(settings) :] == list(settings)
    assert made.host1["net.sctp.rto_min"] == settings["net.sctp.rto_min"]
    assert oracle.with_profile(spec, oracle.profile("off")) == spec


def test_findings_are_kept(tmp_path: Path) -> None:
    figures = {"stock": [{"name": "flow1"}]}
    found = [
        Finding(2, "off", "worse", ("losses",), "packet 3", "fix", ("slow",), figures, "key"),
        Finding(1, "25-cmt", "same", ()),
    ]
    oracle.keep(tmp_path, found)
    assert sorted(oracle.kept(tmp_path), key=lambda one: -one.seed) == found


def test_the_summary_says_how_many_and_why() -> None:
    found = [
        Finding(1, "off", "same", ("losses",)),
        Finding(2, "off", "explained", (), cause="a fix"),
        Finding(3, "25-cmt", "same", ("losses",)),
        Finding(4, "25-cmt", "worse", ("abort",), worse=("slow",)),
    ]
    assert oracle.summary(found) == [
        "off: 2 seeds: 1 explained, 1 same",
        "  1 by: a fix",
        "25-cmt: 2 seeds: 1 same, 1 worse",
        "  worse with abort: 100% of these seeds, 50% of all",
    ]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--seeds", "9-1"), "lab: --seeds: got '9-1'"),
        (("--against", "none"), "lab: --against none: expected off or one of 00-off, 10-signalling"),
    ],
)
def test_one_line_says_what_is_wrong(words: tuple[str, ...], complaint: str, tmp_path: Path) -> None:
    done = lab("differential", *words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(complaint) and done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("flow", "complaint"),
    [
        ({"kind": "sctp-acts", "pmr": 3}, "pmr: got 3, expected none for sctp-acts"),
        ({"kind": "sctp", "many": True}, "many: got True, expected none for sctp"),
        ({"kind": "sctp-acts", "acts": [{"at_s": 1, "action": "primary"}]}, "expected a path for"),
        ({"kind": "sctp-acts", "acts": [{"at_s": 1, "action": "pause"}]}, "expected the receiver for pause"),
        (
            {"kind": "sctp-acts", "acts": [{"at_s": 1, "action": "close", "end": "receiver"}]},
            "expected the sender for close",
        ),
        (
            {"kind": "sctp-acts", "acts": [{"at_s": 1, "action": "primary", "path": "path9"}]},
            "expected one of the paths",
        ),
    ],
)
def test_flows_with_acts_that_are_refused(flow: dict[str, Any], complaint: str) -> None:
    found = {**plain(SPECS[1]), "flows": [{"name": "a", "messages": 1, **flow}]}
    with pytest.raises(LabError, match=complaint):
        build(RunSpec, found, At("file", ""))
