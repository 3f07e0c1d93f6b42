# SPDX-License-Identifier: GPL-2.0
"""Events in an association that uses several paths at once: one case each. Standard library only.

The plan is that of a run, with case (a name of CASES) and addresses (of host1, of host2). A case ends
when all messages have arrived as they were sent; otherwise the result says what went wrong.
"""

import os
import signal
import socket
import struct
import time
import traceback
from collections.abc import Callable
from typing import Any

import counters
from commands import inside, remember_home, run_all
from links import await_links
from messages import BINDX_ADD, BINDX_REM, RCVBUFFORCE, Hosts, Inbox, send
from options import SCTP, aborts, associations, choose, expect, peel_off
from run import left_behind, start_captures, stop_captures
from thresholds import ENABLE_RESET, MAY_RESET_STREAMS, RESET_OUTGOING, RESET_STREAMS, address

LIMIT_S = 300  # of virtual time
CONFIRMED_S = 6  # heartbeats confirm all addresses
BACK_S = 15  # a HEARTBEAT has been sent to a path that is potentially failed, and its RTO has doubled
AUTH_CHUNK, FRAGMENT_INTERLEAVE, STREAM_SCHEDULER, INTERLEAVING = 21, 18, 123, 125
PRIMARY_ADDR, CMT_ON_OFF, CMT_USE_DAC, CMT_SCHEDULER = 6, 0x1200, 0x1201, 0x1283
SCHEDULERS = range(5)  # first come, priority, round robin, fair, weighted fair
OLD_SCHEDULERS = range(3)  # before Linux 6.4
NODELAY = 3
Ends = tuple[socket.socket, socket.socket]


def connected(hosts: Hosts, server: socket.socket, port: int = 0) -> Ends:
    """Sockets of host1 and host2, all paths confirmed."""
    client = hosts.bound(1, port=port)
    hosts.connect(client, server)
    peer = server.accept()[0]
    time.sleep(CONFIRMED_S)
    return client, peer


def received(sock: socket.socket, messages: int) -> Inbox:
    inbox = Inbox()
    inbox.receive(sock, messages)
    return inbox


def both_ways(client: socket.socket, peer: socket.socket, messages: int) -> None:
    for sock in (client, peer):
        send(sock, range(messages))
    for sock in (client, peer):
        expect(received(sock, messages).by_stream(), {0: list(range(messages))})


def bulk(hosts: Hosts) -> None:
    both_ways(*connected(hosts, hosts.listening()), 1000)


def one_way(hosts: Hosts) -> None:
    """Thirty seconds at 2 Mbit/s."""
    client, peer = connected(hosts, hosts.listening())
    send(client, range(5000))
    expect(received(peer, 5000).by_stream(), {0: list(range(5000))})


def at_once(hosts: Hosts) -> None:
    """The program has named one address; the other is told by the peer, and nobody has confirmed it."""
    server = hosts.listening()
    client = hosts.bound(1)
    hosts.connect(client, server)
    send(client, range(300))
    expect(received(server.accept()[0], 300).by_stream(), {0: list(range(300))})


def over_a_dead_path(hosts: Hosts) -> None:
    """The first of the addresses that the program names does not answer before data has been sent."""
    hosts.next_event()
    server = hosts.listening()
    client = hosts.bound(1)
    hosts.connect_anywhere(client, server)
    peer = server.accept()[0]
    both_ways(client, peer, 100)
    hosts.next_event()
    time.sleep(BACK_S)
    both_ways(client, peer, 100)


def over_living_paths(hosts: Hosts) -> None:
    """The program names all addresses."""
    server = hosts.listening()
    client = hosts.bound(1)
    hosts.connect_anywhere(client, server)
    both_ways(client, server.accept()[0], 100)


