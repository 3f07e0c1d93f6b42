# SPDX-License-Identifier: GPL-2.0
"""A machine's part of a run that a conductor elsewhere directs. Standard library only.

    machine.py LIMIT        in a folder of its own, which is removed at the end

One JSON object per line. Each request {"do": WORD, ...} is answered by one {"did": WORD, ...}, or by
{"failed": REASON}; events come in between as {"event": ...}. A request is a sign of life; without any for
LIMIT seconds, or at the end of the requests, everything is taken back: see guard.py.
"""

import base64
import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import counters
from commands import Command, CommandFailed, run_all
from guard import Guard
from links import await_links
from run import Conductor, be_punctual, left_behind, start_captures, stop_captures
from undo import way_back

HERE = ""  # the network namespace that the agent was started in
BACK = "back"
FREED_S = 10  # for associations to end by themselves
PIECE = 1 << 20
NOTHING: dict[str, Any] = {
    "flows": [],
    "events": [],
    "hosts": [],
    "links": [],
    "captures": [],
    "sample_ms": 0,
}


class Busy(Exception):
    """Another run is on this machine."""


class Gone(Exception):
    """The conductor has closed its end."""


class Orders:
    """The requests, as something that Conductor's loop can wait for."""

    def __init__(self, carry_out: Callable[[dict[str, Any]], None]) -> None:
        self.carry_out = carry_out
        self.rest = b""

    def fileno(self) -> int:
        return 0

    def feed(self) -> bool:
        """Carry out the requests that are there; raises Gone at the end."""
        data = os.read(0, 1 << 16)
        if not data:
            raise Gone
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            self.carry_out(json.loads(line))
        return True


def say(what: dict[str, Any]) -> None:
    print(json.dumps(what), flush=True)


