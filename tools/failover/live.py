# SPDX-License-Identifier: GPL-2.0
"""A live association: its paths by sock_diag(7), its socket's options by pidfd_getfd(2), and its traffic."""

from __future__ import annotations

import ctypes
import os
import struct
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path as File

from pathview import diag, netlink
from pathview.model import Association, Path
from sctpkernel.errors import Problem

from failover.options import ASSOCINFO, NODELAY, OURS, PEER_ADDR_PARAMS, RTOINFO
from failover.settings import DORMANT, KEYS, Settings
from failover.situation import Situation

INODE = struct.Struct("=I")
INODE_AT = 68  # in struct inet_diag_msg
PIDFD_GETFD = 438  # the system call
SCTP = 132
OWN = {name: number for name, number in OURS.items() if name in KEYS}  # of those that decide a failover
HEARTBEATS_OFF = 2
HEADERS_B, CHUNK_B = 12, 16
LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Live:
    """OPTIONS: of the socket; {} where it cannot be had, then NODELAY is None. Traffic as it was WATCHED."""

    association: Association
    options: dict[str, int] = field(default_factory=dict)
    interval_ms: float | None = None
    size_b: int | None = None

    @property
    def primary(self) -> Path:
        """The path of new data."""
        marked = [path for path in self.association.paths if "active" in (path.marks or ())]
        return (marked or list(self.association.paths))[0]

    @property
    def alternate(self) -> Path | None:
        """The best of the others."""
        others = [path for path in self.association.paths if path is not self.primary]
        return min(others, key=lambda path: path.state != "active", default=None)


# --- what the kernel tells ---


def associations() -> list[tuple[Association, int]]:
    """All of this network namespace with the inodes of their sockets; raises Problem."""
    try:
        answers = list(diag.dump())
    except OSError as error:
        raise Problem(f"sock_diag: {error.strerror}; load SCTP first (modprobe sctp sctp_diag)") from error
    if diag.associations(answers) is None:
        raise Problem(
            "--assoc: the loaded SCTP is without the multipath patches and tells nothing of paths; "
            "predict with --from-sysctl and --rtt"
        )
    return with_inodes(answers)


def with_inodes(answers: Iterable[netlink.Message]) -> list[tuple[Association, int]]:
    """Each once, as diag.associations()."""
    found = {}
    for message in answers:
        if message.kind == diag.BY_FAMILY and (one := diag.association(message.payload)):
            found[diag.identity(one)] = one, INODE.unpack_from(message.payload, INODE_AT)[0]
    return list(found.values())


def chosen(
    found: list[tuple[Association, int]], identity: int | None, port: int | None
) -> tuple[Association, int]:
    """The one asked for; raises Problem."""
    established = [one for one in found if one[0].state == "established"]
    if identity is not None:
        fitting = [one for one in established if one[0].assoc_id == identity]
        said = f"--assoc: got {identity}"
    else:
        fitting = [one for one in established if port in (one[0].local_port, one[0].peer_port)]
        said = f"--port: got {port}"
    if len(fitting) == 1:
        return fitting[0]
    known = ", ".join(str(one.assoc_id) for one, _ in established) or "none here"
    expected = "one of several" if fitting else "an established association"
    raise Problem(f"{said}, {len(fitting)} associations; expected {expected}: {known} (sctp-multipath paths)")


# --- the socket ---


def holder(inode: int, proc: File = File("/proc")) -> tuple[int, int] | None:
    """(process, descriptor) that has the socket; None if none can be seen."""
    mark = f"socket:[{inode}]"
    for folder in proc.glob("[0-9]*/fd"):
        try:
            for entry in folder.iterdir():
                if os.readlink(entry) == mark:
                    return int(folder.parent.name), int(entry.name)
        except OSError:
            continue
    return None


