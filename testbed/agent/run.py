# SPDX-License-Identifier: GPL-2.0
"""Carries out a plan: set up, start flows, fire events on time, count. Standard library only.

One thread, one select loop: it sleeps until a program says something or the next moment on the
timetable comes, and never polls, for virtual time stands still while anything runs.
"""

import heapq
import itertools
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import IO, Any, cast

import counters
from commands import Command, inside, remember_home, run_all
from links import await_links
from program import Program

BEHIND_TICK_NS = 1_000_000  # a start is not to race with the tick that it follows
SETTLE_S = 0.1  # lets the last packets reach every capture
FREED_S, FREED_POLL_S = 1000, 10  # virtual time for associations to end by themselves
CAPTURE_READY = b"listening on"


class Conductor:
    """The state of one run: what is due when, and which programs live."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan
        self.timetable: list[tuple[float, int, Callable[[], None]]] = []
        self.ticket = itertools.count()  # first come, first served among equal moments
        self.selector = selectors.SelectSelector()  # microseconds; epoll would round to milliseconds
        self.receivers: dict[str, Program] = {}
        self.senders: dict[str, Program] = {}
        self.samples: list[dict[str, Any]] = []
        self.fired: list[dict[str, Any]] = []
        self.start_t = 0.0
        self.failure = ""
        self.timeout = False

    def at(self, moment: float, action: Callable[[], None]) -> None:
        heapq.heappush(self.timetable, (moment, next(self.ticket), action))

    def start(self, group: dict[str, Program], flow: dict[str, Any], role: str) -> None:
        program = Program(f"{flow['name']}.{role}", flow[role])
        self.selector.register(program, selectors.EVENT_READ)
        group[flow["name"]] = program

    def turn(self) -> None:
        """Sleep until something happens, and deal with it."""
        wait = max(0.0, self.timetable[0][0] - time.time())
        for key, _ in self.selector.select(wait):
            program = cast(Program, key.fileobj)
            if not program.feed():
                self.selector.unregister(program)
                self.ended(program)
        while self.timetable and self.timetable[0][0] <= time.time():
            heapq.heappop(self.timetable)[2]()

    def ended(self, program: Program) -> None:
        if program.process.returncode and not self.failure:
            name = " ".join(os.path.basename(word) for word in program.argv[:2])
            self.failure = f"{name}: {program.complaint()}"

    def give_up(self) -> None:
        self.timeout = True

    def alive(self) -> list[Program]:
        sources = [key.fileobj for key in self.selector.get_map().values()]
        return [one for one in sources if isinstance(one, Program)]

    def going_on(self) -> bool:
        """Whether a foreground flow has yet to start or to end, and nothing has gone wrong."""
        if self.timeout or self.failure:
            return False
        alive = self.alive()
        foreground = [flow for flow in self.plan["flows"] if not flow["background"]]
        ends = [(flow["name"], role) for flow in foreground for role in ("sender", "receiver") if flow[role]]
        programs = {"sender": self.senders, "receiver": self.receivers}
        return any(name not in programs[role] or programs[role][name] in alive for name, role in ends)

    def play(self) -> None:
        """Receivers, then senders and events by the timetable, until the last foreground flow ends."""
        self.at(time.time() + self.plan["virtual_limit_s"], self.give_up)
        self.receive()
        while self.going_on() and not self.all_ready():
            self.turn()
        await_links(self.plan["setup"])
        self.schedule(self.await_phase())
        while self.going_on():
            self.turn()

    def await_phase(self) -> float:
        """Sleep until a moment to start at, if there are such; when it is.

        How long a run takes to get ready differs from one computer or kernel to the next, and timers expire
        at ticks, long ones at every 64th: the same run would go another way elsewhere.
        """
        step_ns = self.plan["start_every_ns"]
        if step_ns:
            time.sleep((step_ns - time.time_ns() % step_ns + BEHIND_TICK_NS) / 1e9)
        return time.time()

    def receive(self) -> None:
        for flow in self.with_role("receiver"):
            self.start(self.receivers, flow, "receiver")

    def with_role(self, role: str) -> list[dict[str, Any]]:
        """The flows with that end here: all, unless machines share the run."""
        return [flow for flow in self.plan["flows"] if flow[role]]

    def all_ready(self) -> bool:
        return all(program.ready for program in self.receivers.values())

    def schedule(self, start_t: float) -> None:
        """Put all that follows the start on the timetable."""
        self.start_t = start_t
        for flow in self.with_role("sender"):
            self.at(start_t + flow["start_s"], partial(self.start, self.senders, flow, "sender"))
        for event in self.plan["events"]:
            self.at(start_t + event["at_s"], partial(self.fire, event))
        if self.plan["sample_ms"]:
            self.at(start_t, self.sample)

    def fire(self, event: dict[str, Any]) -> None:
        found = {"t": time.time(), "label": event["label"]}
        self.fired.append(found | counters.sctp_state(self.plan["hosts"]))
        self.carry_out(event["commands"])

    def carry_out(self, commands: list[Command]) -> None:
        run_all(commands)

    def sample(self) -> None:
        now = time.time()
        self.samples.append(counters.sample(self.plan["hosts"], now))
        self.at(now + self.plan["sample_ms"] / 1000, self.sample)

    def stop(self) -> None:
        """End what still runs: background flows, or everything after a failure."""
        for program in self.alive():
            self.selector.unregister(program)
            program.end()

    def outcomes(self) -> list[dict[str, Any]]:
        return [
            {
                "name": name,
                "sender": self.senders[name].outcome() if name in self.senders else {},
                "receiver": self.receivers[name].outcome() if name in self.receivers else {},
            }
            for name in (flow["name"] for flow in self.plan["flows"])
        ]


def start_captures(captures: list[Command]) -> list[subprocess.Popen[bytes]]:
    """One tcpdump per interface, all listening when this returns; raises RuntimeError with a complaint."""
    started = []
    for one in captures:
        with inside(one["where"]), open(one["file"], "wb") as out:
            program = subprocess.Popen(
                one["argv"], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE
            )
        said: list[bytes] = []
        for line in cast(IO[bytes], program.stderr):
            said.append(line)
            if CAPTURE_READY in line:
                break
        else:
            raise RuntimeError(words(b" ".join(said)))
        started.append(program)
    return started


def words(said: bytes) -> str:
    """A program's complaint as one line."""
    return " ".join(said.decode(errors="replace").split())