def paced(hosts: Hosts, ends: Ends, messages: int, event_at: int, sizes: tuple[int, ...] = (1400,)) -> None:
    """A message every 20 ms, sent at once; before number EVENT_AT what is to happen next happens."""
    client, peer = ends
    client.setsockopt(SCTP, NODELAY, 1)
    for number in range(messages):
        if number == event_at:
            hosts.next_event()
        send(client, [number], size=sizes[number % len(sizes)])
        time.sleep(0.02)
    expect(received(peer, messages).by_stream(), {0: list(range(messages))})


def a_hole_in_the_first_path(hosts: Hosts, sizes: tuple[int, ...] = (1400,)) -> None:
    """From some message on it loses what is large."""
    paced(hosts, connected(hosts, hosts.listening()), 1000, 100, sizes)


def a_hole_and_small_messages(hosts: Hosts) -> None:
    """Of which two follow each large one."""
    a_hole_in_the_first_path(hosts, (1400, 100, 100))


def restart(hosts: Hosts) -> None:
    """The client vanishes without a word while it is sent data, and comes back at the same port."""
    server = hosts.listening()
    client, peer = connected(hosts, server, port=40000)
    both_ways(client, peer, 50)
    send(peer, range(200))
    hosts.next_event()
    aborts(client)
    client.close()  # its ABORT is lost
    time.sleep(0.5)
    hosts.next_event()
    client = hosts.bound(1, port=40000)
    hosts.connect(client, server)
    time.sleep(CONFIRMED_S)
    both_ways(client, peer, 300)


def shutdown(hosts: Hosts) -> None:
    """At once, while most of the data has not been sent."""
    client, peer = connected(hosts, hosts.listening())
    send(client, range(500))
    client.shutdown(socket.SHUT_WR)
    inbox = Inbox()
    inbox.receive_all(peer)
    expect(inbox.by_stream(), {0: list(range(500))})


def abort(hosts: Hosts) -> None:
    """In mid transfer, by either side: the other is told at once, and the next association works."""
    server = hosts.listening()
    for aborting in (0, 1):
        ends = connected(hosts, server)
        for sock in ends:
            send(sock, range(500))
        received(ends[1], 100)
        aborts(ends[aborting])
        ends[aborting].close()
        moment = time.time()
        until_reset(ends[1 - aborting])
        assert time.time() - moment < 1, f"told after {time.time() - moment} s"
    both_ways(*connected(hosts, server), 300)


def until_reset(sock: socket.socket) -> None:
    """Read what had arrived before; an end of any other kind is wrong."""
    try:
        while sock.recv(1 << 16):
            pass
    except ConnectionResetError:
        return
    raise AssertionError("the association ended without an ABORT")


def peeling_off(hosts: Hosts) -> None:
    """In mid transfer, both ways."""
    server = hosts.listening(many=True)
    client = hosts.bound(1)
    hosts.connect(client, server)
    time.sleep(CONFIRMED_S)
    assoc = associations(server)[0]
    send(client, range(500))
    send(server, range(500), assoc=assoc)
    inbox = received(server, 200)
    with inside("host2"):
        peeled = peel_off(server, assoc)
    inbox.receive(peeled, 300)
    expect(inbox.by_stream(), {0: list(range(500))})
    expect(received(client, 500).by_stream(), {0: list(range(500))})


def one_to_many(hosts: Hosts) -> None:
    """Three associations of one socket at once."""
    server = hosts.listening(many=True)
    clients = [hosts.bound(1, many=True) for _ in range(3)]
    for client in clients:
        hosts.connect(client, server)
    time.sleep(CONFIRMED_S)
    for client in clients:
        send(client, range(200), assoc=associations(client)[0])
    for assoc in associations(server):
        send(server, range(100), assoc=assoc)
    expect(list(received(server, 600).numbers.values()), [list(range(200))] * 3)
    for client in clients:
        expect(received(client, 100).by_stream(), {0: list(range(100))})


