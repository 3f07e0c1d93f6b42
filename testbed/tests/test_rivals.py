# SPDX-License-Identifier: GPL-2.0
"""Flows beside the measured one: how many, with which congestion control, and what they have of a queue."""

from __future__ import annotations

import json
from pathlib import Path as File
from typing import Any

import pytest
from sctplab.errors import LabError
from sctplab.measure import collect
from sctplab.plan.traffic import Means, loads
from sctplab.spec.model import Flow
from sctplab.spec.schema import plain
from tests.test_bottleneck import FILE, loaded, shared_spec, topology

RIVAL = """[[flows]]
name = "rival"
kind = "tcp"
background = true
rival = true
congestion = "reno"
copies = "{rivals}"
"""
BOTH = FILE.replace("[factors]", "[factors]\nrivals = [2]") + RIVAL


def test_copies_are_numbered(tmp_path: File) -> None:
    spec = loaded(tmp_path, BOTH)
    assert [flow.name for flow in spec.flows] == ["flow1", "rival1", "rival2"]
    assert [flow.rival for flow in spec.flows] == [None, True, True]
    assert len(loaded(tmp_path, BOTH, rivals=(0,)).flows) == 1


def test_a_flow_that_is_none_has_no_word_of_it() -> None:
    assert not {"rival", "congestion"} & set(plain(Flow("f", messages=1)))


def test_congestion_control_is_a_socket_option_of_the_sender() -> None:
    flow = Flow("f", kind="tcp", messages=1, congestion="reno")
    (made,) = loads(flow, topology(), 0, Means("mpflow", 1))
    argv = made.sender.argv
    assert argv[argv.index("--sockopt") + 1] == "tcp:13:72656e6f"
    assert "--sockopt" not in made.receiver.argv


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("background = true", "duration_s = 9", "rival: got True, expected background = true beside it"),
        ('kind = "tcp"', 'kind = "iperf3"', "congestion: got 'reno', expected none for iperf3"),
        ('congestion = "reno"', 'congestion = "vegas"', "got 'vegas', expected one of reno, cubic"),
        ('kind = "tcp"\n', 'kind = "udp"\nrate_mbit = 1\n', "rival: got True, expected a flow of kind sctp"),
        ('copies = "{rivals}"', "copies = -1", "copies: got -1, expected a whole number from 0 to 100"),
    ],
)
def test_one_clear_line(tmp_path: File, old: str, new: str, words: str) -> None:
    text = BOTH.replace(old, new, 1)
    if "udp" in new:
        text = text.replace('congestion = "reno"\n', "", 1)
    with pytest.raises(LabError, match=words) as caught:
        loaded(tmp_path, text)
    assert "\n" not in str(caught.value)


def brought(name: str, megabytes: float, start: float, end: float) -> dict[str, Any]:
    """The results that both ends of a flow report; START and END in seconds."""
    send, recv = ({"event": "result", "role": role, "bytes": megabytes * 1e6, "first_t": start, "last_t": end}
                  for role in ("send", "recv"))  # fmt: skip
    return {"name": name, **{role: {"output": json.dumps(one) + "\n"}
                             for role, one in (("sender", send), ("receiver", recv))}}  # fmt: skip


def rivals(*flows: dict[str, Any]) -> dict[str, float]:
    names = [flow["name"] for flow in flows]
    made = [Flow(name, kind="tcp", background=True, rival=name.startswith("rival") or None) for name in names]
    made[0] = Flow(names[0], messages=1)
    return collect.rivals(shared_spec(flows=tuple(made)), {"flows": list(flows)})


def test_a_rival_has_its_fair_share() -> None:
    fair = 10 * 1448 / 1514 / 2 * 100 / 8
    found = rivals(brought("main", 1, 0, 100), brought("rival", fair, 0, 100))
    assert found["rival_mbit"] == pytest.approx(fair * 8 / 100)
    assert found["share_of_rival"] == pytest.approx(1)


def test_a_rivals_fair_share_is_that_of_its_time() -> None:
    """Half of its time it is alone with one other, half with two; noise does not count."""
    fair = 10 * 1448 / 1514 * 10 / 8
    found = rivals(
        brought("main", 1, 0, 100),
        brought("rival1", fair * (1 / 2 + 1 / 3), 10, 30),
        brought("rival2", fair * (1 / 3 + 1 / 2) / 2, 20, 40),
        brought("noise", 50, 0, 100),
    )
    assert found["share_of_rival"] == pytest.approx((1 + 0.5) / 2)


def test_without_rivals_or_with_one_that_brought_nothing_there_is_no_such_metric() -> None:
    assert rivals(brought("main", 1, 0, 100), brought("noise", 1, 0, 100)) == {}
    nothing = {"name": "rival", "sender": {}, "receiver": {}}
    assert rivals(brought("main", 1, 0, 100), nothing) == {}