class Machine(Conductor):
    """Carries out requests while the programs of a run, if there are any, go on."""

    def __init__(self, limit_s: float) -> None:
        super().__init__(NOTHING)
        self.only_one = claim()
        self.guard = Guard(os.getcwd(), limit_s)
        self.selector.register(Orders(self.obey), selectors.EVENT_READ)
        self.captures: list[subprocess.Popen[bytes]] = []
        self.before: dict[str, dict[str, int]] = {}
        self.objects: dict[str, int] = {}
        self.log = counters.open_kernel_log(new_only=True)
        self.ways_back: dict[tuple[str, ...], list[list[str]]] = {}
        self.receiving = False
        self.told = ""

    def obey(self, order: dict[str, Any]) -> None:
        self.guard.tell({})
        if order["do"] == "alive":
            return
        if order["do"] == "release":
            self.end_all()
            say({"did": "release", "kept": self.guard.release()})
            raise Gone
        try:
            say({"did": order["do"], **getattr(self, "do_" + order["do"])(order)})
        except (CommandFailed, RuntimeError, OSError, subprocess.SubprocessError) as error:
            say({"failed": str(error)})

    def live(self) -> None:
        """Until the conductor is gone."""
        while True:
            self.at(time.time() + 1, lambda: None)
            self.turn()
            self.tell()

    def tell(self) -> None:
        """Say once how the part of the run goes: receivers are up, then all programs have ended."""
        state = self.told
        if self.failure:
            state = "failed"
        elif self.receiving and self.all_ready() and not self.told:
            state = "ready"
        elif self.start_t and not self.going_on():
            state = "ended"
        if state != self.told and self.told != "failed":
            self.told = state
            say({"event": state, "reason": self.failure})

    def do_clock(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"t": time.time()}

    def do_set_clock(self, order: dict[str, Any]) -> dict[str, Any]:
        """For machines that nobody else uses."""
        time.clock_settime(time.CLOCK_REALTIME, time.time() + order["add_s"])
        return {}

    def do_commands(self, order: dict[str, Any]) -> dict[str, Any]:
        """Carry out commands, each with its way back known before."""
        commands = [{"where": HERE, "argv": argv} for argv in order["commands"]]
        self.carry_out(commands)
        await_links(commands)
        return {}

    def carry_out(self, commands: list[Command]) -> None:
        """Each when the guard knows its way back; BACK with a command's words before: that way, now."""
        for one in commands:
            argv = one["argv"]
            if argv[0] == BACK:
                for step in self.ways_back[tuple(argv[1:])]:
                    run_all([{"where": HERE, "argv": step}])
                continue
            self.ways_back[tuple(argv)] = way_back(argv)
            for step in reversed(self.ways_back[tuple(argv)]):
                self.guard.tell({"undo": step})
            run_all([one])

    def do_look(self, order: dict[str, Any]) -> dict[str, Any]:
        """Exit status and output of a command that changes nothing; status 127 if it is not installed."""
        program = order["argv"][0]
        if not shutil.which(program):
            return {"exit": 127, "output": "", "errors": f"{program}: not found"}
        done = subprocess.run(
            order["argv"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=order["within_s"]
        )
        return {"exit": done.returncode, "output": done.stdout, "errors": done.stderr}

    def do_read(self, order: dict[str, Any]) -> dict[str, Any]:
        return {"text": counters.read(order["file"])}

    def do_receive(self, order: dict[str, Any]) -> dict[str, Any]:
        """Take the part of the plan, and start its captures and receivers; "ready" follows."""
        self.plan = order["plan"]
        self.before = {host: counters.snmp(host) for host in self.plan["hosts"]}
        self.objects = counters.sctp_objects()
        self.captures = start_captures(self.plan["captures"])
        self.receive()
        self.receiving = True
        return {}

    def do_start(self, order: dict[str, Any]) -> dict[str, Any]:
        """Senders and events, by a start in time of this machine; "ended" follows."""
        self.schedule(order["start_t"])
        return {}

    def do_finish(self, _: dict[str, Any]) -> dict[str, Any]:
        """End what still runs and say what was seen."""
        hosts = self.plan["hosts"]
        after = {host: counters.snmp(host) for host in hosts}
        self.timetable.clear()
        self.stop()
        stop_captures(self.captures)
        self.captures = []
        log = counters.kernel_log(self.log)
        return {
            "flows": self.outcomes(),
            "events": self.fired,
            "left_behind": left_behind(self.objects, FREED_S),
            "samples": self.samples,
            "before": self.before,
            "after": after,
            "links": [counters.link(where, interface) for where, interface in self.plan["links"]],
            "hz": counters.ticks_per_second(),
            "sysctls": {host: counters.sctp_sysctls(host) for host in hosts},
            "warnings": counters.warnings_in(log),
            "kernel_log": log,
        }

    def do_fetch(self, order: dict[str, Any]) -> dict[str, Any]:
        """A piece of a capture, from OFFSET on."""
        with open(order["file"], "rb") as source:
            source.seek(order["offset"])
            return {"piece": base64.b64encode(source.read(PIECE)).decode()}

    def end_all(self) -> None:
        for program in self.alive():
            program.process.kill()
        for capture in self.captures:
            capture.kill()


def claim() -> socket.socket:
    """A name that one run at a time has here, until its guard has ended too; raises Busy."""
    made = socket.socket(socket.AF_UNIX)
    try:
        made.bind("\0sctplab-machine")
    except OSError:
        raise Busy from None
    return made


def main() -> None:
    with suppress(PermissionError):  # the leader of a session is one of its group already
        os.setpgid(0, 0)
    for one in (signal.SIGHUP, signal.SIGTERM):
        signal.signal(one, signal.SIG_DFL)
    os.environ.update(TMPDIR=os.getcwd(), LC_ALL="C")
    os.environ["PATH"] += ":/usr/local/sbin:/usr/sbin:/sbin"
    be_punctual()
    try:
        machine = Machine(float(sys.argv[1]))
    except Busy:
        shutil.rmtree(os.getcwd())
        sys.exit("another run is on this machine, or is being taken back; wait until it has ended")
    say({"event": "up", "python": sys.version.split()[0], "folder": os.getcwd()})
    with suppress(Gone, BrokenPipeError):
        machine.live()


main()
