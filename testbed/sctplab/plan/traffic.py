# SPDX-License-Identifier: GPL-2.0
"""From a flow to the programs that make it: a receiver, a sender, and what both need beforehand. Pure."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sctplab.paths import AGENT
from sctplab.plan import packaged
from sctplab.plan.link_commands import Command, address, command
from sctplab.spec.model import (
    BY_KERNEL,
    OF_A_PATH,
    PROGRAM,
    SEVERAL_PATHS,
    USRSCTP_RECEIVES,
    USRSCTP_SENDS,
    WITH_USRSCTP,
    Act,
    Flow,
    Path,
    Topology,
)

PORT = 5000
ETHERNET = 14
SCTP_COMMON, DATA_CHUNK = 12, 16
TCP_WITH_TIMESTAMPS = 32
UDP = 8
SCTP_KINDS = (*BY_KERNEL, *WITH_USRSCTP, "iperf3-sctp", PROGRAM)  # packets as SCTP fills them
UDP_PORT = 9899  # of both ends where SCTP travels in UDP
MPTCP_SUBFLOWS = 8
TCP_CONGESTION = 13  # the socket option
# Socket buffers are capped by these; the TCP ones let auto-tuning reach the same size.
BUFFER_CAP = 64 << 20
# Pages that all TCP sockets of both hosts may hold. The kernel takes a 16th of UML's memory, which two MPTCP
# ends with buffers of 16 MB exceed, and then closes their windows. SCTP's default is this.
TCP_MEM = "49152 65536 98304"
# Of flows with acts: the sender's port; seconds after an act that needs an association until it may end,
# after the last act until none is waited for, and until all is given up; smallest message.
FROM_PORT, SETTLED_S, AFTER_ACTS_S, PATIENCE_S, LEAST_B = 6000, 0.1, 10.0, 200.0, 24
OF_STREAMS = ("reset-streams",)
LEVELS = {"socket": 1, "ip": 0, "ipv6": 41, "sctp": 132}
SOL_SOCKET, SCTP = LEVELS["socket"], LEVELS["sctp"]
SNDBUFFORCE, RCVBUFFORCE = 32, 33  # socket options, then SCTP's
INITMSG, NODELAY, DELAYED_SACK = 2, 3, 16
PYTHON = packaged.PYTHON


@dataclass(frozen=True)
class Process:
    """READY: text in a line of output that says it is up; "" = up once started."""

    where: str
    argv: tuple[str, ...]
    ready: str = ""


@dataclass(frozen=True)
class Means:
    """Common to all flows of a run: path of mpflow, seed of payloads, interval of time series (0 = none)."""

    mpflow: str
    payload_seed: int
    series_ms: int = 0

    def program(self, usrsctp: bool) -> str:
        """mpflow, or the one that brings its SCTP with it."""
        return f"{self.mpflow}-usrsctp" if usrsctp else self.mpflow


@dataclass(frozen=True)
class Load:
    """A flow's processes. STEADY: they sleep while they wait, so virtual time may ignore CPU use."""

    name: str
    start_s: float
    background: bool
    receiver: Process
    sender: Process
    setup: tuple[Command, ...] = ()
    steady: bool = True


def parts(flow: Flow, topology: Topology) -> dict[str, tuple[str, ...]]:
    """The transfers that make the flow: name -> paths. Several, of one path each, where it is striped."""
    paths = used_paths(flow, topology)
    if flow.kind == "sctp-striped":
        return {f"{flow.name}.{path}": (path,) for path in paths}
    return {flow.name: paths}


def used_paths(flow: Flow, topology: Topology) -> tuple[str, ...]:
    """The flow's paths; by default all, or the first for what knows only one."""
    every = tuple(path.name for path in topology.paths)
    chosen = flow.paths or every
    return chosen if flow.kind in SEVERAL_PATHS else chosen[:1]


def option(name: str, value: object | None) -> list[str]:
    return [] if value is None else [f"--{name}", f"{value:g}" if isinstance(value, float) else str(value)]


def switch(name: str, on: bool) -> list[str]:
    return [f"--{name}"] if on else []


def raw(options: tuple[str, ...] | None) -> list[str]:
    """Socket options that mpflow has no name for."""
    return [word for one in options or () for word in ("--sockopt", one)]


def congestion(flow: Flow) -> list[str]:
    """TCP_CONGESTION of the sender."""
    return raw((f"tcp:{TCP_CONGESTION}:{flow.congestion.encode().hex()}",)) if flow.congestion else []


