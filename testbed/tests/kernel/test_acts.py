# SPDX-License-Identifier: GPL-2.0
"""Programs of flows with acts do what the acts say, as the captures show."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from sctplab.measure import capture
from sctplab.random import differential
from sctplab.random.choice import Draw, run_spec
from sctplab.run import runner
from sctplab.run.identical import run_captured
from sctplab.spec.model import Act, Direction, Flow, Topology
from sctplab.spec.model import Path as LinkPath
from sctplab.spec.scenario import Choice

pytestmark = pytest.mark.kernel
ASCONF, ASCONF_ACK, RE_CONFIG = "0xc1", "0x80", "0x82"
RESETS = (f"sctp:{differential.ENABLE_STREAM_RESET}:0000000001000000",)
SETTINGS = {"addip_enable": 1, "addip_noauth_enable": 1, "reconf_enable": 1}
PAUSED = Flow(
    "paused",
    kind="sctp-acts",
    messages=700,
    rcvbuf_kb=64,
    acts=(
        Act(0.5, "pause", "receiver"),
        Act(2.5, "resume", "receiver"),
        Act(3.0, "address-del", path="path2"),
        Act(3.2, "address-add", path="path2"),
        Act(3.5, "primary", path="path2"),
    ),
)
AGAIN = Flow(
    "again",
    kind="sctp-acts",
    messages=200,
    interval_ms=20.0,
    many=True,
    mixed=True,
    streams=3,
    nodelay=True,
    sockopts=RESETS,
    receiver_sockopts=RESETS,
    acts=(Act(1.5, "abort"), Act(2.0, "connect"), Act(3.0, "reset-streams")),
)


def test_what_programs_do(tmp_path: Path) -> None:
    way = Direction(rate_mbit=5.0, delay_ms=20.0)
    topology = Topology(tuple(LinkPath(name, way, way) for name in ("path1", "path2")))
    draw = Draw("acts", 1)
    spec = run_spec(draw, "What is done?", "stock", Choice(), topology, (PAUSED, AGAIN), (), SETTINGS)
    with runner.bench_for([replace(spec, kernel="stock")]) as bench:
        made, captures = run_captured(spec, "stock", bench, tmp_path)
    assert made["status"] == "ok", made["reason"]
    paused, again = made["flows"]
    refused = [
        word for flow in (paused, again) for end in ("sender", "receiver") for word in flow[end]["refused"]
    ]
    assert refused == []
    assert paused["receiver"]["messages"] == 700 and 2.0 <= paused["receiver"]["max_gap_s"] < 2.5
    assert again["sender"]["messages"] == 200 and 190 <= again["receiver"]["messages"] <= 200
    chunks = list(capture.chunks(captures, topology, "host1"))
    kinds = Counter((one.kind, one.direction, max(one.ports)) for one in chunks)
    assert kinds["INIT", "forward", 6000] == 1 and kinds["INIT", "forward", 6001] == 2
    assert (
        kinds["ABORT", "forward", 6000] == 0 < kinds["ABORT", "forward", 6001]
    )  # SACKs that come later get one too
    assert kinds[ASCONF, "forward", 6000] == kinds[ASCONF_ACK, "reverse", 6000] == 2
    assert kinds[RE_CONFIG, "forward", 6001] == 1
    assert {one.path for one in chunks if one.kind == "DATA"} == {"path1", "path2"}
