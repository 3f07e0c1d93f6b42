# SPDX-License-Identifier: GPL-2.0
"""Runs that go wrong, in a place made of shell commands: records tell, processes and folders do not stay."""

import errno
import json
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sctpkernel.errors import interrupt
from sctplab import paths, programs
from sctplab.errors import LabError, RunError
from sctplab.place import uml
from sctplab.place.base import Kernel
from sctplab.plan import run_plan
from sctplab.processes import Ended, Processes
from sctplab.programs import Tools
from sctplab.run import record, runner
from sctplab.spec.model import Limits, RunSpec
from sctplab.spec.schema import plain
from tests.lab_run import environment, small_spec

KERNEL = Kernel(Path("/nowhere"), {"key": "k1"})


class Shell:
    """A place that runs one shell command in the run's folder."""

    deterministic = True

    def __init__(self, script: str) -> None:
        self.script = script

    def here(self, inventory: str | None) -> tuple[tuple[str, ...], str]:
        return ("stock",), "6.12"

    def refuse(self, specs: list[RunSpec]) -> None:
        pass

    def kernel(self, spec: RunSpec) -> Kernel:
        return KERNEL

    def ready(self, spec: RunSpec, kernel: Kernel) -> None:
        pass

    def close(self) -> None:
        pass

    def plan(self, spec: RunSpec, mpflow: str) -> run_plan.Plan:
        return run_plan.make(spec, mpflow)

    def command(self, spec: RunSpec, steady: bool, linux: str, folder: str) -> list[str]:
        return ["sh", "-c", self.script]

    def environment(self, tools: Tools, folder: Path) -> dict[str, str]:
        return dict(os.environ)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[runner.Bench]:
    tools = Tools(Path("mpflow"), Path("/sbin"), {})
    processes = Processes()
    yield runner.Bench(tools, {("uml", "6.12", "stock", "plain"): KERNEL}, processes)
    processes.stop()


def job(tmp_path: Path, **changes: Any) -> runner.Job:
    spec = small_spec(**changes)
    return runner.Job(spec, tmp_path / "records" / f"{spec.run_id}.json", tmp_path / "pcap")


def use(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str) -> None:
    monkeypatch.setattr(runner, "get", lambda name: Shell(script))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def test_no_result_is_a_crash(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bench: runner.Bench) -> None:
    use(monkeypatch, tmp_path, "echo Kernel panic - not syncing; exit 3")
    made = runner.perform(job(tmp_path), bench)
    assert (made["status"], made["reason"]) == (
        "crashed",
        "no result, exit 3: Kernel panic - not syncing",
    )
    assert [path.name for path in tmp_path.iterdir()] == ["records"]


def ends(pid: int) -> bool:
    """Is the process gone, or a zombie? One that was killed still needs a processor to die."""
    state = Path(f"/proc/{pid}/stat")
    for _ in range(100):
        try:
            if state.read_text().split()[2] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.1)
    return False


def test_a_run_without_end_is_a_timeout(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bench: runner.Bench
) -> None:
    use(
        monkeypatch,
        tmp_path,
        "sleep 1000 & echo $! > child; echo $$ > self; cat child >> self; cp self ..; wait",
    )
    made = runner.perform(job(tmp_path, limits=Limits(1, 0.3)), bench)
    assert made["status"] == "timeout" and "limits.wall_s" in made["reason"]
    assert all(ends(int(pid)) for pid in (tmp_path / "self").read_text().split())


def test_the_agents_word_is_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bench: runner.Bench
) -> None:
    use(
        monkeypatch,
        tmp_path,
        """echo '{"status": "failed", "reason": "tc: no such thing"}' > result.json""",
    )
    made = runner.perform(job(tmp_path), bench)
    assert (made["status"], made["reason"]) == ("failed", "tc: no such thing")
    assert json.loads(job(tmp_path).record.read_text()) == made


@pytest.mark.parametrize(
    ("member", "reason"),
    [
        ('"warnings": ["BUG: KASAN: use-after-free"]', "kernel: BUG: KASAN: use-after-free"),
        ('"left_behind": {"transport": 1}', "kernel: SCTP objects left behind: {'transport': 1}"),
    ],
)
def test_a_kernel_that_complains_fails_the_run(
    member: str, reason: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bench: runner.Bench
) -> None:
    result = f'{{"status": "ok", "reason": "", {member}, "kernel_log": ["what happened"]}}'
    use(monkeypatch, tmp_path, f"echo '{result.replace(chr(39), chr(34))}' > result.json")
    made = runner.perform(job(tmp_path), bench)
    assert (made["status"], made["reason"]) == ("failed", reason)
    assert made["kernel_log"] == ["what happened"]


def test_another_kernel_than_the_spec_says_fails_the_run() -> None:
    ended = Ended(returncode=0, timed_out=False, wall_s=1, console="")
    ours, own = {"net.sctp.rtx_policy": "same"}, {"net.sctp.rto_min": "1000"}

    def judged(host1: dict[str, str], host2: dict[str, str], **keys: str) -> str:
        result = {"status": "ok", "reason": "", "flows": [], "sysctls": {"host1": host1, "host2": host2}}
        return runner.verdict(small_spec(**keys), ended, result)[1]

    assert judged(own, own, kernel="patched") == "host1: the kernel that ran is stock, not patched"
    assert judged(ours, ours, kernel="patched", peer="stock-6.1").startswith("host2: the kernel that ran is")
    assert judged(ours, own, kernel="patched", peer="stock-6.1") == ""
    assert judged({}, {}, kernel="stock") == ""  # SCTP is not loaded