def common_commands() -> list[Command]:
    """Buffer limits, in all namespaces that know them."""
    caps = [command("", f"sysctl -q -w net.core.{kind}mem_max={BUFFER_CAP}") for kind in "rw"]
    caps.append(Command("", ("sysctl", "-q", "-w", f"net.ipv4.tcp_mem={TCP_MEM}")))
    for host in ("host1", "host2"):
        for kind in "rw":
            caps.append(
                Command(host, ("sysctl", "-q", "-w", f"net.ipv4.tcp_{kind}mem=4096 131072 {BUFFER_CAP}"))
            )
    return caps


def mpflow(flow: Flow, topology: Topology, index: int, means: Means) -> tuple[Load, ...]:
    """sctp, tcp, mptcp and usrsctp; one mpflow each side for every part of the flow."""
    return tuple(
        mpflow_pair(flow, name, paths, topology, index, means)
        for name, paths in parts(flow, topology).items()
    )


def mpflow_pair(
    flow: Flow, name: str, paths: tuple[str, ...], topology: Topology, index: int, means: Means
) -> Load:
    """Part NAME of a flow, over PATHS; mptcp connects over the first and is told of the others."""
    sender, receiver = flow.hosts
    listed = paths if over_sctp(flow) else paths[:1]
    near = ",".join(address(topology, sender, path) for path in listed)
    far = ",".join(address(topology, receiver, path) for path in listed)
    every = ",".join(address(topology, receiver, path) for path in paths)
    both = ["--port", str(PORT + index), "--proto", "sctp" if over_sctp(flow) else flow.kind]
    both += option("sndbuf", flow.sndbuf_kb * 1024) + option("rcvbuf", flow.rcvbuf_kb * 1024)
    recv = [means.program(flow.kind in USRSCTP_RECEIVES), "recv", "--bind", every, *both]
    recv += option("sack-delay", flow.sack_delay_ms) + option("sack-freq", flow.sack_freq)
    recv += option("sleep", flow.reader_sleeps_s) + cmt_options(flow, sends=False)
    recv += switch("messages-log", flow.message_log) + option("series", means.series_ms / 1000 or None)
    recv += switch("progress-log", flow.kind == "sctp-striped") + raw(flow.receiver_sockopts)
    send = [means.program(flow.kind in USRSCTP_SENDS), "send", "--bind", near, "--to", far]
    send += [*both, *end_options(flow), *cmt_options(flow, sends=True)]
    send += option("size", flow.message_b) + option("seed", means.payload_seed)
    send += option("interval-us", round(flow.interval_ms * 1000) or None)
    for which in ("initial", "min", "max"):
        send += option(f"rto-{which}", getattr(flow, f"rto_{which}_ms"))
    send += option("pmr", flow.pmr) + option("hb-interval", flow.hb_interval_ms)
    send += switch("nodelay", flow.nodelay) + switch("unordered", flow.unordered)
    send += option("streams", flow.streams if flow.streams > 1 else None)
    send += option("rtx-policy", flow.rtx_policy) + option("dormant-policy", flow.dormant_policy)
    send += option("failover-heartbeat", flow.failover_heartbeat) + congestion(flow)
    send += option("primary", flow.primary and address(topology, receiver, flow.primary)) + raw(flow.sockopts)
    ready = '"event": "ready"'
    return Load(name, flow.start_s, flow.background, Process(receiver, tuple(recv), ready),
                Process(sender, tuple(send)), preparations(flow, topology, paths))  # fmt: skip


def cmt_options(flow: Flow, sends: bool) -> list[str]:
    """At both ends; but a kernel needs no cmt to receive from usrsctp, and none needs cmt_sack to send."""
    cmt = sends or flow.kind != "usrsctp-to-sctp"
    cmt_sack = not sends or flow.kind in USRSCTP_SENDS  # there it is a setting of the whole program
    return option("cmt", flow.cmt if cmt else None) + option("cmt-sack", flow.cmt_sack if cmt_sack else None)


def over_sctp(flow: Flow) -> bool:
    """Whether mpflow is to open SCTP associations."""
    return flow.kind in (*BY_KERNEL, *WITH_USRSCTP)


def end_options(flow: Flow) -> list[str]:
    """How long it lasts; a background flow without an end outlives the others and is stopped."""
    if flow.messages is not None:
        return ["--messages", str(flow.messages)]
    if flow.size_mb is not None:
        return ["--bytes", str(round(flow.size_mb * 1e6))]
    if flow.send_at_s is not None:
        return ["--at", ",".join(f"{moment:.12g}" for moment in flow.send_at_s)]
    return option("duration", flow.duration_s or 86400.0)


def preparations(flow: Flow, topology: Topology, paths: tuple[str, ...]) -> tuple[Command, ...]:
    """Commands before the flow starts, in addition to common_commands."""
    if flow.kind in BY_KERNEL:
        return ()
    return mptcp_commands(flow, topology, paths) if flow.kind == "mptcp" else encapsulation(flow)


