# SPDX-License-Identifier: GPL-2.0
"""Virtual machines that run: starting them, commands and files, cables that are pulled, and their end."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sctplab.errors import RunError
from sctplab.processes import kill_group
from sctplab.vm.machine import INIT, Machine, arguments, cables, emulator, init_disk, ssh_config

BOOT_S = 600.0  # 15, lean 5, on a machine that has nothing else to do
KNOCK_S = 20.0  # one try to get in
IDLE_S = 60.0  # a machine that is starting has something to do all the time
IDLE_SHARE = 0.3  # of one processor; less is what interrupts of the clock take
STARTS = 2  # tries to start a machine, see FailedStart
BOOT_ID = "cat /proc/sys/kernel/random/boot_id"


class FailedStart(RunError):
    """A machine that was starting ended, stopped where nothing will wake it, or was not up in time.

    QEMU 10.0 does so now and then when it translates for several processors, at the first start and when the
    machine restarts. An assertion of its own about memory (iotlb_to_section) fails while devices are being
    mapped, which ends it by SIGABRT, or what the kernel waits for never comes. The same machine starts the
    next time.
    """


@dataclass(frozen=True)
class Done:
    """How a command ended; OUTPUT has what it wrote to both streams."""

    code: int
    output: str


class Running:
    """A machine that has been started. FOLDER has ssh_config, NAME.console, and what QEMU says in NAME.qemu.

    LAUNCH starts QEMU, with the disk as it is or, where there is none, a new one. FAILED_STARTS tells why the
    machine had to be started again.
    """

    def __init__(self, machine: Machine, folder: Path, launch: Callable[[], subprocess.Popen[bytes]]) -> None:
        self.machine, self.folder, self.launch = machine, folder, launch
        self.ssh = ["ssh", "-F", str(folder / "ssh_config"), machine.name]
        self.failed_starts: list[str] = []
        self.process = launch()

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
        """Start the same machine again, with its layer; returns when sshd lets in. Raises RunError.

        Where QEMU itself dies on the way, the machine is started from its disk, which the kernel had left in
        order before: STARTS times in all.
        """
        was = self.need(BOOT_ID)
        self._order("set-action", {"reboot": "reset"})  # it was started to end there
        self.need("(sleep 1; systemctl reboot) >/dev/null 2>&1 &")
        self._hang_up()
        for left in reversed(range(STARTS)):
            try:
                self._await_boot_after(was, time.monotonic() + limit_s)
                return
            except FailedStart as error:
                if not left or not self.died():
                    raise
                self.start_again(error)

    def _await_boot_after(self, was: str, deadline: float) -> None:
        """As await_boot, when it is no longer the boot with the identity WAS that lets in."""
        while True:
            self.await_boot(deadline)
            with suppress(RunError):  # it was going down
                if (now := self.run(BOOT_ID, KNOCK_S)).code == 0 and now.output != was:
                    return
            time.sleep(0.5)

    def _hang_up(self) -> None:
        """End ssh's connection, which commands share."""
        subprocess.run([*self.ssh[:-1], "-O", "exit", self.ssh[-1]], capture_output=True, check=False)

    def start_again(self, why: FailedStart) -> None:
        """Another QEMU with the same disk and cables, which is said."""
        print(f"vm: {why}; it is started again", file=sys.stderr)
        self.failed_starts.append(str(why))
        end(self.process)
        self._hang_up()
        self.process = self.launch()

    def died(self) -> bool:
        """Whether a signal has ended QEMU."""
        return (self.process.poll() or 0) < 0

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

    def last_words(self, kind: str) -> str:
        """The last line of KIND: console (of the kernel and the first process) or qemu (QEMU's own)."""
        path = self.folder / f"{self.machine.name}.{kind}"
        return last(path.read_text(errors="replace") if path.exists() else "")

    def story(self) -> str:
        """Where the machine is: the end of its console and, where QEMU has ended, how and its last words."""
        if (code := self.process.poll()) is None:
            return self.last_words("console")
        how = f"exit {code}" if code >= 0 else signal.Signals(-code).name
        return f"QEMU: {how}: {self.last_words('qemu')}; console: {self.last_words('console')}"

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
                raise FailedStart(f"{self.machine.name}: stopped while starting: {self.story()}")
            if time.monotonic() > deadline:
                raise FailedStart(f"{self.machine.name}: not up in time: {self.story()}")
            time.sleep(0.5)
        raise FailedStart(f"{self.machine.name}: ended while starting: {self.story()}")


class Idle:
    """Whether the process PID has asked for next to no processor time for IDLE_S seconds.

    Time waiting for a processor counts like time on one: the load of other processes does not make it idle.
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


def disk(machine: Machine, folder: Path) -> Path:
    """The machine's layer on top of its image."""
    return folder / f"{machine.name}.qcow2"


def start(machine: Machine, qemu: list[str], folder: Path, sockets: Sequence[int]) -> subprocess.Popen[bytes]:
    """Start QEMU in a process group of its own, which ends with the thread that called this."""
    layer = disk(machine, folder)
    if not layer.exists():
        words = [
            "qemu-img",
            "create",
            "-q",
            "-f",
            "qcow2",
            "-b",
            str(machine.image / "root.img"),
            "-F",
            "raw",
        ]
        subprocess.run([*words, str(layer)], check=True)
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
        # A machine ends with the thread that starts it. Who restarts one may be a thread that ends before.
        starter = stack.enter_context(ThreadPoolExecutor(1))
        plugs = plug(machines, stack)  # kept, for a QEMU that takes the place of another

        def launch(number: int) -> subprocess.Popen[bytes]:
            machine = machines[number - 1]
            sockets = [plugs[number, nic].fileno() for nic in range(1, len(machine.nics) + 1)]
            qemu = [program, *arguments(machine, number, folder, ports[number - 1], sockets)]
            process = starter.submit(start, machine, qemu, folder, sockets).result()
            stack.callback(end, process)
            return process

        vms = {
            machine.name: Running(machine, folder, partial(launch, number))
            for number, machine in enumerate(machines, 1)
        }
        deadline = time.monotonic() + boot_s
        for vm in vms.values():
            try:
                vm.await_boot(deadline)
            except FailedStart as error:
                end(vm.process)
                disk(vm.machine, folder).unlink(missing_ok=True)  # half started
                vm.start_again(error)
                vm.await_boot(time.monotonic() + boot_s)
        yield vms


def end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:  # else its number may be another's
        kill_group(process.pid)
    process.wait()
