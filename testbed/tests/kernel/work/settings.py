# SPDX-License-Identifier: GPL-2.0
"""How the series' sysctls, socket option and counters behave: one case per sentence. Standard library only.

Every case has a network namespace of its own with a loopback interface. The result names the cases that went
wrong and how.
"""

import ctypes
import errno
import os
import signal
import socket
import struct
import subprocess
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from commands import LIBC
from counters import NET, read

SCTP = 132  # protocol and level of its options
RTX_POLICY, PEELOFF, ASSOC_IDS = 134, 102, 29
FUTURE, CURRENT, ALL = 0, 1, 2
KERNEL, SAME, ALTERNATE, FR_SAME_RTO_ALT = range(4)
NAMES = ["kernel", "same", "alternate", "fr-same-rto-alt"]
COUNTERS = {
    "FastRecoveries",
    "RtxSame",
    "RtxAlternate",
    "RtxFallback",
    "MultipleFastRtx",
    "FailoverProbes",
    "PathReturns",
    "DormantMoves",
}
CLONE_NEWNET = 0x40000000
PROFILES = Path(__file__).parents[4] / "sysctl"
LIMIT_S = 30  # of a case, in virtual time
LOOPBACK = {socket.AF_INET: "127.0.0.1", socket.AF_INET6: "::1"}


def expect(found: object, wanted: object) -> None:
    assert found == wanted, f"{found!r} instead of {wanted!r}"


def refused(number: int, call: Callable[..., object], *arguments: object) -> None:
    """The call has to fail with this error."""
    try:
        call(*arguments)
    except OSError as error:
        assert error.errno == number, f"{arguments[1:]}: {error}"
    else:
        raise AssertionError(f"{arguments[1:]} was taken")


def namespace() -> None:
    """Go to a new network namespace."""
    assert LIBC.unshare(CLONE_NEWNET) == 0
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def path(name: str) -> str:
    return f"/proc/sys/net/sctp/{name}"


def setting(name: str) -> str:
    with open(path(name), encoding="ascii") as source:
        return source.read().removesuffix("\n")


def write(name: str, value: str) -> None:
    """In one write, as sysctl does."""
    handle = os.open(path(name), os.O_WRONLY)
    try:
        os.write(handle, value.encode())
    finally:
        os.close(handle)


def option(sock: socket.socket, name: int, value: bytes, size: int | None = None) -> bytes:
    """getsockopt() with VALUE in the buffer, said to have SIZE bytes; the socket module cannot do that."""
    buffer = ctypes.create_string_buffer(value, max(len(value), 1))
    length = ctypes.c_uint(len(value) if size is None else size)
    if LIBC.getsockopt(sock.fileno(), SCTP, name, buffer, ctypes.byref(length)) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return buffer.raw[: length.value]


def choose(sock: socket.socket, policy: int, assoc: int = FUTURE) -> None:
    sock.setsockopt(SCTP, RTX_POLICY, struct.pack("iI", assoc, policy))


def chosen(sock: socket.socket, assoc: int = FUTURE) -> int:
    answer = option(sock, RTX_POLICY, struct.pack("iI", assoc, 99))
    assert len(answer) == 8
    policy: int = struct.unpack("iI", answer)[1]
    return policy


def one_to_one(family: int = socket.AF_INET) -> socket.socket:
    return socket.socket(family, socket.SOCK_STREAM, SCTP)


def one_to_many(family: int = socket.AF_INET) -> socket.socket:
    return socket.socket(family, socket.SOCK_SEQPACKET, SCTP)


def listening(sock: socket.socket) -> socket.socket:
    sock.bind((LOOPBACK[socket.AddressFamily(sock.family)], 0))
    sock.listen()
    return sock


def associations(sock: socket.socket) -> list[int]:
    """Ids of a one-to-many socket's associations, oldest first."""
    answer = option(sock, ASSOC_IDS, bytes(400))
    count = struct.unpack_from("I", answer)[0]
    return sorted(struct.unpack_from(f"{count}i", answer, 4))


def connect(server: socket.socket) -> socket.socket:
    """A one-to-one socket with an association to SERVER, which knows of it, too."""
    client = one_to_one(server.family)
    client.connect(server.getsockname())
    if server.type == socket.SOCK_SEQPACKET:
        client.send(b"here")
        server.recv(10)
    return client


def peel_off(sock: socket.socket, assoc: int) -> socket.socket:
    return socket.socket(fileno=struct.unpack("ii", option(sock, PEELOFF, struct.pack("ii", assoc, 0)))[1])


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
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
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
    lines = dict(line.split() for line in read(f"{NET}/sctp/snmp").splitlines())
    shown = {name.removeprefix("SctpMp"): value for name, value in lines.items() if name.startswith("SctpMp")}
    expect(shown, dict.fromkeys(COUNTERS, "0"))


def option_is_unknown_to_stock() -> None:
    for sock in (one_to_one(), one_to_many()):
        refused(errno.ENOPROTOOPT, choose, sock, SAME)
        refused(errno.ENOPROTOOPT, chosen, sock)


def the_files_in_sysctl_are_taken_and_off_is_the_default() -> None:
    defaults = {name: setting(name) for name in ("rtx_policy", "multiple_fast_rtx")}
    off = PROFILES / "00-off.conf"
    for profile in [*sorted(PROFILES.glob("*.conf")), off]:
        subprocess.run(["/usr/sbin/sysctl", "-q", "-p", profile], check=True)
        for line in profile.read_text().splitlines():
            if line and not line.startswith("#"):
                key, _, value = line.partition(" = ")
                expect(setting(key.removeprefix("net.sctp.")), value)
    expect(
        {line.split(" = ")[0] for line in off.read_text().splitlines() if line[0] != "#"},
        {f"net.sctp.{name}" for name in defaults},
    )
    expect({name: setting(name) for name in defaults}, defaults)


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
        the_files_in_sysctl_are_taken_and_off_is_the_default,
    ],
    "stock": [option_is_unknown_to_stock, sysctls_and_counters_are_absent_from_stock],
}


def outcome(case: Callable[[], None]) -> str:
    """ "" when the case holds, else how it went wrong."""
    print(case.__name__, flush=True)  # should the kernel die: where it was
    signal.alarm(LIMIT_S)
    try:
        namespace()
        case()
    except Exception:
        return traceback.format_exc()
    finally:
        signal.alarm(0)
    return ""


def over_the_limit(*_: object) -> None:
    raise TimeoutError(f"longer than {LIMIT_S} s")


def carry_out(plan: dict[str, Any]) -> dict[str, Any]:
    signal.signal(signal.SIGALRM, over_the_limit)
    cases = {case.__name__: outcome(case) for case in CASES[plan["flavour"]]}
    namespace()
    time.sleep(5)  # the namespaces end: whatever the kernel has to say about that
    return {"status": "ok", "cases": cases}