def encapsulation(flow: Flow) -> tuple[Command, ...]:
    """UDP encapsulation (RFC 6951) towards usrsctp: the kernel's port and, if it connects, the peer's."""
    sender, receiver = flow.hosts
    needed = {
        "usrsctp-to-sctp": [(receiver, "udp_port")],
        "sctp-to-usrsctp": [(sender, "udp_port"), (sender, "encap_port")],
    }.get(flow.kind, [])
    return tuple(command(host, f"sysctl -q -w net.sctp.{key}={UDP_PORT}") for host, key in needed)


def mptcp_commands(flow: Flow, topology: Topology, paths: tuple[str, ...]) -> tuple[Command, ...]:
    """The receiver announces its other addresses; the sender opens one subflow to each."""
    sender, receiver = flow.hosts
    limits = f"ip mptcp limits set subflows {MPTCP_SUBFLOWS} add_addr_accepted {MPTCP_SUBFLOWS}"
    announced = [
        f"ip mptcp endpoint add {address(topology, receiver, path)} id {number} signal"
        for number, path in enumerate(paths[1:], 1)
    ]
    return (
        command(sender, limits),
        command(receiver, limits),
        *(command(receiver, line) for line in announced),
    )


def iperf3(flow: Flow, topology: Topology, index: int, means: Means) -> tuple[Load, ...]:
    """iperf3, as others measure, on one path. With --sctp it spins between sends, so it is not steady."""
    sender, receiver = flow.hosts
    path = used_paths(flow, topology)[0]
    near, far = address(topology, sender, path), address(topology, receiver, path)
    port = str(PORT + index)
    sctp = flow.kind == "iperf3-sctp"
    seconds = str(round(flow.duration_s or 86400))
    end = ["-n", str(round(flow.size_mb * 1e6))] if flow.size_mb else ["-t", seconds]
    server = ("iperf3", "-s", "-1", "--forceflush", "-B", far, "-p", port)
    client = ("iperf3", "-c", far, "-B", near, "-p", port, *end, "-l", str(flow.message_b), "-J")
    made = Load(
        flow.name,
        flow.start_s,
        flow.background,
        Process(receiver, server, "Server listening"),
        Process(sender, (*client, "--sctp") if sctp else client),
        steady=not sctp,
    )
    return (made,)


def with_acts(flow: Flow, topology: Topology, index: int, means: Means) -> tuple[Load, ...]:
    """The agent's own acts.py at both ends."""
    sender, receiver = flow.hosts
    paths = used_paths(flow, topology)
    at = {host: [address(topology, host, path) for path in paths] for host in flow.hosts}
    acts = flow.acts or ()
    until_s = max((act.at_s for act in acts), default=0.0) + AFTER_ACTS_S
    sizes = sizes_of(flow)
    plan = {
        "to": at[receiver],
        "port": PORT + index,
        "from_port": FROM_PORT + index,
        "many": bool(flow.many),
        "messages": flow.messages or math.ceil((flow.size_mb or 0) * 1e6 * len(sizes) / sum(sizes)),
        "sizes": sizes,
        "interval_s": flow.interval_ms / 1000,
        "streams": flow.streams,
        "unordered": flow.unordered,
        "open_s": max(
            (act.at_s + SETTLED_S for act in acts if act.action in OF_A_PATH + OF_STREAMS), default=0.0
        ),
        "until_s": until_s,
        "end_s": until_s + PATIENCE_S,
    }
    own = {sender: sent_options(flow), receiver: received_options(flow)}

    def program(host: str, role: str, end: str, ready: str) -> Process:
        own_acts = [
            [act.at_s, act.action, act.path and act_address(act, topology, flow, host)]
            for act in sorted(acts, key=lambda act: act.at_s)
            if act.end == end
        ]
        whole = {**plan, "bind": at[host], "options": own[host], "acts": own_acts}
        return Process(host, (*PYTHON, str(AGENT / "acts.py"), role, json.dumps(whole)), ready)

    made = Load(
        flow.name,
        flow.start_s,
        flow.background,
        program(receiver, "recv", "receiver", '"event": "ready"'),
        program(sender, "send", "sender", ""),
    )
    return (made,)


def act_address(act: Act, topology: Topology, flow: Flow, host: str) -> str:
    """The peer's for primary, else the end's own."""
    other = flow.hosts[1 - flow.hosts.index(host)]
    return address(topology, other if act.action == "primary" else host, act.path or "")


