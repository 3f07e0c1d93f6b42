# SPDX-License-Identifier: GPL-2.0
"""Virtual machines that run: starting them, commands and files, cables that are pulled, and their end."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sctplab.place.base import RunError, kill_group
from sctplab.vm.machine import INIT, Machine, arguments, cables, emulator, init_disk, ssh_config

BOOT_S = 600.0  # 15, lean 5, on a machine that has nothing else to do
KNOCK_S = 20.0  # one try to get in
IDLE_S = 60.0  # a machine that is starting has something to do all the time
IDLE_SHARE = 0.3  # of one processor; less is what interrupts of the clock take


class FailedStart(RunError):
    """A machine that was starting ended, stopped where nothing will wake it, or was not up in time.

    QEMU 10.0 does so now and then when it translates for several processors. An assertion of its own about
    memory (iotlb_to_section) fails while devices are being mapped, or what the kernel waits for never
    comes. The same machine starts the next time.
    """


@dataclass(frozen=True)
class Done:
    """How a command ended; OUTPUT has what it wrote to both streams."""

    code: int
    output: str


class Running:
    """A machine that has been started; FOLDER has ssh_config and NAME.console."""

    def __init__(self, machine: Machine, process: subprocess.Popen[bytes], folder: Path) -> None:
        self.machine, self.process, self.folder = machine, process, folder
        self.ssh = ["ssh", "-F", str(folder / "ssh_config"), machine.name]

    def run(self, command: str, limit_s: float, given: str = "") -> Done:
        """A shell command inside, GIVEN on its standard input; raises RunError after LIMIT_S seconds."""
        try:
            done = subprocess.run(
                [*self.ssh, "--", command],
                input=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=limit_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise RunError(f"{self.machine.name}: {command!r} took longer than {limit_s:g} s") from None
        return Done(done.returncode, done.stdout)

    def need(self, command: str, limit_s: float = 60.0) -> str:
        """The output of a command that has to succeed; raises RunError."""
        done = self.run(command, limit_s)
        if done.code:
            raise RunError(f"{self.machine.name}: {command!r}: exit {done.code}: {last(done.output)}")
        return done.output

    def put(self, files: Sequence[Path], target: str, limit_s: float = 120.0) -> None:
        """Copy files and folders into the machine's folder TARGET, which is made; raises RunError."""
        self.need(f"mkdir -p {target}")
        self._copy([*map(str, files), f"{self.machine.name}:{target}"], limit_s)

    def get(self, files: Sequence[str], target: Path, limit_s: float = 120.0) -> None:
        """Copy files and folders out of the machine into the folder TARGET; raises RunError."""
        self._copy([*(f"{self.machine.name}:{name}" for name in files), str(target)], limit_s)

    def _copy(self, words: list[str], limit_s: float) -> None:
        command = ["scp", "-q", "-r", "-F", str(self.folder / "ssh_config"), *words]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, check=False)
        except subprocess.TimeoutExpired:
            raise RunError(f"{self.machine.name}: copying took longer than {limit_s:g} s") from None
        if done.returncode:
            raise RunError(f"{self.machine.name}: scp: {last(done.stderr)}")

    def cable(self, nic: int, plugged: bool) -> None:
        """Pull or plug the cable of card NIC (from 1): its driver sees the carrier go or come."""
        self._order("set_link", {"name": f"card{nic}", "up": plugged})

    def restart(self, limit_s: float = BOOT_S) -> None:
        """Start the same machine again, with its layer; returns when sshd lets in."""
        boot = "cat /proc/sys/kernel/random/boot_id"
        was = self.need(boot)
        self._order("set-action", {"reboot": "reset"})  # it was started to end there
        self.need("(sleep 1; systemctl reboot) >/dev/null 2>&1 &")
        subprocess.run([*self.ssh[:-1], "-O", "exit", self.ssh[-1]], capture_output=True, check=False)
        deadline = time.monotonic() + limit_s
        while True:
            self.await_boot(deadline)
            if (now := self.run(boot, KNOCK_S)).code == 0 and now.output != was:
                return
            time.sleep(0.5)

    def _order(self, name: str, values: dict[str, Any]) -> None:
        """Have QEMU do something; raises RunError where it does not."""
        with socket.socket(socket.AF_UNIX) as monitor, monitor.makefile("rw") as lines:
            monitor.connect(str(self.folder / f"{self.machine.name}.qmp"))
            lines.readline()  # its greeting
            for order, given in (("qmp_capabilities", {}), (name, values)):
                lines.write(json.dumps({"execute": order, "arguments": given}) + "\n")
                lines.flush()
                while "return" not in (answer := json.loads(lines.readline())):
                    if "error" in answer:
                        raise RunError(f"{self.machine.name}: {order}: {answer['error']['desc']}")

    def console(self) -> str:
        """What QEMU, the kernel and the first process have said so far."""
        paths = [self.folder / f"{self.machine.name}.{kind}" for kind in ("qemu", "console")]
        return "".join(path.read_text(errors="replace") for path in paths if path.exists())

    def await_boot(self, deadline: float) -> None:
        """Return when sshd lets in.

        Raises FailedStart when the machine ends, has nothing to do, or after DEADLINE (monotonic).
        """
        idle = Idle(self.process.pid)
        while self.process.poll() is None:
            with suppress(RunError):
                if self.run("true", KNOCK_S).code == 0:
                    return
            if idle.long():
                raise FailedStart(f"{self.machine.name}: stopped while starting: {last(self.console())}")
            if time.monotonic() > deadline:
                raise FailedStart(f"{self.machine.name}: not up in time: {last(self.console())}")
            time.sleep(0.5)
        raise FailedStart(f"{self.machine.name}: ended while starting: {last(self.console())}")


