# SPDX-License-Identifier: GPL-2.0
"""Captures become scenarios: formats, link types, what one end or one direction tells, what is refused."""

from __future__ import annotations

import random
import tomllib
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sctplab.errors import LabError
from sctplab.replay.command import from_pcap
from sctplab.replay.outages import fewest
from tests.capture_builder import (
    DELAY_S,
    LINKS,
    TAGS,
    Association,
    Frames,
    frames,
    heartbeat,
    packet,
    pcap,
    pcapng,
    usual,
    written,
)
from tests.lab_run import lab

Tree = dict[str, Any]


def scenario(folder: Path, *captures: Path, wanted: str | None = None) -> Tree:
    out = folder / "out.toml"
    from_pcap(captures, wanted, out)
    return tomllib.loads(out.read_text())


def at_ends(folder: Path, made: Association, *hosts: int, **how: Any) -> list[Path]:
    return [written(folder, f"host{host}.pcap", pcap(frames(made.at(host)), **how)) for host in hosts]


def delays(tree: Tree) -> list[float]:
    return [path[way]["delay_ms"] for path in tree["topology"]["paths"] for way in ("forward", "reverse")]


def expected(*, one_way: bool) -> list[float]:
    each = [[1000 * way for way in path] for path in DELAY_S.values()]
    return [way if one_way else sum(path) / 2 for path in each for way in path]


def assert_usual(tree: Tree, one_way: bool, cut_s: float = 4.0, near_s: float = 0.010) -> None:
    assert delays(tree) == pytest.approx(expected(one_way=one_way), rel=0.01)
    assert [(one["action"], one["path"]) for one in tree["events"]] == [("cut", "path1")]
    assert tree["events"][0]["at_s"] == pytest.approx(cut_s, abs=near_s)
    flow = tree["flows"][0]
    assert (flow["message_b"], flow["interval_ms"], flow["nodelay"]) == (
        100,
        pytest.approx(20, rel=0.01),
        True,
    )


def test_both_ends_tell_each_way(tmp_path: Path) -> None:
    tree = scenario(tmp_path, *at_ends(tmp_path, usual(), 1, 2))
    assert_usual(tree, one_way=True)
    assert tree["flows"][0]["duration_s"] == pytest.approx(10, rel=0.01)
    assert set(tree["variants"]) == {"stock", "signalling", "bulk", "cmt", "lab"}


@pytest.mark.parametrize("host", [1, 2])
def test_one_end_tells_round_trips(tmp_path: Path, host: int) -> None:
    assert_usual(scenario(tmp_path, *at_ends(tmp_path, usual(), host)), one_way=False, near_s=0.030)


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
def test_link_types(tmp_path: Path, link: str, family: str) -> None:
    number = LINKS[link][0]
    rows = frames(usual().at(1), link, family)
    tree = scenario(tmp_path, written(tmp_path, "a.pcap", pcap(rows, number)))
    assert_usual(tree, one_way=False, near_s=0.030)
    assert {path.get("family", "ipv4") for path in tree["topology"]["paths"]} == {family}


def test_extension_headers(tmp_path: Path) -> None:
    rows = frames(usual().at(1), "ethernet", "ipv6", True)
    assert_usual(scenario(tmp_path, written(tmp_path, "a.pcap", pcap(rows))), one_way=False, near_s=0.030)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("nano", [True, False])
@pytest.mark.parametrize("zipped", [True, False])
def test_pcap_formats(tmp_path: Path, order: str, nano: bool, zipped: bool) -> None:
    content = pcap(frames(usual().at(1)), order=order, nano=nano)
    assert_usual(
        scenario(tmp_path, written(tmp_path, "a.pcap", content, zipped)), one_way=False, near_s=0.030
    )


@pytest.mark.parametrize("order", ["<", ">"])
def test_an_interface_per_path_in_one_file(tmp_path: Path, order: str) -> None:
    """pcapng with two link types and two resolutions."""
    rows = usual().at(1)
    first = frames([row for row in rows if row[1].path == 1])
    second = frames([row for row in rows if row[1].path == 2], "raw")
    path = written(tmp_path, "a.pcapng", pcapng([(1, first), (101, second)], order))
    assert_usual(scenario(tmp_path, path), one_way=False, near_s=0.030)


