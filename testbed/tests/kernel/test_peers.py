# SPDX-License-Identifier: GPL-2.0
"""Alternatives to CMT: striping over several associations; the library usrsctp, alone and with the kernel.

How well usrsctp does is its own affair: asked is that all arrives and that each setting does something.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sctplab.measure import collect
from sctplab.run import runner
from sctplab.spec.model import WITH_USRSCTP, Flow, RunSpec, Topology
from tests.lab_run import small_spec

pytestmark = pytest.mark.kernel
Perform = Callable[[RunSpec], dict[str, Any]]
BIG = 100000


@pytest.fixture(scope="module")
def bench() -> Iterator[runner.Bench]:
    with runner.bench_for([usrsctp("usrsctp")]) as made:
        yield made


@pytest.fixture
def perform(bench: runner.Bench, tmp_path: Path) -> Perform:
    return lambda spec: runner.perform(runner.Job(spec, tmp_path / "record.json", tmp_path / "pcap"), bench)


def usrsctp(
    kind: str, families: tuple[str, str] = ("ipv4", "ipv4"), loss_pct: float = 0, **keys: Any
) -> RunSpec:
    """A flow of this kind over two paths, whose queues have room for it."""
    spec = small_spec(flows=(Flow("main", kind=kind, **({"size_mb": 0.5} | keys)),))
    paths = [
        replace(
            path,
            family=family,
            forward=replace(path.forward, loss_pct=loss_pct, queue_pkts=1000),
            reverse=replace(path.reverse, loss_pct=loss_pct),
        )
        for path, family in zip(spec.topology.paths, families, strict=True)
    ]
    return replace(spec, topology=Topology(tuple(paths)))


def passed(made: dict[str, Any]) -> dict[str, Any]:
    """The record of a run whose payload was found to be right; its receiver's result."""
    assert (made["status"], made["reason"]) == ("ok", "")
    receiver: dict[str, Any] = made["flows"][0]["receiver"]
    assert (receiver["content"], receiver["order"], receiver["missing"]) == ("ok", "ok", 0)
    return receiver


@pytest.mark.parametrize("families", [("ipv4", "ipv4"), ("ipv6", "ipv6"), ("ipv4", "ipv6")])
@pytest.mark.parametrize("kind", WITH_USRSCTP)
def test_usrsctp_and_the_kernel_understand_each_other(
    perform: Perform, kind: str, families: tuple[str, str]
) -> None:
    made = perform(usrsctp(kind, families))
    assert passed(made)["bytes"] == 500000
    assert made["metrics"]["goodput_mbit"] > 5
    addresses = [path["address"] for path in made["flows"][0]["sender"]["paths"]]
    assert len(addresses) == 2 and all((":" in one) == ("ipv6" in families) for one in addresses[1:])


@pytest.mark.parametrize("kind", WITH_USRSCTP)
def test_usrsctp_ends_well_where_packets_are_lost(perform: Perform, kind: str) -> None:
    for seed in (1, 2, 3):
        passed(perform(replace(usrsctp(kind, loss_pct=5), seed=seed)))


@pytest.mark.parametrize("kind", WITH_USRSCTP)
def test_messages_of_usrsctp_keep_their_bounds_and_streams(perform: Perform, kind: str) -> None:
    made = perform(usrsctp(kind, size_mb=None, messages=20, message_b=BIG, streams=3, reverse=True))
    assert passed(made)["bytes"] == 20 * BIG


@pytest.mark.parametrize("cmt", ["base", "rpv1", "rpv2"])
def test_usrsctp_uses_both_paths_and_does_so_again(perform: Perform, cmt: str) -> None:
    """The library has threads and a clock of its own; in virtual time that does not show."""
    spec = usrsctp("usrsctp", cmt=cmt, cmt_sack="delayed", size_mb=2)
    first, second = (perform(spec) for _ in range(2))
    passed(first)
    assert first["paths"][1]["forward"]["tx_packets"] > 10  # without CMT: a heartbeat or two
    assert first["deterministic"]
    assert {**first, "host": 0} == {**second, "host": 0}
    assert perform(usrsctp("usrsctp", size_mb=2))["paths"][1]["forward"]["tx_packets"] < 5


def test_there_is_one_udp_port_per_host(perform: Perform) -> None:
    spec = usrsctp("usrsctp")
    made = perform(replace(spec, flows=(*spec.flows, replace(spec.flows[0], name="other"))))
    complaint = "mpflow-usrsctp recv: mpflow: UDP port 9899: Address already in use; expected it free"
    assert made["status"] == "failed" and made["reason"].startswith(complaint)


def test_a_usrsctp_in_the_background_is_stopped(perform: Perform) -> None:
    main, other = Flow("main", kind="tcp", size_mb=1), Flow("other", kind="usrsctp", background=True)
    made = perform(replace(usrsctp("usrsctp"), flows=(main, other)))
    passed(made)
    stopped = made["flows"][1]["receiver"]
    assert stopped["bytes"] > 10000 and stopped["content"] == "ok"


def test_striping_ends_when_the_messages_in_order_sum_up(bench: runner.Bench, tmp_path: Path) -> None:
    """The same from the logs of two ordinary flows, message by message."""
    size = 2_000_000
    single = [Flow(f"on{i}", size_mb=size / 1e6, paths=(f"path{i}",), message_log=True) for i in (1, 2)]
    apart = small_spec(flows=tuple(single))
    result = runner.in_place(apart, bench, bench.kernel(apart), tmp_path)[1]
    log: list[tuple[float, int]] = []
    for flow in result["flows"]:
        begin = collect.result_of(flow["sender"])["first_t"]
        log += [(one["received"] - begin, one["size"]) for one in collect.messages(flow)]
    log.sort()
    when = next(t for i, (t, _) in enumerate(log) if sum(b for _, b in log[: i + 1]) >= size)
    together = small_spec(flows=(Flow("main", kind="sctp-striped", size_mb=size / 1e6),))
    job = runner.Job(together, tmp_path / "record.json", tmp_path / "pcap")
    made = runner.perform(job, bench)
    assert (made["status"], made["reason"]) == ("ok", "")
    assert made["metrics"]["transfer_s"] == pytest.approx(when, abs=2e-6)
    assert [flow["receiver"]["bytes"] for flow in made["flows"]] == [size, size]
    assert json.loads(job.record.read_text()) == made