class Idle:
    """Whether the process PID has asked for next to no processor time for IDLE_S seconds.

    What it had to wait for counts like what it got: a processor that others use is not one it does not need.
    """

    def __init__(self, pid: int) -> None:
        self.threads = Path(f"/proc/{pid}/task")
        self.since, self.had = time.monotonic(), self.asked_s()

    def asked_s(self) -> float:
        """Seconds on a processor and waiting for one, of all its threads."""
        nanoseconds = 0
        for thread in self.threads.glob("*/schedstat"):
            with suppress(OSError):  # it has ended since
                nanoseconds += sum(map(int, thread.read_text().split()[:2]))
        return nanoseconds / 1e9

    def long(self) -> bool:
        """Asked again and again: True when IDLE_S have passed of which it wanted less than IDLE_SHARE."""
        now, asked = time.monotonic(), self.asked_s()
        if asked - self.had >= IDLE_SHARE * IDLE_S:
            self.since, self.had = now, asked
        return now - self.since >= IDLE_S


def last(text: str) -> str:
    """The last line that says something."""
    return (text.strip().splitlines() or ["nothing was printed"])[-1]


def free_ports(number: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody uses."""
    with ExitStack() as stack:
        found = [stack.enter_context(socket.socket()) for _ in range(number)]
        for one in found:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in found]


def plug(machines: Sequence[Machine], stack: ExitStack) -> dict[tuple[int, int], socket.socket]:
    """(machine, card) -> its end of the cable; STACK closes them."""
    plugs = {}
    for ends in cables(machines).values():
        for end, one in zip(ends, socket.socketpair(), strict=True):
            plugs[end] = stack.enter_context(one)
    return plugs


def start(machine: Machine, qemu: list[str], folder: Path, sockets: Sequence[int]) -> subprocess.Popen[bytes]:
    """Start QEMU in a process group of its own, which ends with the thread that called this."""
    disk = folder / f"{machine.name}.qcow2"
    layer = ["qemu-img", "create", "-q", "-f", "qcow2", "-b", str(machine.image / "root.img"), "-F", "raw"]
    subprocess.run([*layer, str(disk)], check=True)
    with (folder / f"{machine.name}.qemu").open("wb") as said:
        return subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "--", *qemu],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            pass_fds=sockets,
            process_group=0,
        )


@contextmanager
def running(
    machines: Sequence[Machine], folder: Path, boot_s: float = BOOT_S
) -> Iterator[dict[str, Running]]:
    """All machines, up and let in; none of them is left when the block ends. Raises RunError."""
    program = emulator()
    ports = free_ports(len(machines))
    (folder / "ssh_config").write_text(ssh_config(list(zip(machines, ports, strict=True)), folder))
    (folder / INIT.name).write_bytes(init_disk())
    with ExitStack() as stack:
        with ExitStack() as ours:
            plugs = plug(machines, ours)

            def launch(number: int) -> subprocess.Popen[bytes]:
                machine = machines[number - 1]
                sockets = [plugs[number, nic].fileno() for nic in range(1, len(machine.nics) + 1)]
                qemu = [program, *arguments(machine, number, folder, ports[number - 1], sockets)]
                process = start(machine, qemu, folder, sockets)
                stack.callback(end, process)
                return process

            vms = {
                machine.name: Running(machine, launch(number), folder)
                for number, machine in enumerate(machines, 1)
            }
            deadline = time.monotonic() + boot_s
            for number, vm in enumerate(vms.values(), 1):
                try:
                    vm.await_boot(deadline)
                except FailedStart as error:
                    print(f"vm: {error}; it is started again", file=sys.stderr)
                    end(vm.process)
                    vm.process = launch(number)
                    vm.await_boot(time.monotonic() + boot_s)
        yield vms


def end(process: subprocess.Popen[bytes]) -> None:
    kill_group(process.pid)
    process.wait()
