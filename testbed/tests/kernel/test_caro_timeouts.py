# SPDX-License-Identifier: GPL-2.0
"""The four scenarios of figure 6 in Caro et al. (2004), packet by packet: scenarios/caro-timeouts.toml.

TSN 1 times out on the primary path at 0 ms, a round trip takes 90 ms. 13 ms later the application has
written eight more messages. Linux and the figure agree on who waits for whom; where they send different
packets, the tests say why:

- A window of one packet lets two out: the flight counts what the chunks carry, which is less than one MTU.
  So "TSN 2" of the figure is TSN 2 and 3 here.
- The alternate path was never used and has the initial window of three packets (4380 bytes), room for one
  more when it is not quite full. The figure's has a window of one, which the retransmission of TSN 1 fills.
- The window also grows for data that leaves a gap (RFC 9260 has dropped the condition that the cumulative
  TSN moves), so the sender of scenario 2 is not held to one packet at a time.
- Timers expire at ticks of 10 ms, those of two seconds at every eighth.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sctplab.measure import capture
from sctplab.run import runner
from sctplab.run.identical import run_captured
from sctplab.spec import scenario
from sctplab.spec.scenario import Choice

pytestmark = pytest.mark.kernel
END = 3000  # ms
DELIVERED, LOST = 0, 100
PRIMARY, ALTERNATE = "10.1.2.1", "10.2.2.1"


@dataclass(frozen=True)
class Story:
    """One run at the sender, in ms after the timeout.

    CHUNKS: (ms, path, whether it left, chunk). STATES: (ms, address, state) as its application was told.
    """

    chunks: tuple[tuple[float, str, bool, capture.Chunk], ...]
    states: tuple[tuple[int, str, str], ...]
    metrics: dict[str, float]

    def sent(self, path: str, start: float, end: float) -> list[int | str]:
        """Chunks that left on PATH from START until before END: TSNs, and the names of others but SACKs."""
        return [
            one.tsn if one.tsn is not None else one.kind
            for ms, where, left, one in self.chunks
            if left and where == path and start <= ms < end and one.kind != "SACK"
        ]

    def came(self, path: str, kind: str) -> list[int]:
        """When chunks of this kind arrived on PATH."""
        return [
            round(ms)
            for ms, where, left, one in self.chunks
            if (where, left, one.kind) == (path, False, kind)
        ]

    def new(self, path: str, start: float, end: float) -> list[int]:
        """TSNs that left for the first time in that time, and on PATH."""
        old = {one.tsn for ms, _, left, one in self.chunks if left and ms < start}
        return [tsn for tsn in self.sent(path, start, end) if isinstance(tsn, int) and tsn not in old]


Tell = Callable[..., Story]


def story(record: dict[str, Any], chunks: list[capture.Chunk]) -> Story:
    """From the second time that TSN 1 leaves, which is when the first timed out."""
    assert record["status"] == "ok", record["reason"]
    timeout = [one.time_ns for one in chunks if one.tsn == 1][1]
    return Story(
        tuple(((one.time_ns - timeout) / 1e6, one.path, one.direction == "forward", one) for one in chunks),
        tuple(
            (round(event["t"] * 1e3 - timeout / 1e6), event["address"], event["state"])
            for event in record["flows"][0]["path_events"]
        ),
        record["metrics"],
    )


@pytest.fixture(scope="module")
def tell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tell]:
    """The story of a run, told once: tell(pmr, primary=DELIVERED or LOST, alternate=...)."""
    found = scenario.load(scenario.find("caro-timeouts"))
    specs = scenario.expand(found, {}, Choice(kernels=("patched",), repeat=1, pcap=True))
    told: dict[tuple[Any, ...], Story] = {}
    with runner.bench_for(specs) as bench:

        def one(pmr: int, primary: int, alternate: int) -> Story:
            factors = {"primary_loss_pct": primary, "alternate_loss_pct": alternate, "pmr": pmr}
            spec = next(spec for spec in specs if spec.factors == factors)
            key = tuple(factors.values())
            if key not in told:
                folder: Path = tmp_path_factory.mktemp("run")
                record, captures = run_captured(spec, "patched", bench, folder)
                told[key] = story(record, list(capture.chunks(captures, spec.topology, "host1")))
            return told[key]

        yield one


def test_scenario_1_pmr_0(tell: Tell) -> None:
    """The answer to the heartbeat wins the race against that to TSN 1 and cancels the failover."""
    run = tell(0, primary=DELIVERED, alternate=DELIVERED)
    assert run.sent("primary", 0, 80) == ["HEARTBEAT"]
    assert run.sent("alternate", 0, 80) == [1, 2, 3, 4]  # TSN 2 to 4 in what the initial window has left
    assert run.came("primary", "HEARTBEAT_ACK") == [90]
    assert run.sent("primary", 80, 100) == [5, 6]
    assert run.new("alternate", 80, END) == []
    assert run.states == ((0, PRIMARY, "unreachable"), (90, PRIMARY, "available"))


def test_scenario_1_pmr_1(tell: Tell) -> None:
    """TSN 1 to the alternate, TSN 2 to the primary, and the primary is never left."""
    run = tell(1, primary=DELIVERED, alternate=DELIVERED)
    assert run.sent("alternate", 0, END) == [1]
    assert run.sent("primary", 0, 80) == [2, 3]
    # A receiver answers the first data of an association at once, so the figure's one SACK for both is two.
    # The first is for a chunk of the alternate and opens no window on the primary.
    assert run.came("alternate", "SACK") == [91]
    assert run.sent("primary", 80, 100) == []
    assert run.sent("primary", 100, 110) == [4, 5, 6]
    assert run.states == ()


def test_scenario_2_pmr_0(tell: Tell) -> None:
    """The failover is cancelled; new data uses the primary while the alternate's losses are repaired."""
    run = tell(0, primary=DELIVERED, alternate=LOST)
    assert run.sent("primary", 0, 80) == ["HEARTBEAT"]
    assert run.sent("alternate", 0, 270) == [1, 2, 3, 4]
    assert run.came("primary", "HEARTBEAT_ACK") == [90]
    assert run.sent("primary", 80, 100) == [5, 6]
    # The figure has lost TSN 1 alone, and waits for its timer. Here three SACKs report TSN 2 to 4 missing;
    # their fast retransmissions take the same path. Those SACKs cannot tell of TSN 1: it was sent again over
    # a path whose round trip nobody has measured, and may just be slow. The SACKs for TSN 2 to 4, sent later
    # on that path, can.
    assert run.sent("alternate", 270, 280) == [2, 3, 4]
    assert run.sent("alternate", 280, END) == [1]
    assert run.sent("alternate", 360, 370) == [1]
    assert run.new("alternate", 80, END) == []
    assert run.states == ((0, PRIMARY, "unreachable"), (90, PRIMARY, "available"))


