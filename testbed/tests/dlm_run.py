# SPDX-License-Identifier: GPL-2.0
"""The kernel's lock manager over SCTP in three virtual machines, and a network between them that is cut.

Node 1 is the master of all locks. Its bridges are the switches of two networks, so that it can cut one for
all at the same moment while every card keeps its carrier:

    node 2 data1 ---- data1 node 1 data3 ---- data1 node 3      network 1, the primary paths
    node 2 data2 ---- data2 node 1 data4 ---- data2 node 3      network 2
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TypeVar

from sctplab.errors import RunError
from sctplab.paths import ROOT
from sctplab.place.qemu import put_module
from sctplab.vm.machine import Machine, Nic, image
from sctplab.vm.running import Running, running

NODE = Path(__file__).with_name("dlm_node.py")
PROFILE = ROOT / "sysctl" / "10-signalling.conf"
CABLES = {"node1": "abcd", "node2": "ab", "node3": "cd"}
CARDS = {"node1": ("net1", "net2")}  # of which it has the addresses; else data1 and data2
BRIDGES = (
    "for net in 1 2; do ip link add net$net type bridge; for card in $net $((net + 2)); do"
    " ip link set data$card up master net$net; done; done"
)
HOOK = "chain {0} {{ type filter hook {0} devices = {{ data1, data3 }} priority 0; policy drop; }};"
CUT = f"nft 'table netdev cut {{ {HOOK.format('ingress')} {HOOK.format('egress')} }}'"
HEAL = "nft delete table netdev cut"
QUIET_S, CUT_S, AFTER_S = 2.0, 10.0, 5.0
WARM, STRETCHES = 300, 10  # packets of a node that takes locks; on a busy host a path fails with no cut
STOP = "/run/stop"
EFFECT_S = 3.0  # what has not begun so long after a cut has another reason
START_S, HEALED_S = 120.0, 300.0  # stock asks a failed path less and less often
ACTIVE = "until awk 'NR > 1 && $8 != 2 { exit 1 }' /proc/net/sctp/remaddr; do sleep 1; done"
Answer = TypeVar("Answer")
Times = Sequence[tuple[float, float, float]]  # as dlm_node.py load prints them


@dataclass(frozen=True)
class Waits:
    """A node that took LOCKS locks, and its longest waits for an answer of the master in seconds.

    CUT_S: of those that the cut may have prolonged. OTHER_S: of all others: what the host's own load does.
    """

    locks: int
    cut_s: float
    other_s: float


def waits(times: Times, cut_s: float, effect_s: float) -> Waits:
    """CUT_S: when it was cut, by the clock of TIMES, and EFFECT_S after that no wait begins because of it."""
    spans = list(
        chain.from_iterable(((at, granted), (at + granted, released)) for at, granted, released in times)
    )
    longest = {True: 0.0, False: 0.0}
    for start, lasted in spans:
        hit = start + lasted > cut_s and start < cut_s + effect_s
        longest[hit] = max(longest[hit], lasted)
    return Waits(len(times), longest[True], longest[False])


def each(vms: Sequence[Running], work: Callable[[Running], Answer]) -> list[Answer]:
    """The same on these machines at a time."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(work, vms))


def addresses(node: int) -> list[str]:
    return [f"10.7.{network}.{node}" for network in (1, 2)]


def prepare(vm: Running, profile: bool) -> None:
    """Modules, settings and addresses."""
    put_module(vm)
    vm.put([NODE, PROFILE], "/root")
    vm.need("modprobe -a sctp configfs dlm && mount -t configfs configfs /sys/kernel/config")
    if profile:
        vm.need(f"sysctl -e -q -p {PROFILE.name}")  # stock does not know all of them
    if vm.machine.name in CARDS:
        vm.need(BRIDGES)
    cards = CARDS.get(vm.machine.name, ("data1", "data2"))
    for card, address in zip(cards, addresses(number(vm)), strict=True):
        vm.need(f"ip address add {address}/24 dev {card} && ip link set {card} up")


def number(vm: Running) -> int:
    return int(vm.machine.name.removeprefix("node"))


def join(vm: Running) -> None:
    words = " ".join(",".join(addresses(node)) for node in range(1, len(CABLES) + 1))
    vm.need(f"python3 {NODE.name} join {number(vm)} {words} >join 2>&1 </dev/null &")
    vm.need("until test -e /sys/kernel/dlm/lab; do sleep 0.2; done")


