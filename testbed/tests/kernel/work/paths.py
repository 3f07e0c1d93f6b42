# SPDX-License-Identifier: GPL-2.0
"""Paths as sock_diag shows them, and events, between two hosts with two networks. Standard library only.

One boot; each case is a function and has hosts of its own. The result names those that went wrong and how.
"""

import contextlib
import io
import json
import os
import socket
import struct
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path as File
from typing import Any

from commands import inside, remember_home
from options import ALL, SCTP, choose, expect, option
from thresholds import BINDX_ADD, UNREAD_WAITS, addr_info, address

sys.path.insert(0, str(File(__file__).parents[4] / "tools"))
from pathview import cli, diag, netlink, selection
from pathview.model import Association, Event, Path

PORT = 5000
NODELAY, PRIMARY_ADDR, BINDX_REMOVE, ASSOC_STATS = 3, 6, 101, 112
HZ = 100  # of the laboratory's kernels
MANY, SOCKETS, FLAPS = 500, 200, 50
NOBODY = 65534
# Times in one round trip: a second of silence, then the state.
QUICK = {
    "sack_timeout": 20,
    "rto_initial": 200,
    "rto_min": 200,
    "rto_max": 400,
    "path_max_retrans": 2,
    "hb_interval": 500,
}


def shell(text: str) -> str:
    done = subprocess.run(["sh", "-ec", text], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 0, f"{text}: {done.stderr}"
    return done.stdout


@contextmanager
def hosts(settings: Mapping[str, int] = QUICK) -> Iterator[None]:
    """Hosts a and b with two networks between them, 20 ms each way, and c with none."""
    lines = [f"ip netns add {name}; ip -n {name} link set lo up" for name in "abc"]
    for n in (1, 2):
        lines.append(f"ip link add p{n} netns a type veth peer name q{n} netns b")
        for host, end, last in (("a", "p", 1), ("b", "q", 2)):
            lines.append(f"ip -n {host} address add 10.{n}.0.{last}/24 dev {end}{n}")
            lines.append(f"ip -n {host} link set {end}{n} up")
            lines.append(f"ip netns exec {host} tc qdisc add dev {end}{n} root netem delay 20ms")
    shell("\n".join(lines))
    try:
        sysctl(**settings)
        yield
    finally:
        shell("for name in a b c; do ip netns del $name; done")


def sysctl(**values: int) -> None:
    """On both hosts, for sockets that are created later."""
    for name, value in values.items():
        shell(f"for host in a b; do ip netns exec $host sysctl -qw net.sctp.{name}={value}; done")


def network(number: int, works: bool, loss: str = "loss 100%") -> None:
    """Cut or mend one network, both ways."""
    loss = "" if works else loss
    for host, end in (("a", "p"), ("b", "q")):
        shell(f"ip netns exec {host} tc qdisc replace dev {end}{number} root netem delay 20ms {loss}")


def pair(port: int = PORT) -> tuple[socket.socket, socket.socket]:
    """The two ends of an association, that of a first."""
    with inside("b"):
        server = socket.socket(socket.AF_INET, socket.SOCK_STREAM, SCTP)
    server.bind(("0.0.0.0", port))
    server.listen()
    with inside("a"):
        client = socket.socket(socket.AF_INET, socket.SOCK_STREAM, SCTP)
    client.setsockopt(SCTP, NODELAY, 1)
    client.connect(("10.1.0.2", port))
    peer = server.accept()[0]
    server.close()
    time.sleep(1.5)  # HEARTBEATs confirm the second path
    return client, peer


def send(client: socket.socket, times: int = 20, each: int = 1) -> None:
    for _ in range(times):
        for _ in range(each):
            client.send(bytes(100))
        time.sleep(0.05)


def dumped(host: str = "a") -> tuple[Association, ...]:
    """All associations of a host, dumped by sock_diag."""
    with inside(host):
        found = diag.associations(diag.dump())
    assert found is not None, "the kernel does not know the request"
    return found


def shown(host: str = "a") -> Association:
    (found,) = dumped(host)
    return found


def path_to(address: str) -> Path:
    return next(one for one in shown().paths if one.address == address)


def values_are_those_of_the_socket_option() -> None:
    without = pair(PORT + 1)
    expect([one.rtt_min_us for one in shown().paths], [None, None])  # measured with a setting on
    for end in without:
        end.close()
    time.sleep(1)
    sysctl(failover_heartbeat=1)
    client, _ = pair()
    send(client)
    found = next(one for one in dumped() if one.peer_port == PORT)
    expect((found.state, found.peer_port, found.path_count), ("established", PORT, 2))
    for one in found.paths:
        state, cwnd, srtt, rto, mtu = addr_info(client, one.address)
        expect(diag.STATES.index(one.state), state)
        expect((one.cwnd, one.rto_ms, one.pmtu), (cwnd, rto, mtu))
        expect(one.srtt_us, srtt * 1_000_000 // HZ)
        expect(one.source, one.address[:-1] + "1")
    expect([one.marks for one in found.paths], [("primary", "active"), ("retransmission",)])
    least = found.paths[1].rtt_min_us or 0
    assert 40_000 <= least < 41_000, found


def packets_add_up() -> None:
    client, peer = pair()
    send(client)
    time.sleep(0.5)
    for sock, host in ((client, "a"), (peer, "b")):
        stats = struct.unpack_from("=15Q", option(sock, ASSOC_STATS, bytes(136 + 15 * 8)), 136)
        paths = shown(host).paths
        expect(sum(one.out_packets or 0 for one in paths), stats[3])
        if host == "a":  # the other end's COOKIE ECHO came before there was an association
            expect(sum(one.in_packets or 0 for one in paths), stats[4])
    expect([one.out_chunks for one in shown().paths], [20, 0])
    expect([one.in_chunks for one in shown("b").paths], [20, 0])
    one = path_to("10.1.0.2")
    assert (one.out_bytes or 0) >= 20 * 116, one
    assert (one.heard_ms or 0) <= 600 and (one.sent_ms or 0) <= 600, one


def a_cut_path_says_why_and_since_when() -> None:
    client, _ = pair()
    send(client)
    expect(path_to("10.1.0.2").reason, "set-up")
    network(1, works=False)
    began = time.monotonic()
    while path_to("10.1.0.2").state == "active":
        send(client, 1)
        assert time.monotonic() < began + 5, shown()
    one = path_to("10.1.0.2")
    expect((one.state, one.reason), ("potentially-failed", "t3-rtx"))
    expect((one.struck_t3, one.struck_heartbeat, one.t3_timeouts), (1, 0, 1))
    assert (one.state_ms or 0) <= 60, one
    while path_to("10.1.0.2").state == "potentially-failed":
        send(client, 1)
        assert time.monotonic() < began + 20, shown()
    time.sleep(1)
    one = path_to("10.1.0.2")
    expect((one.state, one.reason, one.struck_t3), ("inactive", "heartbeat", 1))
    expect(one.struck_heartbeat, 2)
    assert 950 <= (one.state_ms or 0) <= 1100, one
    assert (one.heard_ms or 0) > 1000, one
    expect(path_to("10.2.0.2").marks, ("active", "retransmission"))
    network(1, works=True)
    while path_to("10.1.0.2").state != "active":
        send(client, 1)
        assert time.monotonic() < began + 40, shown()
    one = path_to("10.1.0.2")
    expect((one.reason, one.struck_t3, one.struck_heartbeat), ("heartbeat-ack", 0, 0))
    expect(one.errors, 0)


def with_cmt_new_data_may_take_each_path_that_works() -> None:
    sysctl(cmt=1)
    client, _ = pair()
    send(client)
    expect([one.marks for one in shown().paths], [("primary", "active"), ("active", "retransmission")])
    expect(sum(one.out_chunks or 0 for one in shown().paths), 20)
    network(1, works=False)
    began = time.monotonic()
    while path_to("10.1.0.2").state == "active":
        send(client, 1)
        assert time.monotonic() < began + 5, shown()
    assert "active" not in (path_to("10.1.0.2").marks or ()), shown()
    assert "active" in (path_to("10.2.0.2").marks or ()), shown()


def timeouts_are_those_of_the_counters() -> None:
    client, _ = pair()
    network(1, works=False)
    send(client)
    time.sleep(1)
    network(1, works=True)
    time.sleep(3)
    for n in (1, 2):
        shell(f"ip netns exec a tc qdisc replace dev p{n} root netem delay 20ms loss 10%")
    send(client, 100, each=5)
    with inside("a"), open("/proc/net/sctp/snmp", encoding="ascii") as table:
        counts = {name: int(value) for name, value in map(str.split, table)}
    paths = shown().paths
    expect(sum(one.t3_timeouts or 0 for one in paths), counts["SctpT3RtxExpireds"])
    expect(sum(one.fast_retransmissions or 0 for one in paths), counts["SctpFastRetransmits"])
    assert counts["SctpT3RtxExpireds"] and counts["SctpFastRetransmits"], counts


def queues_are_shown() -> None:
    client, peer = pair()
    send(client)
    before = shown("b").unread or 0
    assert before >= 2000, shown("b")
    for _ in range(20):
        peer.recv(100)
    expect(shown("b").unread, 0)
    time.sleep(0.5)
    for n in (1, 2):
        network(n, works=False)
    client.setblocking(False)
    sent = 0
    while sent < 20_000:
        sent += client.send(bytes(1000))
    one = shown()
    held = (one.outstanding or 0) + (one.queued or 0)
    assert sent <= held <= sent + 20 * 16, (sent, one)  # what waits has its header
    expect(sum(path.flight or 0 for path in one.paths), one.outstanding)


def waits_for_the_program_are_counted() -> None:
    """Until the last byte is read; not those from before it was asked for, and not a look at one."""
    client, peer = pair()
    peer.settimeout(5)
    expect(shown("b").unread_waits, None)
    client.send(bytes(100))
    time.sleep(0.1)
    choose(peer, 1, ALL, UNREAD_WAITS)
    for _ in range(3):
        client.send(bytes(200))
    time.sleep(0.6)
    expect(peer.recv(10, socket.MSG_PEEK), bytes(10))
    for part in (60, 60, 200, 200, 200):
        peer.recv(part)
    waits = shown("b").unread_waits
    assert waits
    expect(waits.counts, (*[0] * 12, 3, *[0] * 3))  # 0.524 to 1.049 s
    assert 1_500_000 < waits.us < 2_100_000, waits
    choose(peer, 0, ALL, UNREAD_WAITS)
    expect(shown("b").unread_waits, None)


def other_namespaces_see_nothing() -> None:
    client, _ = pair()
    send(client, 1)
    expect(dumped("c"), ())
    expect(len(dumped("b")), 1)


def as_nobody(call: Callable[[], object]) -> str:
    """The repr() of CALL's result in a process without privileges; "" when it raises."""
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.setgroups([])
            os.setuid(NOBODY)
            os.write(theirs, repr(call()).encode())
        finally:
            os._exit(0)
    os.close(theirs)
    with os.fdopen(ours) as source:
        text = source.read()
    os.waitpid(child, 0)
    return text


def anybody_may_ask() -> None:
    client, _ = pair()
    send(client, 1)
    with inside("a"):
        asked = [list(netlink.dump(netlink.SOCK_DIAG, one)) for one in diag.requests()]
        marks = {kind for some in asked for one in some for kind, _ in netlink.attributes(one.payload[72:])}
        text = as_nobody(lambda: [one.marks for one in selection.look()[0][0].paths])
    expect(text, repr([("primary", "active"), ("retransmission",)]))
    assert diag.PATHS in marks and diag.PEERS not in marks, marks


def many_addresses_are_bounded() -> None:
    more = [f"10.1.{1 + n // 250}.{1 + n % 250}" for n in range(MANY)]
    shell("\n".join(f"ip -n b address add {one}/32 dev q1" for one in more))
    client, _ = pair()
    second, _ = pair(PORT + 1)
    client.send(b"x")
    second.send(b"x")
    last = address(more[-1], PORT + 1)  # not of the first 16
    second.setsockopt(SCTP, PRIMARY_ADDR, struct.pack("=i128s", 0, last))
    found = dumped()
    expect(sorted(one.peer_port for one in found), [PORT, PORT + 1])
    for one in found:
        assert one.path_count > MANY, one.path_count
        assert 16 <= len(one.paths) <= 19, len(one.paths)
        expect(sum("active" in path.marks for path in one.paths if path.marks), 1)
        expect(sum("primary" in path.marks for path in one.paths if path.marks), 1)


def server_of_many() -> socket.socket:
    with inside("b"):
        server = socket.socket(socket.AF_INET, socket.SOCK_STREAM, SCTP)
    server.bind(("0.0.0.0", PORT))
    server.listen(4 * SOCKETS)
    return server


def clients(count: int) -> list[socket.socket]:
    made = []
    for _ in range(count):
        with inside("a"):
            made.append(socket.socket(socket.AF_INET, socket.SOCK_STREAM, SCTP))
        made[-1].connect(("10.1.0.2", PORT))
    return made


def port_of(sock: socket.socket) -> int:
    return int(sock.getsockname()[1])


def port_of_answer(answer: netlink.Message) -> int:
    return socket.ntohs(diag.ANSWER.unpack_from(answer.payload)[4])


class Dump:
    """One that is read buffer by buffer; of the client's host."""

    def __init__(self) -> None:
        with inside("a"):
            self.sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, netlink.SOCK_DIAG)
        self.sock.send(diag.request(socket.AF_INET))
        self.ended = False

    def some(self) -> list[netlink.Message]:
        found = list(netlink.messages(self.sock.recv(netlink.BUFFER)))
        self.ended = any(one.kind == netlink.DONE for one in found)
        return [one for one in found if one.kind == diag.BY_FAMILY]

    def rest(self) -> list[netlink.Message]:
        found = []
        while not self.ended:
            found += self.some()
        self.sock.close()
        return found


def a_dump_has_each_association_once() -> None:
    """More than fit into a buffer; a dump goes on where it stopped."""
    kept = [server_of_many(), *clients(SOCKETS)]
    for host in "ab":
        with inside(host):
            answers = list(netlink.dump(netlink.SOCK_DIAG, diag.request(socket.AF_INET)))
        expect(len(answers), SOCKETS)
        ports = [(one.local_port, one.peer_port) for one in diag.associations(answers) or ()]
        expect(len(set(ports)), SOCKETS)
    for sock in kept:
        sock.close()


def a_dump_misses_none_while_others_end() -> None:
    """Those that it has shown end, buffer by buffer."""
    server, made = server_of_many(), clients(2 * SOCKETS)
    by_port = {port_of(sock): sock for sock in made}
    dump, shown_ports, ended = Dump(), set(), set()
    while not dump.ended:
        ports = {port_of_answer(one) for one in dump.some()}
        for port in list(ports - shown_ports)[::2]:
            by_port[port].close()
            ended.add(port)
        shown_ports |= ports
        time.sleep(0.1)  # they end by a round trip
    assert len(ended) > SOCKETS // 2, len(ended)
    expect(set(by_port) - shown_ports, set())
    for sock in (server, *made):
        sock.close()


def a_dump_misses_none_while_the_table_grows() -> None:
    server, made = server_of_many(), clients(SOCKETS)
    there = {port_of(sock) for sock in made}
    dump = Dump()
    answers = dump.some()
    made += clients(2 * SOCKETS)
    time.sleep(1)
    rest = dump.rest()
    expect(there - {port_of_answer(one) for one in (*answers, *rest)}, set())
    assert any(one.flags & netlink.INTERRUPTED for one in rest)
    found = [one for one in diag.associations([*answers, *rest]) or () if one.local_port in there]
    expect(len(found), SOCKETS)
    for sock in (server, *made):
        sock.close()


def answered(wanted: diag.Filter, host: str = "a") -> list[tuple[int, list[str]]]:
    """Ports of the peer, and addresses, of what the kernel shows."""
    with inside(host):
        answers = list(diag.dump(wanted))
    found = diag.associations(answers) or ()
    expect(len(found), len(answers))
    return [(one.peer_port, [path.address for path in one.paths]) for one in found]


def the_kernel_shows_what_is_asked_for() -> None:
    client, *kept = pair()
    second, *others = pair(PORT + 1)
    one, two = "10.1.0.2", "10.2.0.2"
    expect(sorted(answered(diag.ALL)), [(PORT, [one, two]), (PORT + 1, [one, two])])
    expect(answered(diag.Filter(port=PORT)), [(PORT, [one, two])])
    expect(answered(diag.Filter(port=port_of(second))), [(PORT + 1, [one, two])])
    expect(answered(diag.Filter(port=1)), [])
    expect(sorted(answered(diag.Filter(address=two))), [(PORT, [two]), (PORT + 1, [two])])
    expect(answered(diag.Filter(port=PORT, address="10.1.0.1")), [(PORT, [one])])
    expect(answered(diag.Filter(address="10.3.0.1")), [])
    expect(answered(diag.Filter(states=("inactive", "potentially-failed"))), [])
    others += [end for number in range(2, 8) for end in pair(PORT + number)]
    network(1, works=False)
    while path_of(PORT, one).state == "active":
        send(client, 1)
    expect(answered(diag.Filter(states=("inactive", "potentially-failed"))), [(PORT, [one])])
    expect(answered(diag.Filter(("active",), PORT)), [(PORT, [two])])
    expect(answered(diag.Filter(("active",), PORT, one)), [])
    for sock in (*kept, *others):
        sock.close()


def path_of(port: int, address: str) -> Path:
    (found,) = (one for one in dumped() if one.peer_port == port)
    return next(one for one in found.paths if one.address == address)


def lost_links_are_named() -> None:
    """By the administrator of this host, by its carrier, by its routes."""
    sysctl(failover_link=1)
    client, _ = pair()
    send(client)
    sock = listening()
    for end, back, reason in (
        ("b link set q1 down", "b link set q1 up", "link"),
        ("a link set p1 down", "a link set p1 up", "admin"),
        ("a address del 10.1.0.1/24 dev p1", "a address add 10.1.0.1/24 dev p1", "admin"),
        ("a route del 10.1.0.0/24", "a route add 10.1.0.0/24 dev p1 src 10.1.0.1", "link"),
    ):
        time.sleep(1.5)  # the kernel tells of carriers once a second
        events_of(sock)
        shell(f"ip -n {end}")
        send(client, 2)
        one = path_to("10.1.0.2")
        expect((end, one.state, one.reason, one.struck_t3), (end, "potentially-failed", reason, 0))
        expect([(e.old_state, e.path.reason) for e in events_of(sock)], [("active", reason)])
        shell(f"ip -n {back}")
        while path_to("10.1.0.2").state != "active":
            send(client, 1)


def addresses_come_and_go() -> None:
    """By ASCONF, as the other end's program wants."""
    sysctl(addip_enable=1, addip_noauth_enable=1, auth_enable=1)
    shell("ip -n b address add 10.2.0.9/24 dev q2")
    with inside("b"):
        server = socket.socket(socket.AF_INET, socket.SOCK_STREAM, SCTP)
    server.bind(("10.1.0.2", PORT))
    server.setsockopt(SCTP, BINDX_ADD, address("10.2.0.2", PORT))
    server.listen()
    with inside("a"):
        client = socket.socket(socket.AF_INET, socket.SOCK_STREAM, SCTP)
    client.connect(("10.1.0.2", PORT))
    peer = server.accept()[0]
    time.sleep(1.5)
    sock = listening()
    peer.setsockopt(SCTP, BINDX_ADD, address("10.2.0.9", PORT))
    one, *others = events_of(sock, 1)
    expect((one.kind, one.path.address, one.path.reason), ("added", "10.2.0.9", "admin"))
    expect((one.old_state, one.path.state, others), ("unconfirmed", "unconfirmed", []))
    expect(path_to("10.2.0.9").reason, "admin")
    (one,) = events_of(sock, 5)
    expect((one.kind, one.path.state, one.path.reason), ("state", "active", "heartbeat-ack"))
    peer.setsockopt(SCTP, BINDX_REMOVE, address("10.2.0.9", PORT))
    (one,) = events_of(sock, 1)
    expect((one.kind, one.path.address, one.path.reason), ("removed", "10.2.0.9", "admin"))
    expect((one.path.struck_t3, one.path.struck_heartbeat), (0, 0))
    expect([path.address for path in shown().paths], ["10.1.0.2", "10.2.0.2"])


def listening(host: str = "a", buffer: int = 1 << 20) -> socket.socket:
    with inside(host):
        sock = netlink.listener(diag.FAMILY, diag.GROUP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    return sock


def events_of(sock: socket.socket, wait_s: float = 0) -> list[Event]:
    """Those that wait to be read, and have come within WAIT_S if none does."""
    found: list[Event] = []
    sock.settimeout(wait_s)
    with contextlib.suppress(BlockingIOError, TimeoutError):
        while True:
            for message in netlink.messages(sock.recv(netlink.BUFFER)):
                one = diag.event(message.payload)
                assert one, message
                found.append(one)
            sock.settimeout(0)
    return found


def until(sock: socket.socket, client: socket.socket, wanted: str) -> Event:
    """Send until the first path is in this state: that event, which has to be here within a millisecond."""
    for _ in range(400):
        client.send(bytes(100))
        for one in events_of(sock, 0.05):
            assert time.monotonic_ns() - one.time_ns < 1_000_000, one
            if (one.path.address, one.path.state) == ("10.1.0.2", wanted):
                return one
    raise AssertionError(f"no event: {shown()}")


def each_change_is_an_event() -> None:
    sock, elsewhere = listening("a"), listening("c")
    client, _ = pair()
    confirmed = [
        (one.path.address, one.old_state, one.path.state, one.path.reason) for one in events_of(sock)
    ]
    expect(confirmed, [("10.2.0.2", "unconfirmed", "active", "heartbeat-ack")])
    network(1, works=False)
    one = until(sock, client, "potentially-failed")
    expect((one.old_state, one.path.reason, one.path.struck_t3), ("active", "t3-rtx", 1))
    expect((one.peer_port, one.local_port, one.assoc_id), (PORT, shown().local_port, shown().assoc_id))
    expect(one.path.marks, ("primary",))
    expect(until(sock, client, "inactive").old_state, "potentially-failed")
    network(1, works=True)
    one = until(sock, client, "active")
    expect(
        (one.old_state, one.path.reason, one.path.marks), ("inactive", "heartbeat-ack", ("primary", "active"))
    )
    expect(events_of(elsewhere), [])


def flap(client: socket.socket, peer: socket.socket) -> None:
    """The first path fails and comes back."""
    for works in (False, True):
        network(1, works)
        while path_to("10.1.0.2").state != ("active" if works else "potentially-failed"):
            send(client, 1)
            with contextlib.suppress(BlockingIOError):
                while peer.recv(1000, socket.MSG_DONTWAIT):
                    pass


def no_event_is_lost_in_flaps(flaps: int = FLAPS) -> None:
    sock = listening()
    client, peer = pair()
    events_of(sock)
    found: list[Event] = []
    for _ in range(flaps):
        flap(client, peer)
        found += [one for one in events_of(sock) if one.path.address == "10.1.0.2"]
    states = ["active", *(one.path.state for one in found)]
    expect([one.old_state for one in found], states[:-1])
    expect(states, ["active", *["potentially-failed", "active"] * flaps])


def a_slow_reader_is_told() -> None:
    sock = listening(buffer=1)  # the least that there is
    client, peer = pair()
    for _ in range(FLAPS // 2):
        flap(client, peer)
    with inside("a"):
        given = selection.with_json(selection.options("events", "")).parse_args(["--json"])
        printed = io.StringIO()
        sock.settimeout(0)
        with contextlib.redirect_stdout(printed), contextlib.suppress(BlockingIOError):
            cli.follow(sock.recv, given)
    told = [json.loads(line) for line in printed.getvalue().splitlines()]
    lost = [one for one in told if one["event"] == "lost"]
    expect(len(lost), 1)
    expect([path["state"] for path in lost[0]["associations"][0]["paths"]], ["active", "active"])
    assert 2 <= len(told) < FLAPS, told


def the_command_shows_it() -> None:
    client, _ = pair()
    send(client)
    with inside("a"):
        found, missing = selection.look()
    expect(missing, "")
    expect([one.address for one in found[0].paths], ["10.1.0.2", "10.2.0.2"])


CASES = [
    values_are_those_of_the_socket_option,
    packets_add_up,
    a_cut_path_says_why_and_since_when,
    with_cmt_new_data_may_take_each_path_that_works,
    timeouts_are_those_of_the_counters,
    queues_are_shown,
    waits_for_the_program_are_counted,
    other_namespaces_see_nothing,
    anybody_may_ask,
    many_addresses_are_bounded,
    a_dump_has_each_association_once,
    a_dump_misses_none_while_others_end,
    a_dump_misses_none_while_the_table_grows,
    the_kernel_shows_what_is_asked_for,
    lost_links_are_named,
    addresses_come_and_go,
    each_change_is_an_event,
    no_event_is_lost_in_flaps,
    a_slow_reader_is_told,
    the_command_shows_it,
]


def outcome(case: Callable[..., None], *given: int) -> str:
    """ "" when the case holds with what is GIVEN, else how it went wrong."""
    print(case.__name__, flush=True)
    try:
        with hosts():
            case(*given)
    except Exception:
        return traceback.format_exc()
    return ""


def answers_of_stock() -> list[str]:
    """All that sock_diag answers to who asks as `ss -S` does, and what ss makes of it."""
    with hosts():
        client, _ = pair()
        send(client)
        with inside("a"):
            texts = [shell("ss -S -n -i -m -e"), shell("ss -S -l -n")]
            for family in (socket.AF_INET, socket.AF_INET6):
                for extensions in (0, 0xFF):
                    header = diag.REQUEST.pack(family, SCTP, extensions, 0, 0xFFF, bytes(48))
                    asked = netlink.request(diag.BY_FAMILY, netlink.DUMP, header)
                    texts += [one.payload.hex() for one in netlink.dump(netlink.SOCK_DIAG, asked)]
            found, missing = selection.look()
        texts.append(f"{[(path.address, path.state) for one in found for path in one.paths]}")
        return [*texts, missing]


def carry_out(plan: dict[str, Any]) -> dict[str, Any]:
    """PLAN: "what", cases, answers, or flaps and how many."""
    remember_home()
    if plan["what"] == "answers":
        return {"status": "ok", "answers": answers_of_stock()}
    if plan["what"] == "flaps":
        return {"status": "ok", "outcome": outcome(no_event_is_lost_in_flaps, plan["flaps"])}
    return {"status": "ok", "cases": {case.__name__: outcome(case) for case in CASES}}
