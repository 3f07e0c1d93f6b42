# SPDX-License-Identifier: GPL-2.0
"""sctp-multipath paths and events: recorded answers of the kernel, and what is shown of them."""

from __future__ import annotations

import errno
import json
import os
import re
import struct
from dataclasses import replace
from pathlib import Path as File

import pytest
from deb import status
from pathview import cli, diag, netlink, selection, show, stock
from pathview.model import Association, Event, Path, Waits

# A dump of one association whose first path has been cut: its endpoint, itself, the end.
DUMPED = bytes.fromhex(
    "7000000014000200010000002d00000002010000df9913880a0100010000000000000000000000000a010002000000000000"
    "000000000000000000000100000000000000000000000000000000000000000000005a000000050008000000000008000f00"
    "0000000006001600500000002002000014000000010000002d00000002030000df9913880a01000100000000000000000000"
    "00000a010002000000000000000000000000030000000100000000000000000000000000000000000000000000005a000000"
    "050008000000000008000f00000000000600160050000000b00180922c0001000300000002000000000000000000000000a0"
    "010000a001000000000000000000000000000a00000004000300bc00020002000101010000000a0100020000000000000000"
    "000000000a0100010000000000000000000000000000000001000000500f000000000000ab14000000000000700300000000"
    "0000020000000500000000000000a00f0000b0ad0100b0ad010000000000dc05000070170000701700000000000001000000"
    "000000000200000000000000000000000d00000000000000140500000000000009000000000000000a00000000000000b801"
    "000000000000000000000000000004000300bc00020002000204060000000a0200020000000000000000000000000a020001"
    "000000000000000000000000000000000000000050190000000000002301000000000000f401000000000000000000000500"
    "000000000000e8030000c0d40100b0ad010001000000dc050000701700007017000000000000000000000000000001000000"
    "01000000000000000a0000000000000038040000000000000a000000000000000a00000000000000fc000000000000000000"
    "000000000000"
)
# Columns of /proc/net/sctp/assocs behind the addresses are left out.
ASSOCS = """\
 ASSOC SOCK STY SST ST HBKT ASSOC-ID TX_QUEUE RX_QUEUE UID INODE LPORT RPORT LADDRS <-> RADDRS HBINT INS
0000 1111 2 1 3 0 17 0 0 0 5011 42100 5000  *10.1.0.1 10.2.0.1 <-> *10.1.0.2 fd00::2 \t   30000    10
"""
REMADDR = """\
ADDR ASSOC_ID HB_ACT RTO MAX_PATH_RTX REM_ADDR_RTX START STATE
10.1.0.2  17 1 1000 5 0 0 0
fd00::2  17 1 3000 5 0 0 3
"""


def recorded() -> Association:
    found = diag.associations(netlink.messages(DUMPED))
    assert found is not None
    (one,) = found
    return one


def test_a_recorded_association() -> None:
    one = recorded()
    assert (one.assoc_id, one.local_port, one.peer_port, one.state) == (3, 57241, 5000, "established")
    assert (one.path_count, one.peer_rwnd, one.rwnd, one.error_limit) == (2, 106496, 106496, 10)
    first, second = one.paths
    assert (first.address, first.source) == ("10.1.0.2", "10.1.0.1")
    assert (first.state, first.reason) == ("potentially-failed", "t3-rtx")
    assert (first.struck_t3, first.struck_heartbeat, first.state_ms) == (1, 0, 3920)
    assert (first.marks, second.marks) == (("primary",), ("active", "retransmission"))
    assert (first.errors, first.error_limit, first.rto_ms, first.srtt_us) == (2, 5, 4000, 110000)
    assert (first.rtt_min_us, second.rtt_min_us) == (None, 1)
    assert (first.t3_timeouts, first.heartbeats_sent, second.heartbeats_acked) == (1, 2, 1)
    assert (first.out_packets, first.out_bytes, first.out_chunks) == (13, 1300, 9)
    assert (second.in_packets, second.in_bytes, second.in_chunks) == (10, 252, 0)


