# SPDX-License-Identifier: GPL-2.0
"""mpflow end to end over TCP on the loopback interface, and its unit tests."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "mpflow"
LOCAL = "127.0.0.1"
RECV = f"recv --bind {LOCAL}"
SEND = f"send --bind {LOCAL} --to {LOCAL}"
KEY = 7
MASK = 2**64 - 1

Event = dict[str, Any]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with mpflow and its unit tests, built from the source."""
    if not Path("/usr/include/netinet/sctp.h").exists() or not shutil.which("make"):
        pytest.skip("libsctp-dev and make are not installed")
    folder = tmp_path_factory.mktemp("mpflow")
    subprocess.run(["make", "-s", "-C", SOURCE, f"BUILD={folder}", "all", f"{folder}/unit"], check=True)
    return folder


class Receiver:
    """`mpflow recv` on a port of its own, up and listening."""

    def __init__(self, program: Path, *options: str, bind: str = LOCAL, timeout: str = "20") -> None:
        with socket.socket() as probe:
            probe.bind((LOCAL, 0))
            self.port = probe.getsockname()[1]
        command = [str(program), "recv", "--proto", "tcp", "--bind", bind, "--port", str(self.port)]
        command += ["--timeout", timeout, *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        assert json.loads(self.process.stdout.readline())["event"] == "ready"

    def events(self) -> list[Event]:
        """The events that it printed after "ready", until its end."""
        out, _ = self.process.communicate(timeout=30)
        return [json.loads(line) for line in out.splitlines()]


StartReceiver = Callable[..., Receiver]


@pytest.fixture
def receiver(build: Path) -> Iterator[StartReceiver]:
    """Start receivers that end with the test at the latest."""
    started: list[Receiver] = []

    def start(*options: str, bind: str = LOCAL, timeout: str = "20") -> Receiver:
        started.append(Receiver(build / "mpflow", *options, bind=bind, timeout=timeout))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
        one.process.communicate()


def send_command(build: Path, port: int, *options: str, timeout: str = "20") -> list[str]:
    """How a sender is called."""
    command = [f"{build}/mpflow", *SEND.split(), "--proto", "tcp", "--port", str(port)]
    return [*command, "--timeout", timeout, *options]


def send(build: Path, port: int, *options: str, timeout: str = "20") -> tuple[int, list[Event]]:
    """Exit status and events of a sender."""
    command = send_command(build, port, *options, timeout=timeout)
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=30)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def result_of(events: list[Event]) -> Event:
    """The last event, which has to be the result."""
    assert events[-1]["event"] == "result"
    return events[-1]


