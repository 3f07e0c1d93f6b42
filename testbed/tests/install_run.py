# SPDX-License-Identifier: GPL-2.0
"""The package on stock Debian in virtual machines: installed, used over two network cards, removed again."""

import json
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from sctpkernel import deb
from sctpkernel.packaged import ensure_packaged, folder_of
from sctplab.plan.packaged import environment
from sctplab.spec.program import find, from_page
from sctplab.vm.machine import Machine, Nic, image
from sctplab.vm.running import Running, running

BYTES = 100_000_000
CUT_AFTER = 10_000_000  # bytes that have come in over both cards when the cable is pulled
INSTALL_S = 3600.0  # compiling on an emulated processor
TRANSFER_S = 1200.0
ADDRESSES = {"first": ("10.1.0.1", "10.2.0.1"), "second": ("10.1.0.2", "10.2.0.2")}
PROFILE = "/usr/share/sctp-multipath/sysctl/25-cmt.conf"
BUFFERS = "sysctl -w net.core.rmem_max=33554432 net.core.wmem_max=33554432"  # as Documentation/cmt.rst says
BUFFER_B = 4_194_304
CLOCK = ["clock"]  # no NTP server is in reach of these machines
SIGNALLING = "/usr/share/sctp-multipath/sysctl/10-signalling.conf"
OFF = "/usr/share/sctp-multipath/sysctl/00-off.conf"
PROGRAM = "gensio"  # a line in, a line out; it announces no address but those that it is told
LINES, INTERVAL_S, CUT_AT = 200, 0.05, 80
FIRST_TIMEOUT_S = 1.0  # what stock waits at the least
ACTIVE = "/etc/sysctl.d/60-sctp-multipath.conf"


@contextmanager
def pair(name: str, folder: Path) -> Iterator[list[Running]]:
    """Two machines of an image, joined by two cables, with addresses on both cards of each."""
    nics = (Nic("virtio", "one"), Nic("virtio", "two"))
    with running([Machine(end, image(name), nics=nics) for end in ADDRESSES], folder) as vms:
        yield list(vms.values())
        for why in (why for vm in vms.values() for why in vm.failed_starts):
            warnings.warn(f"{why}; it was started again", stacklevel=1)  # shown although the test passes


def both(vms: list[Running], work: Callable[[Running], Any]) -> None:
    """The same on all machines at a time."""
    with ThreadPoolExecutor() as pool:
        list(pool.map(work, vms))


def connect(vm: Running) -> None:
    for number, address in enumerate(ADDRESSES[vm.machine.name], 1):
        vm.need(f"ip address add {address}/24 dev data{number} && ip link set data{number} up")


def install(vm: Running, package: Path, compiled: Path | None) -> None:
    """As an operator does it. COMPILED: modules that dkms takes instead of compiling them."""
    vm.put([package], "/root")
    if compiled:
        folder = f"/usr/share/{deb.PACKAGE}"
        vm.put([compiled], folder)
        version = package.name.split("_")[1]
        vm.need(f"mv {folder}/{compiled.name} {folder}/{deb.NAME}-{version}.dkms.tar.gz")
    said = vm.need(f"apt-get install -y /root/{package.name} 2>&1", INSTALL_S)
    assert "sctp-multipath: " not in said, said  # nothing is in the way


def use(vm: Running) -> None:
    """Load the module with a profile in place: udev applies it."""
    vm.need(f"cp {PROFILE} {ACTIVE} && modprobe sctp && {BUFFERS}")
    vm.need("until [ $(cat /proc/sys/net/sctp/cmt) = 1 ]; do sleep 0.2; done")
    said = vm.need("sctp-multipath 2>&1")
    assert "SCTP      multipath, loaded" in said, said
    assert "net.sctp.cmt = 1" in said, said
    assert "SctpMp" in vm.need("cat /proc/net/sctp/snmp")


def last_event(vm: Running, file: str) -> dict[str, Any]:
    """The result in the output of mpflow, awaited."""
    vm.need(f"until grep -q goodput_mbit {file}; do sleep 1; done", TRANSFER_S)
    found: dict[str, Any] = json.loads(vm.need(f"tail -n 1 {file}"))
    return found


def transfer(sender: Running, receiver: Running) -> tuple[dict[str, Any], dict[str, Any]]:
    """Send BYTES over both cards, pull a cable of the receiver on the way; the results of both ends."""
    own, peer = (",".join(ADDRESSES[vm.machine.name]) for vm in (sender, receiver))
    options = f"--port 5000 --timeout {TRANSFER_S:.0f} --sndbuf {BUFFER_B} --rcvbuf {BUFFER_B}"
    receiver.need(f"mpflow recv --bind {peer} {options} >recv 2>&1 </dev/null &")
    receiver.need("until grep -q ready recv; do sleep 0.2; done")
    sender.need("sctp-multipath events --json >events 2>&1 </dev/null &")
    sender.need(f"mpflow send --bind {own} --to {peer} --bytes {BYTES} {options} >send 2>&1 </dev/null &")
    for number in (1, 2):  # each card has its share
        counter = f"/sys/class/net/data{number}/statistics/rx_bytes"
        receiver.need(f"until [ $(cat {counter}) -gt {CUT_AFTER // 2} ]; do sleep 0.1; done", TRANSFER_S)
    assert states(sender) == dict.fromkeys(ADDRESSES[receiver.machine.name], "active")
    assert "goodput" not in receiver.need("cat recv"), "all was there before the cable could be pulled"
    receiver.cable(1, plugged=False)
    return last_event(sender, "send"), last_event(receiver, "recv")