def addresses(hosts: Hosts) -> None:
    """The receiver has two, adds a third and takes the second away."""
    client, peer = connected(hosts, hosts.listening(paths=2))
    send(client, range(3000))
    inbox = received(peer, 300)
    hosts.bindx(peer, BINDX_ADD, hosts.addresses[1][2])
    inbox.receive(peer, 1700)
    hosts.bindx(peer, BINDX_REM, hosts.addresses[1][1])
    inbox.receive(peer, 1000)
    expect(inbox.by_stream(), {0: list(range(3000))})


def an_address_that_is_cut_and_removed(hosts: Hosts) -> None:
    """With data outstanding: no timeout of a path that works is needed to send that again."""
    client, peer = connected(hosts, hosts.listening())
    send(client, range(3000))
    inbox = received(peer, 300)
    hosts.next_event()
    hosts.bindx(peer, BINDX_REM, hosts.addresses[1][0])
    inbox.receive(peer, 2700)
    expect(inbox.by_stream(), {0: list(range(3000))})


def switching(hosts: Hosts) -> None:
    """Everything that can be switched while data is under way, and the primary path."""
    client, peer = connected(hosts, hosts.listening())
    for sock in (client, peer):
        send(sock, range(1200))
    inboxes = {client: Inbox(), peer: Inbox()}
    for turn in range(12):
        for sock, inbox in inboxes.items():
            choose(sock, turn % 2, option_name=CMT_ON_OFF)
            choose(sock, turn % 3, option_name=CMT_SCHEDULER)
            choose(sock, (turn + 1) % 3, option_name=CMT_USE_DAC)
            choose(sock, turn % 8)
            inbox.receive(sock, 100)
        primary = address(hosts.addresses[1][turn // 2 % 2], peer.getsockname()[1])
        client.setsockopt(SCTP, PRIMARY_ADDR, struct.pack("i128s", 0, primary))
    for inbox in inboxes.values():
        expect(inbox.by_stream(), {0: list(range(1200))})


def slow_reader(hosts: Hosts) -> None:
    """Its window closes, twice."""
    server = hosts.listening()
    server.setsockopt(socket.SOL_SOCKET, RCVBUFFORCE, 32768)
    client, peer = connected(hosts, server)
    send(client, range(400))
    inbox = Inbox()
    for _ in range(2):
        time.sleep(10)
        inbox.receive(peer, 200)
    expect(inbox.by_stream(), {0: list(range(400))})


def interleaving(hosts: Hosts) -> None:
    """Long messages on four streams, with every stream scheduler."""
    old = os.uname().release.startswith("6.1.")
    for scheduler in OLD_SCHEDULERS if old else SCHEDULERS:
        server = hosts.listening()
        client = hosts.bound(1)
        for sock in (server, client):
            sock.setsockopt(SCTP, FRAGMENT_INTERLEAVE, struct.pack("i", 1))
            choose(sock, 1, option_name=INTERLEAVING)
        choose(client, scheduler, option_name=STREAM_SCHEDULER)
        hosts.connect(client, server)
        peer = server.accept()[0]
        time.sleep(CONFIRMED_S)
        send(client, range(120), size=5000, streams=4)
        found = received(peer, 120).by_stream()
        expect(found, {stream: list(range(stream, 120, 4)) for stream in range(4)})
        for sock in (client, peer, server):
            sock.close()


def lifetimes(hosts: Hosts) -> None:
    """Every second message is given up after 0.3 s; a path is cut meanwhile."""
    client, peer = connected(hosts, hosts.listening())
    for number in range(600):
        send(client, [number], life_ms=300 * (number % 2))
    inbox = received(peer, 50)
    hosts.next_event()
    inbox.receive(peer, 50)
    time.sleep(0.5)
    hosts.next_event()
    send(client, range(600, 800))
    while inbox.by_stream()[0][-1] != 799:
        inbox.receive(peer, 1)
    numbers = inbox.by_stream()[0]
    expect(numbers, sorted(numbers))
    expect([number for number in range(800) if number not in numbers and not number % 2], [])
    assert set(range(600, 800)) <= set(numbers)


def authenticated(hosts: Hosts) -> Ends:
    """Sockets whose DATA and SACK chunks are."""
    server = hosts.listening()
    client = hosts.bound(1)
    for sock in (server, client):
        for chunk in (0, 3):
            sock.setsockopt(SCTP, AUTH_CHUNK, bytes([chunk]))
    hosts.connect(client, server)
    peer = server.accept()[0]
    time.sleep(CONFIRMED_S)
    return client, peer


def authentication(hosts: Hosts) -> None:
    both_ways(*authenticated(hosts), 300)


def authentication_and_a_cut(hosts: Hosts) -> None:
    paced(hosts, authenticated(hosts), 100, 50)


def stream_resets(hosts: Hosts) -> None:
    """As soon as nothing is left to be sent: the next message waits for the answer of the peer."""
    server = hosts.listening()
    client = hosts.bound(1)
    for sock in (server, client):
        choose(sock, MAY_RESET_STREAMS, option_name=ENABLE_RESET)
        sock.setsockopt(SCTP, NODELAY, struct.pack("i", 1))
    hosts.connect(client, server)
    peer = server.accept()[0]
    time.sleep(CONFIRMED_S)
    inbox = Inbox()
    for turn in range(5):
        first = 7 * turn
        send(client, range(first, first + 6))
        reset_outgoing(client)
        moment = time.time()
        send(client, [first + 6])
        inbox.receive(peer, 7)
        assert time.time() - moment < 0.5, f"turn {turn} took {time.time() - moment} s"
    expect(inbox.by_stream(), {0: list(range(35))})


def reset_outgoing(sock: socket.socket) -> None:
    """All streams, once what was written has left."""
    while True:
        try:
            sock.setsockopt(SCTP, RESET_STREAMS, struct.pack("iHH", 0, RESET_OUTGOING, 0))
            return
        except BlockingIOError:
            time.sleep(0.001)


def explicit_addresses(hosts: Hosts) -> None:
    """Ten messages to the one, ten to the other."""
    client, peer = connected(hosts, hosts.listening())
    port = peer.getsockname()[1]
    for number in range(0, 400, 10):
        send(client, range(number, number + 10), to=(hosts.addresses[1][number // 10 % 2], port))
    expect(received(peer, 400).by_stream(), {0: list(range(400))})


CASES: dict[str, Callable[[Hosts], None]] = {
    case.__name__: case
    for case in (
        bulk,
        one_way,
        at_once,
        over_a_dead_path,
        over_living_paths,
        a_hole_in_the_first_path,
        a_hole_and_small_messages,
        restart,
        shutdown,
        abort,
        peeling_off,
        one_to_many,
        addresses,
        an_address_that_is_cut_and_removed,
        switching,
        slow_reader,
        interleaving,
        lifetimes,
        authentication,
        authentication_and_a_cut,
        stream_resets,
        explicit_addresses,
    )
}


def over_the_limit(*_: object) -> None:
    raise TimeoutError(f"longer than {LIMIT_S} s")


def outcome(case: Callable[[Hosts], None], hosts: Hosts) -> str:
    """ "" when the case holds, else how it went wrong."""
    signal.signal(signal.SIGALRM, over_the_limit)
    signal.alarm(LIMIT_S)
    try:
        case(hosts)
    except Exception:
        return traceback.format_exc()
    finally:
        signal.alarm(0)
    return ""


def carry_out(plan: dict[str, Any]) -> dict[str, Any]:
    remember_home()
    run_all(plan["setup"])
    await_links(plan["setup"])
    objects = counters.sctp_objects()
    captures = start_captures(plan["captures"])
    said = outcome(CASES[plan["case"]], Hosts(plan["addresses"], plan["events"]))
    stop_captures(captures)
    return {
        "status": "ok",
        "said": said,
        "left_behind": left_behind(objects),
        "counters": {host: counters.snmp(host) for host in plan["hosts"]},
    }