def test_scenario_2_pmr_1(tell: Tell) -> None:
    """New data uses the primary until TSN 1 times out on the alternate, and then TSN 1 does too."""
    run = tell(1, primary=DELIVERED, alternate=LOST)
    assert run.sent("alternate", 0, END) == [1]
    assert run.sent("primary", 0, 80) == [2, 3]
    assert run.sent("primary", 80, 110) == [4, 5, 6, 7]
    assert run.sent("primary", 1040, 1041) == [1]
    assert run.sent("primary", 0, END).count(1) == 1
    assert run.states == ()


def test_scenario_3_pmr_0(tell: Tell) -> None:
    """Data goes on over the alternate; the second heartbeat, after twice the RTO, brings it back."""
    run = tell(0, primary=LOST, alternate=DELIVERED)
    assert run.sent("primary", 0, 1) == ["HEARTBEAT"]
    (back,) = run.came("primary", "HEARTBEAT_ACK")
    # In the figure 2080. The time between HEARTBEATs of Linux is a half to one and a half of the RTO.
    assert 1040 <= back - 90 <= 3120
    assert run.sent("primary", 1, back) == run.sent("primary", back - 91, back - 89) == ["HEARTBEAT"]
    assert run.sent("alternate", 0, 80) == [1, 2, 3, 4]
    assert run.sent("alternate", 80, 200) == [5, 6, 7, 8, 9, 10, 11]  # all there is: nothing waits any more
    last = run.new("alternate", 0, END)[-1]
    assert run.sent("alternate", back, END) == []
    assert run.sent("primary", back, back + 120)[0] == last + 1
    assert run.states == ((0, PRIMARY, "unreachable"), (back, PRIMARY, "available"))