@pytest.mark.parametrize("end", ["content", "order"])
def test_a_wrong_byte_anywhere_fails_the_run(end: str) -> None:
    """Every part of a flow is judged: here the second association of a striped one."""
    said = (
        {"event": "result", "content": "ok", "order": "ok"},
        {"event": "result", end: "wrong at offset 7"},
    )
    flows = [
        {"name": f"flow1.path{i}", "receiver": {"output": json.dumps(one)}} for i, one in enumerate(said, 1)
    ]
    ended = Ended(returncode=0, timed_out=False, wall_s=1, console="")
    found = runner.verdict(small_spec(), ended, {"status": "ok", "reason": "", "flows": flows})
    assert found == ("failed", f"flow flow1.path2: {end} wrong at offset 7")


def test_a_missing_library_is_named_where_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "USRSCTP_HEADER", Path("/nowhere/usrsctp.h"))
    assert [one.name for one in programs.build_mpflow(usrsctp=False)] == ["mpflow"]
    with pytest.raises(RunError, match="apt-get install libusrsctp-dev"):
        programs.build_mpflow(usrsctp=True)


def test_stop_leaves_no_half_done_record(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bench: runner.Bench
) -> None:
    use(monkeypatch, tmp_path, "sleep 1000")
    threading.Timer(0.3, bench.processes.stop).start()
    with pytest.raises(KeyboardInterrupt):
        runner.perform(job(tmp_path), bench)
    assert list((tmp_path / "records").iterdir()) == []
    assert [path.name for path in tmp_path.iterdir()] == ["records"]


def test_a_repeat_that_fails_or_is_stopped_keeps_the_earlier_record(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bench: runner.Bench
) -> None:
    use(monkeypatch, tmp_path, "true")
    one = job(tmp_path, pcap=True)
    record.write(one.record, {"status": "ok"})

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "one.pcap")

    monkeypatch.setattr(runner, "keep_captures", full)
    with pytest.raises(RunError, match=r"No space left on device: one\.pcap; make room"):
        runner.perform(one, bench)
    assert json.loads(one.record.read_text()) == {"status": "ok"}
    bench.processes.stop()
    with pytest.raises(KeyboardInterrupt):
        runner.perform(one, bench)
    assert json.loads(one.record.read_text()) == {"status": "ok"}


def test_an_interrupt_is_heard_while_a_place_gets_ready(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bench: runner.Bench
) -> None:
    use(monkeypatch, tmp_path, "true")
    monkeypatch.setattr(Shell, "ready", lambda *_: time.sleep(60))
    main = threading.main_thread().ident
    assert main
    before = signal.signal(signal.SIGTERM, interrupt)
    threading.Timer(0.3, signal.pthread_kill, (main, signal.SIGTERM)).start()
    started = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            runner.perform_all([job(tmp_path)], bench, 1, lambda *_: None)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert time.monotonic() - started < 30
    assert list((tmp_path / "records").iterdir()) == []


def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    """RLIMIT_FSIZE stands for the full disk: the write of a large record fails in the middle."""
    kept = tmp_path / "kept.json"
    kept.write_text("{}")
    script = (
        "from pathlib import Path; from sctplab.run import record\n"
        f"record.write(Path({str(kept)!r}), {{'x': 'y' * 100000}})"
    )
    limit = (4096, 4096)
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment(),
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit),
    )
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert "kept.json: cannot be written: File too large; make room and go on with --resume" in last
    assert [path.name for path in tmp_path.iterdir()] == ["kept.json"] and kept.read_text() == "{}"


def test_a_run_that_cannot_be_recorded_raises(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bench: runner.Bench
) -> None:
    (tmp_path / "records").write_text("a file where a folder is needed")
    use(monkeypatch, tmp_path, "true")
    with pytest.raises(RunError, match="cannot be written"):
        runner.perform(job(tmp_path), bench)


def test_resume_keeps_only_the_same_run_on_the_same_kernel(tmp_path: Path) -> None:
    spec, path = small_spec(), tmp_path / "r.json"
    good = {"format": 1, "status": "ok", "spec": plain(spec), "kernel": {"key": "k1"}}
    record.write(path, good)
    assert record.finished(path, spec, KERNEL)
    assert not record.finished(path, replace(spec, seed=2), KERNEL)
    assert not record.finished(path, spec, Kernel(Path("/"), {"key": "k2"}))
    assert not record.finished(tmp_path / "none.json", spec, KERNEL)
    record.write(path, {**good, "status": "failed"})
    assert not record.finished(path, spec, KERNEL)
    path.write_text("{")
    assert not record.finished(path, spec, KERNEL)


def test_a_record_gives_back_its_spec(tmp_path: Path) -> None:
    spec = small_spec()
    record.write(tmp_path / "r.json", record.crashed(spec, KERNEL))
    assert record.read_spec(tmp_path / "r.json") == spec


@pytest.mark.parametrize("folder", ["/dev/shm/x", "/run", "/sys/x"])
def test_a_folder_that_user_mode_linux_does_not_see_is_refused(folder: str) -> None:
    with pytest.raises(LabError, match=rf"^{folder}: .* of its own; choose a folder elsewhere$"):
        uml.boot("linux", folder, 1, True, paths.AGENT / "run.py")


def test_a_checkout_that_user_mode_linux_does_not_see_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uml, "AGENT", Path("/dev/shm/checkout/testbed/agent"))
    with pytest.raises(LabError, match=r"^/dev/shm/checkout/testbed/agent: "):
        uml.Uml().refuse([])


def test_the_guest_mounts_what_is_called_hidden() -> None:
    text = (paths.AGENT / "init.py").read_text()
    mounted = re.findall(r'\("\w+", "(/\w+)"\)', text)
    assert sorted(mounted) == sorted(uml.HIDDEN)
