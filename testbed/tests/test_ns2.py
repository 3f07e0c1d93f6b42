# SPDX-License-Identifier: GPL-2.0
"""ns-2's parameters from specs, and its traces read; the simulator itself is not needed."""

from dataclasses import replace
from typing import Any

import pytest
from sctplab.errors import LabError
from sctplab.ns2 import agents, ns2
from sctplab.spec import scenario
from sctplab.spec.model import Event, HostSettings, RunSpec

CARO = agents.agent("MfrHbAfterRto")


def specs(name: str, **factors: float) -> list[RunSpec]:
    found = scenario.load(scenario.find(name))
    given = {factor: (value,) for factor, value in factors.items()}
    return scenario.expand(found, given, scenario.Choice(("patched",), repeat=1))


def caro(**factors: float) -> RunSpec:
    return specs("caro", **factors)[0]


def parameters(spec: RunSpec, agent: agents.Agent) -> dict[str, Any]:
    (one,) = agents.associations(spec)
    return agents.parameters(one, agent)


def iyengar(variant: str, **factors: float) -> RunSpec:
    return next(spec for spec in specs("iyengar", **factors) if spec.variant == variant)


def test_parameters_are_those_of_the_scenario() -> None:
    given = parameters(caro(pmr=3, loss_pct=8, alt_loss_pct=4), CARO)
    assert given["bytes"] == 80_000_000
    assert given["both"]["dataChunkSize_"] == 1468
    assert given["both"]["sackDelay_"] == 0.2
    sender = given["sender"]
    names = ("pathMaxRetrans_", "rtxToAlt_", "dormantAction_", "minRto_", "maxRto_", "heartbeatInterval_")
    assert [sender[name] for name in names] == [3, 2, 0, 1, 60, 30]
    assert given["paths"][0]["reverse"] == {
        "rate_mbit": 10,
        "delay_ms": 45,
        "queue_pkts": 1000,
        "loss_pct": 8,
    }
    assert given["paths"][1]["forward"]["loss_pct"] == 4


def test_a_spec_that_shares_its_paths_has_an_agent_of_its_own() -> None:
    spec = iyengar("cmt-delayed", rate2_mbit=5, sack_freq=1)
    (agent,) = agents.agents(spec)
    given = parameters(spec, agent)
    assert (agent.source, given["agent"], given["receiver"]) == ("ns-2 CMT", "SCTP/CMT", "SCTP/CMT")
    assert (given["both"]["useCmtDelAck_"], given["both"]["useDelayedSacks_"]) == (1, 0)
    assert given["sender"]["eCmtRtxPolicy_"] == 1
    assert [path["forward"]["rate_mbit"] for path in given["paths"]] == [35, 5]


def test_a_striped_flow_is_one_association_per_path() -> None:
    spec = iyengar("appstripe", rate2_mbit=5)
    (agent,) = agents.agents(spec)
    given = [agents.parameters(one, agent) for one in agents.associations(spec)]
    assert agent.source == "ns-2 AppStripe"
    assert [one["agent"] for one in given] == ["SCTP", "SCTP"]
    assert [[path["forward"]["rate_mbit"] for path in one["paths"]] for one in given] == [[35], [5]]
    assert [one["streams"] for one in given] == [0, 2]  # each path loses what it does in the runs of others


def test_what_ns2_has_no_word_for_is_refused() -> None:
    for variant, named in (("cmt-per-path", "cmt_sack = per-path"), ("cmt", "cmt_sack = default")):
        with pytest.raises(LabError, match=named):
            ns2.todo([iyengar(variant)], ())


def test_an_agent_may_replace_variables_of_the_sender() -> None:
    agent = agents.agent("MultipleFastRtx:mtu_=1532,initialCwnd_=2")
    given = parameters(caro(), agent)
    assert given["agent"] == "SCTP/MultipleFastRtx"
    assert given["both"]["mtu_"] == 1500
    assert (given["sender"]["mtu_"], given["sender"]["initialCwnd_"]) == ("1532", "2")
    assert agent.source == "ns-2 MultipleFastRtx mtu_=1532 initialCwnd_=2"


@pytest.mark.parametrize("text", ["", "a b", "CMT:", "CMT:mtu=1", "CMT:mtu_", "CMT:mtu_=[exit]"])
def test_a_wrong_agent_is_refused(text: str) -> None:
    with pytest.raises(LabError, match=r"--agent: got .*, expected CLASS or CLASS:VARIABLE=VALUE"):
        agents.agent(text)


