# SPDX-License-Identifier: GPL-2.0
"""failover-time: the kernel's arithmetic, the states of a path, the advice, the command line."""

from __future__ import annotations

import json
import subprocess
import tomllib
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from failover.advice import advice, spurious
from failover.clock import Clock
from failover.estimate import Estimate, Limits
from failover.path import Choice, State
from failover.path import Path as Link
from failover.predict import Prediction, predict
from failover.settings import Settings, assignment, changed, from_host, from_profile, profile
from failover.situation import Situation
from sctpkernel.errors import Problem
from sctpkernel.paths import ROOT

LIMITS = Limits(100, 6000)
DENSE = Situation(40, 40, 20, 200, lasted_s=5)
FAST = Settings(rto_min=100, rto_max=400, sack_timeout=20, path_max_retrans=2, association_max_retrans=4)


def test_first_sample() -> None:
    assert Estimate(300).sampled(80, LIMITS) == Estimate(80 + 4 * 40, 80, 40)


def test_variance_stops_at_three_jiffies() -> None:
    found = Estimate(300)
    for _ in range(100):
        found = found.sampled(10, Limits(1, 6000))
    assert found == Estimate(10 + 4 * 3, 10, 3)


def test_clamps() -> None:
    assert Estimate(300).sampled(1, LIMITS).rto == 100
    assert Estimate(300).sampled(3000, LIMITS).rto == 6000
    assert Estimate(4000).doubled(LIMITS).rto == 6000


def test_variance_is_never_zero() -> None:
    assert Estimate(300).sampled(1, Limits(1, 6000)) == Estimate(5, 1, 1)


@pytest.mark.parametrize(
    ("jiffies", "ticks", "later"),
    [
        (20, 1000, 21),  # up to 62 jiffies: the next tick
        (62, 1000, 63),
        (63, 1000, 64),  # from 63: the next multiple of 8
        (63, 1001, 71),
        (504, 1024, 512),  # from 504: of 64
    ],
)
def test_timers_fire_late(jiffies: int, ticks: int, later: int) -> None:
    assert round(Clock(1000, ticks=ticks).fires(0.0, jiffies) * 1000) == later


def test_settings_in_jiffies_round_up() -> None:
    assert [Clock(250).from_ms(ms) for ms in (1, 4, 5, 200)] == [1, 1, 2, 50]


def middle(settings: Settings, situation: Situation = DENSE) -> Prediction:
    return predict(settings, situation, trials=7)


def events(found: Prediction) -> list[str]:
    return [one.what.partition(" after")[0].partition(" with")[0] for one in found.steps]


def test_stock_leaves_after_one_timeout() -> None:
    found = middle(Settings())
    assert events(found)[:2] == ["timeout", "becomes PF"]
    assert found.rto_ms == 1000
    assert 1.0 < found.failover_s.low <= found.failover_s.high < 1.1
    assert found.leaves_s is not None and 1.0 < found.leaves_s.typical < 1.1


def test_pmr_1_never_becomes_pf_and_is_slower_than_pmr_5() -> None:
    found = middle(Settings(path_max_retrans=1))
    assert "becomes PF" not in events(found)
    assert events(found).count("timeout") == 2
    assert found.max_message_delay_s.low > 2


def test_pmr_0_is_inactive_after_one_timeout() -> None:
    found = middle(Settings(path_max_retrans=0))
    assert events(found)[:2] == ["timeout", "becomes INACTIVE"]


def test_pf_off_doubles_until_pmr() -> None:
    found = middle(Settings(path_max_retrans=2, pf_enable=0))
    assert [one.what for one in found.steps if "timeout" in one.what] == [
        "timeout after RTO 1000 ms",
        "timeout after RTO 2000 ms",
        "timeout after RTO 4000 ms",
    ]
    assert found.leaves_s is not None and 7 < found.leaves_s.typical < 7.3


def test_rto_max_caps_the_doubling() -> None:
    capped = replace(FAST, pf_enable=0, path_max_retrans=5, association_max_retrans=10)
    found = middle(capped, replace(DENSE, sack_delay_ms=20))
    assert found.leaves_s is not None and 1.9 < found.leaves_s.typical < 2.2


def lone(rto_min: int, delay: int) -> Prediction:
    """Messages so far apart that each waits for the whole SACK delay."""
    return middle(Settings(rto_min=rto_min), Situation(40, 40, 600, delay))


