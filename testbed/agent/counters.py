# SPDX-License-Identifier: GPL-2.0
"""Counters and states of a place, as plain dictionaries. Standard library only."""

import glob
import gzip
import json
import os
import subprocess
from typing import Any

from commands import inside

NET = "/proc/thread-self/net"


def read(path: str) -> str:
    """The file's text, "" when this kernel does not have it."""
    try:
        with open(path, encoding="ascii", errors="replace") as source:
            return source.read()
    except OSError:
        return ""


def open_kernel_log(new_only: bool = False) -> int:
    """A file to read the kernel's messages from: all, or those that come after this."""
    log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    if new_only:
        os.lseek(log, 0, os.SEEK_END)
    return log


def kernel_log(log: int) -> list[str]:
    """The kernel's messages in LOG, which is closed."""
    found: list[str] = []
    while True:
        try:
            record = os.read(log, 8192).decode(errors="replace")
        except BlockingIOError:
            os.close(log)
            return found
        except BrokenPipeError:  # overwritten while reading: the next read goes on after the gap
            continue
        # "level,number,time,flags;message", with a line end inside the message written as \x0a
        found += record.partition(";")[2].partition("\n")[0].split("\\x0a")


def warnings_in(log: list[str]) -> list[str]:
    """Lines of the kernel's log that start a warning or an oops."""
    marks = ("WARNING:", "BUG:", "Oops", "refcount_t:", "possible recursive locking", "KASAN", "Call Trace")
    return [line for line in log if any(mark in line for mark in marks)]


def snmp(host: str) -> dict[str, int]:
    """All SNMP and MIB counters of a host; SCTP's bear their own name, the others Group.Name."""
    with inside(host):
        sctp = read(f"{NET}/sctp/snmp")
        tables = read(f"{NET}/snmp") + read(f"{NET}/netstat")
    found = {name: int(value) for name, value in (line.split() for line in sctp.splitlines())}
    lines = tables.splitlines()
    for names, values in zip(lines[::2], lines[1::2], strict=True):
        group, *keys = names.split()
        found.update(
            {
                group.rstrip(":") + "." + key: int(value)
                for key, value in zip(keys, values.split()[1:], strict=True)
            }
        )
    return found


def sctp_objects() -> dict[str, int]:
    """How many objects of each kind SCTP has, in all namespaces; {} where the kernel does not count them.

    Without those that stand for local addresses, which come and go with interfaces.
    """
    lines = read(f"{NET}/sctp/sctp_dbg_objcnt").splitlines()
    found = {name: int(value) for name, value in (line.split(":") for line in lines)}
    return {name: value for name, value in found.items() if name != "addr"}


def sctp_sysctls(host: str) -> dict[str, str]:
    """net.sctp.* of a host, as text."""
    with inside(host):
        return {
            "net.sctp." + os.path.basename(path): read(path).strip().replace("\t", " ")
            for path in sorted(glob.glob("/proc/sys/net/sctp/*"))
        }


def link(where: str, interface: str) -> dict[str, Any]:
    """Interface and qdisc counters as `ip -s -j` and `tc -s -j` give them."""
    with inside(where):
        device = output(["ip", "-s", "-j", "link", "show", "dev", interface])
        qdisc = output(["tc", "-s", "-j", "qdisc", "show", "dev", interface])
    return {"where": where, "interface": interface, "link": device[0], "qdisc": qdisc[0]}


def output(argv: list[str]) -> list[dict[str, Any]]:
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def sample(hosts: list[str], now: float) -> dict[str, Any]:
    """One look at the hosts: bytes received per interface, state of each path of each association."""
    found: dict[str, Any] = {"t": now, "rx_bytes": {}, "paths": {}}
    for host in hosts:
        with inside(host):
            devices = read(f"{NET}/dev").splitlines()[2:]
            rows = paths()
        received = [line.replace(":", " ").split() for line in devices]
        found["rx_bytes"][host] = {row[0]: int(row[1]) for row in received if row[0] != "lo"}
        if rows:
            found["paths"][host] = rows
    return found


def paths() -> list[dict[str, str]]:
    """The lines of /proc/net/sctp/remaddr here, by the names of its columns."""
    names, *rows = [line.split() for line in read(f"{NET}/sctp/remaddr").splitlines()] or [[]]
    return [dict(zip(names, row, strict=False)) for row in rows]


def sctp_state(hosts: list[str]) -> dict[str, Any]:
    """The paths of each host, and how many T3-rtx timers have expired there."""
    found: dict[str, Any] = {"paths": {}, "t3": {}}
    for host in hosts:
        with inside(host):
            found["paths"][host] = paths()
        found["t3"][host] = snmp(host).get("SctpT3RtxExpireds", 0)
    return found


def ticks_per_second() -> int:
    """CONFIG_HZ, the unit of times in /proc/net/sctp; 0 when the kernel does not tell."""
    try:
        with gzip.open("/proc/config.gz", "rt") as config:
            return next(int(line.split("=")[1]) for line in config if line.startswith("CONFIG_HZ="))
    except (OSError, StopIteration):
        return 0
