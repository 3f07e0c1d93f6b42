# SPDX-License-Identifier: GPL-2.0
"""One end of a program that people run: starts it, makes messages, counts them. Standard library only.

    python3 drive.py PLAN

PLAN is JSON, see sctplab/plan/packaged.py. Lines of JSON on the output: ready, message, result. The server
ends when the client says by a datagram that it has.
"""

import glob
import json
import os
import re
import selectors
import signal
import socket
import subprocess
import sys
import time
from typing import Any

READY_S, END_S = 60.0, 5.0
DONE = b"done"
WORDS = 60  # last lines of each command, kept for the record
NOTICES, NOTICE_S = 3, 0.1


def filling(number: int) -> str:
    """Text that only this message has."""
    return "".join(chr(97 + (number * 7 + at * at) % 26) for at in range(64))


def line_of(number: int) -> bytes:
    return f"{number} {time.time_ns()} {filling(number)}\n".encode()


class Running:
    """A command that was started; SAID: lines of its output that are no messages."""

    def __init__(self, argv: list[str], environment: dict[str, str]) -> None:
        self.start_t = time.time()
        self.process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,  # of an input at its end some programs make an end, too
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
        self.rest = b""
        self.said: list[str] = []
        self.ended = False

    def fileno(self) -> int:
        assert self.process.stdout
        return self.process.stdout.fileno()

    def take(self) -> list[str]:
        """New whole lines; ended is set at the end of the output."""
        data = os.read(self.fileno(), 1 << 16)
        if not data:
            self.ended = True
            data = b"\n" if self.rest else b""
        *whole, self.rest = (self.rest + data).split(b"\n")
        return [one.decode(errors="replace").rstrip("\r") for one in whole]

    def stop(self) -> None:
        """Its input ends, then it is asked to end, then killed; with all that it started."""
        if self.process.stdin:
            self.process.stdin.close()
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, number)
                self.process.wait(END_S)
            except subprocess.TimeoutExpired:
                continue
            except ProcessLookupError:
                self.process.wait()
            return


class Counted:
    """Messages as they arrive: which, how late, whether they are whole."""

    def __init__(self) -> None:
        self.numbers: set[int] = set()
        self.count = self.doubled = self.wrong = 0
        self.longest_s = self.first_t = self.last_t = 0.0
        self.gaps = False

    def take(self, found: re.Match[str], now: float) -> None:
        parts = found.groupdict()
        number = int(parts["number"]) if parts.get("number") else self.count
        if parts.get("since_ms"):
            now += float(parts["since_ms"]) / 1000
        elif parts.get("since_s"):
            now += float(parts["since_s"])
        if parts.get("gap"):
            self.gaps = True
            wait_s = now - (self.last_t or now)
        elif parts.get("sent"):
            wait_s = now - int(parts["sent"]) / 1e9
        else:
            wait_s = float(parts["wait_s"]) if parts.get("wait_s") else float(parts["wait_ms"]) / 1000
        if parts.get("filling") is not None and parts["filling"] != filling(number):
            self.wrong += 1
        self.doubled += number in self.numbers
        self.numbers.add(number)
        self.count += 1
        self.first_t, self.last_t = self.first_t or now, now
        self.longest_s = max(self.longest_s, wait_s)
        told = {"event": "message", "n": number, "sent": round(now - wait_s, 6), "received": round(now, 6)}
        print(json.dumps(told | {"delay_us": round(wait_s * 1e6)}), flush=True)

    def result(self) -> dict[str, Any]:
        told = {} if self.gaps else {"received": len(self.numbers), "doubled": self.doubled}
        return told | {
            "content": f"{self.wrong} messages are not as sent" if self.wrong else "ok",
            "max_message_delay_s": round(self.longest_s, 6),
            "first_t": self.first_t,
            "last_t": self.last_t,
        }