def test_what_is_cut_off_is_left_out() -> None:
    for cut in range(len(DUMPED)):
        assert diag.associations(netlink.messages(DUMPED[:cut])) == ()
    nested = list(netlink.messages(DUMPED))[1].payload
    for cut in range(len(nested)):
        assert diag.associations([netlink.Message(20, nested[:cut])]) == ()


def changed(**values: bytes) -> list[netlink.Message]:
    """The association's message with other payload for some attributes of SCTP_DIAG_PATHS."""
    message = list(netlink.messages(DUMPED))[1]
    parts = netlink.attributes(dict(netlink.attributes(message.payload[72:]))[diag.PATHS])
    names = {diag.A_ASSOC: "assoc", diag.A_PATH: "path", 3: "padding"}
    nested = b"".join(netlink.attribute(kind, values.get(names[kind], data)) for kind, data in parts)
    return [netlink.Message(20, message.payload[:72] + netlink.attribute(diag.PATHS, nested))]


def with_waits(payload: bytes) -> list[netlink.Message]:
    """The association's message with SCTP_DIAG_A_WAITS behind the others."""
    (message,) = changed()
    nested = dict(netlink.attributes(message.payload[72:]))[diag.PATHS] + netlink.attribute(
        diag.A_WAITS, payload
    )
    return [netlink.Message(20, message.payload[:72] + netlink.attribute(diag.PATHS, nested))]


def test_waits_are_read_and_shown() -> None:
    counts = (90, *[0] * 3, 9, *[0] * 10, 1)
    packed = struct.pack("=17Q", 100_000, *counts)
    (one,) = diag.associations(with_waits(packed + b"\xff" * 8)) or ()
    assert one == replace(recorded(), unread_waits=Waits(100_000, counts))
    assert show.text([one]).splitlines()[-1] == (
        "  unread: 100 messages waited 1ms on average, half of them below 0.256ms, 99 % below 4.1ms, "
        "the longest over 4.2s"
    )
    assert json.loads(show.as_json([one], True))["associations"][0]["unread_waits"]["counts"] == list(counts)
    (one,) = diag.associations(with_waits(bytes(17 * 8))) or ()
    assert show.text([one]).endswith("\n  unread: no message was read yet")
    assert diag.associations(with_waits(packed[:-1])) == (recorded(),)


def test_structures_that_have_grown_are_read() -> None:
    one = recorded()
    parts = dict(
        netlink.attributes(
            dict(netlink.attributes(list(netlink.messages(DUMPED))[1].payload[72:]))[diag.PATHS]
        )
    )
    (grown,) = diag.associations(changed(assoc=parts[1] + b"\xff" * 8, path=parts[2] + b"\xff" * 16)) or ()
    assert grown == replace(one, paths=(one.paths[1], one.paths[1]))


def test_shorter_structures_are_none() -> None:
    (one,) = diag.associations(changed(path=b"\x02\x00")) or ()
    assert one.paths == ()
    assert diag.associations(changed(assoc=b"")) == ()


def test_a_stock_kernel_is_told_by_its_answer() -> None:
    """By either list: hundreds of addresses of an association end its dump behind the endpoint's message."""
    for kind in (diag.LOCALS, diag.PEERS):
        addresses = bytes(72) + netlink.attribute(kind, bytes(128))
        assert diag.associations([netlink.Message(20, addresses)]) is None
    assert diag.associations([]) == ()


def test_later_states_and_reasons_are_numbers() -> None:
    data = bytearray(diag.PATH.size)
    data[0:4] = b"\x02\x00\x09\x63"
    one = diag.path(bytes(data))
    assert one is not None
    assert (one.state, one.reason) == ("9", "99")


def test_times_that_have_not_come_are_none() -> None:
    data = bytearray(diag.PATH.size)
    data[0] = 2
    data[56:72] = b"\xff" * 16
    one = diag.path(bytes(data))
    assert one is not None
    assert (one.state_ms, one.heard_ms, one.sent_ms, one.srtt_us) == (0, None, None, None)


def test_addresses() -> None:
    link_local = bytes.fromhex("fe80000000000000000000000000000a")
    assert diag.address(10, link_local, 3) == "fe80::a%3"
    assert diag.address(2, bytes([10, 1, 0, 2]) + bytes(12)) == "10.1.0.2"
    assert diag.address(2, bytes(16)) is None


