# SPDX-License-Identifier: GPL-2.0
"""Output of `sctp-multipath doctor` for hosts, one after the other in one kernel. Standard library only."""

import contextlib
import ctypes
import io
import os
import socket
import subprocess
import sys
import time
from typing import Any

from commands import inside, remember_home, run_all
from talk import connect, heartbeats, listen, speak

# struct timex: modes, offset, frequency, maximum and estimated error, status ...
TIMEX = ctypes.c_long * 26
ADJ_MAXERROR, ADJ_ESTERROR, ADJ_STATUS, STATUS, STA_UNSYNC = 0x4, 0x8, 0x10, 5, 0x40
CONFIRMED_S = 10  # of all paths
SETTLED_S = 3  # IPv6 has tested its addresses for duplicates
FOUND = 1  # exit code of doctor


class Unexpected(Exception):
    """A script or doctor itself ended with an error."""


def set_clock(kept: bool) -> None:
    """Tell the kernel what an NTP client tells it, or that there is none."""
    told = TIMEX(ADJ_MAXERROR | ADJ_ESTERROR | ADJ_STATUS)
    told[STATUS] = 0 if kept else STA_UNSYNC
    if ctypes.CDLL(None).adjtimex(told) < 0:
        raise OSError("adjtimex")


def shell(script: str) -> str:
    """Run it, if it is not empty; what it prints."""
    if not script.strip():
        return ""
    done = subprocess.run(["sh", "-e", "-c", script], capture_output=True, text=True)
    if done.returncode:
        raise Unexpected(f"exit {done.returncode}: {script}: {done.stderr}")
    return done.stdout


def start(programs: list[dict[str, Any]]) -> list[socket.socket]:
    """Listening and connecting sockets, in this order; "host" and the arguments of talk.py."""
    opened = []
    for one in programs:
        words = {**one}
        with inside(words.pop("host")):
            opened.append(connect(**words) if "remote" in words else listen(**words))
    return opened


def doctor(case: dict[str, Any]) -> str:
    """The output, JSON. "command": started as the user does, else in this process."""
    if case["command"]:
        words = f"PYTHONPATH={sys.path[-1]} python3 -m doctor --json {case['asked']}"
        return shell(
            f"ip netns exec {case['where']} env PYTHONDONTWRITEBYTECODE=1 {words} || test $? = {FOUND}"
        )
    from doctor.cli import main

    with inside(case["where"]), contextlib.redirect_stdout(io.StringIO()) as shown:
        main(["--json", *case["asked"].split()])
    return shown.getvalue()


def diagnosed(case: dict[str, Any]) -> str:
    """Plant a fault, ask, and take everything away again."""
    run_all(case["commands"])
    time.sleep(SETTLED_S)
    shell(case["before"])
    set_clock(case["clock"])
    opened = start(case["programs"])
    try:
        if case["between"]:
            time.sleep(CONFIRMED_S)
            shell(case["between"])
        for one in opened if case["speak_s"] else ():
            if one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 0:
                speak(one, case["speak_s"])
        if case["quiet"]:
            heartbeats(opened[-1], 0)
        return doctor(case)
    finally:
        for one in opened:
            one.close()
        run_all([{"where": "", "argv": ["ip", "netns", "del", host]} for host in os.listdir("/run/netns")])
        shell(case["after"])


def carry_out(plan: dict[str, Any]) -> dict[str, Any]:
    """PLAN: "tools": the folder with doctor, "environment" added to ours, "cases"."""
    remember_home()
    sys.path.append(plan["tools"])
    sys.dont_write_bytecode = True
    os.environ.update(plan["environment"])
    os.environ["PATH"] = f"/run/bin:{os.environ['PATH']}"
    shown = {}
    for name, case in plan["cases"].items():
        try:
            shown[name] = diagnosed(case)
        except (Unexpected, OSError) as error:
            return {"status": "failed", "reason": f"{name}: {error}"}
    return {"status": "ok", "shown": shown}
