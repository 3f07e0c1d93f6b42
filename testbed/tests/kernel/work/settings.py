# SPDX-License-Identifier: GPL-2.0
"""How the settings of retransmissions behave, and all settings and counters: one case per sentence.

Standard library only.
"""

import errno
import os
import socket
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

from commands import LIBC
from counters import NET, read
from options import (
    ALL,
    CLONE_NEWNET,
    CURRENT,
    FUTURE,
    RTX_POLICY,
    SCTP,
    aborts,
    associations,
    choose,
    chosen,
    connect,
    expect,
    listening,
    namespace,
    one_to_many,
    one_to_one,
    option,
    path,
    peel_off,
    refused,
    setting,
    shown_counters,
    write,
)

KERNEL, SAME, ALTERNATE, FR_SAME_RTO_ALT = range(4)
NAMES = ["kernel", "same", "alternate", "fr-same-rto-alt", "ssthresh", "cwnd", "asap", "lossrate"]
COUNTERS = {
    "FastRecoveries",
    "RtxSame",
    "RtxAlternate",
    "RtxFallback",
    "MultipleFastRtx",
    "FailoverProbes",
    "Suspects",
    "SuspectsMoved",
    "Copies",
    "PathReturns",
    "DormantMoves",
    "CmtChunks",
    "StaleSacks",
    "CutsUndone",
    "RackLost",
    "LossProbes",
    "SchedWaits",
    "SentAhead",
    "LinkFailures",
    "TsnLimit",
}
PROFILES = Path(__file__).parents[4] / "sysctl"


def defaults_are_off() -> None:
    expect(setting("available_rtx_policies").split(), NAMES)
    expect(setting("rtx_policy"), "kernel")
    expect(setting("multiple_fast_rtx"), "0")
    expect(chosen(one_to_one()), KERNEL)
    expect(chosen(one_to_many()), KERNEL)


def list_of_policies_is_read_only() -> None:
    refused(errno.EACCES, write, "available_rtx_policies", "same")


def every_listed_policy_is_accepted() -> None:
    for policy, name in enumerate(NAMES):
        for text in (name, name + "\n"):
            write("rtx_policy", "kernel" if policy else "same")
            write("rtx_policy", text)
            expect(setting("rtx_policy"), name)
        expect(chosen(one_to_many()), policy)


def unknown_policy_is_refused_and_old_one_kept() -> None:
    write("rtx_policy", "alternate")
    for text in ("\n", "sam", "sames", "Same", " same", "same ", "1", "none", "kernel same", "x" * 100):
        refused(errno.EINVAL, write, "rtx_policy", text)
        expect(setting("rtx_policy"), "alternate")


def longest_policy_with_more_behind_is_refused() -> None:
    for more in ("x", "x" * 4, "x" * 5, "x" * 100):
        refused(errno.EINVAL, write, "rtx_policy", "fr-same-rto-alt" + more)
    expect(setting("rtx_policy"), "kernel")


def multiple_fast_rtx_is_0_or_1() -> None:
    for kept in ("1", "0"):
        write("multiple_fast_rtx", kept)
        for text in ("2", "-1", "256", "257", "x", "1x"):
            refused(errno.EINVAL, write, "multiple_fast_rtx", text)
            expect(setting("multiple_fast_rtx"), kept)


def settings_are_of_the_namespace() -> None:
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    write("rtx_policy", "same")
    write("multiple_fast_rtx", "1")
    namespace()
    expect((setting("rtx_policy"), setting("multiple_fast_rtx")), ("kernel", "0"))
    expect(chosen(one_to_one()), KERNEL)
    write("rtx_policy", "alternate")
    assert LIBC.setns(home, CLONE_NEWNET) == 0
    os.close(home)
    expect((setting("rtx_policy"), setting("multiple_fast_rtx")), ("same", "1"))
    expect(chosen(one_to_one()), SAME)


def a_socket_keeps_what_it_had_at_creation() -> None:
    write("rtx_policy", "same")
    sockets = [one_to_one(), one_to_many(), one_to_one(socket.AF_INET6), one_to_many(socket.AF_INET6)]
    write("rtx_policy", "alternate")
    expect([chosen(sock) for sock in sockets], [SAME] * 4)
    expect(chosen(one_to_one()), ALTERNATE)