def test_the_request_is_that_of_inet_diag() -> None:
    first, second = diag.requests()
    (message,) = netlink.messages(first)
    assert (message.kind, message.payload[:2], second[16:18]) == (20, bytes([2, 132]), bytes([10, 132]))
    assert list(netlink.attributes(message.payload[56:])) == [(diag.PATHS, bytes(24))]


def test_the_kernel_is_asked_for_what_is_wanted() -> None:
    def filter_of(*words: str) -> tuple[object, ...]:
        given = selection.options("paths", "").parse_args(words)
        (message,) = netlink.messages(diag.request(2, selection.asked(given)))
        return diag.FILTER.unpack(dict(netlink.attributes(message.payload[56:]))[diag.PATHS])

    assert filter_of() == (0, 0, 0, bytes(16))
    assert filter_of("--port", "5000") == (0, 5000, 0, bytes(16))
    assert filter_of("--state", "active", "--state", "inactive")[0] == 1 << 2 | 1 << 0
    assert filter_of("--addr", "10.1.0.2") == (0, 0, 2, bytes([10, 1, 0, 2]) + bytes(12))
    assert filter_of("--addr", "fe80::a%2") == filter_of("--addr", "fe80::a")
    assert filter_of("--addr", "fe80::a")[2:] == (10, bytes.fromhex("fe80000000000000000000000000000a"))
    assert filter_of("--addr", "10.1.0.2", "--addr", "10.2.0.2") == (0, 0, 0, bytes(16))


def test_what_is_there_twice_is_shown_once_as_it_was_last() -> None:
    answers = list(netlink.messages(DUMPED))
    later = changed(assoc=diag.ASSOC.pack(3, 2, 7, *(0,) * 7))
    found = diag.associations([*answers, *later])
    assert found is not None
    assert [(one.assoc_id, one.outstanding) for one in found] == [(3, 7)]


def test_what_the_kernel_refuses_is_raised() -> None:
    with pytest.raises(OSError, match=os.strerror(errno.ENOENT)):
        netlink.failure(netlink.Message(netlink.ERROR, (-errno.ENOENT).to_bytes(4, "little", signed=True)))
    netlink.failure(netlink.Message(netlink.DONE, bytes(4)))


def test_a_group_is_found_by_its_name() -> None:
    name, number = netlink.attribute(1, b"state\0"), netlink.attribute(2, (9).to_bytes(4, "little"))
    groups = netlink.attribute(netlink.GROUPS, netlink.attribute(1, name + number))
    answer = bytes(4) + netlink.attribute(1, b"\x1c\0") + groups
    assert netlink.group_of(answer, "state") == 9
    assert netlink.group_of(answer, "other") is None


def test_a_stock_kernel_tells_states() -> None:
    (one,) = stock.associations(ASSOCS, REMADDR)
    assert (one.assoc_id, one.local_port, one.peer_port, one.state) == (17, 42100, 5000, "established")
    assert [(p.address, p.state, p.marks) for p in one.paths] == [
        ("10.1.0.2", "inactive", ("primary",)),
        ("fd00::2", "unconfirmed", ()),
    ]
    assert stock.associations("", "") == ()
    assert stock.usual("fd00:0000:0000:0000:0000:0000:0000:0002") == "fd00::2"
    assert stock.associations(ASSOCS, "")[0].paths[0].state == "unknown"


def test_text_is_aligned() -> None:
    lines = show.text([recorded()]).splitlines()
    assert lines[0] == (
        "association 3, port 57241 to 5000, established: outstanding 0, queued 0, "
        "windows 106.5k here, 106.5k there, unread 0, errors 0/10"
    )
    assert lines[1].index("state") == lines[2].index("potentially") == lines[3].index("active")
    assert lines[1].index("why") == lines[2].index("t3-rtx 1") == lines[3].index("heartbeat-ack")
    assert len(lines) == 4


