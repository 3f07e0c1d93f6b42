# SPDX-License-Identifier: GPL-2.0
"""How long a failover takes, and the way back: the scenarios failover-*, limits made from their settings.

Messages are due every 20 ms, links take 20 ms each way, RTO.Min is 1 s where nothing else is said.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate
from typing import Any

import pytest
from sctplab.run import runner
from sctplab.spec import scenario
from sctplab.spec.model import Event
from sctplab.spec.scenario import Choice
from tests.failover_run import good, shortened, with_families, with_links, with_more_settings

pytestmark = pytest.mark.kernel
CUT_S = 10.0
INTERVAL_S, ONE_WAY_S = 0.02, 0.02
RTT_S = 2 * ONE_WAY_S
RTO_S, RTO_INITIAL_S = 1.0, 3.0
SACK_DELAY_S = 0.2
HB_INTERVAL_S = 30.0
PROBE_S = 0.22  # the longest from one probe of failover_return to the next
WALK_S = 0.2  # the shortest from one look at all paths of failover_link to the next
TICK_S = 0.01
SIDES = ["from-host1", "from-host2"]
UNDONE = {"carrier-down": "carrier-up", "address-del": "address-add"}
TOWARDS_RECEIVER = list(zip(SIDES, ["forward", "reverse"], strict=True))
TOWARDS_SENDER = list(zip(SIDES, ["reverse", "forward"], strict=True))


def latest(timeout_s: float) -> float:
    """When a timer of the kernel fires at the latest: 64 steps of a tick, then of 8, 64 ... ticks."""
    step_s = TICK_S
    while timeout_s >= 64 * step_s:
        step_s *= 8
    return timeout_s + step_s


@pytest.fixture(scope="module")
def bench() -> Iterator[runner.Bench]:
    """Tools and both kernels."""
    with runner.bench_for(
        scenario.expand(scenario.load(scenario.find("failover-cut")), {}, Choice())
    ) as made:
        yield made


@pytest.fixture
def measure(bench: runner.Bench) -> Any:
    """Runs a cell of a scenario until END_S, with MORE events, and gives its record."""

    def run(
        name: str,
        variant: str,
        end_s: float,
        kernel: str = "patched",
        more: tuple[Event, ...] = (),
        flow: dict[str, Any] | None = None,
        settings: dict[str, str] | None = None,
        paths: dict[str, float] | None = None,
        families: tuple[str, ...] = (),
        **factors: Any,
    ) -> dict[str, Any]:
        found = scenario.load(scenario.find(name))
        given = {key: (value,) for key, value in factors.items()}
        specs = scenario.expand(found, given, Choice(kernels=(kernel,), repeat=1))
        spec = shortened(next(spec for spec in specs if spec.variant == variant), end_s, **(flow or {}))
        spec = replace(with_more_settings(spec, settings or {}), events=spec.events + more)
        topology = with_links(spec.topology, paths or {})
        if families:
            topology = with_families(topology, families)
        return good(bench, replace(spec, topology=topology))

    return run


def longest(made: dict[str, Any]) -> float:
    return float(made["metrics"]["max_message_delay_s"])


@pytest.mark.parametrize("variant", ["no-pf", "pf", "failover-heartbeat"])
@pytest.mark.parametrize(("rto_min_ms", "limit_s"), [(1000, 1.1), (100, 0.16)])
def test_at_threshold_0_a_message_waits_for_one_timeout(
    rto_min_ms: int, limit_s: float, variant: str, measure: Any
) -> None:
    made = measure("failover-cut", variant, 15, pmr=0, rto_min_ms=rto_min_ms)
    assert rto_min_ms / 1000 < longest(made) <= limit_s
    assert made["metrics"]["t3_timeouts"] == 1


@pytest.mark.parametrize("pmr", range(6))
def test_at_threshold_n_it_waits_for_n_and_one_timeouts(pmr: int, measure: Any) -> None:
    """Messages of 1400 bytes fill the window at once, so the next one waits for all of the timeouts."""
    timeouts = [RTO_S * 2**i for i in range(pmr + 1)]
    made = measure("failover-cut", "no-pf", CUT_S + sum(timeouts) * 1.1 + 1, pmr=pmr, message_b=1400)
    assert longest(made) == pytest.approx(sum(timeouts), rel=0.1)
    assert sum(timeouts) <= longest(made) <= sum(map(latest, timeouts)) + ONE_WAY_S
    assert made["metrics"]["t3_timeouts"] == pmr + 1


@pytest.mark.parametrize("pmr", [1, 3])
def test_thresholds_that_stock_knows_take_as_long_as_on_stock(pmr: int, measure: Any) -> None:
    end_s = CUT_S + RTO_S * 2 ** (pmr + 1) * 1.1 + 1
    stock, patched = (
        measure("failover-cut", "no-pf", end_s, kernel, pmr=pmr) for kernel in ("stock", "patched")
    )
    assert stock["metrics"] == patched["metrics"]


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("host", ["host1", "host2"])
@pytest.mark.parametrize("name", ["failover-carrier", "failover-address"])
def test_a_lost_carrier_or_address_takes_one_timeout(name: str, host: str, side: str, measure: Any) -> None:
    made = measure(name, side, 15, pmr=0, host=host)
    assert RTO_S < longest(made) <= latest(RTO_S) + ONE_WAY_S


@pytest.mark.parametrize(("side", "direction"), TOWARDS_RECEIVER)
def test_where_data_is_cut_the_last_delayed_sack_starts_the_timeout(
    side: str, direction: str, measure: Any
) -> None:
    made = measure("failover-one-way", side, 15, pmr=0, direction=direction)
    assert RTO_S < longest(made) <= latest(RTO_S) + latest(SACK_DELAY_S) + RTT_S + ONE_WAY_S


@pytest.mark.parametrize(("side", "direction"), TOWARDS_SENDER)
def test_where_sacks_are_cut_data_arrives_until_the_window_is_full(
    side: str, direction: str, measure: Any
) -> None:
    made = measure("failover-one-way", side, 15, pmr=0, direction=direction)
    assert made["metrics"]["failover_s"] <= INTERVAL_S + ONE_WAY_S + TICK_S
    assert longest(made) < RTO_S / 2
    assert made["metrics"]["t3_timeouts"] == 1


@pytest.mark.parametrize("side", SIDES)
def test_the_second_of_three_fails_after_the_timeout_of_a_path_never_measured(
    side: str, measure: Any
) -> None:
    made = measure("failover-three", side, 20, pmr=0, second_s=CUT_S)
    assert RTO_S + RTO_INITIAL_S < longest(made) <= latest(RTO_S) + latest(RTO_INITIAL_S) + ONE_WAY_S


@pytest.mark.parametrize("side", SIDES)
def test_the_second_of_three_fails_as_fast_as_the_first_when_data_measured_it(
    side: str, measure: Any
) -> None:
    made = measure("failover-three", side, 20, pmr=0, second_s=CUT_S + 2)
    assert RTO_S < longest(made) <= latest(RTO_S) + ONE_WAY_S


def probe_interval(heal_s: float) -> float:
    """The longest from a probe before HEAL_S to the next.

    The first probe follows the timeout at once, and does not count for the clock of the others. Each of
    these comes after a half to one and a half of an RTO, which doubles, and never later than hb_interval.
    """
    rtos = [RTO_S * 2, *(min(RTO_S * 2**k, HB_INTERVAL_S * 2 / 3) for k in range(1, 20))]
    earliest = accumulate((rto / 2 for rto in rtos), initial=CUT_S + RTO_S)
    return 1.5 * max(rto for rto, probe in zip(rtos, earliest, strict=False) if probe < heal_s)


@pytest.mark.parametrize("pmr", [0, 5])
@pytest.mark.parametrize("outage_s", [5.0, 60.0])
def test_new_data_is_back_one_probe_after_the_path(outage_s: float, pmr: int, measure: Any) -> None:
    heal_s = CUT_S + outage_s
    limit_s = latest(probe_interval(heal_s)) + RTT_S + INTERVAL_S
    made = measure("failover-return", "failover-heartbeat", heal_s + limit_s + 1, pmr=pmr, heal_s=heal_s)
    assert made["metrics"]["return_s"] <= limit_s


def test_an_outage_shorter_than_the_timeout_is_no_failover(measure: Any) -> None:
    made = measure("failover-return", "failover-heartbeat", 15, pmr=0, heal_s=10.5)
    assert made["metrics"]["return_s"] <= INTERVAL_S
    assert made["metrics"]["t3_timeouts"] == 0


@pytest.mark.parametrize("at_s", [CUT_S, CUT_S + 0.007, CUT_S + 0.0131])
@pytest.mark.parametrize("action", UNDONE)
def test_a_carrier_or_address_that_the_host_heeds_takes_no_time(
    action: str, at_s: float, measure: Any
) -> None:
    made = measure("failover-link", "failover-link", 15, action=action, at_s=at_s)
    assert longest(made) <= ONE_WAY_S + TICK_S
    assert made["metrics"]["t3_timeouts"] == 0
    assert made["counters"]["host1"]["SctpMpLinkFailures"] == 1


FAMILIES = [("ipv6", "ipv6"), ("ipv6", "ipv4"), ("ipv4", "ipv6")]
ANY_SCOPE = {"addr_scope_policy": "0"}  # or a private IPv4 address is not announced to a global one of IPv6


@pytest.mark.parametrize("families", FAMILIES, ids="-".join)
@pytest.mark.parametrize("action", UNDONE)
def test_nor_does_one_of_ipv6(action: str, families: tuple[str, str], measure: Any) -> None:
    made = measure("failover-link", "failover-link", 15, families=families, settings=ANY_SCOPE, action=action)
    assert longest(made) <= ONE_WAY_S + TICK_S
    assert made["metrics"]["t3_timeouts"] == 0
    assert made["counters"]["host1"]["SctpMpLinkFailures"] == 1


@pytest.mark.parametrize("action", UNDONE)
def test_it_is_asked_when_the_carrier_or_address_is_back(action: str, measure: Any) -> None:
    """The routes of an address are added after it, so it takes a second look."""
    back = Event(CUT_S + 20, UNDONE[action], "path1", host="host1")
    made = measure("failover-link", "failover-link", 32, more=(back,), action=action)
    look_s = WALK_S if action == "address-del" else 0
    assert made["metrics"]["return_s"] <= look_s + RTT_S + INTERVAL_S + 2 * TICK_S
    assert longest(made) <= ONE_WAY_S + TICK_S


@pytest.mark.parametrize("action", UNDONE)
def test_a_bulk_transfer_over_both_paths_goes_on_over_the_other(action: str, measure: Any) -> None:
    """The queues hold 20 packets of 1500 bytes, 24 ms at 10 Mbit/s."""
    made = measure(
        "failover-link",
        "failover-link",
        13,
        flow={"message_b": 1400, "interval_ms": 0},
        settings={"cmt": "1"},
        queue_pkts=20,
        action=action,
    )
    assert made["metrics"]["max_gap_s"] <= 4 * (RTT_S + 0.024) + 2 * TICK_S


@pytest.mark.parametrize(
    ("action", "settings"),
    [("carrier-down", {}), ("carrier-down", {"failover_return": "1"}), ("address-del", {"cmt": "1"})],
    ids=["one", "return", "cmt"],
)
def test_an_association_outlives_a_path_that_flaps(
    action: str, settings: dict[str, str], measure: Any
) -> None:
    """A hundred times a second for five seconds. The record is "ok" only if every message arrived once."""
    flaps = [
        Event(CUT_S + number / 200, one, "path1", host="host1")
        for number, one in enumerate([UNDONE[action], action] * 500, start=1)
    ]
    last = replace(flaps[-1], at_s=flaps[-1].at_s + 0.005, action=UNDONE[action])
    made = measure(
        "failover-link", "failover-link", 25, more=(*flaps, last), settings=settings, action=action
    )
    assert longest(made) <= latest(RTO_S) + ONE_WAY_S
    failures = made["counters"]["host1"]["SctpMpLinkFailures"]
    assert 1 <= failures <= 5 / WALK_S


@pytest.mark.parametrize("variant", ["failover-return", "with-heartbeat", "cmt"])
@pytest.mark.parametrize(("outage_s", "pmr"), [(2.5, 0), (5.013, 5), (60.007, 0), (600.003, 5)])
def test_new_data_is_back_at_once(outage_s: float, pmr: int, variant: str, measure: Any) -> None:
    """With cmt in turns: of equal paths the one with the shortest round trip does for little data."""
    heal_s = CUT_S + outage_s
    turns = {"cmt_scheduler": "round-robin"} if variant == "cmt" else {}
    made = measure("failover-back", variant, heal_s + 1, settings=turns, pmr=pmr, heal_s=heal_s)
    assert made["metrics"]["return_s"] <= PROBE_S + RTT_S + INTERVAL_S + TICK_S
    assert made["counters"]["host1"]["SctpMpFailoverProbes"] <= outage_s / (PROBE_S - 2 * TICK_S)


SUSPECT = {"failover_suspect": "1"}
OVERDUE_S = 2.5 * RTT_S + 0.02  # two waits of a round trip and a quarter at most, one way, and 20 ms


@pytest.mark.parametrize("link_delay_ms", [5, 20, 50, 100])
@pytest.mark.parametrize(("interval_ms", "cut_s"), [(20, 10.001), (20, 10.011), (2000, 10.001)])
def test_an_overdue_answer_takes_the_place_of_the_timeout(
    interval_ms: int, cut_s: float, link_delay_ms: int, measure: Any
) -> None:
    """Two messages a second apart at least leave the deviation of their answers larger than a quarter."""
    made = measure(
        "failover-suspect", "suspect", 20, link_delay_ms=link_delay_ms, interval_ms=interval_ms, cut_s=cut_s
    )
    one_way_s = link_delay_ms / 1000
    wait_s = max(2.5 * one_way_s, 2 * one_way_s + 0.002) if interval_ms == 20 else 4 * one_way_s
    assert longest(made) <= wait_s + one_way_s + 0.005
    assert made["metrics"]["t3_timeouts"] == 0
    assert made["counters"]["host1"]["SctpMpSuspectsMoved"] == 1


@pytest.mark.parametrize(("variant", "direction"), [*TOWARDS_RECEIVER, *TOWARDS_SENDER])
def test_an_overdue_answer_is_noticed_whichever_direction_is_cut(
    variant: str, direction: str, measure: Any
) -> None:
    made = measure("failover-one-way", variant, 15, settings=SUSPECT, direction=direction)
    assert longest(made) <= OVERDUE_S
    assert made["metrics"]["t3_timeouts"] == 0


@pytest.mark.parametrize("families", FAMILIES, ids="-".join)
def test_an_overdue_answer_is_noticed_over_ipv6(families: tuple[str, str], measure: Any) -> None:
    made = measure(
        "failover-suspect",
        "suspect",
        15,
        families=families,
        settings=ANY_SCOPE,
        link_delay_ms=20,
        cut_s=CUT_S,
    )
    assert longest(made) <= OVERDUE_S
    assert made["metrics"]["t3_timeouts"] == 0


@pytest.mark.parametrize("second_s", [10, 10.5, 12])
def test_two_dead_paths_are_left_for_the_third(second_s: float, measure: Any) -> None:
    made = measure("failover-three", "from-host1", 20, settings=SUSPECT, second_s=second_s)
    assert longest(made) <= OVERDUE_S
    assert made["counters"]["host1"]["SctpMpSuspectsMoved"] == 2


@pytest.mark.parametrize("jitter_ms", [0, 10, 19])
def test_answers_that_take_longer_move_nothing_and_cost_few_copies(jitter_ms: float, measure: Any) -> None:
    made = measure(
        "failover-suspect", "suspect", 120, paths={"jitter_ms": jitter_ms}, link_delay_ms=20, cut_s=300
    )
    counters = made["counters"]["host1"]
    assert counters.get("SctpMpSuspectsMoved", 0) == 0
    assert counters.get("SctpMpCopies", 0) <= 0.02 * 120 / INTERVAL_S
    assert made["metrics"]["t3_timeouts"] == 0


@pytest.mark.parametrize("cmt", ["0", "1"])
def test_a_bulk_transfer_without_failures_leaves_no_path_and_is_no_slower(cmt: str, measure: Any) -> None:
    """Queues grow in slow start: an answer may be overdue once, which costs a copy."""
    off, on = (
        measure(
            "failover-suspect",
            "suspect",
            20,
            flow={"message_b": 1400, "interval_ms": 0},
            settings={"cmt": cmt, "failover_suspect": suspect},
            cut_s=300,
        )
        for suspect in "01"
    )
    counters = on["counters"]["host1"]
    assert counters.get("SctpMpSuspectsMoved", 0) == 0
    assert counters.get("SctpMpCopies", 0) <= 0.0001 * counters["SctpOutOrderChunks"]
    assert on["metrics"]["goodput_mbit"] >= 0.995 * off["metrics"]["goodput_mbit"]