def associations_have_their_socket_s_policy() -> None:
    server = listening(one_to_many())
    write("rtx_policy", "same")
    client = connect(server)
    write("rtx_policy", "alternate")
    expect(chosen(client), SAME)
    expect(chosen(server, associations(server)[0]), KERNEL)


def an_accepted_socket_inherits(family: int = socket.AF_INET) -> None:
    write("rtx_policy", "same")
    server = listening(one_to_one(family))
    write("rtx_policy", "alternate")
    first = connect(server)
    choose(server, FR_SAME_RTO_ALT)
    expect(chosen(server), FR_SAME_RTO_ALT)
    second = connect(server)
    accepted = [server.accept()[0], server.accept()[0]]
    # the association has what its socket had when it began, the socket what the listener has when it accepts
    expect([chosen(sock) for sock in accepted], [SAME, FR_SAME_RTO_ALT])
    for client in (first, second):
        aborts(client)
        client.close()  # aborts: no association any more
    expect([chosen(sock) for sock in accepted], [FR_SAME_RTO_ALT] * 2)


def an_accepted_socket_inherits_with_ipv6() -> None:
    an_accepted_socket_inherits(socket.AF_INET6)


def a_peeled_off_socket_inherits(family: int = socket.AF_INET) -> None:
    server = listening(one_to_many(family))
    choose(server, SAME)
    clients = [connect(server), connect(server)]
    first, second = associations(server)
    choose(server, ALTERNATE, second)
    peeled = [peel_off(server, first), peel_off(server, second)]
    # whatever the id: like a one-to-one socket
    expect([chosen(sock) for sock in peeled], [SAME, ALTERNATE])
    choose(peeled[0], FR_SAME_RTO_ALT, first)
    expect([chosen(sock, first) for sock in peeled], [FR_SAME_RTO_ALT, ALTERNATE])
    expect(chosen(server), SAME)
    refused(errno.EINVAL, chosen, server, first)
    assert len(clients) == 2  # alive until here


def a_peeled_off_socket_inherits_with_ipv6() -> None:
    a_peeled_off_socket_inherits(socket.AF_INET6)


def future_current_and_all_on_one_to_many() -> None:
    server = listening(one_to_many())

    def all_of_it() -> list[int]:
        return [chosen(server), *(chosen(server, assoc) for assoc in associations(server))]

    clients = [connect(server), connect(server)]
    expect(all_of_it(), [KERNEL, KERNEL, KERNEL])
    choose(server, SAME, FUTURE)
    expect(all_of_it(), [SAME, KERNEL, KERNEL])
    choose(server, ALTERNATE, CURRENT)
    expect(all_of_it(), [SAME, ALTERNATE, ALTERNATE])
    choose(server, FR_SAME_RTO_ALT, associations(server)[1])
    expect(all_of_it(), [SAME, ALTERNATE, FR_SAME_RTO_ALT])
    clients.append(connect(server))
    expect(all_of_it(), [SAME, ALTERNATE, FR_SAME_RTO_ALT, SAME])
    choose(server, ALTERNATE, ALL)
    expect(all_of_it(), [ALTERNATE] * 4)
    expect([chosen(client) for client in clients], [KERNEL] * 3)
    expect(setting("rtx_policy"), "kernel")


def one_to_one_ignores_the_association_s_id() -> None:
    server = listening(one_to_one())
    choose(server, SAME, 12345)
    expect(chosen(server, 54321), SAME)
    client = connect(server)
    choose(client, ALTERNATE, 12345)
    expect([chosen(client, assoc) for assoc in (FUTURE, CURRENT, ALL, 12345)], [ALTERNATE] * 4)
    expect(chosen(server.accept()[0]), SAME)


def unknown_policy_is_refused_by_the_option() -> None:
    server = listening(one_to_many())
    client = connect(server)
    for policy in (len(NAMES), 255, 256, 257, 0xFFFFFFFF):
        for assoc in (FUTURE, CURRENT, ALL, associations(server)[0]):
            refused(errno.EINVAL, choose, server, policy, assoc)
        refused(errno.EINVAL, choose, client, policy)
    expect([chosen(server), chosen(server, associations(server)[0]), chosen(client)], [KERNEL] * 3)


