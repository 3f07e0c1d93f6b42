# SPDX-License-Identifier: GPL-2.0
"""AppStripe: when what several associations have received in order sums up to the whole."""

from typing import Any

import pytest
from sctplab.measure import collect
from sctplab.plan import stripe
from sctplab.spec.model import Flow
from tests.lab_run import small_spec
from tests.test_collect import lines

FAST = [(1.0, 300), (2.0, 600), (3.0, 1000)]
SLOW = [(1.5, 100), (2.5, 400), (9.0, 1000)]


@pytest.mark.parametrize(
    ("parts", "wanted", "expected"),
    [
        ([FAST, SLOW], 1000, (2.5, 1000)),  # 600 + 400
        ([FAST, SLOW], 999, (2.5, 1000)),
        ([FAST, SLOW], 1001, (3.0, 1400)),
        ([FAST, FAST], 600, (1.0, 600)),  # both at once
        ([FAST], 1000, (3.0, 1000)),  # alone, it has to do all
        ([FAST, []], 1000, (3.0, 1000)),
        ([FAST, SLOW], None, (9.0, 2000)),  # for a time, not for a size
    ],
)
def test_the_moment(parts: list[list[tuple[float, int]]], wanted: int | None,
                    expected: tuple[float, int]) -> None:  # fmt: skip
    assert stripe.moment(parts, wanted) == expected


def part(name: str, begin: float, arrivals: list[tuple[float, int]], rtx: int) -> dict[str, Any]:
    """One association that began at BEGIN; the last arrival is in the result only, as mpflow has it."""
    *log, (last, size) = [(begin + t, b) for t, b in arrivals]
    progress = [{"event": "progress", "t": t, "bytes": b} for t, b in log]
    sent = {"event": "result", "first_t": begin, "last_t": last + 1,
            "association_stats": {"rtx_chunks": rtx, "sacks_in": 10}}  # fmt: skip
    got = {"event": "result", "first_t": begin, "last_t": last, "bytes": size, "max_message_delay_s": 9.0}
    return {"name": name, "sender": lines(sent), "receiver": lines(*progress, got)}


def measured(*parts: dict[str, Any], **flow: Any) -> dict[str, float]:
    spec = small_spec(flows=(Flow("flow1", kind="sctp-striped", **flow),))
    result = {"start_t": 100.0, "flows": list(parts), "samples": []}
    counters = {"host1": {"SctpOutOrderChunks": 100, "SctpT3RtxExpireds": 3}}
    wires = [{"name": "path1", "forward": {"tx_bytes": 900000}, "reverse": {"tx_bytes": 1}}]
    assert "message_delay" not in collect.series(spec, result)
    return collect.metrics(spec, result, counters, wires)


def test_each_association_has_a_clock_of_its_own() -> None:
    """The second one's handshake took half a second more."""
    found = measured(part("flow1.path1", 100, FAST, 2), part("flow1.path2", 100.5, SLOW, 3), size_mb=0.001)
    assert found["transfer_s"] == 2.5
    assert found["goodput_mbit"] == pytest.approx(1000 * 8e-6 / 2.5)
    assert found["capacity_share"] == pytest.approx(1000 * 8e-6 / 2.5 / (2 * 20 * 1400 / 1462), abs=1e-9)
    assert (found["rtx_ratio"], found["sacks"], found["t3_timeouts"]) == (0.05, 20, 3)
    assert "max_message_delay_s" not in found and "wire_mbit.path1" not in found


def test_messages_are_a_size_too_and_a_time_is_none() -> None:
    both = part("flow1.path1", 100, FAST, 0), part("flow1.path2", 100, SLOW, 0)
    assert measured(*both, messages=10, message_b=100)["transfer_s"] == 2.5
    lasting = measured(*both, duration_s=9)
    assert lasting["transfer_s"] == 9 and lasting["goodput_mbit"] == pytest.approx(2000 * 8e-6 / 9)


def test_a_part_without_a_result_leaves_no_speed() -> None:
    broken = {"name": "flow1.path2", "sender": lines(), "receiver": lines()}
    assert "transfer_s" not in measured(part("flow1.path1", 100, FAST, 0), broken, size_mb=0.001)
