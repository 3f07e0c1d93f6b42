# SPDX-License-Identifier: GPL-2.0
"""How Path.Max.Retrans 0, failover_heartbeat and dormant_policy behave: one case per sentence.

Standard library only. An association has two paths over the loopback interface, 127.0.0.1 and 127.0.0.2.
"""

import errno
import os
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from options import (
    ALL,
    CURRENT,
    FUTURE,
    SCTP,
    associations,
    choose,
    chosen,
    connect,
    expect,
    listening,
    one_to_many,
    one_to_one,
    option,
    path,
    refused,
    setting,
    write,
)

ASSOCINFO, ADDR_PARAMS, ADDR_INFO, ADDR_THLDS, BINDX_ADD = 1, 9, 15, 31, 100
FAILOVER_HEARTBEAT, DORMANT_POLICY, PATHMAXRXT_ZERO = 0x1281, 0x1282, 0x1284
FAILOVER_SUSPECT, FAILOVER_LINK, FAILOVER_RETURN, UNREAD_WAITS = 0x1285, 0x1286, 0x1289, 0x128C
SWITCHES = (
    "failover_heartbeat",
    "failover_suspect",
    "failover_link",
    "failover_return",
    "unread_waits",
    "autocork",
)
SWITCH_OPTIONS = (FAILOVER_HEARTBEAT, FAILOVER_SUSPECT, FAILOVER_LINK, FAILOVER_RETURN, UNREAD_WAITS)
DORMANT = ["kernel", "hop", "primary", "last"]
HB_ENABLE, PMR_ZERO = 1 << 0, 1 << 10  # flags of SCTP_PEER_ADDR_PARAMS
INACTIVE, ACTIVE = 0, 2
ENABLE_RESET, RESET_STREAMS, MAY_RESET_STREAMS, RESET_OUTGOING = 118, 119, 1, 2
PATHS = ("127.0.0.1", "127.0.0.2")


def address(host: str, port: int = 0) -> bytes:
    """struct sockaddr_in."""
    return struct.pack("=H", socket.AF_INET) + struct.pack("!H4s8x", port, socket.inet_aton(host))


def of_a_path(sock: socket.socket, host: str) -> bytes:
    """struct sockaddr_storage of the peer's address HOST, or of no address."""
    return address(host, sock.getpeername()[1]) if host else bytes(128)


def set_params(
    sock: socket.socket, pmr: int, flags: int = 0, host: str = "", assoc: int = FUTURE, hb_ms: int = 0
) -> None:
    value = struct.pack("=i128sIHIIIIBx", assoc, of_a_path(sock, host), hb_ms, pmr, 0, 0, flags, 0, 0)
    sock.setsockopt(SCTP, ADDR_PARAMS, value)


def pmr_of(sock: socket.socket, host: str = "", assoc: int = FUTURE) -> int:
    """Path.Max.Retrans by both options that tell it."""
    asked = of_a_path(sock, host)
    params = option(sock, ADDR_PARAMS, struct.pack("=i128s24x", assoc, asked))
    thresholds = option(sock, ADDR_THLDS, struct.pack("i4x128s8x", assoc, asked))
    pmr: int = struct.unpack_from("=H", params, 136)[0]
    expect(struct.unpack_from("H", thresholds, 136)[0], pmr)
    return pmr


def set_assocmaxrxt(sock: socket.socket, value: int) -> None:
    sock.setsockopt(SCTP, ASSOCINFO, struct.pack("iHHIII", 0, value, 0, 0, 0, 0))


def addr_info(sock: socket.socket, host: str) -> tuple[int, int, int, int, int]:
    """State of the path to HOST, cwnd in bytes, smoothed round trip in ticks, RTO in ms, MTU in bytes."""
    answer = option(sock, ADDR_INFO, struct.pack("=i128s20x", 0, of_a_path(sock, host)))
    state, cwnd, srtt, rto, mtu = struct.unpack_from("=i4I", answer, 132)
    return state, cwnd, srtt, rto, mtu


