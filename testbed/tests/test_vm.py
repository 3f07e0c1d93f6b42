# SPDX-License-Identifier: GPL-2.0
"""Options and commands for QEMU and ssh, and how a topology becomes machines. No machine is started here."""

import lzma
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Thread
from unittest.mock import Mock

import pytest
from sctplab.errors import LabError
from sctplab.place import qemu, remote
from sctplab.place.base import Place
from sctplab.plan.link_commands import namespaces
from sctplab.programs import Tools
from sctplab.spec import scenario
from sctplab.spec.model import RunSpec
from sctplab.vm import limits, machine, running
from sctplab.vm.machine import Machine, Nic

IMAGE = Path("/cache/image")
ONE = Machine("one", IMAGE, nics=(Nic("e1000e", "a"), Nic("igb", "b")))
TWO = Machine("two", IMAGE, Path("/cache/kernel"), (Nic("virtio", "b"), Nic("virtio", "a")))


def spec(**keys: str) -> RunSpec:
    found = scenario.load(scenario.find("places"))
    cell = {**found.factors, **{key: [value] for key, value in keys.items()}}
    return scenario.expand(found, cell, scenario.Choice(place="qemu", repeat=1))[0]


def test_a_cable_has_two_ends() -> None:
    assert machine.cables([ONE, TWO]) == {"a": [(1, 1), (2, 2)], "b": [(1, 2), (2, 1)]}
    with pytest.raises(LabError, match="cable 'a': got 1 ends, expected 2"):
        machine.cables([ONE])


def test_an_unknown_card_is_refused() -> None:
    with pytest.raises(LabError, match="network card: got 'rtl8139', expected one of virtio, e1000e, igb"):
        Nic("rtl8139", "a")


def test_the_images_kernel_needs_its_initrd_and_another_does_not() -> None:
    words = machine.arguments(ONE, 1, Path("/run"), 4022, [7, 8])
    assert words[words.index("-kernel") + 1] == "/cache/image/vmlinuz"
    assert words[words.index("-initrd") + 1] == "/cache/image/initrd"
    words = machine.arguments(TWO, 2, Path("/run"), 4023, [9, 10])
    assert words[words.index("-kernel") + 1] == "/cache/kernel/bzImage"
    assert "-initrd" not in words


def test_cards_have_their_model_their_cable_and_an_address_of_their_own() -> None:
    words = machine.arguments(ONE, 1, Path("/run"), 4022, [7, 8])
    assert "stream,id=data2,server=off,addr.type=fd,addr.str=8" in words
    assert "igb,id=card2,netdev=data2,mac=52:54:00:01:01:02,romfile=,bus=slot2" in words
    assert "user,id=control,restrict=on,hostfwd=tcp:127.0.0.1:4022-:22" in words


def test_every_machine_has_its_own_entry_for_ssh() -> None:
    text = machine.ssh_config([(ONE, 4022), (TWO, 4023)], Path("/run"))
    assert [line for line in text.splitlines() if line.startswith("Host ")] == ["Host one", "Host two"]
    assert "  Port 4023" in text
    assert "  IdentityFile /cache/image/id_ed25519" in text


def test_hosts_have_the_kernel_and_the_cards_and_middles_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qemu, "image", lambda name: IMAGE / name)
    monkeypatch.setattr(qemu, "kernel_folder", lambda *_: Path("/cache/kernel"))
    built = qemu.machines(spec(nic="igb"))
    assert [one.name for one in built] == namespaces(spec().topology)
    assert [one.kernel for one in built] == [Path("/cache/kernel"), Path("/cache/kernel"), None, None]
    assert [nic.model for one in built for nic in one.nics] == ["igb"] * 4 + ["virtio"] * 4
    assert machine.cables(built)["path2-host1"] == [(1, 2), (4, 1)]


def test_machines_with_the_module_are_not_those_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else runs with Debian's own SCTP and with ours would follow each other in the same ones."""
    monkeypatch.setattr(qemu, "image", lambda name: IMAGE / name)
    one = replace(spec(), build="debian")
    stock, patched = (qemu.machines(replace(one, kernel=kernel)) for kernel in ("stock", "patched"))
    assert [machine.module for machine in stock] == [""] * 4
    assert [machine.module for machine in patched] == ["debian-12-6.12"] * 2 + [""] * 2
    assert qemu.machines(replace(one, kernel="patched", peer="stock-6.1"))[1].module == ""


@pytest.mark.parametrize(
    ("name", "build", "loads"),
    [("host2", "debian", True), ("mid-path1", "debian", False), ("host1", "plain", False)],
)
def test_hosts_load_the_distributions_own_sctp_before_it_is_set(name: str, build: str, loads: bool) -> None:
    """Ours is built in."""
    vm = Mock(machine=ONE)
    qemu.load_sctp(replace(spec(), build=build), name, vm)
    assert [call.args for call in vm.need.call_args_list] == [("modprobe sctp",)] * loads