def line_of(end: str) -> str:
    """The line of Documentation/programs.rst, which has the addresses of these machines."""
    program = find(PROGRAM)
    root = Path("/root", folder_of(program.packages).name)
    values = environment(program, root, lambda value: value.replace("{root}", str(root)))
    words = " ".join(f"{name}={value}" for name, value in values.items())
    return f"env {words} {from_page(PROGRAM, end).strip()}"


def talk(client: Running, server: Running) -> None:
    """A packaged program with the signalling profile while a cable of the server is pulled.

    Each line arrives once, and none waits for a timeout.
    """
    program = find(PROGRAM)
    unpacked = ensure_packaged(program.packages)
    both([client, server], lambda vm: vm.put([unpacked], "/root"))
    both([client, server], lambda vm: vm.need(f"sysctl -p {OFF} && sysctl -p {SIGNALLING}"))
    stamped = "python3 -uc 'import sys, time\nfor line in sys.stdin: print(time.time(), line, end=\"\")'"
    server.need(f"(sleep {TRANSFER_S} | {line_of('server')} | {stamped}) >heard 2>heard.err &")
    server.need(f"until grep -qw {program.port} /proc/net/sctp/eps; do sleep 0.2; done")
    says = f"for n in $(seq {LINES}); do echo $n; sleep {INTERVAL_S}; done; sleep {TRANSFER_S}"
    client.need(f"({says}) 2>&1 | {line_of('client')} >said 2>&1 &")
    server.need(f"until [ $(wc -l <heard) -ge {CUT_AT} ]; do sleep 0.1; done")
    assert states(client) == dict.fromkeys(ADDRESSES[server.machine.name], "active")
    server.cable(1, plugged=False)
    server.need(f"until [ $(wc -l <heard) -ge {LINES} ]; do sleep 0.1; done")
    server.cable(1, plugged=True)
    heard = [line.split() for line in server.need("cat heard").splitlines()]
    assert [int(number) for _, number in heard] == list(range(1, LINES + 1)), client.need("cat said")
    wait_s = max(float(after) - float(before) for (before, _), (after, _) in pairwise(heard)) - INTERVAL_S
    print(f"{PROGRAM} on {server.machine.image.name}: longest wait {wait_s:.3f} s")
    assert wait_s < FIRST_TIMEOUT_S


def states(vm: Running) -> dict[str, str]:
    """Address of the peer -> state of the path, as the operator is shown them."""
    said = json.loads(vm.need("sctp-multipath paths --json"))
    return {path["address"]: path["state"] for one in said["associations"] for path in one["paths"]}


def failed(vm: Running) -> set[str]:
    """The peer's addresses that the operator was told of, by events, as in use no more."""
    told = map(json.loads, vm.need("cat events").splitlines())
    return {one["path"]["address"] for one in told if one.get("old_state") == "active"}


def found(vm: Running, peer: Running) -> list[str]:
    """The names of doctor's findings between the addresses of two machines."""
    own, other = (" ".join(ADDRESSES[one.machine.name]) for one in (vm, peer))
    said = vm.need(f"sctp-multipath doctor --json --local {own} --peer {other} || test $? = 1")
    return [one["name"] for one in json.loads(said)]


def remove(vm: Running) -> None:
    """Back to stock: now on disk, after a restart in memory."""
    vm.need(f"rm {ACTIVE}")
    said = vm.need(f"apt-get remove -y {deb.PACKAGE} 2>&1", INSTALL_S)
    assert "restart the host" in said, said
    vm.restart()
    assert "/kernel/net/sctp/sctp.ko" in vm.need("modinfo -F filename sctp")
    vm.need("modprobe sctp && test -e /proc/sys/net/sctp/rto_min && test ! -e /proc/sys/net/sctp/rtx_policy")
    vm.need("test ! -e /sys/module/sctp/version && checksctp")
    assert vm.need("dkms status") == ""


def whole_way(name: str, folder: Path, package: Path, compiled: Mapping[str, Path]) -> None:
    """Install, load, look, 100 MB over two cards of which one is cut, doctor, a program, remove, stock.

    COMPILED: machine -> modules that dkms takes there; where there are none, it compiles them.
    """
    with pair(name, folder) as vms:
        both(vms, lambda vm: install(vm, package, compiled.get(vm.machine.name)))
        both(vms, use)
        both(vms, connect)
        assert found(*vms) == CLOCK
        sent, received = transfer(*vms)
        assert (sent["status"], received["status"]) == ("ok", "ok"), (sent, received)
        assert failed(vms[0]) == {ADDRESSES["second"][0]}
        assert (received["bytes"], received["content"], received["order"]) == (BYTES, "ok", "ok"), received
        assert found(vms[1], vms[0]) == [*CLOCK, "link-down"]
        vms[1].cable(1, plugged=True)
        talk(*vms)
        both(vms, remove)
