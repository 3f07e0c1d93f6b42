# SPDX-License-Identifier: GPL-2.0
"""failover-time: the kernel's arithmetic, the states of a path, the advice, the command line."""

from __future__ import annotations

import csv
import json
import subprocess
import tomllib
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from failover import probes
from failover.advice import advice, spurious
from failover.answers import Answers
from failover.clock import Clock
from failover.estimate import Estimate, Limits
from failover.kinds import Kind, kinds, way_back
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


@pytest.mark.parametrize(
    ("answer", "deviation", "steps", "wait"),
    [(0.04, 0.0, 0, 0.05), (0.04, 0.005, 0, 0.06), (0.004, 0.0, 0, 0.006), (0.04, 0.0, 2, 0.07)],
)
def test_an_answer_is_overdue(answer: float, deviation: float, steps: int, wait: float) -> None:
    """As multipath/test/overdue.c has it: a quarter, four deviations, 2 ms; a quarter per needless copy."""
    made = Answers(answer, deviation, steps=steps, needless_s=0.0)
    assert made.wait_s(1.0, 3.0) == pytest.approx(wait)
    assert made.wait_s(61.0, 3.0) == pytest.approx(wait - steps * answer / 4)


def test_answers_are_smoothed() -> None:
    made = Answers()
    for slowest in (0.04, 0.12):
        made.slowest_s = slowest
        made.measured()
    assert (made.answer_s, made.var_s) == pytest.approx((0.05, 0.035))


SUSPECT = Settings(failover_suspect=1)


def test_what_is_overdue_arrives_as_a_copy_and_its_path_is_left_without_an_error() -> None:
    found = middle(SUSPECT)
    assert found.max_message_delay_s is not None
    assert found.max_message_delay_s.high == pytest.approx(found.wait_ms / 1000, rel=0.01)
    assert events(found)[0] == "answer overdue" and "timeout" not in events(found)
    assert any(one.what == "becomes PF" for one in found.steps)


def measured_waits() -> dict[tuple[float, float], list[float]]:
    """(Delay of the links, interval of the messages) -> longest waits, of all phases of the cut."""
    lines = (ROOT / "Documentation" / "tables" / "failover-suspect.csv").read_text().splitlines()
    found: dict[tuple[float, float], list[float]] = {}
    for row in csv.DictReader(line for line in lines if not line.startswith("#")):
        if row["variant"] == "suspect":
            key = float(row["link_delay_ms"]), float(row["interval_ms"])
            found.setdefault(key, []).append(float(row["max_message_delay_s"]))
    return found


@pytest.mark.parametrize(("cell", "waits"), measured_waits().items(), ids=map(str, measured_waits()))
def test_what_the_manual_has_measured_is_predicted(cell: tuple[float, float], waits: list[float]) -> None:
    """Within 10 % and 2 ms. Messages begin 10 s before the cut."""
    rtt_ms, interval_ms = 2 * cell[0], cell[1]
    found = predict(SUSPECT, Situation(rtt_ms, rtt_ms, interval_ms, 200, lasted_s=10, hz=100))
    assert found.max_message_delay_s is not None
    assert 0.9 * found.max_message_delay_s.low - 0.002 <= min(waits)
    assert max(waits) <= 1.1 * found.max_message_delay_s.high + 0.002


def test_a_peer_that_ignores_the_i_bit_makes_the_wait_longer() -> None:
    lone_messages = replace(DENSE, interval_ms=600)
    heeds, ignores = (middle(SUSPECT, replace(lone_messages, i_bit=bit)) for bit in (True, False))
    assert heeds.answer_ms == pytest.approx(40, rel=0.1)
    assert ignores.wait_ms > 2 * heeds.wait_ms


def test_jitter_makes_the_wait_longer() -> None:
    found = middle(SUSPECT, replace(DENSE, jitter_ms=10))
    assert found.wait_ms > 55 and found.max_message_delay_s.typical > 0.055


def test_a_failed_path_is_probed_five_times_a_second() -> None:
    found = middle(Settings(failover_return=1), replace(DENSE, heal_s=5))
    times = [one.t for one in found.steps if one.what == "HEARTBEAT"]
    assert all(later - earlier <= 0.232 for earlier, later in pairwise(times))
    assert found.returns_s is not None and found.returns_s.high <= 5 + 0.22 + 0.04 + 0.03


def test_probes_become_rare_after_ten_minutes() -> None:
    found = [probes.wait(250, count, 7500) for count in (0, 2999, 3000, 3001, 9999)]
    assert found == [50, 50, 100, 200, 7500]


def of(settings: Settings, situation: Situation = DENSE) -> dict[str, Kind]:
    return {one.failure: one for one in kinds(settings, situation, middle(settings, situation))}


ALL_ON = Settings(
    failover_suspect=1, failover_link=1, failover_return=1, failover_useless=1, init_alternate=1
)


def test_kinds_of_failure_and_the_rules_that_decide() -> None:
    on, off = of(ALL_ON), of(Settings())
    assert list(on) == list(off)
    rules = [("failover_suspect", "first timeout"), ("failover_link", "link 0"), ("init_alternate", "T1")]
    for kind, (with_it, without) in zip(on, rules, strict=False):
        assert with_it in on[kind].rule and without in off[kind].rule
        assert on[kind].seconds.high < off[kind].seconds.low
    assert off["MTU hole"].seconds is None and on["MTU hole"].seconds is not None
    assert on["way back"].seconds.high < 0.31 < off["way back"].seconds.high