@pytest.mark.parametrize("snap", [68, 96])
def test_short_snapshots(tmp_path: Path, snap: int) -> None:
    captures = at_ends(tmp_path, usual(), 1, 2, snap=snap)
    assert_usual(scenario(tmp_path, *captures), one_way=True)


def test_files_one_after_the_other(tmp_path: Path) -> None:
    """As tcpdump -C writes them; the last has no answers that tell at which end it was captured."""
    rows = usual().at(2)
    parts = [rows[:200], rows[200:500], [row for row in rows[500:] if row[1].forward]]
    captures = [written(tmp_path, f"a.pcap{i}", pcap(frames(part))) for i, part in enumerate(parts)]
    from_pcap(captures, None, tmp_path / "out.toml")
    text = (tmp_path / "out.toml").read_text()
    assert "a.pcap0 (host2), a.pcap1 (host2), a.pcap2 (host2)" in text


def test_a_file_cut_off_in_a_packet(tmp_path: Path) -> None:
    path = at_ends(tmp_path, usual(), 1)[0]
    path.write_bytes(path.read_bytes()[:-7])
    assert_usual(scenario(tmp_path, path), one_way=False, near_s=0.030)


def test_an_association_older_than_its_capture(tmp_path: Path) -> None:
    """The replay sets one up, 5 s before."""
    rows = [row for row in frames(usual().at(1)) if row[0] > 1.5]
    tree = scenario(tmp_path, written(tmp_path, "a.pcap", pcap(rows)))
    assert_usual(tree, one_way=False, cut_s=5 + 4 - rows[0][0], near_s=0.030)
    assert tree["flows"][0]["duration_s"] == pytest.approx(5 + 10.2 - rows[0][0], abs=0.05)


def test_one_direction_only(tmp_path: Path) -> None:
    """INIT and COOKIE ECHO are a round trip apart; of the other path nothing is known."""
    rows = [row for row in usual(cut_s=None).at(1) if row[1].forward]
    path = written(tmp_path, "a.pcap", pcap(frames(rows)))
    tree = scenario(tmp_path, path)
    assert delays(tree)[:2] == pytest.approx([20, 20], rel=0.01)
    assert "events" not in tree
    text = (tmp_path / "out.toml").read_text()
    assert "assumed as of the other path: no request was answered on this one" in text
    bare = [row for row in rows if row[0] > 1]
    tree = scenario(tmp_path, written(tmp_path, "a.pcap", pcap(frames(bare))))
    assert delays(tree) == [10] * 4
    assert "assumed: no request was answered in the capture" in (tmp_path / "out.toml").read_text()


def test_clocks_that_differ(tmp_path: Path) -> None:
    """3 s ahead: both ways are then taken to be as long on the path with the shortest."""
    made = usual()
    ahead = [(time_s + 3, one) for time_s, one in made.at(2)]
    captures = [*at_ends(tmp_path, made, 1), written(tmp_path, "host2.pcap", pcap(frames(ahead)))]
    tree = scenario(tmp_path, *captures)
    found = delays(tree)
    assert [found[0] + found[1], found[2] + found[3]] == pytest.approx([40, 70], rel=0.01)
    assert tree["events"][0]["at_s"] == pytest.approx(4.0, abs=0.010)
    said = "host2's clock is 2995.000 ms ahead if both ways of the shortest path are as long"
    assert said in (tmp_path / "out.toml").read_text()


def test_a_packet_on_two_interfaces_counts_once(tmp_path: Path) -> None:
    """As tcpdump -i any has it with a bond: shortly one after the other."""
    rows: Frames = []
    for time_s, one in frames(usual().at(1)):
        rows += [(time_s, one), (time_s + 20e-6, one)]
    tree = scenario(tmp_path, written(tmp_path, "a.pcap", pcap(rows)))
    assert_usual(tree, one_way=False, near_s=0.030)
    assert all(path["forward"]["loss_pct"] == 0 for path in tree["topology"]["paths"])