def test_sack_delay_is_part_of_the_round_trip() -> None:
    assert lone(100, 0).rto_ms == 100
    assert lone(1000, 500).rto_ms == 1000
    inflated = lone(300, 200)
    assert inflated.early_timeouts == 0
    # 61 jiffies of 4 ms: SRTT stops 7 below, as 1/8 is rounded down, so RTTVAR stays above its least.
    assert 61 - 7 <= inflated.srtt_ms / 4 <= 61
    assert inflated.rto_ms >= inflated.srtt_ms + 48


def test_sack_delay_above_the_rto_costs_timeouts_without_loss() -> None:
    assert lone(100, 200).early_timeouts > 10


def test_heal_before_the_timeout() -> None:
    found = middle(Settings(), replace(DENSE, heal_s=0.3))
    assert found.returns_s is not None and found.returns_s.typical < 0.4


def test_return_waits_for_a_heartbeat() -> None:
    pf = middle(Settings(), replace(DENSE, heal_s=3))
    down = middle(Settings(path_max_retrans=0), replace(DENSE, heal_s=3))
    assert pf.returns_s is not None and down.returns_s is not None
    assert pf.returns_s.low > 3 and pf.returns_s.high < 12
    assert down.returns_s.low > 30


def test_failover_heartbeat_probes_at_once_and_about_once_per_rto() -> None:
    """An RTO is 2 s by then, and stays so for two of them: the first has no answer to wait for."""
    probed = Settings(path_max_retrans=0, failover_heartbeat=1)
    found = middle(probed, replace(DENSE, heal_s=3))
    times = [one.t for one in found.steps if one.what == "HEARTBEAT"]
    assert times[0] == found.steps[0].t  # with the timeout
    assert all(1 <= later - earlier <= 3.2 for earlier, later in pairwise(times))
    assert found.returns_s is not None and found.returns_s.high < 3 + 3.3


def test_probes_do_not_come_later_than_heartbeats() -> None:
    found = middle(Settings(failover_heartbeat=1, hb_interval=3000))
    times = [one.t for one in found.steps if one.what == "HEARTBEAT"]
    assert len(times) == 3
    assert all(later - earlier <= 3.2 for earlier, later in pairwise(times))


def test_without_heartbeats_it_never_returns() -> None:
    found = middle(Settings(hb_interval=100), replace(DENSE, heal_s=3, heartbeats=False))
    assert found.returns_s is None and "HEARTBEAT" not in events(found)


def test_same_question_same_answer() -> None:
    assert middle(Settings()) == middle(Settings())


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (Settings(path_max_retrans=1), "never becomes PF"),
        (Settings(path_max_retrans=5, pf_retrans=4), "take 0, or at least 6"),
        (Settings(pf_enable=0), "take the failed path again"),
        (Settings(path_max_retrans=2), "association outlives them"),
        (Settings(association_max_retrans=5), "association can end before"),
        (Settings(rto_min=200), "sack_timeout 200 >= rto_min 200"),
        (Settings(rto_min=50, sack_timeout=10), "rto_min 50 is never reached"),
        (Settings(rto_min=20, rto_max=60, sack_timeout=1), "the RTO of a steady path of 40 ms"),
        (Settings(rto_min=2000, rto_max=1000), "write rto_max first"),
        (Settings(path_max_retrans=0), "set failover_heartbeat 1"),
        (Settings(failover_suspect=1), "a message waits 2.5 round trips at most"),
        (Settings(failover_return=1), "every 200 to 220 ms"),
    ],
)
def test_advice(settings: Settings, said: str) -> None:
    assert any(said in line for line in advice(settings, DENSE, settings.rto_min))


def test_no_advice_for_defaults() -> None:
    assert advice(Settings(), DENSE, 1000) == []


def test_advice_about_timeouts_without_loss() -> None:
    assert spurious(0, 30) == []
    assert "3 spurious timeouts in the 30 s before the cut" in spurious(3, 30)[0]


def test_advice_about_the_peer_and_about_heartbeats() -> None:
    assert "the peer's RTO.Min 120" in advice(Settings(), DENSE, 120)[0]
    assert "SPP_HB_DISABLE" in advice(Settings(), replace(DENSE, heartbeats=False), 1000)[0]


def test_profile(tmp_path: Path) -> None:
    file = tmp_path / "x.conf"
    file.write_text("# a\n; b\n\n-net.sctp.rto_min = 100\nnet/sctp/rto_max=400\nnet.ipv4.x = 1  2\n")
    assert list(profile(file).items())[-1] == ("net.ipv4.x", "1 2")
    assert from_profile(file, Settings()) == Settings(rto_min=100, rto_max=400)


