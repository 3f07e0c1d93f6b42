# SPDX-License-Identifier: GPL-2.0
"""The specification of a run: frozen data, no I/O. A RunSpec has everything that decides a run's outcome.

Units are part of the names: _mbit (10^6 bit/s), _ms, _s, _kb (1024 bytes), _mb (10^6 bytes), _pct.
Two hosts, host1 and host2, are joined by paths; "forward" is host1 -> host2.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
from dataclasses import dataclass, field
from typing import Any

from sctplab.spec.schema import (
    At,
    build,
    choice,
    count,
    flag,
    moments,
    names,
    number,
    plain,
    scalars,
    settings,
    table,
    tables,
    text,
)

SPEC_FORMAT = 1
HOSTS = ("host1", "host2")
FLAVOURS = ("stock", "patched")
USUAL_BASE = os.environ.get("SCTPMP_BASE", "6.12")  # of all that names none: how tests run on another one
# debug: with the kernel's own checks of memory, locks and life of objects; debian: the distribution's own
BUILDS = ("plain", "debug", "debian")
NICS = ("virtio", "e1000e", "igb")
NAME = text(r"[a-z][a-z0-9_-]{0,10}", "a name of 1 to 11 small letters, digits, - or _")
SOCKOPTS = names(
    "socket options such as sctp:21:00 (LEVEL:OPTION:HEX)", r"[a-z0-9]+:[0-9]+:([0-9a-fA-F]{2})+"
)
PEER = rf"({'|'.join(FLAVOURS)})-[A-Za-z0-9][A-Za-z0-9._+-]*"
LABEL = text(r"[A-Za-z0-9][A-Za-z0-9._+-]*", "a name of letters, digits and . _ + -")
BUFFER_KB = 16384  # default socket buffer: 16 MB, several times the largest bandwidth-delay product here


@dataclass(frozen=True)
class GeModel:
    """Gilbert-Elliott loss: p good->bad, r bad->good, one_h loss in bad, one_k loss in good (all percent)."""

    p: float = field(metadata=number(0, 100, "percent"))
    r: float = field(metadata=number(0, 100, "percent"))
    one_h: float = field(default=100.0, metadata=number(0, 100, "percent"))
    one_k: float = field(default=0.0, metadata=number(0, 100, "percent"))


@dataclass(frozen=True)
class Direction:
    """One direction of a path: what one netem on the middle's egress interface does."""

    rate_mbit: float = field(metadata=number(0.001, 100000, "Mbit/s"))
    delay_ms: float = field(default=0.0, metadata=number(0, 60000, "ms"))
    jitter_ms: float = field(default=0.0, metadata=number(0, 60000, "ms"))
    loss_pct: float = field(default=0.0, metadata=number(0, 100, "percent"))
    gemodel: GeModel | None = field(default=None, metadata=table(GeModel))
    reorder_pct: float = field(default=0.0, metadata=number(0, 100, "percent"))
    queue_pkts: int = field(default=1000, metadata=count(1, 1000000, "packets"))
    ecn: bool | None = field(default=None, metadata=flag())
    hole_b: int | None = field(default=None, metadata=count(28, 65535, "bytes of an IP packet"))
    seed: int | None = field(
        default=None, metadata=count(0, 2**32 - 1, "seed; left out: from the run's seed")
    )

    def validate(self, at: At) -> None:
        if self.gemodel and self.loss_pct:
            raise at("gemodel").refuse("gemodel and loss_pct", "one of the two", "remove loss_pct")
        if self.reorder_pct and not self.delay_ms:
            raise at("reorder_pct").refuse(self.reorder_pct, "a delay_ms above 0 to overtake", "set delay_ms")
        if self.ecn and not (self.loss_pct or self.gemodel):
            raise at("ecn").refuse(self.ecn, "losses to turn into marks", "set loss_pct or remove ecn")
        if self.jitter_ms > self.delay_ms:
            raise at("jitter_ms").refuse(self.jitter_ms, "at most delay_ms", "lower it or raise delay_ms")


@dataclass(frozen=True)
class Path:
    name: str = field(metadata=NAME)
    forward: Direction = field(metadata=table(Direction))
    reverse: Direction = field(metadata=table(Direction))
    mtu: int = field(default=1500, metadata=count(576, 65535, "bytes"))
    family: str = field(default="ipv4", metadata=choice("ipv4", "ipv6"))