def test_scenario_3_pmr_1(tell: Tell) -> None:
    """TSN 2 fills the window of the primary, which the sender does not leave: nothing for two seconds."""
    run = tell(1, primary=LOST, alternate=DELIVERED)
    assert run.sent("alternate", 0, 2000) == [1]
    assert run.sent("primary", 0, 2000) == [2, 3]
    assert run.came("alternate", "SACK")[0] == 91
    # The second timeout fails over: as with PMR 0 after the first.
    assert run.sent("primary", 2000, 2170) == ["HEARTBEAT"]
    assert run.sent("alternate", 2080, 2081) == [2, 3, 4, 5] == run.sent("alternate", 2000, END)
    assert run.came("primary", "HEARTBEAT_ACK") == [2170]
    assert run.sent("primary", 2170, 2180) == [6, 7]
    assert run.states == ((2080, PRIMARY, "unreachable"), (2170, PRIMARY, "available"))


def test_scenario_4_pmr_0(tell: Tell) -> None:
    """TSN 1 times out on the alternate, hops back to the primary, and its answer cancels the failover."""
    run = tell(0, primary=LOST, alternate=LOST)
    assert run.sent("primary", 0, 1000) == ["HEARTBEAT"]
    assert run.sent("alternate", 0, 1000) == [1, 2, 3, 4]
    # With no path left all are asked: the figure has no HEARTBEAT for the primary here.
    assert run.sent("primary", 1000, 1100) == [1, "HEARTBEAT", 2]
    assert run.sent("alternate", 1000, 1100) == ["HEARTBEAT"]
    # The heartbeat's answer brings the alternate back first; TSN 3 and 4, still to be sent again, take it. So
    # do TSN 1 and 2, which the figure leaves on a path that is down.
    assert run.sent("alternate", 1100, END) == [1, 2, 3, 4]
    assert run.sent("alternate", 1130, 1131) == [1, 2]
    assert run.new("primary", 1131, 1132) == [5, 6]
    assert run.states == (
        (0, PRIMARY, "unreachable"),
        (1040, ALTERNATE, "unreachable"),
        (1130, ALTERNATE, "available"),
        (1131, PRIMARY, "available"),
    )


def test_scenario_4_pmr_1(tell: Tell) -> None:
    """TSN 1 goes to the primary when it times out on the alternate; its ack keeps the primary."""
    run = tell(1, primary=LOST, alternate=LOST)
    assert run.sent("alternate", 0, END) == [1]
    assert run.sent("primary", 0, 1000) == [2, 3]
    # TSN 2 and 3 fill the window, but a timeout lets one packet pass (RFC 9260, 6.3.3 E3).
    assert run.sent("primary", 1000, 1131) == [1]
    # The figure waits for TSN 2 to time out. Here the ack of TSN 1 lets a packet out, and three SACKs later
    # TSN 2 and 3 are fast retransmitted: the window has grown for TSN 4 to 6, which left a gap.
    assert run.sent("primary", 1131, 1300) == [4, 5, 6]
    assert run.sent("primary", 1313, 1316) == [7, 8, 2, 3, 9]
    assert run.states == ()


def test_pmr_0_gains_where_the_primary_loses_twice(tell: Tell) -> None:
    """Scenario 3, the conclusion of the paper's section 5: no message waits that second longer."""
    pmr0, pmr1 = (tell(pmr, primary=LOST, alternate=DELIVERED).metrics for pmr in (0, 1))
    assert pmr0["max_message_delay_s"] + 1 < pmr1["max_message_delay_s"]


def test_nobody_gains_where_both_paths_lose(tell: Tell) -> None:
    """Scenario 4: TSN 1 waits for two timers with either threshold."""
    pmr0, pmr1 = (tell(pmr, primary=LOST, alternate=LOST).metrics for pmr in (0, 1))
    assert pmr0["max_message_delay_s"] == pytest.approx(pmr1["max_message_delay_s"], abs=1e-4)