def test_a_path_that_comes_back(tmp_path: Path) -> None:
    made = usual(4.0, 7.0)
    for i in range(8):  # HEARTBEATs to the path that failed
        asked = packet(True, heartbeat(50 + i)), packet(False, heartbeat(50 + i, 5))
        made.ask(5.05 + i * 0.5, True, 1, *asked)
    tree = scenario(tmp_path, *at_ends(tmp_path, made, 1, 2))
    assert [one["action"] for one in tree["events"]] == ["cut", "heal"]
    assert tree["events"][1]["at_s"] == pytest.approx(6.8, abs=0.01)  # between 6.55 and 7.05
    assert "between 6.55 and 7.05" in (tmp_path / "out.toml").read_text()


def test_packets_that_overtake(tmp_path: Path) -> None:
    """They tell nothing of the delay of the others."""
    crowd = Association()
    crowd.set_up()
    crowd.messages(0.2, 2000, 0.002)
    crowd.seen = [
        replace(one, arrived_s=one.sent_s + 0.001) if one.forward and number % 20 == 7 else one
        for number, one in enumerate(crowd.seen)
    ]
    forward = scenario(tmp_path, *at_ends(tmp_path, crowd, 1, 2))["topology"]["paths"][0]["forward"]
    assert forward["delay_ms"] == pytest.approx(15, rel=0.01)
    assert forward["reorder_pct"] == pytest.approx(5, rel=0.3)


@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
def test_sctp_in_udp(tmp_path: Path, family: str) -> None:
    rows = frames(usual().at(1), family=family)
    at, size = (23, 34) if family == "ipv4" else (20, 54)
    udp = [
        (t, one[:at] + b"\x11" + one[at + 1 : size] + b"\x26\xab" * 2 + bytes(4) + one[size:])
        for t, one in rows
    ]
    grown = [(t, lengthened(one, family)) for t, one in udp]
    tree = scenario(tmp_path, written(tmp_path, "a.pcap", pcap(grown)))
    assert_usual(tree, one_way=False, near_s=0.030)
    assert "# It was in UDP (RFC 6951)" in (tmp_path / "out.toml").read_text()


def lengthened(frame: bytes, family: str) -> bytes:
    """An IP packet that is 8 bytes longer."""
    at = 16 if family == "ipv4" else 18
    return frame[:at] + (int.from_bytes(frame[at : at + 2]) + 8).to_bytes(2) + frame[at + 2 :]


def test_messages_at_odd_times(tmp_path: Path) -> None:
    source = random.Random(7)
    times = sorted(0.2 + 20 * source.random() for _ in range(60))
    made = Association()
    made.set_up()
    made.messages(0, 0, 0, times)
    flow = scenario(tmp_path, *at_ends(tmp_path, made, 1))["flows"][0]
    assert flow["send_at_s"] == pytest.approx([t - times[0] for t in times], abs=0.001)


def test_timers_that_were_seen(tmp_path: Path) -> None:
    from_pcap(at_ends(tmp_path, usual(), 1, 2), None, tmp_path / "out.toml")
    assert "rto_min: 1000: T3 first expired after 1000 ms" in (tmp_path / "out.toml").read_text()
    assert "failover_s,1.0" in (tmp_path / "out-seen.csv").read_text()


def two_associations() -> Frames:
    made = usual()
    others = []
    for time_s, one in made.at(1):
        ports = (one.sctp[:4].replace((40000).to_bytes(2), (40001).to_bytes(2)),)
        others.append((time_s + 0.001, replace(one, sctp=ports[0] + one.sctp[4:])))
    return sorted(frames(made.at(1)) + frames(others), key=lambda row: row[0])


def test_several_associations_are_listed(tmp_path: Path) -> None:
    path = written(tmp_path, "a.pcap", pcap(two_associations()))
    with pytest.raises(LabError) as found:
        scenario(tmp_path, path)
    text = str(found.value)
    assert text.startswith("2 associations; choose one with --assoc NAME: 40000-5000/11111111 (10.1.1.1 to ")
    assert "40001-5000/11111111" in text and "\n" not in text
    for wanted in ("40001-5000", "5000-40001", f"40001-5000/{TAGS[0]:08x}"):
        assert_usual(scenario(tmp_path, path, wanted=wanted), one_way=False, near_s=0.030)
    with pytest.raises(LabError, match="--assoc: got '1-2', expected one of 40000-5000/11111111"):
        scenario(tmp_path, path, wanted="1-2")