def test_a_module_is_kept_as_the_distribution_keeps_its_own() -> None:
    assert qemu.like(Path("sctp.ko"), b"module") == b"module"
    assert lzma.decompress(qemu.like(Path("sctp.ko.xz"), b"module")) == b"module"


def test_what_directs_a_run_has_the_last_word() -> None:
    """After the consoles; its exit code is that of the whole."""
    shell = qemu.PLACE.command(spec(), False, "", "/run")[:4]
    done = subprocess.run(
        [*shell, "sh", "-c", "echo why >&2; exit 3"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.splitlines()[-1]) == (3, "why")


def test_the_plan_speaks_of_the_machines_cards() -> None:
    made = qemu.PLACE.plan(spec(), "/build/mpflow")
    lines = [" ".join(one.argv) for one in made.setup if one.where == "host2"]
    assert "ip addr replace 10.2.2.1/24 dev data2" in lines
    assert "ip neigh replace 10.2.2.254 lladdr 52:54:00:04:01:02 dev data2 nud permanent" in lines
    assert any(line.startswith("sysctl -q -w net.core.rmem_max=") for line in lines)
    shaped = [one for one in made.setup if one.argv[0] == "tc"]
    assert {one.where for one in shaped} == {"mid-path1", "mid-path2"}
    assert all("to-host" not in word and "path1" not in word for one in made.setup for word in one.argv)


def test_other_packet_sizes_are_set_on_all_cards() -> None:
    found = spec()
    path = found.topology.paths[0]
    assert qemu.mtu_commands(found.topology) == []
    wide = type(found.topology)((type(path)(path.name, path.forward, path.reverse, mtu=9000),))
    assert len(qemu.mtu_commands(wide)) == 4


def test_quantiles_are_values_that_were_measured() -> None:
    assert [limits.quantile(range(1, 101), share) for share in (0.5, 0.99, 1.0)] == [51, 100, 100]


def test_round_trips_are_read_from_ping() -> None:
    text = "64 bytes from 10.9.1.2: icmp_seq=1 ttl=64 time=0.412 ms\n... icmp_seq=2 ttl=64 time=1.5 ms\n"
    assert limits.echo_times(text) == [412, 1500]


def test_packets_are_read_from_iperf3() -> None:
    text = '{"end": {"sum": {"packets": 1000, "lost_packets": 250, "seconds": 2.0}}}'
    assert limits.packets_per_second(text) == (500, 375)


def test_a_table_has_columns_of_equal_width() -> None:
    assert limits.table([("a", "bb"), ("ccc", "d")]) == "a    bb\nccc  d"


def test_the_other_end_may_have_another_kernel() -> None:
    one = replace(spec(), kernel="patched", base="6.12", peer="stock-6.1")
    assert [one.tested(host) for host in ("host1", "host2")] == [("patched", "6.12"), ("stock", "6.1")]
    with pytest.raises(LabError, match="kernel base: got"):
        qemu.PLACE.refuse([replace(one, peer="stock-5.10")])


@pytest.mark.parametrize(("work", "idle"), [("read line", True), ("while :; do :; done", False)])
def test_a_machine_that_waits_while_it_starts_is_told_from_one_that_works(
    monkeypatch: pytest.MonkeyPatch, work: str, idle: bool
) -> None:
    monkeypatch.setattr(running, "IDLE_S", 0.5)
    with subprocess.Popen(["sh", "-c", work], stdin=subprocess.PIPE) as process:
        watched = running.Idle(process.pid)
        deadline = time.monotonic() + 1.0
        while not (found := watched.long()) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.kill()
    assert found is idle


@pytest.mark.parametrize(
    ("idle_s", "limit_s", "what"), [(0.2, 60, "stopped while starting"), (60, 0.2, "not up in time")]
)
def test_a_start_that_fails_is_told_by_the_last_that_was_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, idle_s: float, limit_s: float, what: str
) -> None:
    monkeypatch.setattr(running, "IDLE_S", idle_s)
    monkeypatch.setattr(running.Running, "run", lambda *_: running.Done(255, "refused"))
    (tmp_path / "one.console").write_text("clocksource: Switched\n")
    with subprocess.Popen(["sh", "-c", "read line"], stdin=subprocess.PIPE) as process:
        vm = running.Running(ONE, tmp_path, lambda: process)
        with pytest.raises(running.FailedStart, match=f"one: {what}: clocksource: Switched"):
            vm.await_boot(time.monotonic() + limit_s)
        process.kill()


