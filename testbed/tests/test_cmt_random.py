# SPDX-License-Identifier: GPL-2.0
"""Random runs of concurrent multipath transfer: what is drawn is valid, bounded and follows from the seed."""

from collections import Counter
from dataclasses import replace
from functools import cache

import pytest
from sctplab.plan import expected_gap
from sctplab.random import cmt
from sctplab.random.choice import names
from sctplab.spec import outages
from sctplab.spec.model import Direction, Flow, Path, RunSpec
from sctplab.spec.scenario import Choice
from sctplab.spec.schema import At, build, plain

SEEDS = range(1, 1001)
LINK = Direction(10, 20, queue_pkts=100)


@cache
def specs() -> list[RunSpec]:
    return [cmt.spec(seed, "patched", Choice()) for seed in SEEDS]


@cache
def flows() -> list[Flow]:
    return [flow for spec in specs() for flow in spec.flows]


def test_every_spec_is_valid() -> None:
    """Those over one path too."""
    for seed in SEEDS:
        for spec in cmt.runs(seed, "patched", Choice(), {"losses": 0}):
            assert build(RunSpec, plain(spec), At("spec", "")) == spec


def test_a_spec_follows_from_its_seed() -> None:
    one, again, other = (cmt.spec(seed, "patched", Choice()) for seed in (7, 7, 8))
    assert one == again
    assert one.topology != other.topology and one.flows != other.flows


def test_kernels_differ_in_settings_only() -> None:
    stock, patched = (cmt.spec(7, kernel, Choice()) for kernel in ("stock", "patched"))
    assert patched.sysctl.host1["net.sctp.cmt"] == "1" and "net.sctp.cmt" not in stock.sysctl.host1
    assert stock.sysctl.host1.keys() < patched.sysctl.host1.keys()
    assert replace(patched, kernel="stock", sysctl=stock.sysctl) == stock


def test_paths_are_in_their_bounds() -> None:
    for spec in specs():
        for path in spec.topology.paths:
            for one in (path.forward, path.reverse):
                assert 0.5 <= one.rate_mbit <= 20 and 1 <= one.delay_ms <= 150
                on_their_way = one.rate_mbit * one.delay_ms * 1000 / (1514 * 8)
                assert one.queue_pkts > on_their_way


def test_every_option_is_drawn() -> None:
    settings = Counter(item for spec in specs() for item in spec.sysctl.host1.items())
    drawn = cmt.STOCK_SETTINGS | cmt.PATCHED_SETTINGS | {"udp_port": (9899,), "auth_enable": (1,)}
    for name, values in drawn.items():
        for value in values:
            assert settings[f"net.sctp.{name}", str(value)] > 50, (name, value)
    options = Counter(option for flow in flows() for option in flow.sockopts or ())
    assert len(options) == len(cmt.STREAM_SCHEDULERS) + 3 and min(options.values()) > 50
    assert {len(spec.topology.paths) for spec in specs()} == {1, 2, 3, 4, 5, 6, 8}
    for key in ("reverse", "unordered", "nodelay", "interval_ms"):
        assert 100 < sum(bool(getattr(flow, key)) for flow in flows()) < len(flows()) - 100
    assert sum(spec.topology.offload == "host" for spec in specs()) > 200


def test_an_association_of_both_families_starts_with_ipv4() -> None:
    mixed = [spec for spec in specs() if len({path.family for path in spec.topology.paths}) == 2]
    assert len(mixed) > 100
    assert all(spec.topology.paths[0].family == "ipv4" for spec in mixed)


def test_messages_fit_their_buffers() -> None:
    for spec in specs():
        for flow in spec.flows:
            buffer_b = min(flow.sndbuf_kb, flow.rcvbuf_kb) * 1024
            assert flow.message_b <= buffer_b / 4
            if spec.sysctl.host1["net.sctp.intl_enable"] == "1":
                assert flow.message_b * flow.streams <= buffer_b / 2