UDP = bytes(12) + b"\x08\x00" + b"\x45" + bytes(8) + b"\x11" + bytes(30)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "a.pcap: empty; expected a pcap or pcapng file"),
        (b"hello, world", "a.pcap: not a capture; expected a pcap or pcapng file"),
        (pcap([]), "a.pcap: no SCTP; capture with: tcpdump -i any -w FILE sctp"),
        (pcap([(0, UDP)]), "a.pcap: no SCTP; capture"),
        (pcap([(0, bytes(60))], link=147), "a.pcap: link type 147; expected Ethernet, raw IP, Linux cooked"),
        (pcap([]) + b"\xff" * 16, "a.pcap: damaged: 4294967295 bytes for one packet"),
        (pcapng([])[:-4] + b"\x1c\0\0\0\x06\0\0\0\x20\0\0\0" + bytes(24), "a packet of an interface that"),
        (pcap(frames([r for r in usual().at(1) if r[0] < 0.05])), "a.pcap: no DATA in the association"),
        (b"\x1f\x8b" + bytes(30), "a.pcap: cannot be read: "),
    ],
)
def test_bad_files_are_refused_in_one_line(tmp_path: Path, content: bytes, words: str) -> None:
    path = written(tmp_path, "a.pcap", content)
    done = lab("from-pcap", str(path), "--out", str(tmp_path / "o.toml"))
    assert done.returncode == 2 and done.stdout == ""
    assert words in done.stderr and done.stderr.count("\n") == 1
    assert not (tmp_path / "o.toml").exists()


def test_other_refusals(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"none.pcap: cannot be read: No such file"):
        scenario(tmp_path, tmp_path / "none.pcap")
    path = at_ends(tmp_path, usual(), 1)[0]
    copy = written(tmp_path, "copy.pcap", path.read_bytes())
    with pytest.raises(LabError, match="the same packets at the same end; give one capture per end"):
        scenario(tmp_path, path, copy)
    with pytest.raises(LabError, match=r"--out: got 'a b.toml', expected a name of letters"):
        from_pcap([path], None, tmp_path / "a b.toml")


def test_a_capture_that_no_scenario_can_be_leaves_the_old_one(tmp_path: Path) -> None:
    rows = frames(usual().at(1))
    half = len(rows) // 2
    path = written(
        tmp_path, "host1.pcap", pcap(rows[:half] + [(time_s + 90000, one) for time_s, one in rows[half:]])
    )
    out = tmp_path / "out.toml"
    out.write_text("mine")
    with pytest.raises(LabError, match=r"what is seen in .*host1.pcap: .*duration_s: got 9"):
        from_pcap([path], None, out)
    assert out.read_text() == "mine"


def test_damaged_captures_end_in_a_scenario_or_one_line(tmp_path: Path) -> None:
    source = random.Random(1)
    good = pcap(frames(usual().at(1)))[:40_000]
    for _ in range(150):
        content = bytearray(good)
        for _ in range(source.choice((1, 10, 200))):
            content[source.randrange(24, len(content))] = source.randrange(256)
        path = written(tmp_path, "a.pcap", bytes(content))
        try:
            scenario(tmp_path, path)
        except LabError as error:
            assert "\n" not in str(error)


def test_a_long_capture_is_not_held_in_memory(tmp_path: Path) -> None:
    made = Association()
    made.set_up()
    made.messages(0.2, 15_000, 0.005)
    path = written(tmp_path, "a.pcap", pcap(frames(made.at(1))))
    del made
    tracemalloc.start()
    try:
        scenario(tmp_path, path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert path.stat().st_size > 3_000_000 and peak < 8_000_000, peak


@pytest.mark.parametrize(
    ("lost", "asked", "count"), [(0, 1000, 2), (1, 10_000, 3), (180, 4500, 5), (9, 10, 66)]
)
def test_losses_in_a_row_that_are_no_chance(lost: int, asked: int, count: int) -> None:
    assert fewest(lost, asked) == count
