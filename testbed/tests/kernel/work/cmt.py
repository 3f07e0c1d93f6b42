# SPDX-License-Identifier: GPL-2.0
"""How the settings of concurrent multipath transfer behave: one case per sentence. Standard library only."""

import errno
import os
import socket
import struct
import subprocess
import time
from collections.abc import Callable

from commands import LIBC
from options import (
    ALL,
    CLONE_NEWNET,
    CURRENT,
    FUTURE,
    SCTP,
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
from thresholds import ADDR_PARAMS, BINDX_ADD, address

HANDSHAKE = 4  # control chunks
PMTUD_DISABLE = 1 << 4  # flag of SCTP_PEER_ADDR_PARAMS
SLOW = ("netem", "delay", "5ms", "rate", "100mbit", "limit", "2000")
SWITCH = ["0", "1"]
SCHEDULERS = ["round-robin", "primary-first", "lowest-rtt", "redundant"]
SACKS = ["standard", "delayed", "per-path"]
# Socket option -> the setting and its values, in the order of the option's values.
OPTIONS = {
    0x1200: ("cmt", SWITCH),
    0x1201: ("cmt_sack", SACKS),
    0x1283: ("cmt_scheduler", SCHEDULERS),
}
Values = dict[int, int]  # by option
DEFAULTS: Values = {0x1200: 0, 0x1201: 0, 0x1283: SCHEDULERS.index("lowest-rtt")}
SETTINGS = {name: values[DEFAULTS[number]] for number, (name, values) in OPTIONS.items()}
SETTINGS |= {"cmt_split_fast_rtx": "1", "cmt_loss_detection": "rack"}


def all_chosen(sock: socket.socket, assoc: int = FUTURE) -> Values:
    return {number: chosen(sock, assoc, number) for number in OPTIONS}


def choose_all(sock: socket.socket, value: int, assoc: int = FUTURE) -> None:
    for number in OPTIONS:
        choose(sock, value, assoc, number)


def write_all(value: int) -> None:
    for name, values in OPTIONS.values():
        write(name, values[value])


def each(value: int) -> Values:
    return dict.fromkeys(OPTIONS, value)


def cmt_is_off_by_default() -> None:
    expect({name: setting(name) for name in SETTINGS}, SETTINGS)
    expect(setting("available_cmt_schedulers").split(), SCHEDULERS)
    expect([all_chosen(one_to_one()), all_chosen(one_to_many())], [DEFAULTS] * 2)


def list_of_schedulers_is_read_only() -> None:
    refused(errno.EACCES, write, "available_cmt_schedulers", "lowest-rtt")


def switches_of_cmt_are_0_or_1() -> None:
    for name in ("cmt", "cmt_split_fast_rtx"):
        for kept in ("0", "1", "0"):
            write(name, kept + "\n")
            for text in ("2", "-1", "256", "257", "x", "1x"):
                refused(errno.EINVAL, write, name, text)
                expect(setting(name), kept)


def names_of_cmt_are_accepted_and_no_others() -> None:
    for number, (name, values) in OPTIONS.items():
        for value, text in enumerate(values):
            for written in (text, text + "\n"):
                write(name, values[value - 1])
                write(name, written)
                expect((setting(name), chosen(one_to_many(), option_name=number)), (text, value))
        if values is SWITCH:
            continue
        for text in (
            "\n",
            values[0][:-1],
            values[0] + "s",
            values[0].title(),
            " " + values[0],
            "1",
            "x" * 100,
        ):
            refused(errno.EINVAL, write, name, text)
            expect(setting(name), values[-1])


def a_loss_detection_has_one_of_two_names() -> None:
    for kept in ("missing-reports", "rack", "missing-reports"):
        write("cmt_loss_detection", kept + "\n")
        for text in ("\n", "rac", "racks", "Rack", " rack", "1", "x" * 100):
            refused(errno.EINVAL, write, "cmt_loss_detection", text)
            expect(setting("cmt_loss_detection"), kept)


def settings_of_cmt_are_of_the_namespace() -> None:
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    write_all(1)
    write("cmt_split_fast_rtx", "0")
    write("cmt_loss_detection", "missing-reports")
    namespace()
    expect({name: setting(name) for name in SETTINGS}, SETTINGS)
    expect(all_chosen(one_to_one()), DEFAULTS)
    assert LIBC.setns(home, CLONE_NEWNET) == 0
    os.close(home)
    expect([setting(name) for name in SETTINGS], ["1", "delayed", "primary-first", "0", "missing-reports"])
    expect(all_chosen(one_to_one()), each(1))


def a_socket_keeps_its_settings_of_cmt() -> None:
    families = (socket.AF_INET, socket.AF_INET6)
    write_all(1)
    old = [make(family) for make in (one_to_one, one_to_many) for family in families]
    write_all(0)
    expect([all_chosen(sock) for sock in old], [each(1)] * 4)
    expect(all_chosen(one_to_one()), each(0))


def an_association_keeps_its_settings_of_cmt() -> None:
    server = listening(one_to_many())
    write_all(1)
    client = connect(server)
    write_all(0)
    expect([all_chosen(client), all_chosen(server, associations(server)[0])], [each(1), DEFAULTS])


def an_accepted_socket_inherits_cmt() -> None:
    for family in (socket.AF_INET, socket.AF_INET6):
        server = listening(one_to_one(family))
        choose_all(server, 1)
        clients = [connect(server)]
        choose_all(server, 0)
        clients.append(connect(server))
        accepted = [server.accept()[0], server.accept()[0]]
        expect([all_chosen(sock) for sock in accepted], [each(1), each(0)])
        for client in clients:
            client.close()
        server.close()


def a_peeled_off_socket_inherits_cmt() -> None:
    for family in (socket.AF_INET, socket.AF_INET6):
        server = listening(one_to_many(family))
        clients = [connect(server), connect(server)]
        first, second = associations(server)
        choose_all(server, 1, second)
        peeled = [peel_off(server, first), peel_off(server, second)]
        expect([all_chosen(sock) for sock in peeled], [DEFAULTS, each(1)])
        choose_all(peeled[0], 1, first)
        expect([all_chosen(sock) for sock in peeled], [each(1), each(1)])
        expect(all_chosen(server), DEFAULTS)
        for sock in (*clients, *peeled, server):
            sock.close()


def cmt_of_future_current_and_all_associations() -> None:
    server = listening(one_to_many())
    clients = [connect(server), connect(server)]
    ids = [FUTURE, *associations(server)]

    def values() -> list[Values]:
        return [all_chosen(server, assoc) for assoc in ids]

    choose_all(server, 1, FUTURE)
    expect(values(), [each(1), DEFAULTS, DEFAULTS])
    choose_all(server, 0, FUTURE)
    choose_all(server, 1, CURRENT)
    expect(values(), [each(0), each(1), each(1)])
    choose_all(server, 0, ids[1])
    expect(values(), [each(0), each(0), each(1)])
    choose_all(server, 1, ALL)
    expect(values(), [each(1)] * 3)
    expect([all_chosen(client) for client in clients], [DEFAULTS] * 2)
    expect({name: setting(name) for name in SETTINGS}, SETTINGS)


def one_to_one_ignores_the_id_for_cmt() -> None:
    server = listening(one_to_one())
    client = connect(server)
    choose_all(client, 1, 12345)
    expect([all_chosen(client, assoc) for assoc in (FUTURE, CURRENT, ALL, 54321)], [each(1)] * 4)


def unknown_values_of_cmt_are_refused() -> None:
    server = listening(one_to_many())
    client = connect(server)
    ids = [FUTURE, *associations(server)]
    for number, (_, values) in OPTIONS.items():
        for value in range(len(values)):
            choose(server, value, ALL, number)
            expect([chosen(server, assoc, number) for assoc in ids], [value] * 2)
        for value in (len(values), 255, 256, 257, 0xFFFFFFFF):
            for assoc in (FUTURE, CURRENT, ALL, ids[1]):
                refused(errno.EINVAL, choose, server, value, assoc, number)
            refused(errno.EINVAL, choose, client, value, FUTURE, number)
        expect([chosen(server, assoc, number) for assoc in ids], [len(values) - 1] * 2)


def cmt_of_unknown_associations_is_refused() -> None:
    server = listening(one_to_many())
    client = connect(server)
    for number in OPTIONS:
        for assoc in (associations(server)[0] + 1000, 2**31 - 1, -1, -(2**31)):
            refused(errno.EINVAL, choose, server, 1, assoc, number)
            refused(errno.EINVAL, chosen, server, assoc, number)
        for assoc in (CURRENT, ALL):  # more than one answer
            refused(errno.EINVAL, chosen, server, assoc, number)
    expect([all_chosen(server), all_chosen(client)], [DEFAULTS] * 2)


def buffers_for_cmt_are_8_bytes_or_more() -> None:
    for sock in (one_to_one(), one_to_many()):
        for number in OPTIONS:
            value = struct.pack("iI", FUTURE, 1)
            for size in (0, 4, 7):
                refused(errno.EINVAL, sock.setsockopt, SCTP, number, value[:size])
                refused(errno.EINVAL, option, sock, number, bytes(8), size)
            expect(chosen(sock, option_name=number), DEFAULTS[number])
            sock.setsockopt(SCTP, number, value + bytes(50))
            expect(option(sock, number, bytes(50)), value)


def control_chunks() -> int:
    """Sent by all sockets of the namespace."""
    return shown_counters()["SctpOutCtrlChunks"]


def a_peer_with_many_addresses_is_not_asked_at_all_of_them_at_once() -> None:
    """16 paths take part, and the first of them need not be asked; each HEARTBEAT has an answer."""
    hosts = [f"127.0.0.{number}" for number in range(1, 41)]
    server, client = one_to_one(), one_to_one()
    server.bind((hosts[0], 0))
    for host in hosts[1:]:
        server.setsockopt(SCTP, BINDX_ADD, address(host, server.getsockname()[1]))
    server.listen()
    client.bind((hosts[0], 0))
    choose(client, 1, option_name=0x1200)
    client.connect(server.getsockname())
    time.sleep(0.1)
    expect((control_chunks() - HANDSHAKE) / 2, 15)
    time.sleep(6)
    expect((control_chunks() - HANDSHAKE) / 2 >= 39, True)


def a_path_mtu_of_any_size_harms_nobody() -> None:
    """512 to 2**32 - 1 are taken: no sum over it, by which a sender with two paths divides, may wrap to 0."""
    namespace()
    subprocess.run(["tc", "qdisc", "add", "dev", "lo", "root", *SLOW], check=True)
    server, client = one_to_one(), one_to_one()
    for sock, hosts in ((server, ("127.0.0.1", "127.0.0.2")), (client, ("127.0.0.3", "127.0.0.4"))):
        sock.bind((hosts[0], 0))
        sock.setsockopt(SCTP, BINDX_ADD, address(hosts[1], sock.getsockname()[1]))
    server.listen()
    choose(client, 1, option_name=0x1200)
    client.connect(server.getsockname())
    receiver = server.accept()[0]
    messages, size = 5000, 1400
    child = os.fork()
    if not child:
        left = messages * size
        while left and (data := receiver.recv(1 << 16)):
            left -= len(data)
        os._exit(left != 0)
    receiver.close()
    for number in range(messages):
        if not number % 20:
            mtu = (0x80000000, 1500, 0xFFFFFFFF, 0x40000000)[number // 20 % 4]
            value = struct.pack("=i128sIHIIIIBx", FUTURE, bytes(128), 0, 0, mtu, 0, PMTUD_DISABLE, 0, 0)
            client.setsockopt(SCTP, ADDR_PARAMS, value)
        client.send(bytes(size))
    client.close()
    expect(os.waitpid(child, 0)[1], 0)


def cmt_is_absent_from_stock() -> None:
    for name in (*SETTINGS, "available_cmt_schedulers"):
        assert not os.path.exists(path(name)), name
    for number in OPTIONS:
        refused(errno.ENOPROTOOPT, choose, one_to_one(), 1, FUTURE, number)
        refused(errno.ENOPROTOOPT, chosen, one_to_one(), FUTURE, number)


CASES: dict[str, list[Callable[[], None]]] = {
    "patched": [
        cmt_is_off_by_default,
        list_of_schedulers_is_read_only,
        switches_of_cmt_are_0_or_1,
        a_loss_detection_has_one_of_two_names,
        names_of_cmt_are_accepted_and_no_others,
        settings_of_cmt_are_of_the_namespace,
        a_socket_keeps_its_settings_of_cmt,
        an_association_keeps_its_settings_of_cmt,
        an_accepted_socket_inherits_cmt,
        a_peeled_off_socket_inherits_cmt,
        cmt_of_future_current_and_all_associations,
        one_to_one_ignores_the_id_for_cmt,
        unknown_values_of_cmt_are_refused,
        cmt_of_unknown_associations_is_refused,
        buffers_for_cmt_are_8_bytes_or_more,
        a_peer_with_many_addresses_is_not_asked_at_all_of_them_at_once,
        a_path_mtu_of_any_size_harms_nobody,
    ],
    "stock": [cmt_is_absent_from_stock],
}