@dataclass(frozen=True)
class Bottleneck:
    """A link that PATHS share: one queue each way, in addition to the queues of each path."""

    name: str = field(metadata=NAME)
    paths: tuple[str, ...] = field(metadata=names("path names"))
    forward: Direction = field(metadata=table(Direction))
    reverse: Direction = field(metadata=table(Direction))

    def validate(self, at: At) -> None:
        if not self.paths:
            raise at("paths").refuse(list(self.paths), "at least one path")
        unique(list(self.paths), at("paths"))


@dataclass(frozen=True)
class Topology:
    """Paths, and what the sender's segmentation offload does to them.

    none: every packet is built as it crosses. host: the sender builds super-packets that are cut before
    the network, as a NIC does. whole: super-packets cross, and are queued and lost, whole, as they are
    between containers on one machine. Network cards are then left as their drivers start.
    nic: the cards of the hosts in place qemu.
    bottlenecks: None where no paths share one, so that such a spec is what it was before there were any.
    """

    paths: tuple[Path, ...] = field(metadata=tables(Path, at_least=1))
    offload: str = field(default="none", metadata=choice("none", "host", "whole"))
    nic: str | None = field(default=None, metadata=choice(*NICS))
    bottlenecks: tuple[Bottleneck, ...] | None = field(default=None, metadata=tables(Bottleneck))

    def validate(self, at: At) -> None:
        known = [path.name for path in self.paths]
        unique(known, at("paths"))
        unique(known + [one.name for one in self.shared], at("bottlenecks"))
        taken = [(i, name) for i, one in enumerate(self.shared, 1) for name in one.paths]
        for i, name in taken:
            where = at.inside(f"bottlenecks {i}")("paths")
            known_path(name, tuple(known), where)
            if [other for _, other in taken].count(name) > 1:
                raise where.refuse(name, "a path in one bottleneck at most", "remove it from the others")

    @property
    def shared(self) -> tuple[Bottleneck, ...]:
        return self.bottlenecks or ()

    @property
    def shaped(self) -> tuple[Path | Bottleneck, ...]:
        """All that has a netem each way."""
        return (*self.paths, *self.shared)

    def bottleneck(self, path: str) -> Bottleneck | None:
        """The one that the path goes through."""
        return next((one for one in self.shared if path in one.paths), None)

    def path(self, name: str) -> Path:
        return next(path for path in self.paths if path.name == name)

    def number(self, name: str) -> int:
        """1 for the first path: the number in its addresses."""
        return 1 + [path.name for path in self.paths].index(name)


# The library at the sender, at the receiver, or both; the kernel's SCTP at the other end, all in UDP.
USRSCTP_SENDS, USRSCTP_RECEIVES = ("usrsctp", "usrsctp-to-sctp"), ("usrsctp", "sctp-to-usrsctp")
WITH_USRSCTP = tuple(dict.fromkeys(USRSCTP_SENDS + USRSCTP_RECEIVES))
BY_KERNEL = ("sctp", "sctp-striped", "sctp-acts")  # the kernel's SCTP at both ends
PROGRAM = "program"  # one of testbed/programs
KINDS = (*BY_KERNEL, *WITH_USRSCTP, "tcp", "mptcp", "iperf3", "iperf3-sctp", "udp", PROGRAM)
SEVERAL_PATHS = (*BY_KERNEL, *WITH_USRSCTP, "mptcp", PROGRAM)
RIVALS = ("sctp", *WITH_USRSCTP, "tcp", "mptcp")  # whose receivers say what arrived when they are stopped
LASTS = ("size_mb", "messages", "duration_s", "send_at_s")  # ways to say how long a flow lasts
# Keys of Flow that the program of sctp-acts heeds.
KEYS_WITH_ACTS = (
    *("kind", "paths", "reverse", "start_s", "size_mb", "messages", "message_b", "interval_ms"),
    *("sndbuf_kb", "rcvbuf_kb", "nodelay", "unordered", "streams", "sack_delay_ms", "sack_freq"),
    *("sockopts", "receiver_sockopts", "acts", "many", "mixed"),
)
SOCKET_TIME = count(1, 3600000, "ms")
OF_A_PATH = ("address-del", "address-add", "primary", "peer-primary")
ALONE = ("pause", "resume", "abort", "close", "connect", "reset-streams")
OF_A_RECEIVER, OF_A_SENDER = ("pause", "resume"), ("close", "connect")


