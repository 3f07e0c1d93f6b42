# SPDX-License-Identifier: GPL-2.0
"""Concurrent multipath transfer when the other end knows nothing of it, or has another's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from sctplab.spec.model import Flow, HostSettings
from tests.cmt_run import MESSAGE_B, ON, Lab, bulk, open_lab, paths, spec

pytestmark = pytest.mark.kernel
UNEQUAL = paths(10, 60, rate_mbit=2)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with open_lab(tmp_path_factory, spec(UNEQUAL, Flow("main", kind="sctp-to-usrsctp"))) as opened:
        yield opened


def test_a_receiver_without_it(lab: Lab) -> None:
    """Reports 16 gaps at most; nothing is sent again for that."""
    seen = lab.see(replace(spec(UNEQUAL, bulk(2)), sysctl=HostSettings(ON, {})))
    assert max(len(one.gaps) for one in seen.sacks()) <= 16
    assert seen.sent_again == 0
    assert 0.35 < seen.share("path2") < 0.65


@pytest.mark.parametrize("mode", ["delayed", "per-path"])
def test_a_sender_without_it(mode: str, lab: Lab) -> None:
    """Uses one path."""
    receiver = {**ON, "net.sctp.cmt_sack": mode}
    seen = lab.see(replace(spec(UNEQUAL, bulk(1)), sysctl=HostSettings({}, receiver)))
    assert seen.sent_again == 0
    assert seen.share("path1") == 1


@pytest.mark.parametrize("mode", ["standard", "delayed"])
@pytest.mark.parametrize("kind", ["sctp-to-usrsctp", "usrsctp-to-sctp"])
def test_usrsctp(kind: str, mode: str, lab: Lab) -> None:
    flow = Flow("main", kind=kind, size_mb=2, message_b=MESSAGE_B, cmt="base", cmt_sack=mode)
    record, _ = lab.captured(spec(UNEQUAL, flow))
    wire = [record["metrics"][f"wire_mbit.{path.name}"] for path in UNEQUAL.paths]
    assert min(wire) > 0.25 * sum(wire)