def info(sock: socket.socket, host: str) -> tuple[int, int]:
    """State of the path to HOST, and its RTO in ms."""
    state, _, _, rto, _ = addr_info(sock, host)
    return state, rto


def bound(sock: socket.socket, port: int = 0) -> socket.socket:
    """To both addresses."""
    sock.bind((PATHS[0], port))
    sock.setsockopt(SCTP, BINDX_ADD, address(PATHS[1], sock.getsockname()[1]))
    return sock


def two_paths() -> tuple[socket.socket, socket.socket]:
    """Both ends of an association, each with two paths, confirmed."""
    server = bound(one_to_one())
    server.listen()
    client = bound(one_to_one())
    client.connect(server.getsockname())
    peer = server.accept()[0]
    server.close()
    time.sleep(6)  # HEARTBEATs confirm the addresses
    expect([info(client, host)[0] for host in PATHS], [ACTIVE, ACTIVE])
    return client, peer


@contextmanager
def silence() -> Iterator[None]:
    """While nothing arrives anywhere."""
    netem = ["tc", "qdisc", "add", "dev", "lo", "root", "netem", "loss", "100%"]
    subprocess.run(netem, check=True)
    yield
    subprocess.run(["tc", "qdisc", "del", "dev", "lo", "root"], check=True)


def failover_is_off_by_default() -> None:
    expect([setting(name) for name in (*SWITCHES, "dormant_policy")], [*["0"] * len(SWITCHES), "kernel"])
    expect(setting("path_max_retrans"), "5")
    for name in (*SWITCH_OPTIONS, DORMANT_POLICY):
        expect([chosen(sock, option_name=name) for sock in (one_to_one(), one_to_many())], [0, 0])


def switches_are_0_or_1() -> None:
    for name in SWITCHES:
        for kept in ("1", "0"):
            write(name, kept)
            for text in ("2", "-1", "256", "x", "1x"):
                refused(errno.EINVAL, write, name, text)
                expect(setting(name), kept)


def dormant_policies_are_accepted_by_name_and_no_others() -> None:
    for policy, name in enumerate(DORMANT):
        write("dormant_policy", name + "\n")
        expect(setting("dormant_policy"), name)
        expect(chosen(one_to_many(), option_name=DORMANT_POLICY), policy)
        for text in ("", "\n", "hops", "Hop", " hop", "hop ", "1", "x" * 100):
            refused(errno.EINVAL, write, "dormant_policy", text or "\n")
            expect(setting("dormant_policy"), name)


def a_socket_keeps_its_failover_settings() -> None:
    write("failover_heartbeat", "1")
    write("failover_suspect", "1")
    write("dormant_policy", "hop")
    write("path_max_retrans", "0")
    old = one_to_one()
    write("failover_suspect", "0")
    for name, value in (("failover_heartbeat", "0"), ("dormant_policy", "last"), ("path_max_retrans", "3")):
        write(name, value)
    new = one_to_one()
    for sock, values in ((old, [1, 1, 1, 0]), (new, [0, 0, 3, 3])):
        names = (FAILOVER_HEARTBEAT, FAILOVER_SUSPECT, DORMANT_POLICY)
        expect([*(chosen(sock, option_name=name) for name in names), pmr_of(sock)], values)


def options_of_failover_take_what_they_know() -> None:
    server = listening(one_to_many())
    clients = [connect(server), connect(server)]
    for name, most in (*((name, 1) for name in SWITCH_OPTIONS), (DORMANT_POLICY, 3)):
        for value in range(most + 1):
            choose(server, value, ALL, name)
            ids = [FUTURE, *associations(server)]
            expect([chosen(server, assoc, name) for assoc in ids], [value] * 3)
        choose(server, 0, CURRENT, name)
        choose(server, 1, associations(server)[1], name)
        expect([chosen(server, assoc, name) for assoc in ids], [most, 0, 1])
        for value in (most + 1, 255, 256, 0xFFFFFFFF):
            refused(errno.EINVAL, choose, server, value, FUTURE, name)
        refused(errno.EINVAL, choose, server, 1, 2**31 - 1, name)
        refused(errno.EINVAL, server.setsockopt, SCTP, name, bytes(7))
    expect(len(clients), 2)  # alive until here