@dataclass(frozen=True)
class Act:
    """Something that a program of a flow of kind sctp-acts does, at_s seconds after it began; see acts.py.

    pause, resume: the receiver does not read, reads again. abort, close: the association. connect: the sender
    makes a new one from the same port. address-*: the end's own address on the path leaves the association,
    or comes back. primary, peer-primary: the end, or its peer, is to send over the path. reset-streams: all
    that the end sends on.
    """

    at_s: float = field(metadata=number(0, 86400, "seconds"))
    action: str = field(metadata=choice(*ALONE, *OF_A_PATH))
    end: str = field(default="sender", metadata=choice("sender", "receiver"))
    path: str | None = field(default=None, metadata=NAME)

    def validate(self, at: At) -> None:
        if (self.path is None) == (self.action in OF_A_PATH):
            raise at("path").refuse(self.path, "a path for " + ", ".join(OF_A_PATH) + " and for nothing else")
        if self.action in OF_A_RECEIVER and self.end != "receiver":
            raise at("end").refuse(self.end, f"the receiver for {self.action}")
        if self.action in OF_A_SENDER and self.end != "sender":
            raise at("end").refuse(self.end, f"the sender for {self.action}")


@dataclass(frozen=True)
class Flow:
    """One transfer from host1 to host2. Exactly one of LASTS unless background."""

    name: str = field(metadata=NAME)
    kind: str = field(default="sctp", metadata=choice(*KINDS))
    paths: tuple[str, ...] = field(default=(), metadata=names("path names"))
    reverse: bool = field(default=False, metadata=flag())
    background: bool = field(default=False, metadata=flag())
    rival: bool | None = field(default=None, metadata=flag())
    start_s: float = field(default=0.0, metadata=number(0, 86400, "seconds after the start"))
    size_mb: float | None = field(default=None, metadata=number(0.001, 1e6, "MB"))
    messages: int | None = field(default=None, metadata=count(1, 10**9, "messages"))
    duration_s: float | None = field(default=None, metadata=number(0.001, 86400, "seconds"))
    send_at_s: tuple[float, ...] | None = field(default=None, metadata=moments(86400))
    message_b: int = field(default=1400, metadata=count(24, 1 << 20, "bytes"))
    interval_ms: float = field(default=0.0, metadata=number(0, 3600000, "ms between messages"))
    rate_mbit: float | None = field(default=None, metadata=number(0.001, 100000, "Mbit/s, udp only"))
    message_log: bool = field(default=False, metadata=flag())
    sndbuf_kb: int = field(default=BUFFER_KB, metadata=count(4, 1 << 20, "KB"))
    rcvbuf_kb: int = field(default=BUFFER_KB, metadata=count(4, 1 << 20, "KB"))
    nodelay: bool = field(default=False, metadata=flag())
    unordered: bool = field(default=False, metadata=flag())
    streams: int = field(default=1, metadata=count(1, 65535, "streams"))
    rto_initial_ms: int | None = field(default=None, metadata=SOCKET_TIME)
    rto_min_ms: int | None = field(default=None, metadata=SOCKET_TIME)
    rto_max_ms: int | None = field(default=None, metadata=SOCKET_TIME)
    hb_interval_ms: int | None = field(default=None, metadata=SOCKET_TIME)
    pmr: int | None = field(default=None, metadata=count(0, 65535, "retransmissions"))
    reader_sleeps_s: float | None = field(default=None, metadata=number(0.001, 86400, "seconds"))
    sack_delay_ms: int | None = field(default=None, metadata=count(0, 500, "ms, receiver"))
    sack_freq: int | None = field(default=None, metadata=count(1, 65535, "packets per SACK, receiver"))
    primary: str | None = field(default=None, metadata=NAME)
    rtx_policy: str | None = field(default=None, metadata=LABEL)
    failover_heartbeat: int | None = field(default=None, metadata=count(0, 1, "off, on"))
    dormant_policy: str | None = field(default=None, metadata=choice("kernel", "hop", "primary", "last"))
    cmt: str | None = field(default=None, metadata=choice("off", "base", "rpv1", "rpv2"))
    cmt_sack: str | None = field(default=None, metadata=choice("standard", "delayed", "per-path"))
    congestion: str | None = field(default=None, metadata=choice("reno", "cubic"))
    sockopts: tuple[str, ...] | None = field(default=None, metadata=SOCKOPTS)
    receiver_sockopts: tuple[str, ...] | None = field(default=None, metadata=SOCKOPTS)
    acts: tuple[Act, ...] | None = field(default=None, metadata=tables(Act))
    many: bool | None = field(default=None, metadata=flag())
    mixed: bool | None = field(default=None, metadata=flag())
    program: str | None = field(default=None, metadata=LABEL)
    run_with: str | None = field(default=None, metadata=text(r"[ -~]+", "options of sctp-multipath run"))

    def validate(self, at: At) -> None:
        ends = [key for key in LASTS if getattr(self, key) is not None]
        if len(ends) > 1 or (not ends and not self.background):
            got = " and ".join(ends) or "no end"
            raise at.refuse(got, "exactly one of " + ", ".join(LASTS), "say how long the flow lasts")
        if (self.rate_mbit is None) == (self.kind == "udp"):
            raise at("rate_mbit").refuse(self.rate_mbit, "a rate for udp flows and for no other kind")
        for key in ("messages", "send_at_s"):
            if self.kind in ("udp", "iperf3", "iperf3-sctp") and getattr(self, key) is not None:
                raise at(key).refuse(getattr(self, key), f"size_mb or duration_s for {self.kind}")
        if self.send_at_s and self.interval_ms:
            raise at("interval_ms").refuse(self.interval_ms, "none: send_at_s says when", "remove it")
        if self.kind == "udp" and not self.background:
            raise at("background").refuse(False, "background = true for udp", "it measures nothing itself")
        if self.primary is not None and self.kind != "sctp":
            raise at("primary").refuse(self.primary, f"no primary path for {self.kind}", "remove it")
        if self.kind == "sctp-striped":
            self.validate_striped(at)
        self.validate_program(at)
        self.validate_acts(at)
        self.validate_cmt(at)
        self.validate_rival(at)
        if self.kind not in SEVERAL_PATHS and len(self.paths) > 1:
            raise at("paths").refuse(list(self.paths), f"one path for {self.kind}", "keep the first")

    def validate_striped(self, at: At) -> None:
        """Only bytes that arrive in order add up, and their sum is all that is told."""
        plain_values = {"unordered": False, "streams": 1, "send_at_s": None, "message_log": False}
        for key, value in plain_values.items():
            if getattr(self, key) != value:
                raise at(key).refuse(getattr(self, key), "none for sctp-striped", "remove it")

    def validate_program(self, at: At) -> None:
        if (self.program is None) == (self.kind == PROGRAM):
            raise at("program").refuse(self.program, "a name for kind program and for no other kind")
        if self.run_with is not None and self.kind != PROGRAM:
            raise at("run_with").refuse(self.run_with, f"none for {self.kind}", "remove it")
        if self.kind == PROGRAM and not (self.messages and self.interval_ms):
            raise at("messages").refuse(self.messages, "messages and interval_ms", "add both")

    def validate_acts(self, at: At) -> None:
        """A program of its own, which knows a part of the keys only; see plan/traffic.py."""
        if self.kind != "sctp-acts":
            for key in ("acts", "many", "mixed"):
                if getattr(self, key) is not None:
                    raise at(key).refuse(getattr(self, key), f"none for {self.kind}", "remove it")
            return
        for one in dataclasses.fields(self):
            value = getattr(self, one.name)
            if one.name not in KEYS_WITH_ACTS and value != one.default and one.name != "name":
                raise at(one.name).refuse(value, "none for sctp-acts", "remove it")

    def validate_cmt(self, at: At) -> None:
        for key in ("cmt", "cmt_sack"):
            if getattr(self, key) is not None and self.kind not in (*BY_KERNEL, *WITH_USRSCTP):
                raise at(key).refuse(getattr(self, key), f"none for {self.kind}", "remove it")
        if self.cmt in ("rpv1", "rpv2") and self.kind not in USRSCTP_SENDS:
            raise at("cmt").refuse(self.cmt, f"off or base for {self.kind}")
        if self.cmt_sack == "per-path" and self.kind in WITH_USRSCTP:
            raise at("cmt_sack").refuse(self.cmt_sack, f"standard or delayed for {self.kind}")

    def validate_rival(self, at: At) -> None:
        if self.reader_sleeps_s is not None and self.kind not in RIVALS:
            raise at("reader_sleeps_s").refuse(self.reader_sleeps_s, "none for " + self.kind, "remove it")
        if self.congestion is not None and self.kind not in ("tcp", "mptcp"):
            raise at("congestion").refuse(self.congestion, f"none for {self.kind}", "remove it")
        if self.rival and not self.background:
            raise at("rival").refuse(True, "background = true beside it", "add it")
        if self.rival and self.kind not in RIVALS:
            raise at("rival").refuse(True, "a flow of kind " + ", ".join(RIVALS), "change kind or remove it")

    @property
    def hosts(self) -> tuple[str, str]:
        """(sender, receiver)."""
        return (HOSTS[1], HOSTS[0]) if self.reverse else HOSTS