def test_transfers_are_small() -> None:
    for flow in flows():
        assert (flow.size_mb or 0) <= cmt.MOST_MB
        assert expected_gap.packets(flow) <= 40000


def test_one_path_is_up_at_every_moment_and_no_sender_has_a_reason_to_give_up() -> None:
    blind = 0
    for spec in specs():
        assert not outages.all_down(outages.of_events(spec.events), names(spec.topology))
        if expected_gap.blind_moments(spec):
            blind += 1
            end_s = max(event.at_s for event in spec.events)
            expirations = len(spec.topology.paths) * end_s * 1000 / int(spec.sysctl.host1["net.sctp.rto_min"])
            assert int(spec.sysctl.host1["net.sctp.association_max_retrans"]) > max(9, expirations)
        else:
            assert "net.sctp.association_max_retrans" not in spec.sysctl.host1
    assert 0 < blind < 200


def test_what_may_be_compared_is_run_over_single_paths_too() -> None:
    races = 0
    for seed in SEEDS:
        whole, *alone = cmt.runs(seed, "patched", Choice(), {"losses": 0})
        races += bool(alone)
        for spec in alone:
            assert not spec.events and [flow.paths for flow in spec.flows] == [(spec.variant,)] * len(
                spec.flows
            )
            same = tuple(replace(flow, paths=()) for flow in spec.flows)
            assert replace(spec, variant="all-paths", flows=same) == whole
    assert races > 300


def test_another_series_of_losses_is_all_that_a_repetition_changes() -> None:
    one, again, other = (cmt.runs(3, "patched", Choice(), {"losses": losses}) for losses in (1, 1, 2))
    assert one == again and len(one) == len(other) > 1
    assert one[0].topology != other[0].topology
    seeds = [way.seed for path in one[0].topology.paths for way in (path.forward, path.reverse)]
    assert len(set(seeds)) == 2 * len(one[0].topology.paths)
    assert all(spec.topology == one[0].topology for spec in one)
    assert cmt.with_losses(one[0], 0) == cmt.runs(3, "patched", Choice(), {"losses": 0})[0]


def test_short_flows_have_seeds_of_their_own() -> None:
    """Bulk ones have as much as the paths carry in 2 s at most."""
    short = [cmt.runs(seed, "patched", Choice(), {"losses": 0}, cmt.SHORT) for seed in range(1, 201)]
    for whole, *alone in short:
        assert build(RunSpec, plain(whole), At("spec", "")) == whole
        assert {one.scenario for one in (whole, *alone)} == {"cmt-random-short"}
        assert [one.variant for one in alone] in ([], ["path1"])
        carried = sum(path.forward.rate_mbit for path in whole.topology.paths) * 2 / 8
        for flow in whole.flows:
            assert flow.interval_ms or 0.001 <= (flow.size_mb or 0) <= carried
    assert cmt.spec(7, "patched", Choice()).topology != short[6][0].topology


def race(*forward: Direction) -> list[str]:
    """The paths that may be the best one alone."""
    whole = cmt.spec(1, "patched", Choice())
    paths = tuple(Path(f"path{i}", one, one) for i, one in enumerate(forward, 1))
    bulk = Flow("flow1", size_mb=1.0)
    topology = replace(whole.topology, paths=paths)
    return names(
        replace(
            topology,
            paths=tuple(cmt.rivals(replace(whole, topology=topology, flows=(bulk,), events=()))),
        )
    )


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (replace(LINK, rate_mbit=5), ["path1"]),
        (replace(LINK, delay_ms=10), ["path2"]),
        (replace(LINK, loss_pct=1), ["path1"]),
        (replace(LINK, rate_mbit=20, loss_pct=1), ["path1", "path2"]),
        (replace(LINK, rate_mbit=20, queue_pkts=50), ["path1", "path2"]),
        (LINK, ["path1"]),
    ],
)
def test_a_path_that_another_one_beats_or_equals_is_left_out(other: Direction, expected: list[str]) -> None:
    assert race(LINK, other) == expected


def test_one_path_is_no_race() -> None:
    assert race(LINK) == []