def start(vms: Sequence[Running]) -> None:
    """One after the other: nodes that connect to each other at the same time keep two associations."""
    for vm in vms:
        vm.need(f"python3 {NODE.name} start {len(vms)}")
    each(vms, lambda vm: vm.need("until test -e /dev/dlm_lab; do sleep 0.2; done", START_S))


@contextmanager
def cluster(name: str, folder: Path, module: str = "", profile: bool = False) -> Iterator[list[Running]]:
    """Nodes 1 to 3 with stock kernel NAME and a lockspace at work.

    MODULE: the name of the image whose drop-in module they have, "" for stock's SCTP. PROFILE: whether the
    settings of PROFILE are in force, as far as that SCTP knows them.
    """
    machines = [
        Machine(node, image(name), None, tuple(Nic("virtio", one) for one in cables), 512, 1, True, module)
        for node, cables in CABLES.items()
    ]
    with running(machines, folder) as found:
        vms = list(found.values())
        each(vms, lambda vm: prepare(vm, profile))
        each(vms, join)  # all listen before one connects
        start(vms)
        vms[0].need(f"python3 {NODE.name} own node2 node3")
        yield vms
        for why in (why for vm in vms for why in vm.failed_starts):
            warnings.warn(f"{why}; it was started again", stacklevel=1)  # shown although the test passes


def associations(vm: Running) -> dict[tuple[str, ...], list[str]]:
    """(its number, own port, peer's port) -> own addresses and the peer's; the primary has a star."""
    lines = [line.split() for line in vm.need("cat /proc/net/sctp/assocs").splitlines()[1:]]
    return {(one[6], *one[11:13]): [word for word in one[13:] if "10.7." in word] for one in lines}


def wanted(vm: Running) -> list[list[str]]:
    """The addresses of associations with all other nodes."""
    own, *peers = (
        addresses(node) for node in sorted(range(1, len(CABLES) + 1), key=lambda node: node != number(vm))
    )
    return [[*own, f"*{first}", second] for first, second in peers]


def ahead(vm: Running) -> float:
    """Seconds from the controller's monotonic clock to the machine's, to some 10 ms."""
    asked = time.monotonic()
    there = float(vm.need("cat /proc/uptime").split()[0])
    return there - (asked + time.monotonic()) / 2


def sent(vm: Running) -> list[int]:
    """Packets that left by each of the two cards."""
    return [int(word) for word in vm.need("cat /sys/class/net/data[12]/statistics/tx_packets").split()]


def await_load(vm: Running) -> None:
    """Until the node takes locks over network 1; raises RunError when it does not."""
    for _ in range(STRETCHES):
        before = sent(vm)
        counter = "/sys/class/net/data1/statistics/tx_packets"
        vm.need(f"until [ $(cat {counter}) -gt {before[0] + WARM} ]; do sleep 0.2; done", START_S)
        first, second = (now - then for now, then in zip(sent(vm), before, strict=True))
        if first > 2 * second:
            return
    raise RunError(f"{vm.machine.name}: network 2 is in use before network 1 is cut")


def outage(vms: list[Running]) -> list[Waits]:
    """Nodes 2 and 3 take locks while network 1 is cut and healed; raises RunError where a lock fails."""
    master, *users = vms
    each(vms, lambda vm: vm.need(f"rm -f {STOP}; {ACTIVE}", HEALED_S))
    clocks = each(users, ahead)

    def load(vm: Running) -> Times:
        times: Times = json.loads(vm.need(f"python3 {NODE.name} load {vm.machine.name} {STOP}", HEALED_S))
        return times

    with ThreadPoolExecutor() as pool:
        loads = [pool.submit(load, vm) for vm in users]
        each(users, await_load)
        time.sleep(QUIET_S)
        cut = time.monotonic()
        master.need(CUT)
        effect_s = time.monotonic() + EFFECT_S - cut
        time.sleep(CUT_S)
        master.need(HEAL)
        time.sleep(AFTER_S)
        each(users, lambda vm: vm.need(f"touch {STOP}"))
        return [waits(one.result(), cut + clock, effect_s) for one, clock in zip(loads, clocks, strict=True)]