class End:
    """The state of this end."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan
        self.selector = selectors.SelectSelector()
        self.commands: list[Running] = []
        self.watchers: dict[str, Running] = {}
        self.counts = re.compile(plan["counts"]) if plan["counts"] else None
        self.trouble = [re.compile(one) for one in plan["trouble"]]
        self.troubles: list[str] = []
        self.counted = Counted()
        self.early: list[str] = []
        self.stopping = False
        self.environment = {**os.environ, **plan["environment"]}

    def prepare(self) -> None:
        folder = os.path.join(os.environ.get("TMPDIR", "/run"), f"{self.plan['name']}-{self.plan['role']}")
        os.makedirs(folder)
        os.chdir(folder)
        self.environment["HOME"] = folder
        for name, content in self.plan["files"].items():
            with open(name, "w", encoding="utf-8") as out:
                out.write(content)
        if self.plan["prepare"]:
            done = subprocess.run(
                ["sh", "-c", self.plan["prepare"]],
                env=self.environment,
                capture_output=True,
                text=True,
                stdin=subprocess.DEVNULL,
            )
            if done.returncode:
                raise SystemExit(f"{self.plan['prepare']}: {done.stderr.strip()}")

    def start(self) -> None:
        """All commands, each when the one before is ready; what makes its own messages, when they are due."""
        begin_t = time.time() + self.plan["begin_s"]
        for name, argv in self.plan["watchers"].items():
            self.watchers[name] = Running(argv, self.environment)
            self.selector.register(self.watchers[name], selectors.EVENT_READ)
        for number, line in enumerate(self.plan["run"], 1):
            if number == len(self.plan["run"]) and self.plan["role"] == "client" and not self.plan["feeds"]:
                self.wait(begin_t - time.time())
            made = Running(["sh", "-c", f"exec {line}"], self.environment)
            self.commands.append(made)
            self.selector.register(made, selectors.EVENT_READ)
            self.await_ready(made)
        self.wait(begin_t - time.time() if self.plan["feeds"] else 0)

    def await_ready(self, made: Running) -> None:
        until = time.time() + READY_S
        while self.plan["ready"] and not any(
            self.plan["ready"] in line for line in (*made.said, made.rest.decode(errors="replace"))
        ):
            self.turn(until)
            if made.ended or time.time() >= until:
                raise SystemExit(
                    f"{self.plan['name']}: not ready: {' / '.join(made.said[-5:]) or 'no output'}"
                )
        self.wait(self.plan["settle_s"])

    def turn(self, until: float) -> None:
        """Sleep until something is said, or UNTIL."""
        for key, _ in self.selector.select(max(0.0, until - time.time())):
            one = key.fileobj
            if isinstance(one, Running):
                self.listen(one)
            elif isinstance(one, socket.socket):
                self.stopping |= one.recv(64) == DONE

    def listen(self, one: Running) -> None:
        now = time.time()
        talks = self.commands[-1:] == [one] and not self.plan["counts_file"]
        counts = self.counts if talks else None
        for line in one.take():
            if counts and (found := counts.search(line)):
                self.counted.take(found, now)
                continue
            one.said.append(line)
            if not self.stopping and one in self.commands and any(t.search(line) for t in self.trouble):
                self.troubles.append(line)
        if one.ended:
            self.selector.unregister(one)
            if one in self.commands and not self.stopping and (self.plan["feeds"] or one.process.wait()):
                self.early.append(" / ".join(one.said[-3:]) or "no output")

    def feed(self) -> int:
        """Messages at their times; how many were made."""
        last = self.commands[-1]
        start = time.time()
        made = 0
        for number in range(self.plan["messages"]):
            due = start + number * self.plan["interval_s"]
            while time.time() < due:
                self.turn(due)
            if last.ended:
                break
            made += self.make(last, number)
        return made

    def make(self, last: Running, number: int) -> int:
        """One message, if the program still takes it."""
        try:
            if self.plan["feeds"] == "lines":
                assert last.process.stdin
                last.process.stdin.write(line_of(number))
                last.process.stdin.flush()
            elif self.plan["feeds"]:
                last.process.send_signal(getattr(signal, f"SIG{self.plan['feeds']}"))
        except (BrokenPipeError, ProcessLookupError):
            return 0
        return 1

    def wait(self, seconds: float) -> None:
        until = time.time() + seconds
        while time.time() < until:
            self.turn(until)

    def await_notice(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ear:
            ear.bind(("", self.plan["notice_port"]))
            self.selector.register(ear, selectors.EVENT_READ)
            print(json.dumps({"event": "ready"}), flush=True)
            while not self.stopping:
                self.turn(time.time() + 3600)
            self.selector.unregister(ear)

    def give_notice(self) -> None:
        """To the server, by each path; it ends some time after this end."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mouth:
            for _ in range(NOTICES):
                for address in self.plan["notice_to"]:
                    mouth.sendto(DONE, (address, self.plan["notice_port"]))
                time.sleep(NOTICE_S)

    def stop(self) -> None:
        """All that was started; what it says meanwhile is heard."""
        self.stopping = True
        for one in [*reversed(self.commands), *self.watchers.values()]:
            one.stop()
            while not one.ended:
                self.listen(one)

    def count_file(self) -> None:
        if self.plan["counts_file"] and self.counts:
            for name in sorted(glob.glob(self.plan["counts_file"])):
                with open(name, encoding="utf-8", errors="replace") as source:
                    for found in filter(None, map(self.counts.search, source)):
                        self.counted.take(found, self.commands[-1].start_t)

    def result(self, sent: int) -> dict[str, Any]:
        found = {"event": "result", "role": self.plan["role"], "proto": self.plan["name"]}
        found |= {"sent": sent, "early": self.early, "trouble": self.troubles}
        found |= {"said": [one.said[-WORDS:] for one in self.commands]}
        found |= {"watched": {name: one.said for name, one in self.watchers.items()}}
        return found | (self.counted.result() if self.counts else {"content": "ok"})


def serve(end: End) -> int:
    end.await_notice()
    end.wait(end.plan["tail_s"])
    return 0


def call(end: End) -> int:
    if end.plan["feeds"]:
        sent = end.feed()
    else:  # it makes its messages itself
        sent = end.plan["messages"]
        until = time.time() + end.plan["own_begin_s"] + sent * end.plan["interval_s"]
        while not end.commands[-1].ended and time.time() < until:
            end.turn(until)
    end.wait(end.plan["tail_s"])
    end.give_notice()  # before it ends, so that the server knows why
    return sent


def main() -> None:
    plan = json.loads(sys.argv[1])
    end = End(plan)
    end.prepare()
    try:
        end.start()
        sent = serve(end) if plan["role"] == "server" else call(end)
    finally:
        end.stop()
    end.count_file()
    print(json.dumps(end.result(sent)), flush=True)


if __name__ == "__main__":
    main()