def path_max_retrans_may_be_0_and_no_less() -> None:
    write("path_max_retrans", "0")
    expect(setting("path_max_retrans"), "0")
    for text in ("-1", "x"):
        refused(errno.EINVAL, write, "path_max_retrans", text)
    expect(setting("path_max_retrans"), "0")


def zero_means_unchanged_unless_it_is_meant() -> None:
    client, _ = two_paths()
    for sock, host in ((one_to_one(), ""), (client, ""), (client, PATHS[1])):
        choose(sock, 1, option_name=PATHMAXRXT_ZERO)
        set_params(sock, 4, host=host)
        set_params(sock, 0, host=host)
        expect(pmr_of(sock, host), 4)
        set_params(sock, 0, PMR_ZERO, host)
        expect(pmr_of(sock, host), 0)
        refused(errno.EINVAL, set_params, sock, 4, PMR_ZERO, host)
        expect(pmr_of(sock, host), 0)
        thresholds = struct.pack("i4x128sHH4x", FUTURE, of_a_path(sock, host), 0, 0)
        set_params(sock, 2, host=host)
        sock.setsockopt(SCTP, ADDR_THLDS, thresholds)
        expect(pmr_of(sock, host), 2)


def the_flag_of_zero_is_one_of_many_unless_asked_for() -> None:
    """A program that never heard of it may have it set."""
    client, _ = two_paths()
    for sock, host in ((one_to_one(), ""), (one_to_many(), ""), (client, ""), (client, PATHS[1])):
        expect(chosen(sock, option_name=PATHMAXRXT_ZERO), 0)
        set_params(sock, 0, PMR_ZERO, host)
        expect(pmr_of(sock, host), 5)
        set_params(sock, 4, PMR_ZERO, host)
        expect(pmr_of(sock, host), 4)
        set_params(sock, 5, host=host)
        refused(errno.EINVAL, choose, sock, 2, FUTURE, PATHMAXRXT_ZERO)


def zero_is_for_one_path_or_for_all() -> None:
    client, _ = two_paths()
    choose(client, 1, option_name=PATHMAXRXT_ZERO)
    set_params(client, 0, PMR_ZERO, PATHS[1])
    expect([pmr_of(client, host) for host in ("", *PATHS)], [5, 5, 0])
    set_params(client, 0, PMR_ZERO)
    expect([pmr_of(client, host) for host in ("", *PATHS)], [0, 0, 0])
    with open("/proc/net/sctp/remaddr", encoding="ascii") as table:
        shown = [line.split()[4] for line in table.readlines()[1:]]
    expect(sorted(shown), ["0", "0", "5", "5"])  # of both ends, the other of which was left alone


def zero_is_for_later_associations() -> None:
    server = bound(one_to_one())
    server.listen()
    choose(server, 1, option_name=PATHMAXRXT_ZERO)
    set_params(server, 0, PMR_ZERO)
    client = bound(one_to_one())
    client.connect(server.getsockname())
    expect(pmr_of(server.accept()[0]), 0)
    expect(pmr_of(client), 5)


def association_limit_is_not_compared_with_0() -> None:
    client, _ = two_paths()
    choose(client, 1, option_name=PATHMAXRXT_ZERO)
    set_assocmaxrxt(client, 10)
    refused(errno.EINVAL, set_assocmaxrxt, client, 11)
    set_params(client, 1, 0, PATHS[0])
    refused(errno.EINVAL, set_assocmaxrxt, client, 7)
    set_params(client, 0, PMR_ZERO, PATHS[0])
    for limit in (1, 6, 10, 1000):
        set_assocmaxrxt(client, limit)
    set_params(client, 0, PMR_ZERO)
    set_assocmaxrxt(client, 10)