def test_what_ns2_cannot_follow_is_refused() -> None:
    spec = caro()
    settings = spec.sysctl.host1
    cases = [
        (replace(spec, events=(Event(2, "cut", "primary"),)), "events"),
        (replace(spec, flows=(replace(spec.flows[0], message_b=1450),)), "message_b = 1450"),
        (
            replace(spec, sysctl=HostSettings({**settings, "net.sctp.rtx_policy": "cwnd"}, settings)),
            "rtx_policy = cwnd",
        ),
        (
            replace(spec, sysctl=HostSettings({**settings, "net.sctp.pf_enable": "1"}, settings)),
            "pf_enable = 1",
        ),
        (replace(spec, sysctl=replace(spec.sysctl, host2={})), "sack_timeout at its default"),
    ]
    for changed, named in cases:
        with pytest.raises(LabError, match=named):
            parameters(changed, CARO)


def test_tcl_words() -> None:
    assert ns2.tcl({"a": 1, "paths": [{"x": 0.5}, {}]}) == "{a 1 paths {{x 0.5} {}}}"


TRACE = """
time: 0.00000   frCount: 1953264973
primary 3
time: 0.00000 saddr: 2 sport: 0 daddr: 3 dport: 0 dstatus: ACTIVE isPrimary: TRUE
time: 0.00000 saddr: 2 sport: 0 daddr: 3 dport: 0 timeoutCount: 0
r 0.225192 2 3 sctp 56 -------H 0 2.0 3.0 1 -1 8 65535 65535
r 0.316437 2 3 sctp 1500 -------D 0 2.0 3.0 1 1 12 0 0
time: 0.40000   frCount: 1953264973
time: 1.30000 saddr: 2 sport: 0 daddr: 3 dport: 0 dstatus: INACTIVE isPrimary: TRUE
time: 1.30000 saddr: 4 sport: 0 daddr: 5 dport: 0 dstatus: INACTIVE isPrimary: FALSE
time: 1.30000 saddr: 2 sport: 0 daddr: 3 dport: 0 timeoutCount: 1
time: 1.30000 saddr: 4 sport: 0 daddr: 5 dport: 0 timeoutCount: 1
r 1.400000 4 5 sctp 1500 -------D 0 4.0 5.0 1 1 13 0 0
r 1.500000 4 5 sctp 1500 -------D 0 4.0 5.0 1 2 14 0 1
time: 9.00000 saddr: 2 sport: 0 daddr: 3 dport: 0 dstatus: ACTIVE isPrimary: TRUE
time: 9.10000 saddr: 2 sport: 0 daddr: 3 dport: 0 dstatus: INACTIVE isPrimary: TRUE
"""


def test_a_trace_counts_up_to_the_last_first_arrival() -> None:
    assert ns2.read(TRACE.splitlines(), 2) == ns2.Outcome(1.5, 1, 2, 1)


def test_a_transfer_that_never_ends_has_no_outcome() -> None:
    assert ns2.read(TRACE.splitlines(), 3) is None


def arrivals(far: int, *packets: tuple[float, int]) -> list[str]:
    """The trace of a path of 35 ms: (time, TSN) of its packets."""
    lines = [f"r {t} 2 {far} sctp 1500 -------D 0 2.0 3.0 1 {tsn} 12 0 0" for t, tsn in packets]
    return [f"path {far} 0.035", f"r 0.175 2 {far} sctp 56 -------H 0 2.0 3.0 1 -1 6 65535 65535", *lines]


def test_what_arrived_in_order_counts_and_time_starts_with_the_data() -> None:
    lines = arrivals(3, (0.235, 1), (0.335, 3), (0.435, 2))
    assert list(ns2.progress(lines)) == [
        (pytest.approx(0.035), 1),
        (pytest.approx(0.135), 1),
        (pytest.approx(0.235), 3),
    ]
    assert ns2.shared([lines], 3) == {"transfer_s": 0.235}
    assert ns2.shared([lines], 4) == {}


def test_two_associations_count_together() -> None:
    fast = arrivals(3, (0.235, 1), (0.335, 2), (0.435, 3))
    slow = arrivals(3, (3.335, 1), (3.635, 2))  # its handshake lost a packet
    assert ns2.shared([fast, slow], 3) == {"transfer_s": 0.135}