def test_a_machine_that_fails_to_start_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once; the others, which have come up meanwhile, are left as they are."""
    started: list[str] = []
    waiting = ["sh", "-c", "read line"]

    def start(one: Machine, *_: object) -> subprocess.Popen[bytes]:
        started.append(one.name)
        return subprocess.Popen(waiting, stdin=subprocess.PIPE, process_group=0)

    def let_in(vm: running.Running, *_: object) -> running.Done:
        return running.Done(0 if vm.machine is TWO or len(started) == 3 else 255, "")

    monkeypatch.setattr(running, "emulator", lambda: "qemu")
    monkeypatch.setattr(running, "start", start)
    programs(tmp_path, monkeypatch, ssh="")
    monkeypatch.setattr(running.Running, "run", let_in)
    with running.running([ONE, TWO], tmp_path, boot_s=0.2) as vms:
        assert started == ["one", "two", "one"]
        assert [vm.process.poll() for vm in vms.values()] == [None, None]


ALONE = Machine("one", IMAGE)
EMULATOR = """
ulimit -c 0
starts=$(($(cat starts) + 1))
echo $starts >starts
[ -e reboot ] && [ $starts -le DEATHS ] || echo $$ >up
if [ $starts -le DEATHS ]; then
	until [ -e reboot ]; do sleep 0.05; done
	echo 'Bail out! ERROR:accel/tcg/cputlb.c:iotlb_to_section: assertion failed' >&2
	echo 'pci 0000:00:01.0: BAR 0: assigned' >one.console
	END
fi
exec sleep 60
"""


def programs(folder: Path, monkeypatch: pytest.MonkeyPatch, **scripts: str) -> None:
    """Programs of these names that are found before others."""
    for name, text in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


@pytest.fixture
def mortal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int, str], None]:
    """A QEMU that ends when the guest reboots, (times, command by which), and a guest that always answers."""

    def answer(vm: running.Running, command: str, *_: object) -> running.Done:
        up = tmp_path / "up"
        lets_in = up.exists() and up.read_text() == f"{vm.process.pid}\n" and vm.process.poll() is None
        if "systemctl reboot" in command:  # QEMU may end at once, but the guest has answered before
            (tmp_path / "reboot").touch()
        return running.Done(0 if lets_in else 255, f"{vm.process.pid}\n")

    def make(deaths: int, end: str) -> None:
        programs(tmp_path, monkeypatch, ssh="", **{"qemu-img": 'echo made >>layers; : >"$9"'})
        programs(tmp_path, monkeypatch, qemu=EMULATOR.replace("DEATHS", str(deaths)).replace("END", end))

    (tmp_path / "starts").write_text("0")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(running, "emulator", lambda: str(tmp_path / "qemu"))
    monkeypatch.setattr(running.Running, "run", answer)
    monkeypatch.setattr(running.Running, "_order", lambda *_: None)
    return make


def test_a_restart_in_which_qemu_dies_is_made_again_from_the_disk(
    tmp_path: Path, mortal: Callable[[int, str], None], capfd: pytest.CaptureFixture[str]
) -> None:
    """And it outlives the thread that asked for it."""
    mortal(1, "kill -ABRT $$")
    with running.running([ALONE], tmp_path) as vms:
        vm = vms["one"]
        thread = Thread(target=vm.restart)
        thread.start()
        thread.join()
        assert (tmp_path / "layers").read_text() == "made\n"
        assert [(tmp_path / "starts").read_text().strip(), len(vm.failed_starts)] == ["2", 1]
        with pytest.raises(subprocess.TimeoutExpired):
            vm.process.wait(0.5)
    said = (
        "vm: one: ended while starting: QEMU: SIGABRT: Bail out! ERROR:accel/tcg/cputlb.c:iotlb_to_section: "
    )
    said += "assertion failed; console: pci 0000:00:01.0: BAR 0: assigned; it is started again\n"
    assert capfd.readouterr().err == said


@pytest.mark.parametrize(
    ("deaths", "end", "how", "starts"),
    [(running.STARTS, "kill -ABRT $$", "SIGABRT", running.STARTS), (1, "exit 3", "exit 3", 1)],
)
def test_a_restart_is_not_made_again_for_ever_nor_where_qemu_has_ended_by_itself(
    tmp_path: Path, mortal: Callable[[int, str], None], deaths: int, end: str, how: str, starts: int
) -> None:
    mortal(deaths, end)
    why = f"one: ended while starting: QEMU: {how}: Bail out! "
    with running.running([ALONE], tmp_path) as vms, pytest.raises(running.FailedStart, match=why):
        vms["one"].restart()
    assert (tmp_path / "starts").read_text().strip() == str(starts)


@pytest.mark.parametrize("place", [qemu.Qemu(), remote.Remote()], ids=["qemu", "remote"])
def test_what_conducts_a_run_can_be_imported(place: Place, tmp_path: Path) -> None:
    """In the environment that the place gives it, which is not that of testbed/lab."""
    place.folder = tmp_path
    words = place.command(spec(), False, "", "FOLDER")
    module = words[words.index("FOLDER") - 1]
    environment = place.environment(Tools(Path(), Path(), {}), tmp_path)
    done = subprocess.run([sys.executable, "-c", f"import {module}"], env=environment, cwd=tmp_path)
    assert module.startswith("sctplab.") and done.returncode == 0