BREAKING = ("cut", "carrier-down", "address-del")
HEALING = ("heal", "carrier-up", "address-add")
ACTIONS = ("cut", "heal", "change", "carrier-down", "carrier-up", "address-del", "address-add")


@dataclass(frozen=True)
class Event:
    """Something that happens to one path, at_s seconds after the start of the first flow.

    cut: every packet that reaches the middle in that direction is lost, silently; heal takes that back.
    change: new values for the direction (keys of Direction), the rest stays. carrier-*: the cable
    at HOST. address-*: the path's address at HOST.
    """

    at_s: float = field(metadata=number(0, 86400, "seconds"))
    action: str = field(metadata=choice(*ACTIONS))
    path: str = field(metadata=NAME)
    direction: str = field(default="both", metadata=choice("both", "forward", "reverse"))
    host: str = field(default="host1", metadata=choice(*HOSTS))
    values: dict[str, Any] = field(default_factory=dict, metadata=scalars())

    def validate(self, at: At) -> None:
        if bool(self.values) != (self.action == "change"):
            raise at("values").refuse(self.values, "values for change and for no other action")


@dataclass(frozen=True)
class Limits:
    """When a run is given up: virtual_s in the time of the run, wall_s in the time of the machine."""

    virtual_s: float = field(default=900.0, metadata=number(0.1, 1e6, "seconds"))
    wall_s: float = field(default=300.0, metadata=number(0.1, 86400, "seconds"))