def stop_captures(programs: list[subprocess.Popen[bytes]]) -> None:
    """End all captures, complete; raises RuntimeError with the first complaint."""
    if programs:
        time.sleep(SETTLE_S)
    for program in programs:
        program.send_signal(signal.SIGINT)
        said = program.communicate()[1]
        if program.returncode:
            raise RuntimeError(words(said))


def left_behind(before: dict[str, int], freed_s: int = FREED_S) -> dict[str, int]:
    """SCTP's objects that outlive the programs, by kind: none, or the kernel leaks them."""
    more: dict[str, int] = {}
    for _ in range(freed_s // FREED_POLL_S):
        more = {kind: n - before[kind] for kind, n in counters.sctp_objects().items() if n > before[kind]}
        if not more:
            break
        time.sleep(FREED_POLL_S)
    return more


def be_punctual() -> None:
    """Real-time priority: the kernel lets the sleeps of other processes end up to 0.1 % late."""
    os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))


def carry_out(plan: dict[str, Any]) -> dict[str, Any]:
    """The whole run; returns the result as plain data."""
    be_punctual()
    remember_home()
    hosts = plan["hosts"]
    run_all(plan["setup"])
    before = {host: counters.snmp(host) for host in hosts}
    objects = counters.sctp_objects()
    captures = start_captures(plan["captures"])
    conductor = Conductor(plan)
    conductor.play()
    end_t = time.time()
    after = {host: counters.snmp(host) for host in hosts}
    conductor.stop()
    stop_captures(captures)
    left = left_behind(objects)
    late = f"not finished after {plan['virtual_limit_s']:g} s of virtual time (limits.virtual_s)"
    return {
        "status": "timeout" if conductor.timeout else "failed" if conductor.failure else "ok",
        "reason": late if conductor.timeout else conductor.failure,
        "start_t": conductor.start_t,
        "end_t": end_t,
        "flows": conductor.outcomes(),
        "events": conductor.fired,
        "left_behind": left,
        "samples": conductor.samples,
        "before": before,
        "after": after,
        "links": [counters.link(where, interface) for where, interface in plan["links"]],
        "hz": counters.ticks_per_second(),
        "sysctls": {host: counters.sctp_sysctls(host) for host in hosts},
        "python": sys.version.split()[0],
    }
