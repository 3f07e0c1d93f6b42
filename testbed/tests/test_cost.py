# SPDX-License-Identifier: GPL-2.0
"""The Python half of lab cost: cases, symbols, ratios."""

import pytest
from sctplab.errors import LabError, RunError
from sctplab.stress import cost

NM = """\
0000000000000010 t sctp_rcv
0000000000000020 t __se_sys_sethostname
0000000000000020 T sys_sethostname
0000000000000030 T sctp_generate_t3_rtx_event
0000000000000040 d sctp_rcv
                 U printf
"""


def result(kind: str, addresses: int, variant: str, count: float, chunks: int = 0) -> cost.Result:
    return cost.Result(cost.Case(kind, addresses, chunks, 2, 0), variant, "", [count])


def test_cases_of_a_kind() -> None:
    found = cost.cases(cost.Asked(kinds=("data",)))
    assert [one.addresses for one in found] == list(cost.ADDRESSES)


def test_no_case_is_twice_in_the_list() -> None:
    every = cost.cases(cost.Asked())
    assert len({one.name for one in every}) == len(every)


def test_chunks_have_a_limit() -> None:
    assert max(one.chunks for one in cost.cases(cost.Asked(most_chunks=4000))) == 4000


def test_a_kind_that_is_none() -> None:
    with pytest.raises(LabError, match="--kind: got 'sacks', expected one of data, "):
        cost.cases(cost.Asked(kinds=("sacks",)))


def test_symbols_prefer_the_marker() -> None:
    assert cost.symbols(NM).splitlines() == [
        "0000000000000010 entry sctp_rcv",
        "0000000000000020 marker sys_sethostname",
        "0000000000000030 entry sctp_generate_t3_rtx_event",
    ]


def test_a_kernel_without_symbols() -> None:
    with pytest.raises(RunError, match="sys_sethostname"):
        cost.symbols("")


def test_steps_are_of_a_packet() -> None:
    made = result("data", 2, "off", 0)
    made.instructions.clear()
    steps = {"calls": [["sctp_rcv", 10], ["sctp_rcv", 30]], "functions": [["a", 30], ["b", 6], ["a", 4]]}
    cost.take_steps(made, {"outstanding": 7, "retransmitted": 0, "sacks": 3}, steps)
    assert (made.instructions, made.outstanding, made.functions["a"]) == ([20.0], 7, 17.0)


def test_targets_say_what_is_missed() -> None:
    found = [result("data", 16, "stock", 100), result("data", 500, "stock", 160)]
    assert [str(one) for one in cost.targets(found)] == [
        "MISSED data with 500 addresses to 16, stock: at most 1.50, measured 1.600"
    ]


def test_targets_of_a_transfer() -> None:
    found = [
        result("send", 2, variant, count) for variant, count in (("stock", 100), ("off", 101), ("on", 105))
    ]
    assert [(one.measured, str(one)[:6]) for one in cost.targets(found)] == [
        (1.01, "met   "),
        (1.05, "met   "),
    ]


def test_a_line_has_ratios_to_the_first() -> None:
    row = [result("send", 2, "stock", 200), result("send", 2, "off", 202)]
    row[1].functions["sctp_rcv"] = 2
    assert cost.line(row).split() == ["send", "200", "202", "1.010"]
    assert list(cost.differences(row, 3)) == ["  off - stock: sctp_rcv +2"]


def test_a_transfer_has_cpu_time_for_cycles() -> None:
    row = [result("send", 2, variant, 100) for variant in ("stock", "on")]
    for one, us in zip(row, (100.0, 96.0), strict=True):
        one.cpu_us.append(us)
    assert cost.line(row).split() == ["send", "100", "100", "1.000", "us", "CPU", "100", "96", "0.960"]
    assert (
        str(cost.targets(row)[-1]) == "met    send, on to stock, all CPU time: at most 1.10, measured 0.960"
    )