def mix(x: int) -> int:
    """Finaliser of splitmix64."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def message(seq: int, size: int) -> bytes:
    """One message as payload.h describes it, written a second time."""
    golden = 0x9E3779B97F4A7C15
    base = mix((seq * golden + KEY) & MASK)
    body = b"".join(struct.pack("<Q", mix((base + i * golden) & MASK)) for i in range((size + 7) // 8))
    return struct.pack(">HHIQQ", 0x4D46, KEY, size, seq, time.time_ns()) + body[: size - 24]


def end_marker(count: int) -> bytes:
    """The end of a transfer of `count` messages."""
    return struct.pack(">HHIQQ", 0x4D46, KEY, 2**32 - 1, count, time.time_ns())


def send_raw(port: int, data: bytes) -> None:
    """Send bytes of our own making."""
    with socket.create_connection((LOCAL, port)) as sock:
        sock.sendall(data)
        with contextlib.suppress(OSError):  # the receiver may have seen enough and closed
            sock.shutdown(socket.SHUT_WR)
        sock.settimeout(10)
        with contextlib.suppress(ConnectionResetError):
            sock.recv(1)


def test_unit_tests(build: Path) -> None:
    subprocess.run([build / "unit"], check=True)


def test_bulk(build: Path, receiver: StartReceiver) -> None:
    peer = receiver("--series", "0.001")
    status, sent = send(build, peer.port, "--bytes", "20000000", "--sndbuf", "100000")
    events = peer.events()
    result = result_of(events)
    assert status == 0 and peer.process.returncode == 0
    assert events[0]["event"] == "connected" and events[0]["options"]["sndbuf"] > 0
    assert sent[0]["options"]["sndbuf"] >= 100000
    assert result["bytes"] == result_of(sent)["bytes"] == 20000000
    assert result["messages"] == 14286
    assert (result["status"], result["content"], result["order"], result["missing"]) == ("ok", "ok", "ok", 0)
    assert result["goodput_mbit"] == pytest.approx(160 / result["elapsed_s"], rel=0.01)
    assert result["p50_message_delay_s"] <= result["p99_message_delay_s"] <= result["max_message_delay_s"]
    series = result["series"]
    assert len(series["delay"]) <= 500 and len(series["goodput_mbit"]) <= 500
    megabits = sum(rate for _, rate in series["goodput_mbit"]) * series["goodput_interval_s"]
    assert megabits == pytest.approx(160, rel=0.001)


def test_messages_keep_the_schedule(build: Path, receiver: StartReceiver) -> None:
    peer = receiver("--messages-log")
    status, _ = send(build, peer.port, "--messages", "20", "--interval-us", "10000", "--size", "200")
    events = peer.events()
    log = [event for event in events if event["event"] == "message"]
    assert status == 0 and result_of(events)["messages"] == 20
    assert [event["n"] for event in log] == list(range(20))
    due = [event["sent"] - log[0]["sent"] for event in log]
    assert due == pytest.approx([0.01 * n for n in range(20)], abs=2e-6)
    delays = [1e6 * (event["received"] - event["sent"]) for event in log]
    assert [event["delay_us"] for event in log] == pytest.approx(delays, abs=3)


def test_messages_at_given_times(build: Path, receiver: StartReceiver) -> None:
    peer = receiver("--messages-log")
    status, sent = send(build, peer.port, "--at", "0,0.05,0.05,0.2", "--size", "200")
    events = peer.events()
    log = [event for event in events if event["event"] == "message"]
    assert status == 0 and result_of(sent)["bytes"] == 800 == result_of(events)["bytes"]
    due = [event["sent"] - log[0]["sent"] for event in log]
    assert due == pytest.approx([0, 0.05, 0.05, 0.2], abs=2e-6)
    assert all(event["received"] >= event["sent"] for event in log)


def test_blocking_counts_as_delay(build: Path, receiver: StartReceiver) -> None:
    peer = receiver("--rcvbuf", "5000", "--messages-log")
    peer.process.send_signal(signal.SIGSTOP)
    options = ["--messages", "100", "--interval-us", "1000", "--size", "10000", "--sndbuf", "5000"]
    sender = subprocess.Popen(send_command(build, peer.port, *options), stdout=subprocess.DEVNULL)
    time.sleep(0.6)
    peer.process.send_signal(signal.SIGCONT)
    assert sender.wait(20) == 0
    events = peer.events()
    log = [event for event in events if event["event"] == "message"]
    assert log[-1]["sent"] - log[0]["sent"] == pytest.approx(0.099, abs=2e-6)
    assert result_of(events)["max_message_delay_s"] > 0.4


def test_duration(build: Path, receiver: StartReceiver) -> None:
    peer = receiver()
    status, sent = send(build, peer.port, "--duration", "0.205", "--interval-us", "10000")
    assert status == 0
    assert result_of(sent)["messages"] == 21 == result_of(peer.events())["messages"]


def test_small_rest_is_filled_up(build: Path, receiver: StartReceiver) -> None:
    peer = receiver()
    assert send(build, peer.port, "--bytes", "105", "--size", "100")[0] == 0
    assert result_of(peer.events())["bytes"] == 124


def test_several_transfers(build: Path, receiver: StartReceiver) -> None:
    peer = receiver("--count", "3")
    first = socket.create_connection((LOCAL, peer.port))  # sits there while the others work
    assert send(build, peer.port, "--messages", "3")[0] == 0
    assert send(build, peer.port, "--messages", "4")[0] == 0
    first.sendall(message(0, 100) + end_marker(1))
    first.close()
    results = [event for event in peer.events() if event["event"] == "result"]
    assert [(r["association"], r["messages"]) for r in results] == [(1, 3), (2, 4), (0, 1)]
    assert peer.process.returncode == 0


def test_several_own_addresses(build: Path, receiver: StartReceiver) -> None:
    peer = receiver("--count", "2", bind=f"{LOCAL},127.0.0.2")
    assert send(build, peer.port, "--messages", "1")[0] == 0
    with socket.create_connection(("127.0.0.2", peer.port)) as second:
        second.sendall(message(0, 100) + end_marker(1))
    assert [event["status"] for event in peer.events() if event["event"] == "result"] == ["ok", "ok"]


def ipv6_works() -> bool:
    """Whether the loopback interface has ::1."""
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


@pytest.mark.skipif(not ipv6_works(), reason="no ::1 on this machine")
def test_both_families(receiver: StartReceiver) -> None:
    peer = receiver("--count", "2", bind=f"{LOCAL},::1")
    for address in (LOCAL, "::1"):
        with socket.create_connection((address, peer.port)) as one:
            one.sendall(message(0, 100) + end_marker(1))
    events = peer.events()
    assert [event["local"] for event in events if event["event"] == "connected"] == [[LOCAL], ["::1"]]


def test_own_messages_are_understood(receiver: StartReceiver) -> None:
    peer = receiver()
    send_raw(peer.port, message(0, 24) + message(1, 100) + message(2, 1001) + end_marker(3))
    result = result_of(peer.events())
    assert (result["status"], result["bytes"]) == ("ok", 1125)


@pytest.mark.parametrize(
    ("data", "status", "member", "text"),
    [
        (message(0, 100)[:-1] + b"?" + end_marker(1), "failed", "content", "wrong at offset 99: byte 99 of"),
        (message(0, 100) + b"x" * 100, "failed", "content", "wrong at offset 100: no message header there"),
        (message(0, 100) + message(0, 100) + end_marker(2), "failed", "order", "message 0 arrived twice"),
        (message(1, 100) + message(0, 100) + end_marker(2), "failed", "order", "message 0 arrived after 1"),
        (message(0, 100) + end_marker(2), "failed", "order", "1 of 2 messages missing, the first is 1"),
        (message(0, 100), "aborted", "reason", "the sender closed before the end"),
        (message(0, 100)[:50], "aborted", "reason", "the sender closed before the end"),
    ],
    ids=["byte", "no-header", "twice", "out-of-order", "missing", "no-end", "half-a-message"],
)
def test_faults_are_found(receiver: StartReceiver, data: bytes, status: str, member: str, text: str) -> None:
    peer = receiver()
    send_raw(peer.port, data)
    result = result_of(peer.events())
    assert peer.process.returncode == 1 == result["exit"]
    assert result["status"] == status
    assert result[member].startswith(text)


def test_nobody_comes(receiver: StartReceiver) -> None:
    peer = receiver(timeout="0.2")
    result = result_of(peer.events())
    assert peer.process.returncode == 1
    assert result["status"] == "timeout"
    assert result["reason"] == "--timeout has passed, 0 of 1 senders have come"


def test_stopped_by_signal(build: Path, receiver: StartReceiver) -> None:
    """Both sides still say how far they came."""
    peer = receiver()
    command = send_command(build, peer.port, "--duration", "10", "--interval-us", "1000")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as sender:
        assert sender.stdout is not None and "connected" in sender.stdout.readline()
        time.sleep(0.2)
        peer.process.send_signal(signal.SIGINT)
        result = result_of(peer.events())
        assert sender.wait(10) == 1
    assert (result["status"], result["reason"]) == ("aborted", "stopped by a signal")
    assert result["messages"] > 10 and result["content"] == "ok"
    assert peer.process.returncode == 1

    peer = receiver()
    command = send_command(build, peer.port, "--duration", "10")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as sender:
        assert sender.stdout is not None and "connected" in sender.stdout.readline()
        sender.terminate()
        assert json.loads(sender.stdout.readline())["reason"] == "stopped by a signal"
    assert result_of(peer.events())["status"] == "aborted"


def test_no_receiver(build: Path) -> None:
    with socket.socket() as probe:
        probe.bind((LOCAL, 0))
        status, events = send(build, probe.getsockname()[1], "--messages", "1")
    assert status == 1
    assert result_of(events)["status"] == "failed"
    assert result_of(events)["reason"] == "Connection refused"


def test_sender_gives_up(build: Path) -> None:
    """The peer accepts and never reads."""
    with socket.create_server((LOCAL, 0)) as server:
        status, events = send(build, server.getsockname()[1], "--bytes", "100000000", timeout="0.5")
    assert status == 1
    assert result_of(events)["status"] == "timeout"


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("", "expected 'send' or 'recv' first, got 'nothing'"),
        ("--bind 127.0.0.1 recv", "expected 'send' or 'recv' first, got '--bind'"),
        ("recv --port 5000", "--bind: missing"),
        (RECV, "--port: missing"),
        (f"{RECV} --port 70000", "--port: '70000' is invalid; expected a whole"),
        (f"{RECV} --port -1", "--port: '-1' is invalid"),
        (f"{RECV} --port 1e3", "--port: '1e3' is invalid"),
        (f"{RECV} --timeout nan", "--timeout: 'nan' is invalid"),
        (f"{RECV} --port", "--port: value missing"),
        (f"{RECV} --prt 1", "--prt: unknown option"),
        ("recv 127.0.0.1", "'127.0.0.1': expected an option that begins with '--'"),
        ("recv --bind localhost", "--bind: 'localhost' is not an address"),
        ("recv --bind 127.0.0.1,127.0.0.1", "--bind: 127.0.0.1 is given twice"),
        (f"{RECV} --bytes 1", "--bytes: only for 'mpflow send'"),
        (f"{RECV} --proto udp", "--proto: 'udp' is unknown; expected one of sctp, tcp, mptcp"),
        (f"{RECV} --rtx-policy x", "--rtx-policy: 'x' is unknown; expected one of kernel, same"),
        (f"{RECV} --port 1 --port 2", "--port: given twice"),
        (f"{RECV} --messages-log=1", "--messages-log: takes no value"),
        (f"{RECV} --pmr 65536", "--pmr: '65536' is invalid; expected a whole number from 0 to 65535"),
        (f"{RECV} --failover-heartbeat 2", "--failover-heartbeat: '2' is invalid"),
        (f"{RECV} --dormant-policy x", "--dormant-policy: 'x' is unknown; expected one of kernel, hop"),
        (f"{RECV} --cmt on", "--cmt: 'on' is unknown; expected one of off, base, rpv1, rpv2"),
        (f"{RECV} --cmt-sack x", "--cmt-sack: 'x' is unknown; expected one of standard, delayed, per-path"),
        (f"{RECV} --sockopt sctp:1:0", "--sockopt: 'sctp:1:0' is invalid"),
        (f"{RECV} --sockopt sctp", "--sockopt: 'sctp' is invalid"),
        (f"{RECV} --port 1 --proto tcp --rto-min 1", "--rto-min: only with --proto sctp"),
        (f"{SEND},127.0.0.2 --port 1 --bytes 1 --proto tcp", "--to: tcp takes one address"),
        ("recv --bind 0.0.0.0 --port 1", "--bind: 0.0.0.0 would announce every address to the peer"),
        ("recv --bind 192.0.2.1 --port 5000 --proto tcp", "--bind: 192.0.2.1: Cannot assign requested"),
        (f"{RECV} --port 5000 --proto tcp --sockopt socket:9999:00", "--sockopt socket:9999:00: refused"),
        ("send --bind 127.0.0.1 --port 1 --bytes 1", "--to: missing"),
        (f"{SEND} --port 1", "--bytes, --messages, --duration, --at: expected exactly one"),
        (f"{SEND} --port 1 --bytes 1 --at 1", "--bytes, --messages, --duration, --at: expected exactly one"),
        (f"{SEND} --port 1 --at 1,x", "--at: 'x' is invalid; expected seconds from 0 to 1000000"),
        (f"{SEND} --port 1 --at 1,2,1.5", "--at: 1.5 is out of order; expected times in ascending order"),
        (f"{SEND} --port 1 --at 1 --interval-us 9", "--interval-us: expected none with --at"),
        (f"{SEND} --port 1 --bytes 1 --messages 1", "--bytes, --messages, --duration"),
        ("send --bind 127.0.0.1 --to ::1 --port 1 --bytes 1", "--to: ::1 cannot be reached; expected"),
        (f"{SEND} --port 1 --bytes 1 --size 23", "--size: '23' is invalid"),
    ],
)
def test_bad_usage(build: Path, command: str, text: str) -> None:
    command_line = [f"{build}/mpflow", *command.split()]
    done = subprocess.run(command_line, check=False, capture_output=True, text=True, timeout=10)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"mpflow: {text}")


def test_progress_adds_up(build: Path, receiver: StartReceiver) -> None:
    """Bytes so far per arrival; what comes with the end is in the result."""
    listener = receiver("--progress-log")
    assert send(build, listener.port, "--bytes", "3000000")[0] == 0
    events = listener.events()
    steps = [(event["t"], event["bytes"]) for event in events if event["event"] == "progress"]
    last = result_of(events)
    assert len(steps) > 3 and steps == sorted(steps)
    assert steps[0][1] > 0 and steps[-1][1] <= last["bytes"] == 3000000 and steps[-1][0] <= last["last_t"]


def test_usrsctp_knows_sctp_only(build: Path) -> None:
    subprocess.run(["make", "-s", "-C", SOURCE, f"BUILD={build}", "usrsctp"], check=True)
    command = [f"{build}/mpflow-usrsctp", *RECV.split(), "--port", "5000", "--proto", "tcp"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=10)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "mpflow: --proto: no tcp here: Protocol not supported\n"


def test_help_names_every_option(build: Path) -> None:
    """The manual page must know what --help knows."""
    done = subprocess.run([build / "mpflow", "--help"], capture_output=True, text=True, check=True)
    names = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("  --")]
    manual = (SOURCE / "mpflow.1").read_text(encoding="utf-8").replace("Fl -", "--")
    assert len(names) > 25
    assert [name for name in names if name not in manual] == []