def test_text_tells_by_which_path_data_goes() -> None:
    """With CMT new data may take both; only the second one carries it."""
    one = recorded()
    marks = (("primary", "active"), ("active", "retransmission"))
    counts = (0, 12345)
    shared = replace(
        one,
        paths=tuple(
            replace(path, marks=mark, out_chunks=count)
            for path, mark, count in zip(one.paths, marks, counts, strict=True)
        ),
    )
    heading, *rows = (line.split() for line in show.text([shared]).splitlines()[1:])
    at = heading.index("use"), heading.index("data")
    assert [tuple(row[n] for n in at) for row in rows] == [("PA", "0"), ("AR", "12.3k")]


def test_text_says_how_many_more_there_are() -> None:
    assert show.text([replace(recorded(), path_count=502)]).splitlines()[-1] == "  500 more"
    assert show.text([]) == "no associations"
    assert show.text([replace(recorded(), paths=())]).splitlines()[-1] == "  2 more"


def test_text_of_a_stock_kernel_has_what_is_known() -> None:
    lines = show.text(stock.associations(ASSOCS, REMADDR)).splitlines()
    assert lines == [
        "association 17, port 42100 to 5000, established",
        "  path      use  state",
        "  10.1.0.2  P    inactive",
        "  fd00::2   -    unconfirmed",
    ]


@pytest.mark.parametrize(
    ("ms", "text"),
    [(None, "-"), (0, "0ms"), (999, "999ms"), (1000, "1.0s"), (59999, "60.0s"), (119 * 60000, "119m")],
)
def test_durations(ms: int | None, text: str) -> None:
    assert show.duration(ms) == text


@pytest.mark.parametrize(
    ("us", "text"),
    [(None, "-"), (43, "0.043ms"), (12345, "12.3ms"), (999_400, "999ms"), (1_180_000, "1.2s")],
)
def test_round_trips(us: int | None, text: str) -> None:
    assert show.microseconds(us) == text


@pytest.mark.parametrize(
    ("t3", "hb", "reason", "text"),
    [(1, 0, "t3-rtx", "t3-rtx 1"), (1, 4, "heartbeat", "t3-rtx 1, heartbeat 4"), (0, 0, None, "-")],
)
def test_why(t3: int, hb: int, reason: str | None, text: str) -> None:
    assert show.why(Path("10.1.0.2", "active", reason=reason, struck_t3=t3, struck_heartbeat=hb)) == text


def test_json_has_the_documented_fields() -> None:
    """Those of the manual page; a field that goes raises FORMAT."""
    content = json.loads(show.as_json([recorded()], True))
    page = (File(status.__file__).parent / "man" / "sctp-multipath.8").read_text()
    (one,) = content["associations"]
    assert (content["format"], content["complete"]) == (1, True)
    for name in {*content, *one, *one["paths"][0]}:
        assert re.search(rf"^\.(It )?Va {name}\b", page, re.MULTILINE), name


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        *(("fe80::1%1", True), ("fe80::1", True), ("fe80::1%3", False), ("10.1.0.1", True)),
        *(("fe80::1%lo", True), ("fe80::9%lo", True), ("fe80::9%3", False)),
    ],
)
def test_an_address_is_taken_as_it_is_shown(asked: str, found: bool) -> None:
    """A scope by the number or the name of its interface: that of lo is 1."""
    source = "10.1.0.1" if asked[0] == "1" else "fe80::9"
    path = replace(recorded().paths[0], address="fe80::1%1", source=source)
    assert selection.wanted(path, selection.options("paths", "").parse_args(["--addr", asked])) is found