def test_host(tmp_path: Path) -> None:
    (tmp_path / "rto_min").write_text("300\n")
    (tmp_path / "rcvbuf_policy").write_text("0\n")
    assert from_host(tmp_path) == Settings(rto_min=300)
    with pytest.raises(Problem, match="modprobe sctp"):
        from_host(tmp_path / "none")


def test_refused_settings() -> None:
    with pytest.raises(Problem, match=r"x: net\.sctp\.rto_min: got '0', expected a whole number"):
        changed(Settings(), {"net.sctp.rto_min": "0"}, "x", strict=True)
    with pytest.raises(Problem, match="expected one of kernel, hop"):
        changed(Settings(), {"dormant_policy": "on"}, "x", strict=True)
    with pytest.raises(Problem, match="expected NAME=VALUE"):
        assignment("rto_min", "x")


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([ROOT / "tools" / "failover-time", *words], capture_output=True, text=True)


def test_json() -> None:
    done = run("--json", "--set", "rto_min=300", "--interval", "50", "--heal", "2")
    found = json.loads(done.stdout)
    assert found["settings"]["rto_min"] == 300 and found["situation"]["interval_ms"] == 50
    assert found["prediction"]["failover_s"]["typical"] > 0.3


def test_table_is_plain_in_a_pipe() -> None:
    done = run("--set", "path_max_retrans=1", "--lasted", "3")
    assert done.returncode == 0 and done.stderr == ""
    assert "\x1b" not in done.stdout and "warning: path_max_retrans 1" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--rtt", "-1"], "argument --rtt: got '-1', expected a number"),
        (["--set", "rto_mn=1"], "--set: rto_mn: expected one of rto_initial"),
        (["--profile", "/nowhere"], "/nowhere: cannot be read"),
        (["--hz", "nan"], "expected a whole number"),
    ],
)
def test_bad_input_is_one_line(words: list[str], said: str) -> None:
    done = run(*words)
    assert done.returncode == 2 and done.stdout == ""
    assert said in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize("file", sorted((ROOT / "sysctl").glob("*.conf")), ids=lambda file: file.stem)
def test_no_advice_for_our_own_profiles(file: Path) -> None:
    settings = from_profile(file, Settings())
    for rtt_ms in (10, 100):
        situation = Situation(rtt_ms, rtt_ms, 600, settings.sack_timeout)
        assert advice(settings, situation, settings.rto_min) == []
        assert middle(settings, situation).early_timeouts == 0


def test_the_scenario_has_the_settings_of_the_profile() -> None:
    scenario = tomllib.loads((ROOT / "testbed" / "scenarios" / "signalling.toml").read_text())
    used = {key: str(value) for key, value in scenario["variants"]["signalling"]["sysctl"].items()}
    assert list(used.items()) == list(profile(ROOT / "sysctl" / "10-signalling.conf").items())


def two_paths(policy: str, primary: State, other: State) -> Choice:
    names = ("primary", "alternate")
    first, second = (Link(name, 0.02, (0.0, 1.0), Estimate(100), 100, 1500, 4380) for name in names)
    first.state, second.state = primary, other
    made = Choice(first, second, policy)
    made.state_changed()
    return made


def test_the_primary_is_preferred_while_it_is_active() -> None:
    both = two_paths("kernel", State.ACTIVE, State.ACTIVE)
    assert (both.active.name, both.retran.name) == ("primary", "alternate")
    left = two_paths("kernel", State.PF, State.ACTIVE)
    assert (left.active.name, left.retran.name) == ("alternate", "alternate")


@pytest.mark.parametrize(
    ("policy", "then"),
    [("kernel", "primary"), ("hop", "alternate"), ("primary", "primary"), ("last", "alternate")],
)
def test_dormant(policy: str, then: str) -> None:
    """Both have failed, the alternate last; the next timeout is one of the alternate."""
    choice = two_paths(policy, State.INACTIVE, State.ACTIVE)
    choice.other.state, choice.other.errors, choice.primary.errors = State.INACTIVE, 2, 1
    choice.state_changed()
    if policy == "hop":
        choice.active = choice.retran = choice.primary
    choice.retran_timed_out()
    assert choice.retran.name == then


def test_without_any_path_the_association_ends() -> None:
    settings = replace(FAST, rto_initial=200, association_max_retrans=6)
    found = middle(settings, replace(DENSE, both=True, sack_delay_ms=20))
    assert found.failover_s is None and found.max_message_delay_s is None
    # Six timeouts of 100 to 400 ms, and then the one that finds out.
    assert found.lost_s is not None and 7 * 0.1 < found.lost_s.typical < 7 * 0.45
    assert "association given up" in events(found)[-1]
