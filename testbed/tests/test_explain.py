# SPDX-License-Identifier: GPL-2.0
"""Why deliveries waited: each cause from captures that show it, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from sctplab.errors import LabError
from sctplab.replay import explain, picture
from sctplab.replay.explain import Wait
from sctplab.spec.model import Direction, Event, Flow, RunSpec, Topology
from sctplab.spec.model import Path as LinkPath
from sctplab.spec.schema import plain
from tests.capture_builder import (
    DELAY_S,
    START_S,
    Association,
    Seen,
    data,
    frames,
    packet,
    pcap,
    sack,
    written,
)
from tests.lab_run import lab, small_spec

CUT = (Event(4.0, "cut", "path1"),)


def spec_of(*events: Event, kind: str = "sctp") -> RunSpec:
    paths = tuple(
        LinkPath(f"path{number}", *(Direction(10, 1000 * delay) for delay in each))
        for number, each in DELAY_S.items()
    )
    return small_spec(topology=Topology(paths), flows=(Flow("main", kind, duration_s=10),), events=events)


def record(folder: Path, made: Association, spec: RunSpec) -> Path:
    """As a run with --pcap leaves it: the record, and a capture per host and path."""
    captures = folder / "pcap" / "run"
    captures.mkdir(parents=True)
    for host in (1, 2):
        for path in DELAY_S:
            rows = [row for row in made.at(host) if row[1].path == path]
            written(captures, f"host{host}.path{path}.pcap", pcap(frames(rows)))
    out = folder / "records" / "run.json"
    out.parent.mkdir()
    out.write_text(json.dumps({"format": 1, "spec": plain(spec), "status": "ok", "start_t": float(START_S)}))
    return out


def waits(folder: Path, made: Association, *events: Event) -> list[Wait]:
    spec = spec_of(*events)
    path = record(folder, made, spec)
    trace = explain.read(spec, path.parent.parent / "pcap" / "run")
    return explain.waits(trace, START_S * 10**9)


def messages(*times: float, cut_s: float | None = None) -> Association:
    made = Association(cut_s)
    made.set_up()
    made.messages(0.2, 500, 0.02, times)
    return made


@pytest.mark.parametrize(("events", "cause"), [(CUT, "cut"), ((), "T3")])
def test_what_was_lost_waits_for_the_timer(tmp_path: Path, events: tuple[Event, ...], cause: str) -> None:
    """In an outage of the scenario, or by chance."""
    found = waits(tmp_path, messages(cut_s=4.0), *events)
    assert [one.cause for one in found] == [cause]
    assert found[0].lasted_s == pytest.approx(1.05, abs=0.05)
    assert found[0].known_s == pytest.approx(found[0].lasted_s)
    assert found[0].parts["path"] == pytest.approx(40e6, rel=0.01)


def test_an_outage_that_is_over_loses_nothing(tmp_path: Path) -> None:
    events = (Event(1.0, "cut", "path1"), Event(3.0, "heal", "path1"))
    assert [one.cause for one in waits(tmp_path, messages(cut_s=4.0), *events)] == ["T3"]


def test_the_program_wrote_nothing(tmp_path: Path) -> None:
    found = waits(tmp_path, messages(*(0.2, 0.25, 1.0, 1.05, 1.07)))
    assert [(one.cause, one.lasted_s) for one in found] == [("program", pytest.approx(0.75, abs=0.001))]


@pytest.mark.parametrize(("window", "cause"), [(100_000, "window"), (500, "receive buffer")])
def test_a_sack_made_room(tmp_path: Path, window: int, cause: str) -> None:
    made = Association()
    made.set_up()
    for number in (0, 1):
        made.send(0.2, True, 1, packet(True, data(number)))
    back = made.send(0.4, False, 1, packet(False, sack(0, window)))
    assert back
    made.send(back, True, 1, packet(True, data(2)))
    assert [one.cause for one in waits(tmp_path, made)] == [cause]


def test_others_that_arrived_had_to_wait(tmp_path: Path) -> None:
    made = messages(0.2)
    made.seen.append(Seen(0.21, 0.51, True, 2, packet(True, data(1))))
    made.seen.append(Seen(0.22, 0.24, True, 1, packet(True, data(2))))
    found = waits(tmp_path, made)
    assert [(one.cause, one.path) for one in found] == [("head-of-line", "path2")]


def test_what_was_sent_before_a_retransmission_is_not_ahead_of_it(tmp_path: Path) -> None:
    made = messages(0.2)
    made.seen.append(Seen(0.21, None, True, 1, packet(True, data(1))))
    made.seen.append(Seen(0.22, 0.24, True, 1, packet(True, data(2))))
    made.seen.append(Seen(0.25, 0.55, True, 1, packet(True, data(1))))
    assert "head-of-line" not in waits(tmp_path, made)[0].parts


def test_a_queue_is_the_paths(tmp_path: Path) -> None:
    made = messages(0.2)
    made.seen.append(Seen(0.21, 0.51, True, 1, packet(True, data(1))))
    assert [one.cause for one in waits(tmp_path, made)] == ["path"]


def test_the_command(tmp_path: Path) -> None:
    done = lab("explain", str(record(tmp_path, messages(cut_s=4.0), spec_of(*CUT))))
    assert done.returncode == 0, done.stderr
    assert ": 1 waits of more than two round trips, 1.0" in done.stdout
    assert done.stdout.endswith("accounted for: 100.0 % of the time\n")


def test_the_plot(tmp_path: Path) -> None:
    """Outstanding data by path, retransmissions, waits by their cause; the same file each time."""
    path, plot = record(tmp_path, messages(cut_s=4.0), spec_of(*CUT)), tmp_path / "cut.svg"
    done = lab("explain", str(path), "--plot", str(plot))
    assert done.returncode == 0, done.stderr
    svg = plot.read_text()
    for text in ("path1", "path2", "Outstanding (kB)", "outstanding", "sent again: T3", "cut"):
        assert f">{text}</text>" in svg
    picture.write(explain.tell(path, None), plot)
    assert plot.read_text() == svg


def test_runs_without_captures_or_of_another_kind_have_no_picture(tmp_path: Path) -> None:
    path = record(tmp_path, messages(cut_s=4.0), spec_of(*CUT))
    drawn = picture.of_run(path)
    assert drawn and len(drawn.axes) == len(DELAY_S)
    assert picture.of_run(path.with_name("other.json")) is None
    path.write_text(json.dumps({"format": 1, "spec": plain(spec_of(kind="tcp"))}))
    assert picture.of_run(path) is None


def test_what_is_outstanding(tmp_path: Path) -> None:
    """A chunk counts for the path it was last sent over, until it is acknowledged."""
    made = Association()
    made.set_up()
    for number in (0, 1):
        made.send(0.2, True, 1, packet(True, data(number)))
    made.send(0.3, True, 2, packet(True, data(1)))
    made.send(0.4, False, 1, packet(False, sack(1)))
    told = explain.tell(record(tmp_path, made, spec_of()), None)
    size = told.trace.outstanding["path1"][0][1]
    assert [value for _, value in told.trace.outstanding["path1"]] == [size, 2 * size, size, 0]
    assert [value for _, value in told.trace.outstanding["path2"]] == [size, 0]


def test_a_long_run_is_drawn_by_its_peaks() -> None:
    rows = [(second / 10, float(second % 7)) for second in range(100)]
    peaks = [row for row in picture.thinned(rows, 1.0)[:-1] if row[1] < 6]
    assert len(picture.thinned(rows, 1.0)) == 11 and not peaks
    assert picture.thinned(rows, 1.0)[-1] == rows[-1]
    assert picture.at(rows, [0.05, 0.65]) == [0.0, 6.0]


def test_refusals(tmp_path: Path) -> None:
    path = record(tmp_path, messages(), spec_of())
    done = lab("explain", str(path), "--plot", "run.png")
    assert done.returncode == 2
    assert "--plot: got run.png, expected a name that ends in .svg\n" in done.stderr
    with pytest.raises(LabError, match="cannot be read: No such file"):
        explain.tell(path, tmp_path)
    other = replace(spec_of(), flows=(Flow("main", "tcp", duration_s=10),))
    path.write_text(json.dumps({"format": 1, "spec": plain(other), "status": "ok", "start_t": 1.0}))
    with pytest.raises(LabError, match="a flow of kind tcp; expected sctp"):
        explain.tell(path, None)
    path.write_text(json.dumps({"format": 1, "spec": plain(spec_of()), "status": "crashed"}))
    with pytest.raises(LabError, match="the run did not start"):
        explain.tell(path, None)


def test_what_is_not_known_is_not_accounted_for(tmp_path: Path) -> None:
    """A chunk that leaves while another is sent again: the program or the window may have held it."""
    made = messages(0.2)
    made.seen.append(Seen(0.3, None, True, 1, packet(True, data(1))))
    made.seen.append(Seen(1.3, 1.315, True, 1, packet(True, data(1))))
    made.seen.append(Seen(1.31, 1.33, False, 1, packet(False, sack(0))))
    made.seen.append(Seen(1.5, 1.515, True, 1, packet(True, data(2))))
    found = waits(tmp_path, made)
    assert [one.cause for one in found] == ["T3", "path"]
    assert found[1].known_s == pytest.approx(0.015) and found[1].lasted_s == pytest.approx(0.2)


def test_a_timeout_lets_new_data_go(tmp_path: Path) -> None:
    """New data that leaves together with retransmissions, before any SACK, had waited for the timeout."""
    made = messages(0.2)
    made.seen.append(Seen(0.3, None, True, 1, packet(True, data(1))))
    made.seen.append(Seen(1.3, 1.315, True, 1, packet(True, data(1))))
    made.seen.append(Seen(1.3, 1.42, True, 1, packet(True, data(2))))
    assert "unknown" not in [one.cause for one in waits(tmp_path, made)]
    made.seen[-1] = replace(made.seen[-1], sent_s=1.4)
    trace = explain.read(spec_of(), record(tmp_path / "2", made, spec_of()).parent.parent / "pcap" / "run")
    assert [one.parts.keys() for one in explain.waits(trace, START_S * 10**9)][1] == {"T3", "path"}