def unknown_association_is_refused() -> None:
    server = listening(one_to_many())
    client = connect(server)
    for assoc in (associations(server)[0] + 1000, 2**31 - 1):
        refused(errno.EINVAL, choose, server, SAME, assoc)
        refused(errno.EINVAL, chosen, server, assoc)
    for assoc in (CURRENT, ALL):  # more than one answer
        refused(errno.EINVAL, chosen, server, assoc)
    expect([chosen(server), chosen(client)], [KERNEL] * 2)


def negative_association_is_refused() -> None:
    server = one_to_many()
    for assoc in (-1, -(2**31)):
        refused(errno.EINVAL, chosen, server, assoc)
        refused(errno.EINVAL, choose, server, SAME, assoc)


def short_buffer_is_refused() -> None:
    for sock in (one_to_one(), one_to_many()):
        for size in (0, 4, 7):
            refused(errno.EINVAL, sock.setsockopt, SCTP, RTX_POLICY, struct.pack("iI", 0, SAME)[:size])
            refused(errno.EINVAL, option, sock, RTX_POLICY, bytes(8), size)
        expect(chosen(sock), KERNEL)


def long_buffer_is_taken() -> None:
    for sock in (one_to_one(), one_to_many()):
        sock.setsockopt(SCTP, RTX_POLICY, struct.pack("iI", 0, SAME) + bytes(50))
        expect(option(sock, RTX_POLICY, bytes(50)), struct.pack("iI", 0, SAME))


def counters_are_there_and_0() -> None:
    found = shown_counters()
    shown = {name.removeprefix("SctpMp"): value for name, value in found.items() if name.startswith("SctpMp")}
    expect(shown, dict.fromkeys(COUNTERS, 0))


def option_is_unknown_to_stock() -> None:
    for sock in (one_to_one(), one_to_many()):
        refused(errno.ENOPROTOOPT, choose, sock, SAME)
        refused(errno.ENOPROTOOPT, chosen, sock)


def all_settings() -> dict[str, str]:
    return {name: setting(name) for name in sorted(os.listdir(path("")))}


def the_files_in_sysctl_are_taken_and_off_is_the_way_back() -> None:
    defaults = all_settings()
    for profile in sorted(PROFILES.glob("*.conf")):
        for name in (profile, PROFILES / "00-off.conf"):
            subprocess.run(["/usr/sbin/sysctl", "-q", "-p", name], check=True)
        expect((profile.name, all_settings()), (profile.name, defaults))


def sysctls_and_counters_are_absent_from_stock() -> None:
    for name in ("rtx_policy", "available_rtx_policies", "multiple_fast_rtx"):
        assert not os.path.exists(path(name)), name
    assert os.path.exists(path("rto_min"))
    table = read(f"{NET}/sctp/snmp")
    assert "SctpFastRetransmits" in table and "SctpMp" not in table, table


CASES: dict[str, list[Callable[[], None]]] = {
    "patched": [
        defaults_are_off,
        list_of_policies_is_read_only,
        every_listed_policy_is_accepted,
        unknown_policy_is_refused_and_old_one_kept,
        longest_policy_with_more_behind_is_refused,
        multiple_fast_rtx_is_0_or_1,
        settings_are_of_the_namespace,
        a_socket_keeps_what_it_had_at_creation,
        associations_have_their_socket_s_policy,
        an_accepted_socket_inherits,
        an_accepted_socket_inherits_with_ipv6,
        a_peeled_off_socket_inherits,
        a_peeled_off_socket_inherits_with_ipv6,
        future_current_and_all_on_one_to_many,
        one_to_one_ignores_the_association_s_id,
        unknown_policy_is_refused_by_the_option,
        unknown_association_is_refused,
        negative_association_is_refused,
        short_buffer_is_refused,
        long_buffer_is_taken,
        counters_are_there_and_0,
        the_files_in_sysctl_are_taken_and_off_is_the_way_back,
    ],
    "stock": [option_is_unknown_to_stock, sysctls_and_counters_are_absent_from_stock],
}
