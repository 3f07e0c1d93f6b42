# SPDX-License-Identifier: GPL-2.0
"""Programs that people run, on stock and with the profiles: the runs, and what must hold of them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from failover.predict import Range, answer, predict
from failover.programs import NODELAY
from failover.settings import Settings
from failover.situation import Situation
from sctplab.random.scenarios import specs_named
from sctplab.run import runner
from sctplab.spec.model import RunSpec
from sctplab.spec.program import find
from sctplab.spec.scenario import Choice
from tests.failover_run import LAB_HZ

PATHS = ("10.1.2.1", "10.2.2.1")  # of the server, as the client sees them
CUTS_S, HEALS_S = (20, 65), (40, 85)
BY_SUSPICION_S = 0.5  # the longest wait with sysctl/10-signalling.conf
SENT_TWICE_S = 0.1  # ... and redundant_bytes, without Nagle's algorithm
RETURN_S = 1.0  # until a path is in use again with it
IDLE_S = 12.0  # until a path without data is found to be cut
RTT_MS = 40.0  # of either path
LASTED_S = 10.0  # of traffic before the first cut, or so
MARGIN_S = 0.005
FEW = ["interval_ms=100", "messages=800"]


VARIANTS = ("off", "signalling", "sent-twice", "cmt", "signalling-cmt")


def specs(program: str, changes: list[str], variants: tuple[str, ...] = VARIANTS) -> list[RunSpec]:
    """One run of each variant."""
    made = specs_named("programs", [f"program={program}", *changes], Choice(("stock", "patched"), repeat=1))
    return [spec for spec in made if spec.variant in variants]


def records(program: str, changes: list[str], folder: Path) -> dict[str, dict[str, Any]]:
    """By variant; each is good."""
    made = specs(program, changes)
    with runner.bench_for(made) as bench:
        found = {spec.variant: runner.perform(runner.job_in(folder, spec), bench) for spec in made}
    for record in found.values():
        assert record["status"] == "ok", (record["reason"], record.get("kernel_log"))
    return found


@cache
def watched(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    return found


def changes_of(record: dict[str, Any], address: str) -> list[tuple[float, str, str]]:
    """(seconds after the start, state, reason) of a path as `sctp-multipath events` told them."""
    told = (
        watched(line) for line in record["flows"][0]["sender"]["watched"]["events"] if line.startswith("{")
    )
    return [
        (one["time"] - record["start_t"], one["path"]["state"], one["path"]["reason"])
        for one in told
        if one["path"]["address"] == address
    ]


def first(found: list[tuple[float, str, str]], states: tuple[str, ...], after_s: float) -> tuple[float, str]:
    """When the path got one of STATES, and why; raises AssertionError."""
    for moment_s, state, reason in found:
        if state in states and moment_s > after_s:
            return moment_s - after_s, reason
    raise AssertionError(f"none of {states} after {after_s:g} s: {found}")


def holds_everywhere(record: dict[str, Any]) -> None:
    """Two paths, nothing lost, nothing twice, no line of trouble."""
    found = record["metrics"]
    assert found["troubles"] == 0, [
        one.get(key)
        for one in record["flows"][0].values()
        if isinstance(one, dict)
        for key in ("trouble", "early")
    ]
    assert found["active_paths"] >= len(PATHS)
    assert (found.get("missing", 0), found.get("doubled", 0)) == (0, 0)
    assert found["max_message_delay_s"] > 0


def tells(record: dict[str, Any]) -> None:
    """`events`, `paths` and `doctor` name the path that is cut, and when it is back."""
    one, other = (changes_of(record, address) for address in PATHS)
    failed = ("potentially-failed", "inactive")
    assert first(one, failed, CUTS_S[0])[0] < BY_SUSPICION_S
    assert first(one, ("active",), HEALS_S[0])[0] < RETURN_S
    assert first(other, failed, CUTS_S[1])[0] < IDLE_S
    assert first(other, ("active",), HEALS_S[1])[0] < RETURN_S
    looked = record["flows"][0]["sender"]["watched"]
    shown = [
        path
        for association in json.loads("\n".join(looked["paths"]))["associations"]
        for path in association["paths"]
        if path["address"] in PATHS
    ]
    assert {path["address"]: path["state"] for path in shown}[PATHS[0]] in failed
    found = {one["name"]: one["found"] for one in json.loads("\n".join(looked["doctor"]))}
    assert PATHS[0] in found["path-failed"]


def longest(settings: Settings, situation: Situation, answers: bool) -> Range:
    """The longest wait predicted of a message; ANSWERS: of request and answer."""
    found = predict(settings, situation)
    seconds = answer(found, situation) if answers else found.max_message_delay_s
    assert seconds
    return seconds


def predicted(record: dict[str, Any], answers: bool) -> tuple[Settings, Situation, Range]:
    """From the association before the cut, as failover-time --port does. ANSWERS: of request and answer."""
    settings, situation = json.loads(record["flows"][0]["sender"]["watched"]["live"][-1])
    as_it_was = Situation(**{**situation, "hz": LAB_HZ, "lasted_s": LASTED_S})
    return Settings(**settings), as_it_was, longest(Settings(**settings), as_it_was, answers)


def foretold(name: str, record: dict[str, Any]) -> None:
    """The prediction from the live association covers the longest wait; its facts are those known by name."""
    one = find(name)
    _, situation, seconds = predicted(record, one.tells_answers)
    wait_s = record["metrics"]["wait_1_s"]
    print(f"{name}: predicted {seconds.low:.3f} to {seconds.high:.3f} s, measured {wait_s:.3f} s")
    assert situation.nodelay == NODELAY[name]
    if not one.tells_bytes:
        assert situation.interval_ms == pytest.approx(record["spec"]["factors"]["interval_ms"], rel=0.1)
        assert 0.9 * seconds.low - MARGIN_S <= wait_s <= 1.1 * seconds.high + MARGIN_S


def foretold_by_name(name: str, record: dict[str, Any]) -> None:
    """On stock the program's name, its interval and the round trip are enough for the typical figure."""
    one, factors = find(name), record["spec"]["factors"]
    by_name = Situation(
        RTT_MS,
        RTT_MS,
        factors["interval_ms"],
        Settings().sack_timeout,
        nodelay=NODELAY[name],
        hz=LAB_HZ,
        lasted_s=LASTED_S,
    )
    seconds = longest(Settings(), by_name, one.tells_answers)
    wait_s = record["metrics"]["wait_1_s"]
    print(f"{name} on stock: predicted {seconds.typical:.3f} s, measured {wait_s:.3f} s")
    if not one.tells_bytes:
        assert wait_s == pytest.approx(seconds.typical, rel=0.1, abs=MARGIN_S)


def judge(program: str, changes: list[str], folder: Path) -> None:
    """All that must hold of PROGRAM."""
    found = records(program, changes, folder)
    for record in found.values():
        holds_everywhere(record)
    waits = {variant: record["metrics"]["max_message_delay_s"] for variant, record in found.items()}
    print(f"{program}: longest wait " + ", ".join(f"{name} {wait:.3f} s" for name, wait in waits.items()))
    assert max(waits["signalling"], waits["signalling-cmt"]) < BY_SUSPICION_S < waits["off"]
    assert waits["sent-twice"] < SENT_TWICE_S or not NODELAY[program]
    tells(found["signalling"])
    foretold(program, found["signalling"])
    foretold_by_name(program, found["off"])
