# SPDX-License-Identifier: GPL-2.0
"""sctp-multipath exporter and top on hosts with associations. Python's library, and prometheus_client.

One boot; each case is a function and has hosts of its own. The result names those that went wrong and how.
"""

import contextlib
import io
import os
import signal
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from commands import inside, remember_home
from options import expect
from paths import PORT, dumped, hosts, network, outcome, pair, path_to, send
from pathview import cli, netlink

URL, LISTEN = "http://127.0.0.1:9899/metrics", "127.0.0.1:9899"
SOCKETS, LIMIT = 30, 10
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@contextmanager
def exporting(*words: str) -> Iterator[None]:
    """The command, on host a."""
    child = os.fork()
    if not child:
        try:
            with inside("a"):
                os._exit(cli.main(["exporter", "--listen", LISTEN, *words]))
        finally:
            os._exit(70)
    try:
        yield
    finally:
        os.kill(child, signal.SIGTERM)
        os.waitpid(child, 0)


def scraped() -> Samples:
    """The samples of a scrape on host a, read by the strict parser of Prometheus' own library."""
    from prometheus_client.openmetrics.parser import text_string_to_metric_families

    asked = urllib.request.Request(URL, headers={"Accept": "application/openmetrics-text; version=1.0.0"})
    with inside("a"):
        for _ in range(100):
            with contextlib.suppress(ConnectionError, urllib.error.URLError):
                with urllib.request.urlopen(asked, timeout=10) as answer:
                    text = answer.read().decode()
                break
            time.sleep(0.1)
    families = text_string_to_metric_families(text)
    return {
        (one.name, frozenset(one.labels.items())): one.value for family in families for one in family.samples
    }


def those(found: Samples, name: str) -> list[float]:
    return [value for (known, _), value in found.items() if known == name]


def of_path(found: Samples, name: str, address: str, **more: str) -> float | None:
    wanted = {("path", address), *more.items()}
    values = [value for (known, labels), value in found.items() if known == name and wanted <= labels]
    expect(len(values) <= 1, True)
    return values[0] if values else None


def a_scrape_has_what_sock_diag_says() -> None:
    client, _ = pair()
    send(client)
    time.sleep(1)
    with exporting():
        found = scraped()
        (now,) = dumped()
    for name in ("sctp_multipath", "sctp_associations", "sctp_association_paths"):
        expect(those(found, name), [2 if name.endswith("paths") else 1])
    expect(those(found, "sctp_associations_left_out"), [0])
    for path in now.paths:
        for name, value in (
            ("cwnd_bytes", path.cwnd),
            ("rto_seconds", (path.rto_ms or 0) / 1000),
            # with all settings off nothing measures it, and it is left out
            ("rtt_min_seconds", path.rtt_min_us / 1_000_000 if path.rtt_min_us else None),
            ("sent_chunks_total", path.out_chunks),
            ("errors", path.errors),
            ("primary", int("primary" in (path.marks or ()))),
        ):
            expect((name, of_path(found, f"sctp_path_{name}", path.address)), (name, value))
        expect(of_path(found, "sctp_path_state", path.address, sctp_path_state="active"), 1)
    expect(of_path(found, "sctp_path_sent_chunks_total", "10.1.0.2"), 20)
    assert ("sctp_mp_failover_probes_total", frozenset()) in found, found.keys()
    assert ("process_cpu_seconds_total", frozenset()) in found, found.keys()


def a_cut_path_is_down_in_the_next_scrape() -> None:
    client, _ = pair()
    send(client)
    with exporting():
        expect(of_path(scraped(), "sctp_path_state", "10.1.0.2", sctp_path_state="active"), 1)
        network(1, works=False)
        while path_to("10.1.0.2").state == "active":
            send(client, 1)
        found = scraped()
    expect(of_path(found, "sctp_path_state", "10.1.0.2", sctp_path_state="active"), 0)
    expect(of_path(found, "sctp_path_reason", "10.1.0.2", reason="t3-rtx"), 1)
    expect(of_path(found, "sctp_path_t3_timeouts_total", "10.1.0.2"), 1)


def a_scrape_is_one_dump() -> None:
    """Of each family of addresses, however many associations there are."""
    from pathview import exporter

    kept = [pair(PORT + n) for n in range(3)]
    asked: list[int] = []
    original = netlink.dump

    def counted(family: int, request: bytes) -> Iterator[netlink.Message]:
        asked.append(family)
        return original(family, request)

    netlink.dump = counted  # type: ignore[assignment]
    try:
        with inside("a"):
            expect(exporter.gather(10).part.total, 3)
    finally:
        netlink.dump = original
    expect(asked, [netlink.SOCK_DIAG] * 2)
    for sock in (sock for both in kept for sock in both):
        sock.close()


def the_limit_holds() -> None:
    with inside("b"):
        server = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132)
    server.bind(("0.0.0.0", PORT))
    server.listen(SOCKETS)
    kept = [server]
    for _ in range(SOCKETS):
        with inside("a"):
            kept.append(socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132))
        kept[-1].connect(("10.1.0.2", PORT))
    time.sleep(2)
    with exporting("--max-associations", str(LIMIT)):
        found = scraped()
        kept[1].shutdown(socket.SHUT_WR)  # the oldest ends: the next takes its place, the others stay
        time.sleep(1)
        later = scraped()
    expect(those(found, "sctp_associations"), [SOCKETS])
    expect(those(found, "sctp_associations_left_out"), [SOCKETS - LIMIT])
    expect(len(those(found, "sctp_association_paths")), LIMIT)
    expect(found["sctp_paths", frozenset({("state", "active")})], 2 * SOCKETS)
    shown, shown_later = (
        {labels for name, labels in one if name == "sctp_association_paths"} for one in (found, later)
    )
    expect((len(shown - shown_later), len(shown_later - shown)), (1, 1))
    for sock in kept:
        sock.close()


def top_shows_rates() -> None:
    client, _ = pair()
    sender = threading.Thread(target=lambda: send(client, 100))
    sender.start()
    printed = io.StringIO()
    with inside("a"), contextlib.redirect_stdout(printed):
        expect(cli.main(["top", "--once", "--sort", "out"]), 0)
    sender.join()
    first, heading, row, *_ = printed.getvalue().splitlines()
    assert first.startswith("associations: 1; paths: 2 active; out "), first
    cells = dict(zip(heading.split(), row.split(), strict=True))
    expect((cells["path"], cells["use"]), ("10.1.0.2", "PA"))
    assert 1.9 <= float(cells["out/s"].removesuffix("k")) <= 2.8, row  # 20 messages of 100 bytes per second


CASES: list[Callable[[], None]] = [
    a_scrape_has_what_sock_diag_says,
    a_cut_path_is_down_in_the_next_scrape,
    a_scrape_is_one_dump,
    the_limit_holds,
    top_shows_rates,
]


def stock() -> dict[str, Any]:
    """A scrape on a kernel that tells states only."""
    with hosts():
        client, _ = pair()
        send(client)
        with exporting():
            found = scraped()
    states = [of_path(found, "sctp_path_state", f"10.{n}.0.2", sctp_path_state="active") for n in (1, 2)]
    return {"names": sorted({name for name, _ in found if name.startswith("sctp_")}), "active": states}


def carry_out(plan: dict[str, Any]) -> dict[str, Any]:
    """PLAN: "what", cases or stock; "library": the folder with prometheus_client."""
    remember_home()
    sys.path.append(plan["library"])
    if plan["what"] == "stock":
        return {"status": "ok", **stock()}
    return {"status": "ok", "cases": {case.__name__: outcome(case) for case in CASES}}
