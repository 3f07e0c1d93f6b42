# SPDX-License-Identifier: GPL-2.0
"""Real runs on the stock kernel: every kind of flow and event, limits, interruption, resume."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sctplab.run import runner
from sctplab.spec.model import Event, Flow, HostSettings, Limits, Measure, RunSpec, Topology
from sctplab.spec.schema import plain
from tests.lab_run import environment, lab, small_spec

pytestmark = pytest.mark.kernel
Perform = Callable[[RunSpec], dict[str, Any]]


@pytest.fixture(scope="module")
def bench() -> Iterator[runner.Bench]:
    with runner.bench_for([small_spec(pcap=True)]) as made:
        yield made


@pytest.fixture
def perform(bench: runner.Bench, tmp_path: Path) -> Perform:
    return lambda spec: runner.perform(runner.Job(spec, tmp_path / "record.json", tmp_path / "pcap"), bench)


def test_a_run_fills_its_record(perform: Perform, tmp_path: Path) -> None:
    made = perform(small_spec(pcap=True, measure=Measure(sample_ms=100)))
    assert (made["status"], made["reason"]) == ("ok", "")
    metrics = made["metrics"]
    assert 1 < metrics["goodput_mbit"] < 19 and 0 < metrics["capacity_share"] < 0.5
    assert metrics["wire_mbit.path1"] > metrics["goodput_mbit"] * 0.9
    assert metrics["rtx_ratio"] > 0 and metrics["fast_rtx"] > 0 and metrics["sacks"] > 100
    assert made["sysctls"]["host2"]["net.sctp.rto_min"] == "1000"
    assert made["counters"]["host1"]["SctpActiveEstabs"] == 1
    assert made["paths"][0]["forward"]["drops"] > 0
    assert {"wire_mbit.path1", "goodput", "message_delay"} <= made["series"].keys()
    assert len(list((tmp_path / "pcap").iterdir())) == 8
    assert json.loads((tmp_path / "record.json").read_text()) == made


@pytest.mark.parametrize("kind", ["tcp", "mptcp", "iperf3", "iperf3-sctp"])
def test_other_kinds_of_flow(perform: Perform, kind: str) -> None:
    noise = Flow("noise", kind="udp", background=True, rate_mbit=1, message_b=500)
    made = perform(small_spec(flows=(Flow("main", kind=kind, size_mb=1), noise)))
    assert (made["status"], made["reason"]) == ("ok", "")
    assert 1 < made["metrics"]["goodput_mbit"] < 38
    assert made["deterministic"] == (kind != "iperf3-sctp")
    assert made["flows"][1]["receiver"]["bytes"] > 10000


def ticking(*events: Event, seconds: float = 4) -> RunSpec:
    """A message every 20 ms, with events; rto_min 200 ms."""
    flow = Flow("main", duration_s=seconds, message_b=100, interval_ms=20, nodelay=True, message_log=True)
    settings = {"net.sctp.rto_min": "200", "net.sctp.rto_initial": "200"}
    return small_spec(flows=(flow,), events=events, sysctl=HostSettings(settings, settings))


@pytest.mark.parametrize(
    "event",
    [
        Event(1, "cut", "path1"),
        Event(1, "cut", "path1", direction="forward"),
        Event(1, "carrier-down", "path1", host="host2"),
        Event(1, "carrier-down", "path1"),
        Event(1, "address-del", "path1", host="host2"),
    ],
    ids=lambda event: f"{event.action}-{event.direction}-{event.host}",
)
def test_a_broken_path_is_survived(perform: Perform, event: Event) -> None:
    made = perform(ticking(event))
    assert (made["status"], made["reason"]) == ("ok", "")
    assert 0.2 < made["metrics"]["failover_s"] < 2
    assert made["metrics"]["t3_timeouts"] > 0
    assert [event["t"] for event in made["events"]] == [pytest.approx(1, abs=0.001)]


@pytest.mark.parametrize(
    ("broken", "mended"), [("cut", "heal"), ("carrier-down", "carrier-up"), ("address-del", "address-add")]
)
def test_a_mended_path_works_again(perform: Perform, broken: str, mended: str) -> None:
    """Path 2 carries the middle of the flow only when path 1 comes back; then path 2 is broken for good."""
    host = "host2" if broken == "address-del" else "host1"
    events = [
        Event(1, broken, "path1", host=host),
        Event(3, mended, "path1", host=host),
        Event(6, broken, "path2", host=host),
    ]
    made = perform(ticking(*events, seconds=8))
    assert (made["status"], made["reason"]) == ("ok", "")
    assert made["flows"][0]["receiver"]["messages"] == 400
    # The sender is told that the path is back; its next message, 20 ms later at most, takes it.
    back = [event["t"] for event in made["flows"][0]["path_events"] if event["state"] == "available"]
    assert made["metrics"]["return_s"] == pytest.approx(back[0] - made["start_t"] - 3, abs=0.025)


@pytest.mark.parametrize("primary", ["path1", "path2"])
def test_a_primary_that_loses_packets_is_given_up_by_mistake(perform: Perform, primary: str) -> None:
    """path1 loses most of them; what becomes of an alternate path does not count."""
    spec = ticking(seconds=20)
    first, second = spec.topology.paths
    topology = Topology((replace(first, forward=replace(first.forward, loss_pct=80)), second))
    settings = {**spec.sysctl.host1, "net.sctp.path_max_retrans": "1", "net.sctp.pf_enable": "0"}
    flow = replace(spec.flows[0], primary=primary, hb_interval_ms=200)
    made = perform(replace(spec, topology=topology, flows=(flow,), sysctl=HostSettings(settings, settings)))
    assert (made["status"], made["reason"]) == ("ok", "")
    given_up = [
        event["address"] for event in made["flows"][0]["path_events"] if event["state"] == "unreachable"
    ]
    assert "10.1.2.1" in given_up
    assert made["metrics"]["spurious_failovers"] == (len(given_up) if primary == "path1" else 0)


def test_a_change_of_rate_and_delay_is_felt(perform: Perform) -> None:
    slow = perform(ticking(Event(2, "change", "path1", values={"delay_ms": 60})))
    late = [delay for t, delay in slow["series"]["message_delay"] if t > 2.5]
    assert 0.06 < min(late) < 0.061


def test_a_setting_the_kernel_lacks_fails_the_run(perform: Perform) -> None:
    made = perform(small_spec(sysctl=HostSettings({"net.sctp.no_such": "1"})))
    assert made["status"] == "failed"
    assert "sysctl -w net.sctp.no_such=1: No such file or directory" in made["reason"]


def test_limits(perform: Perform) -> None:
    virtual = perform(small_spec(limits=Limits(virtual_s=0.2)))
    assert virtual["status"] == "timeout" and "limits.virtual_s" in virtual["reason"]
    wall = perform(small_spec(limits=Limits(wall_s=0.3)))
    assert wall["status"] == "timeout" and "limits.wall_s" in wall["reason"]


def test_run_one_repeats_a_record(tmp_path: Path) -> None:
    flow = replace(small_spec().flows[0], size_mb=0.2)
    first, second = tmp_path / "1.json", tmp_path / "2.json"
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps(plain(small_spec(flows=(flow,)))))
    for source, target in ((spec, first), (first, second)):
        done = lab("run-one", str(source), str(target))
        assert done.returncode == 0, done.stderr
    one, two = (json.loads(path.read_text()) for path in (first, second))
    del one["host"], two["host"]
    assert one == two


def in_session(session: int) -> list[int]:
    """Processes of a session that are not zombies."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def gone(session: int) -> bool:
    """Whether the session has ended; killed processes have 2 s to exit."""
    until = time.monotonic() + 2
    while in_session(session) and time.monotonic() < until:
        time.sleep(0.01)
    return not in_session(session)


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupt_leaves_nothing_but_finished_records(tmp_path: Path, signal_number: signal.Signals) -> None:
    temporary, out = tmp_path / "tmp", tmp_path / "out"
    temporary.mkdir()
    words = ["run", "off-clean", "rtx-policy", "--kernel", "stock", "--jobs", "2", "--out", str(out)]
    process = subprocess.Popen(
        [sys.executable, "-m", "sctplab", *words],
        env=environment(TMPDIR=str(temporary)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # As from a terminal: what starts the tests may have them ignore it, as a shell does with "&".
        preexec_fn=lambda: signal.signal(signal_number, signal.SIG_DFL),
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("[1/")
    time.sleep(0.5)  # lets two long runs get going; the test holds whenever the signal comes
    assert len(in_session(process.pid)) > 2
    os.kill(process.pid, signal_number)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    assert errors.endswith("lab: interrupted; finished records are kept, go on with --resume\n")
    assert gone(process.pid)
    assert list(temporary.iterdir()) == []
    statuses = [json.loads(path.read_text())["status"] for path in (out / "records").iterdir()]
    assert statuses and set(statuses) == {"ok"}


def test_resume_does_what_is_left(tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ("run", "off-clean", "off-reorder", "--kernel", "stock", "--out", str(out))
    assert lab(*words).returncode == 0
    kept, lost = sorted((out / "records").iterdir())
    before = kept.stat().st_mtime_ns
    lost.write_text('{"status": "crashed"}')
    done = lab(*words, "--resume")
    assert done.returncode == 0
    assert done.stdout.startswith("1 good records kept, 1 runs to do\n[1/1] ok: off-reorder")
    assert kept.stat().st_mtime_ns == before
    assert json.loads(lost.read_text())["status"] == "ok"