def one_path_that_fails_at_once_is_used_on() -> None:
    write("rto_min", "100")
    write("path_max_retrans", "0")
    client = connect(server := listening(one_to_one()))
    peer = server.accept()[0]
    client.send(b"before")
    expect(peer.recv(100), b"before")
    with silence():
        client.send(b"lost")
        time.sleep(5)
        expect(info(client, PATHS[0])[0], INACTIVE)
        client.send(b"more")
    time.sleep(10)
    expect([peer.recv(100), peer.recv(100)], [b"lost", b"more"])
    expect(info(client, PATHS[0])[0], ACTIVE)


def dropped() -> int:
    """Packets that silence() has swallowed."""
    show = ["tc", "-s", "qdisc", "show", "dev", "lo"]
    shown = subprocess.run(show, check=True, capture_output=True, text=True)
    return int(shown.stdout.partition("(dropped ")[2].partition(",")[0])


def when_silent(seconds: float) -> tuple[int, set[int]]:
    """HEARTBEATs that idle paths lost in so many seconds; their states meanwhile and after.

    Each of the two paths sends one every 1.05 to 1.15 s.
    """
    write("rto_min", "100")
    write("path_max_retrans", "0")
    client, peer = two_paths()
    set_params(client, 0, HB_ENABLE, hb_ms=1000)
    time.sleep(5)
    expect(info(client, PATHS[1]), (ACTIVE, 100))
    states = set()
    with silence():
        for _ in range(int(seconds * 20)):
            time.sleep(0.05)
            states |= {info(client, path)[0] for path in PATHS}
        lost = dropped()
    for _ in range(60):
        time.sleep(0.05)
        states |= {info(client, path)[0] for path in PATHS}
    expect(info(client, PATHS[1])[0], ACTIVE)
    peer.close()  # alive until here
    return lost, states


def one_lost_heartbeat_does_not_take_an_idle_path() -> None:
    lost, states = when_silent(1)
    expect((lost in (1, 2), states), (True, {ACTIVE}))


def two_lost_heartbeats_do() -> None:
    lost, states = when_silent(3.5)
    expect((lost >= 4, states), (True, {ACTIVE, INACTIVE}))


def path_max_retrans_of_stock_is_1_at_least() -> None:
    refused(errno.EINVAL, write, "path_max_retrans", "0")
    sock = one_to_one()
    set_params(sock, 0, PMR_ZERO)
    expect(pmr_of(sock), 5)


def settings_of_failover_are_absent_from_stock() -> None:
    for name in (*SWITCHES, "dormant_policy"):
        assert not os.path.exists(path(name)), name
    for number in (*SWITCH_OPTIONS, DORMANT_POLICY, PATHMAXRXT_ZERO):
        refused(errno.ENOPROTOOPT, choose, one_to_one(), 1, FUTURE, number)
        refused(errno.ENOPROTOOPT, chosen, one_to_one(), FUTURE, number)


CASES: dict[str, list[Callable[[], None]]] = {
    "patched": [
        failover_is_off_by_default,
        switches_are_0_or_1,
        dormant_policies_are_accepted_by_name_and_no_others,
        a_socket_keeps_its_failover_settings,
        options_of_failover_take_what_they_know,
        path_max_retrans_may_be_0_and_no_less,
        zero_means_unchanged_unless_it_is_meant,
        the_flag_of_zero_is_one_of_many_unless_asked_for,
        zero_is_for_one_path_or_for_all,
        zero_is_for_later_associations,
        association_limit_is_not_compared_with_0,
        one_path_that_fails_at_once_is_used_on,
        one_lost_heartbeat_does_not_take_an_idle_path,
        two_lost_heartbeats_do,
    ],
    "stock": [path_max_retrans_of_stock_is_1_at_least, settings_of_failover_are_absent_from_stock],
}