@dataclass(frozen=True)
class Measure:
    """Sampling during the run; an interval of 0 = none."""

    sample_ms: int = field(default=0, metadata=count(0, 3600000, "ms between samples"))


@dataclass(frozen=True)
class HostSettings:
    """sysctls of each host, in the order in which they are written."""

    host1: dict[str, str] = field(default_factory=dict, metadata=settings())
    host2: dict[str, str] = field(default_factory=dict, metadata=settings())


@dataclass(frozen=True)
class RunSpec:
    """One run, complete: the same spec on the same kernel gives the same record.

    PEER: the kernel of host2, where it is another than host1's. INVENTORY: of the machines, in place remote.
    """

    format: int = field(metadata=count(SPEC_FORMAT, SPEC_FORMAT, "spec format"))
    scenario: str = field(metadata=LABEL)
    question: str = field(metadata=text(r".+", "a question"))
    place: str = field(metadata=LABEL)
    kernel: str = field(metadata=choice(*FLAVOURS))
    base: str = field(metadata=LABEL)
    variant: str = field(metadata=LABEL)
    factors: dict[str, Any] = field(metadata=scalars())
    seed: int = field(metadata=count(0, 2**32 - 1, "seed"))
    topology: Topology = field(metadata=table(Topology))
    flows: tuple[Flow, ...] = field(metadata=tables(Flow, at_least=1))
    events: tuple[Event, ...] = field(metadata=tables(Event))
    sysctl: HostSettings = field(metadata=table(HostSettings))
    limits: Limits = field(metadata=table(Limits))
    measure: Measure = field(metadata=table(Measure))
    pcap: bool = field(default=False, metadata=flag())
    build: str = field(default="plain", metadata=choice(*BUILDS))
    reference: str = field(default="", metadata=text(r".*", "the path of a CSV file"))
    peer: str | None = field(default=None, metadata=text(PEER, "FLAVOUR-BASE, such as stock-6.1"))
    inventory: str | None = field(default=None, metadata=text(r".+", "the path of an inventory"))

    def tested(self, host: str) -> tuple[str, str]:
        """(flavour, base) of the kernel that HOST runs."""
        if self.peer and host == HOSTS[1]:
            flavour, _, base = self.peer.partition("-")
            return flavour, base
        return self.kernel, self.base

    def validate(self, at: At) -> None:
        unique([flow.name for flow in self.flows], at("flows"))
        if len([flow for flow in self.flows if flow.kind in WITH_USRSCTP]) > 1:
            raise at("flows").refuse("several with usrsctp", "one: each end needs the host's only UDP port")
        if all(flow.background for flow in self.flows):
            raise at("flows").refuse("background flows only", "a flow that ends")
        known = tuple(path.name for path in self.topology.paths)
        for flow in self.flows:
            validate_paths(flow, known, at.inside(f"flows {flow.name}"))
        for i, event in enumerate(self.events, 1):
            where = at.inside(f"events {i}")
            known_path(event.path, known, where("path"))
            for one in directions(event.direction):
                if event.action == "cut" and getattr(self.topology.path(event.path), one).ecn:
                    raise where("path").refuse(event.path, "a path without ecn, which would save packets")
                changed(getattr(self.topology.path(event.path), one), event.values, where.inside("values"))

    @property
    def last_heals(self) -> tuple[Event, ...]:
        """The events that give a path back, of those at the last such moment."""
        heals = [event for event in self.events if event.action in HEALING]
        return tuple(event for event in heals if event.at_s == max(heal.at_s for heal in heals))

    @property
    def measured_flow(self) -> Flow:
        """The flow whose delays, failover and return are told: the first that is not background."""
        return next(flow for flow in self.flows if not flow.background)

    @property
    def measures_return(self) -> bool:
        """Whether it can be told when data returned to a path, which takes captures."""
        flow = self.measured_flow
        return bool(self.last_heals) and flow.kind == "sctp" and flow.message_log

    @property
    def run_id(self) -> str:
        """Readable and unique: scenario, kernel, variant, factors, seed, hash of the spec."""
        factors = "-".join(f"{key}{value}" for key, value in self.factors.items())
        parts = [
            self.scenario,
            self.base,
            self.kernel,
            self.variant,
            factors,
            f"s{self.seed}",
            self.digest[:8],
        ]
        readable = "-".join(part for part in parts if part)
        return re.sub(r"[^A-Za-z0-9._+-]", "_", readable)

    @property
    def digest(self) -> str:
        canonical = json.dumps(plain(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()


def unique(found: list[str], at: At) -> None:
    for name in found:
        if found.count(name) > 1:
            raise at.refuse(name, "names that differ", "rename one")


def validate_paths(flow: Flow, known: tuple[str, ...], at: At) -> None:
    """The paths that a flow names."""
    for name in flow.paths:
        known_path(name, known, at("paths"))
    if flow.primary is not None:
        known_path(flow.primary, flow.paths or known, at("primary"))
    for act in flow.acts or ():
        if act.path is not None:
            known_path(act.path, flow.paths or known, at("acts"))


def known_path(name: str, known: tuple[str, ...], at: At) -> None:
    if name not in known:
        raise at.refuse(name, "one of the paths " + ", ".join(known))


def directions(direction: str) -> tuple[str, ...]:
    return ("forward", "reverse") if direction == "both" else (direction,)


def changed(old: Direction, values: dict[str, Any], at: At) -> Direction:
    """OLD with VALUES in place of its own; gemodel and loss_pct replace each other."""
    merged = plain(old)
    if "gemodel" in values:
        merged.pop("loss_pct")
    if "loss_pct" in values:
        merged.pop("gemodel", None)
    return build(Direction, {**merged, **values}, at)


def derive_seed(seed: int, *purpose: str) -> int:
    """A 32-bit seed for one purpose of the run with SEED; kernel and variant take no part, so that
    all of them meet the same losses."""
    data = "/".join([str(seed), *purpose]).encode()
    return int.from_bytes(hashlib.sha256(data).digest()[:4])