def sizes_of(flow: Flow) -> list[int]:
    """Of the messages, in turn."""
    b = flow.message_b
    return [b, max(LEAST_B, b // 9), b, LEAST_B, max(LEAST_B, b // 2)] if flow.mixed else [b]


Option = tuple[int, int, str]


def both_options(flow: Flow) -> list[Option]:
    found = [
        (SOL_SOCKET, SNDBUFFORCE, struct.pack("=i", flow.sndbuf_kb * 1024).hex()),
        (SOL_SOCKET, RCVBUFFORCE, struct.pack("=i", flow.rcvbuf_kb * 1024).hex()),
    ]
    return [*found, (SCTP, NODELAY, struct.pack("=i", 1).hex())] if flow.nodelay else found


def sent_options(flow: Flow) -> list[Option]:
    streams = (SCTP, INITMSG, struct.pack("=4H", flow.streams, 0, 0, 0).hex())
    return [*both_options(flow), streams, *numbered(flow.sockopts)]


def received_options(flow: Flow) -> list[Option]:
    found = both_options(flow)
    if flow.sack_delay_ms is not None or flow.sack_freq is not None:
        freq = 1 if flow.sack_delay_ms == 0 else flow.sack_freq or 0
        found.append((SCTP, DELAYED_SACK, struct.pack("=iII", 0, flow.sack_delay_ms or 0, freq).hex()))
    return [*found, *numbered(flow.receiver_sockopts)]


def numbered(options: tuple[str, ...] | None) -> Iterator[Option]:
    """sctp:21:00 as (132, 21, "00")."""
    for one in options or ():
        level, option, value = one.split(":")
        yield int(level) if level.isdigit() else LEVELS[level], int(option), value


def udp(flow: Flow, topology: Topology, index: int, means: Means) -> tuple[Load, ...]:
    """Constant-rate background datagrams by the agent's own udp.py."""
    sender, receiver = flow.hosts
    path = used_paths(flow, topology)[0]
    near, far = address(topology, sender, path), address(topology, receiver, path)
    program = [*PYTHON, str(AGENT / "udp.py")]
    recv = (*program, "recv", far, str(PORT + index))
    rate, seconds = str(flow.rate_mbit), f"{flow.duration_s or 86400:g}"
    send = (*program, "send", near, far, str(PORT + index), rate, str(flow.message_b), seconds)
    made = Load(
        flow.name, flow.start_s, flow.background, Process(receiver, recv, "ready"), Process(sender, send)
    )
    return (made,)


def program(flow: Flow, topology: Topology, index: int, means: Means) -> tuple[Load, ...]:
    """A program that people run, by the agent's own drive.py at both ends."""
    sender, receiver = flow.hosts
    made = Load(
        flow.name,
        flow.start_s,
        flow.background,
        Process(receiver, packaged.command(flow, topology, "server"), '"event": "ready"'),
        Process(sender, packaged.command(flow, topology, "client")),
        steady=not packaged.polls(flow),
    )
    return (made,)


KINDS: dict[str, Callable[[Flow, Topology, int, Means], tuple[Load, ...]]] = {
    "sctp": mpflow,
    "sctp-striped": mpflow,
    "sctp-acts": with_acts,
    "usrsctp": mpflow,
    "usrsctp-to-sctp": mpflow,
    "sctp-to-usrsctp": mpflow,
    "tcp": mpflow,
    "mptcp": mpflow,
    "iperf3": iperf3,
    "iperf3-sctp": iperf3,
    "udp": udp,
    PROGRAM: program,
}


def loads(flow: Flow, topology: Topology, index: int, means: Means) -> tuple[Load, ...]:
    """The processes of flow number INDEX, in the order of its parts."""
    return KINDS[flow.kind](flow, topology, index, means)


def payload_share(kind: str, path: Path, message_b: int) -> float:
    """Payload bytes per byte that netem's rate counts, in packets as full as the messages allow.

    SCTP: n x message / (14 + IP + 12 + n x (16 + message padded to 4)), n chunks as fit the MTU; a message
    too long for one packet travels in full ones; with usrsctp 8 bytes of UDP are in each. TCP, MPTCP:
    MTU - IP - 32 of MTU + 14.
    """
    ip = 20 if path.family == "ipv4" else 40
    if kind not in SCTP_KINDS:
        return (path.mtu - ip - TCP_WITH_TIMESTAMPS) / (path.mtu + ETHERNET)
    headers = ip + SCTP_COMMON + (UDP if kind in WITH_USRSCTP else 0)
    room = path.mtu - headers
    chunk = DATA_CHUNK + (message_b + 3) // 4 * 4
    if chunk > room:
        return (room - DATA_CHUNK) / (path.mtu + ETHERNET)
    chunks = room // chunk
    return chunks * message_b / (ETHERNET + headers + chunks * chunk)
