# SPDX-License-Identifier: GPL-2.0
"""lab cost counts, and counts the same twice, to a thousandth: the figures themselves are no test."""

import pytest
from sctplab.spec.model import USUAL_BASE
from sctplab.stress import cost

pytestmark = pytest.mark.kernel


def counted() -> cost.Result:
    asked = cost.Asked(("data",), ("off",), times=0)
    found: list[cost.Result] = []
    cost.measure(asked, found.extend)
    return found[0]


@pytest.mark.skipif(USUAL_BASE == "6.1", reason="its socket options differ; the load was not tried there")
def test_a_count_repeats() -> None:
    first, second = counted(), counted()
    # An interrupt of the host may fall into a packet.
    assert first.instructions == pytest.approx(second.instructions, rel=0.001)
    assert first.functions["sctp_rcv"] > 0
