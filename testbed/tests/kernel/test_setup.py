# SPDX-License-Identifier: GPL-2.0
"""How long it takes to set an association up over several addresses, the first of which may be dead.

work/setup.py has what leaves the socket, packet by packet.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from failover.kinds import dead_at_connect
from failover.settings import Settings, changed
from sctplab.measure.capture import Chunk
from sctplab.spec.model import Event, Topology
from tests.cmt_run import bulk, path, spec, transfer
from tests.failover_run import assumed

pytestmark = pytest.mark.kernel
DELAY_S, RTO_INITIAL_S = 0.25, 3.0
TICK_S = 0.01
EVENTS = (Event(1, "cut", "path1"), Event(2, "heal", "path1"))
ON = {"init_alternate": "1", "cmt": "0"}
OFF = {"init_alternate": "0", "cmt": "0"}


@dataclass(frozen=True)
class Seen:
    """All chunks at host1, from the first INIT on."""

    chunks: tuple[Chunk, ...]

    def of(self, kind: str, direction: str = "forward") -> list[Chunk]:
        return [one for one in self.chunks if (one.kind, one.direction) == (kind, direction)]

    def since_s(self, one: Chunk) -> float:
        """The time from the first INIT to ONE."""
        return (one.time_ns - self.of("INIT")[0].time_ns) / 1e9

    @property
    def established_s(self) -> float:
        return self.since_s(self.of("COOKIE_ACK", "reverse")[0])


def carry_out(case: str, folder: Path, topology: Topology, settings: dict[str, str]) -> Seen:
    """A case of work/transfer.py, which checks every message."""
    one = spec(topology, bulk(1), settings, events=EVENTS, pcap=True)
    return Seen(transfer(case, one, folder)[1])


def two(delay_ms: float) -> Topology:
    return Topology((path(1, delay_ms), path(2, delay_ms)))


@pytest.mark.parametrize("cmt", ["0", "1"])
@pytest.mark.parametrize("delay_ms", [5, 50])
def test_a_dead_first_path_costs_250_ms(delay_ms: float, cmt: str, tmp_path: Path) -> None:
    seen = carry_out("over_a_dead_path", tmp_path, two(delay_ms), ON | {"cmt": cmt})
    rtt_s = 2 * delay_ms / 1000
    assert DELAY_S + 2 * rtt_s <= seen.established_s <= DELAY_S + 2 * rtt_s + 2 * TICK_S
    assert [one.path for one in seen.of("INIT")] == ["path1", "path2"]


@pytest.mark.parametrize("settings", [ON, OFF], ids=["on", "off"])
def test_it_costs_what_is_predicted(settings: dict[str, str], tmp_path: Path) -> None:
    seen = carry_out("over_a_dead_path", tmp_path, two(20), settings)
    known = {name: value for name, value in settings.items() if name != "cmt"}
    predicted = dead_at_connect(changed(Settings(), known, "test", strict=True), assumed()).seconds
    assert predicted is not None
    assert 0.9 * predicted.low <= seen.established_s <= 1.1 * predicted.high


def test_it_costs_t1_init_without_the_setting(tmp_path: Path) -> None:
    seen = carry_out("over_a_dead_path", tmp_path, two(5), OFF)
    assert seen.established_s >= RTO_INITIAL_S


def test_data_begins_at_once_and_returns_to_the_primary(tmp_path: Path) -> None:
    seen = carry_out("over_a_dead_path", tmp_path, two(20), ON)
    data = seen.of("DATA")
    assert len(data) == len({one.tsn for one in data})
    assert seen.since_s(data[0]) - seen.established_s < TICK_S
    assert [{one.path for one in part} for part in (data[:100], data[100:])] == [{"path2"}, {"path1"}]


def test_a_living_first_path_gets_the_only_init(tmp_path: Path) -> None:
    seen = carry_out("over_living_paths", tmp_path, two(100), ON)
    assert [one.path for one in seen.of("INIT")] == ["path1"]
    assert [one.path for one in seen.of("COOKIE_ECHO")] == ["path1"]
    assert {one.path for one in seen.of("DATA")} == {"path1"}


def test_answers_that_come_late_make_one_association(tmp_path: Path) -> None:
    """Round trips are longer than the delay on both paths: all is sent twice, and answered twice.

    To an address that is not confirmed Linux sends no COOKIE ACK; both come over the first path.
    """
    seen = carry_out("over_living_paths", tmp_path, two(200), ON)
    for kind, direction in (("INIT", "forward"), ("INIT_ACK", "reverse"), ("COOKIE_ECHO", "forward")):
        assert [one.path for one in seen.of(kind, direction)] == ["path1", "path2"]
    assert len(seen.of("COOKIE_ACK", "reverse")) == 2
    assert {one.path for one in seen.of("DATA")} == {"path1"}
    assert {one.kind for one in seen.chunks} & {"ABORT", "ERROR"} == set()