@pytest.mark.parametrize(
    ("words", "paths"),
    [
        ([], 2),
        (["--port", "5000"], 2),
        (["--port", "57241"], 2),
        (["--port", "1"], 0),
        (["--addr", "10.1.0.2"], 1),
        (["--addr", "10.2.0.1"], 1),
        (["--addr", "10.2.0.1", "--addr", "10.1.0.1"], 2),
        (["--state", "active"], 1),
        (["--state", "active", "--state", "potentially-failed"], 2),
        (["--state", "inactive"], 0),
    ],
)
def test_filters(
    words: list[str], paths: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "look", lambda *_: ((recorded(),), ""))
    assert cli.main(["paths", "--json", *words]) == 0
    found = json.loads(capsys.readouterr().out)["associations"]
    assert sum(len(one["paths"]) for one in found) == paths


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["paths", "--port", "0"], "got '0', expected a port from 1 to 65535"),
        (["paths", "--addr", "10.1"], "got '10.1', expected an IPv4 or IPv6 address"),
        (["top", "--addr", "fe80::1%no"], "got 'fe80::1%no', expected an interface of this host after %"),
        (["events", "--state", "up"], "invalid choice: 'up'"),
    ],
)
def test_bad_input_is_one_line(words: list[str], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    assert ended.value.code == 2
    assert line in capsys.readouterr().err.splitlines()[-1]


def test_an_unknown_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bottom"]) == 2
    assert (
        capsys.readouterr().err
        == "sctp-multipath: got bottom, expected one of paths, top, events, exporter\n"
    )


def test_a_host_without_sctp(tmp_path: File) -> None:
    assert selection.look(proc=tmp_path) == ((), "")


def test_a_kernel_that_says_less(
    tmp_path: File, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "net" / "sctp"
    folder.mkdir(parents=True)
    (folder / "assocs").write_text(ASSOCS)
    (folder / "remaddr").write_text(REMADDR)
    monkeypatch.setattr(netlink, "dump", lambda *_: iter([netlink.Message(20, bytes(72) + PEERS)]))
    found, missing = selection.look(proc=tmp_path)
    assert (len(found), missing) == (1, "the loaded SCTP is without the multipath patches")
    monkeypatch.setattr(cli, "look", lambda *_: (found, missing))
    assert cli.main(["paths", "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["complete"] is False
    assert captured.err.count("\n") == 1


PEERS = netlink.attribute(diag.PEERS, bytes(128))


def an_event() -> bytes:
    about = diag.EVENT.pack(5_000_000_000, 3, 57241, 5000, 2)
    message = list(netlink.messages(DUMPED))[1]
    nested = dict(netlink.attributes(message.payload[72:]))[diag.PATHS]
    path = next(data for kind, data in netlink.attributes(nested) if kind == diag.A_PATH)
    parts = netlink.attribute(diag.A_EVENT, about) + netlink.attribute(diag.A_PATH, path)
    payload = netlink.GENERIC_HEADER.pack(1, 1, 0) + parts
    return netlink.HEADER.pack(netlink.HEADER.size + len(payload), 28, 0, 0, 0) + payload


def test_an_event_is_read() -> None:
    (message,) = netlink.messages(an_event())
    assert diag.event(message.payload) == Event(5_000_000_000, 3, 57241, 5000, "active", recorded().paths[0])
    for command, kind in ((2, "added"), (3, "removed")):
        told = diag.event(bytes([command]) + message.payload[1:])
        assert told is not None
        assert told.kind == kind
    for command in (0, 4):
        assert diag.event(bytes([command]) + message.payload[1:]) is None
    assert diag.event(message.payload[:40]) is None


def test_events_are_lines_and_losses_are_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "look", lambda *_: ((recorded(),), ""))
    answers = iter([an_event(), OSError(errno.ENOBUFS, ""), an_event(), OSError(errno.EIO, "")])

    def receive(_: int) -> bytes:
        answer = next(answers)
        if isinstance(answer, OSError):
            raise answer
        return answer

    with pytest.raises(OSError, match="5"):
        cli.follow(receive, selection.with_json(selection.options("events", "")).parse_args(["--json"]))
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["event"] for one in told] == ["state", "lost", "state"]
    assert (told[0]["old_state"], told[0]["path"]["state"]) == ("active", "potentially-failed")
    assert told[1]["associations"][0]["paths"][1]["state"] == "active"


def test_an_event_as_text() -> None:
    (message,) = netlink.messages(an_event())
    one = diag.event(message.payload)
    assert one is not None
    assert show.event_text(one, 0).endswith(
        "association 3, port 57241 to 5000: 10.1.0.2 from 10.1.0.1: active -> potentially-failed: "
        "t3-rtx 1; errors 2/5, rto 4.0s, use P"
    )
    gone = replace(one, kind="removed", path=replace(one.path, reason="admin", struck_t3=0))
    assert "10.1.0.1: removed, potentially-failed: admin; " in show.event_text(gone, 0)
    assert json.loads(show.event_json(gone, 0))["event"] == "removed"
