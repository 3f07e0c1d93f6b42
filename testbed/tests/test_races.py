# SPDX-License-Identifier: GPL-2.0
"""The sorting of what a kernel complains of on several processors, and what the machine is told to do."""

import json

import pytest
from sctplab.stress import races

RACE = """\
==================================================================
BUG: KCSAN: data-race in {title}

write to 0xffff888104a1b2c8 of 4 bytes by interrupt on cpu 1:
 sctp_rcv+0x10/0x20
read to 0xffff888104a1b2c8 of 4 bytes by task 123 on cpu 0:
 sctp_mp_dump+0x1/0x2
==================================================================
"""
KASAN = """\
BUG: KASAN: slab-use-after-free in __list_del_entry_valid_or_report+0x12/0xd0
Read of size 8 at addr ffff888104a1b2c8 by task mpflow/77

Call Trace:
 __list_del_entry_valid_or_report+0x12/0xd0
 {function}+0x40/0x90
 sctp_outq_sack+0x40/0x90
==================================================================
"""
WARNING = "WARNING: CPU: {cpu} PID: {cpu}7 at {file}:190 {function}+0x1e/0x30"


def found(console: str) -> list[tuple[str, str]]:
    return [(one.place, one.title) for one in races.reports(console)]


@pytest.mark.parametrize(
    ("title", "place"),
    [
        ("sctp_mp_dump_next / sctp_rcv", races.OURS),
        ("sctp_rcv / sctp_mp_dump_next.isra.0", races.OURS),
        ("sctp_mp_rack_sack", races.OURS),
        ("__sctp_write_space / sock_wfree", races.SCTP),
        ("dst_release / fib_lookup", races.OTHER),
    ],
)
def test_a_race_is_where_one_of_its_accesses_is(title: str, place: str) -> None:
    expected = f"BUG: KCSAN: data-race in {title.removesuffix('.isra.0')}"
    assert found(RACE.format(title=title)) == [(place, expected)]


@pytest.mark.parametrize(
    ("function", "place"),
    [("sctp_mp_undo", races.OURS), ("sctp_outq_tail", races.SCTP), ("napi_poll", races.SCTP)],
)
def test_other_reports_are_where_the_first_function_of_sctp_is(function: str, place: str) -> None:
    assert [where for where, _ in found(KASAN.format(function=function))] == [place]


def test_a_warning_names_its_file() -> None:
    line = WARNING.format(cpu=1, file="net/sctp/multipath/sched.c", function="what")
    assert found(line) == [(races.OURS, "WARNING: at net/sctp/multipath/sched.c:190 what")]
    assert found(WARNING.format(cpu=1, file="net/sctp/output.c", function="what"))[0][0] == races.SCTP
    assert found(WARNING.format(cpu=1, file="mm/slub.c", function="what"))[0][0] == races.OTHER


def test_what_kmemleak_says_of_itself_is_no_report() -> None:
    said = "kmemleak: Automatic memory scanning thread started\n"
    assert found(said) == []
    leaks = "kmemleak: 3 new suspected memory leaks (see /sys/kernel/debug/kmemleak)"
    assert found(f"{said}{leaks}\n") == [(races.OTHER, leaks)]


def test_alike_reports_are_one_and_ours_come_first() -> None:
    warnings = [WARNING.format(cpu=cpu, file="mm/slub.c", function="what") for cpu in (1, 2, 3)]
    rows = races.sorted_reports("\n".join(warnings) + "\n" + RACE.format(title="sctp_mp_dump"))
    assert [(row["place"], row["times"]) for row in rows] == [(races.OURS, 1), (races.OTHER, 3)]


def test_what_stock_gives_is_not_held_against_the_series() -> None:
    console = RACE.format(title="sctp_rcv / sctp_sendmsg") + RACE.format(title="sctp_rcv / sctp_close")
    stock = [f"BUG: KCSAN: data-race in {title}" for title in ("sctp_rcv / sctp_close",)]
    record = {"reports": races.sorted_reports(console, stock)}
    assert [row["title"] for row in races.guilty(record)] == [
        "BUG: KCSAN: data-race in sctp_rcv / sctp_sendmsg"
    ]


def test_seeds_are_counted_by_how_they_ended() -> None:
    console = (
        "races: flaps 1 ok \nraces: flaps 2 timeout \nnoise\nraces: flaps 3 ok \nraces: fuzz-local 1 exit 0"
    )
    assert races.ended(console) == {"flaps": {"ok": 2, "timeout": 1}, "fuzz-local": {"exit 0": 1}}


@pytest.mark.parametrize("kind", races.DRAWN)
def test_a_plan_repeats_and_spreads_what_each_namespace_receives(kind: str) -> None:
    asked = races.Asked(cpus=4)
    made = races.plan(kind, 7, asked)
    assert made == races.plan(kind, 7, asked)
    masks = {one.where for one in made.setup if one.argv[-1] == "net.core.rps_default_mask=f"}
    assert masks == {one.argv[3] for one in made.setup if one.argv[:3] == ("ip", "netns", "add")}
    assert made.virtual_limit_s == races.RUN_S


def test_the_table_names_each_report() -> None:
    record = {
        "seeds": {"flaps": {"ok": 2}},
        "minutes": 1.0,
        "end": "whole",
        "reports": races.sorted_reports(RACE.format(title="sctp_rcv / sctp_close")),
    }
    lines = list(races.table(json.loads(json.dumps(record))))
    assert lines[0] == "flaps: 2 seeds: 2 ok"
    assert "sctp_rcv / sctp_close" in lines[1]
    assert lines[2].endswith("different reports: 0 ours, 1 net/sctp, 0 elsewhere")