def test_a_hole_takes_one_timeout_or_three() -> None:
    one, three = (of(Settings(failover_useless=1, pf_enable=pf))["MTU hole"] for pf in (1, 0))
    assert one.seconds.high < 1.2 and "the first timeout" in one.rule
    assert 7 < three.seconds.typical < 7.1 and "3 timeouts" in three.rule


def test_an_association_that_outlives_an_hour_says_so() -> None:
    found = of(Settings(association_max_retrans=1000, dormant_policy="hop"))["both paths cut"]
    assert found.seconds is None
    assert "not within an hour" in found.rule and "dormant_policy hop" in found.rule


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
    ],
)
def test_advice(settings: Settings, said: str) -> None:
    assert any(said in line for line in advice(settings, DENSE, settings.rto_min))


def test_no_advice_for_defaults() -> None:
    assert advice(Settings(), DENSE, 1000) == []


def test_advice_about_timeouts_without_loss() -> None:
    assert spurious(0, 30) == []
    assert "3 spurious timeouts in the 30 s before the cut" in spurious(3, 30)[0]


def test_advice_about_a_peer_that_ignores_the_i_bit() -> None:
    ignores = replace(DENSE, i_bit=False)
    (line,) = advice(Settings(failover_suspect=1), ignores, 1000)
    assert "its SACK delay, 200 ms" in line


def test_paths_that_are_probed_return_without_the_heartbeats_of_the_program() -> None:
    off = replace(DENSE, heartbeats=False, heal_s=3)
    assert advice(Settings(failover_return=1), off, 1000) == []
    assert middle(Settings(failover_return=1), off).returns_s is not None


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


def test_a_misspelt_setting_of_a_profile_is_refused_and_others_play_no_part(tmp_path: Path) -> None:
    profile = tmp_path / "x.conf"
    for word, meant in (
        ("rto_mn", "rto_min"),
        ("failover_suspct", "failover_suspect"),
        ("pmf_enable", "pf_enable"),
    ):
        profile.write_text(f"net.sctp.{word} = 1\n")
        with pytest.raises(
            Problem, match=rf"x\.conf: net\.sctp\.{word}: no such setting; expected net\.sctp\.{meant}"
        ):
            from_profile(profile, Settings())
    stock = (
        "pf_expose",
        "rto_alpha_exp_divisor",
        "max_init_retransmits",
        "cmt_sack",
        "ps_retrans",
        "max_burst",
    )
    profile.write_text("".join(f"net.sctp.{name} = 1\n" for name in stock))
    assert from_profile(profile, Settings()) == Settings()


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([ROOT / "tools" / "failover-time", *words], capture_output=True, text=True)


def test_json() -> None:
    done = run("--json", "--set", "rto_min=300", "--interval", "50", "--heal", "2")
    found = json.loads(done.stdout)
    assert found["settings"]["rto_min"] == 300 and found["situation"]["interval_ms"] == 50
    assert found["prediction"]["failover_s"]["typical"] > 0.3
    assert [one["failure"] for one in found["kinds"]][:2] == ["silent cut", "carrier lost here"]


@pytest.mark.parametrize("nodelay", [False, True])
def test_bulk_data_is_followed_in_part(nodelay: bool) -> None:
    """With Nagle's algorithm some of it always waits for a SACK; the longest wait is for the timeout."""
    bulk = Situation(40, 40, 0.1, 200, size_b=988, nodelay=nodelay)
    assert (bulk.thinned().interval_ms, bulk.thinned().lasted_s) == (1, 6)
    found = predict(Settings(), bulk, trials=1)
    assert found.max_message_delay_s and 1 < found.max_message_delay_s.high < 1.5


def test_with_cmt_the_prediction_is_of_one_path() -> None:
    assert "warning: cmt 1: both paths carry data" in run("--set", "cmt=1", "--lasted", "3").stdout


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
        (["--size", "²"], "argument --size: got '²', expected a whole number"),
        (["--set", "rto_min=²"], "rto_min: got '²', expected a whole number"),
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


def test_the_manual_has_what_is_predicted_of_the_profiles() -> None:
    """The table's measured columns are of these runs: 10 s of messages, 100 ticks a second."""
    rows = tomllib.loads((ROOT / "testbed" / "evidence.toml").read_text())["tables"]["profiles"]["rows"]
    stated = {row["head"][1]: tuple(row["head"][2:]) for row in rows}
    for file in sorted((ROOT / "sysctl").glob("*.conf")):
        settings = from_profile(file, Settings())
        situation = Situation(40, 40, 20, settings.sack_timeout, lasted_s=10, hz=100)
        found, healed = predict(settings, situation), replace(situation, heal_s=5)
        back = way_back(settings, healed, predict(settings, healed))
        assert found.max_message_delay_s and back.seconds
        predicted = (f"{found.max_message_delay_s.typical:.2f}", f"{back.seconds.high:.1f}")
        assert stated[f"``{file.name}``"] == predicted


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