def taken(pid: int, descriptor: int) -> int | None:
    """The socket of another process, as a descriptor of ours; None if that is not permitted."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return None
    try:
        found = LIBC.syscall(PIDFD_GETFD, handle, descriptor, 0)
    finally:
        os.close(handle)
    return found if found >= 0 else None


def option(descriptor: int, number: int, asked: bytes) -> bytes | None:
    """getsockopt() with what the kernel is asked about; None if it knows no such option."""
    buffer = ctypes.create_string_buffer(asked, len(asked))
    size = ctypes.c_uint(len(asked))
    failed = LIBC.getsockopt(descriptor, SCTP, number, buffer, ctypes.byref(size))
    return None if failed else buffer.raw[: size.value]


def options(descriptor: int, identity: int) -> dict[str, int]:
    """Those that matter, under the names of net.sctp where there is one."""
    found: dict[str, int] = {}
    if value := option(descriptor, NODELAY, bytes(4)):
        found["nodelay"] = struct.unpack("=i", value)[0]
    if value := option(descriptor, RTOINFO, struct.pack("=i12x", identity)):
        found["rto_initial"], found["rto_max"], found["rto_min"] = struct.unpack("=4x3I", value)
    if value := option(descriptor, ASSOCINFO, struct.pack("=i16x", identity)):
        found["association_max_retrans"] = struct.unpack_from("=4xH", value)[0]
    if value := option(descriptor, PEER_ADDR_PARAMS, struct.pack("=i152x", identity)):
        found["hb_interval"], found["path_max_retrans"] = struct.unpack_from("=132xIH", value)
        flags = struct.unpack_from("=146xI", value)[0]
        found["heartbeats"] = int(not flags & HEARTBEATS_OFF)
    for name, number in OWN.items():
        if value := option(descriptor, number, struct.pack("=iI", identity, 0)):
            found[name] = struct.unpack("=4xI", value)[0]
    return found


def options_of(inode: int, identity: int) -> dict[str, int]:
    """{} where the socket cannot be had."""
    place = holder(inode)
    descriptor = taken(*place) if place else None
    if descriptor is None:
        return {}
    try:
        return options(descriptor, identity)
    finally:
        os.close(descriptor)


# --- its traffic ---


def traffic(before: Association, after: Association, seconds: float) -> tuple[float, int] | None:
    """(interval in ms, bytes) of messages that were sent in between; None for none."""
    old = {path.address: path for path in before.paths}
    busiest = max(after.paths, key=lambda path: sent_since(path, old))
    chunks = sent_since(busiest, old)
    if not chunks:
        return None
    was = old[busiest.address]
    size_b = (busiest.out_bytes or 0) - (was.out_bytes or 0)
    size_b -= HEADERS_B * ((busiest.out_packets or 0) - (was.out_packets or 0))
    return seconds * 1000 / chunks, max(1, min(1400, round(size_b / chunks) - CHUNK_B))


def sent_since(path: Path, old: dict[str, Path]) -> int:
    was = old.get(path.address)
    return (path.out_chunks or 0) - (was.out_chunks or 0) if was else 0


def look(identity: int | None, port: int | None, watch_s: float) -> Live:
    """The association as it is, and its traffic of WATCH_S seconds, none for 0; raises Problem."""
    before, inode = chosen(associations(), identity, port)
    begin = time.monotonic()
    live = Live(before, options_of(inode, before.assoc_id))
    if not watch_s:
        return live
    time.sleep(watch_s)
    after, _ = chosen(associations(), before.assoc_id, None)
    found = traffic(before, after, time.monotonic() - begin)
    if found is None:
        raise Problem(
            f"association {before.assoc_id}: sent no message in {watch_s:g} s, expected traffic; "
            "say --interval, or a longer --watch"
        )
    return replace(live, association=after, interval_ms=found[0], size_b=found[1])


# --- as the prediction takes it; pure ---


def settings_of(live: Live, host: Settings) -> Settings:
    """HOST's settings with what the association has of its own."""
    path = live.primary
    values: dict[str, int | str | None] = {
        "path_max_retrans": path.error_limit,
        "pf_retrans": path.pf_limit,
        "association_max_retrans": live.association.error_limit,
    }
    for name in ("rto_initial", "rto_min", "rto_max", "hb_interval", *OWN):
        if name in live.options:
            values[name] = live.options[name]
    if isinstance(number := values.get("dormant_policy"), int):
        values["dormant_policy"] = DORMANT[number] if number < len(DORMANT) else host.dormant_policy
    if not live.options and path.rto_ms is not None:
        values["rto_min"] = inferred_rto_min(path, host)
    known = {name: value for name, value in values.items() if value is not None}
    return replace(host, **known)  # type: ignore[arg-type]


def inferred_rto_min(path: Path, host: Settings) -> int:
    """From an RTO that is more than its round trips make it, or less than the host's least one."""
    measured_ms = ((path.srtt_us or 0) + 4 * (path.rttvar_us or 0)) / 1000
    rto_ms = path.rto_ms or host.rto_min
    if rto_ms < host.rto_min or rto_ms > 1.1 * measured_ms:
        return rto_ms
    return host.rto_min


def rtt_ms(path: Path | None, otherwise: float) -> float:
    """Without what the peer waited before it answered, where that is known."""
    us = path and (path.rtt_min_us or path.srtt_us)
    return us / 1000 if us else otherwise


def situation_of(live: Live, settings: Settings, given: Situation) -> Situation:
    """GIVEN with what is known of the association."""
    path = live.primary
    own_ms = rtt_ms(path, given.rtt_ms)
    waited_ms = max(0.0, (path.srtt_us or 0) / 1000 - own_ms)
    found = replace(
        given,
        rtt_ms=own_ms,
        alternate_rtt_ms=rtt_ms(live.alternate, own_ms),
        sack_delay_ms=max(given.sack_delay_ms, round(waited_ms)),
        nodelay=bool(live.options.get("nodelay", given.nodelay)),
        heartbeats=bool(live.options.get("heartbeats", given.heartbeats)),
        mtu=path.pmtu or given.mtu,
    )
    if live.interval_ms:
        found = replace(found, interval_ms=live.interval_ms, size_b=live.size_b or given.size_b)
    return found


def told(live: Live, situation: Situation) -> list[str]:
    """The association, in lines before the prediction."""
    one, nodelay = live.association, live.options.get("nodelay")
    socket = "its socket cannot be read (run as root): options of the host are assumed"
    if nodelay is not None:
        socket = f"SCTP_NODELAY {'set' if nodelay else 'not set: small messages wait for a SACK'}"
    return [
        f"association {one.assoc_id}, port {one.local_port} to {one.peer_port}: new data takes "
        f"{live.primary.address}, RTT {situation.rtt_ms:g} ms; alternate {situation.alternate_rtt_ms:g} ms",
        f"a message of {situation.size_b} bytes every {situation.interval_ms:.3g} ms; {socket}",
    ]
