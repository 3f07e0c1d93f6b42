# SPDX-License-Identifier: GPL-2.0
"""sctp-multipath exporter: the metrics of metrics.py over HTTP, with the library of Prometheus."""

from __future__ import annotations

import argparse
import heapq
import ipaddress
import socket
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path as File
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import ProcessCollector, make_wsgi_app
from prometheus_client.core import CollectorRegistry, Metric
from prometheus_client.registry import Collector
from sctpkernel.errors import Parser

from pathview import diag, stock
from pathview.files import text_of
from pathview.metrics import Scrape, families
from pathview.model import Association, Part

LISTEN, MAX_ASSOCIATIONS = "127.0.0.1:9899", 200
PATIENCE_S = 5.0  # with a client that sends nothing, or takes nothing
CLIENTS = 16  # at a time; others are hung up on


def part_of(found: Iterable[Association], limit: int) -> Part:
    """As diag.oldest()."""
    everything = list(found)
    counts = Counter(path.state for one in everything for path in one.paths)
    kept = heapq.nsmallest(limit, everything, key=lambda one: one.assoc_id)
    return Part(tuple(kept), len(everything), counts)


def counters(snmp: str) -> dict[str, int]:
    """Of the text of /proc/net/sctp/snmp."""
    pairs = (line.split() for line in snmp.splitlines())
    return {words[0]: int(words[1]) for words in pairs if len(words) == 2 and words[1].isdigit()}


def gather(limit: int, proc: File = File("/proc")) -> Scrape:
    """The present state of this network namespace; a host that has not loaded SCTP is not made to."""
    folder = proc / "net" / "sctp"
    known = counters(text_of(folder / "snmp"))
    if not folder.is_dir():
        return Scrape(Part((), 0, {}), known, False)
    try:
        part = diag.oldest(diag.dump(), limit)
    except OSError:
        part = None
    if part is not None:  # an empty answer does not tell what the kernel knows, its counters do
        return Scrape(part, known, any(name.startswith("SctpMp") for name in known))
    return Scrape(part_of(stock.read(folder), limit), known, False)


class Paths(Collector):
    """One dump for each scrape, and one at a time."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.lock = threading.Lock()

    def collect(self) -> Iterator[Metric]:
        with self.lock:
            return families(gather(self.limit))


class Handler(WSGIRequestHandler):
    """Says nothing of each request."""

    timeout = PATIENCE_S

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


class Server(ThreadingMixIn, WSGIServer):
    """IPv6, too. A thread for each of so many clients: none waits for a slow one."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[WSGIRequestHandler]) -> None:
        self.places = threading.BoundedSemaphore(CLIENTS)
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, handler)

    def server_bind(self) -> None:
        """Without the look-up of the host's name, which may take long."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]
        self.setup_environ()

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self.places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no thread to be had
            self.places.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.places.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """One line: a client that went away is no error of ours."""
        print(
            f"sctp-multipath: exporter: {client_address}: {sys.exc_info()[1]!r}", file=sys.stderr, flush=True
        )


def shown(host: str, port: int) -> str:
    """As endpoint() takes it."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def endpoint(word: str) -> tuple[str, int]:
    """ADDR:PORT, an IPv6 address in brackets."""
    host, _, number = word.rpartition(":")
    try:
        address = str(ipaddress.ip_address(host[1:-1] if host[:1] + host[-1:] == "[]" else host))
        bare = ":" in address and host[:1] != "["
    except ValueError:
        bare = True
    if bare or not number.isdecimal() or int(number) >= 1 << 16:
        raise argparse.ArgumentTypeError(
            f"got {word!r}, expected ADDRESS:PORT, such as {LISTEN} or [::1]:9899"
        )
    return address, int(number)


def count(word: str) -> int:
    if not word.isdecimal():
        raise argparse.ArgumentTypeError(f"got {word!r}, expected a number of associations")
    return int(word)


def parser() -> argparse.ArgumentParser:
    made = Parser(
        prog="sctp-multipath exporter",
        description="Serve the associations and paths of this network namespace as metrics for Prometheus "
        "(OpenMetrics, http://ADDR:PORT/metrics) until it is ended. Reads only, as any user.",
        epilog="Who may connect may read the addresses and ports of all associations: listen on an address "
        "of a management network only.",
    )
    made.add_argument(
        "--listen", type=endpoint, default=LISTEN, metavar="ADDR:PORT", help="default: %(default)s"
    )
    made.add_argument(
        "--max-associations",
        type=count,
        default=MAX_ASSOCIATIONS,
        metavar="N",
        help="with series of their own, the oldest; sctp_associations_left_out tells how many have none. "
        "Default: %(default)s",
    )
    return made


def serve(address: tuple[str, int], limit: int) -> None:
    """Until it is ended; raises OSError."""
    registry = CollectorRegistry()
    registry.register(Paths(limit))
    ProcessCollector(registry=registry)  # its own CPU time, among others
    application = make_wsgi_app(registry, disable_compression=True)
    with make_server(*address, application, Server, Handler) as server:
        print(
            f"sctp-multipath: exporter: http://{shown(address[0], server.server_port)}/metrics",
            file=sys.stderr,
            flush=True,
        )
        server.serve_forever()


def main(arguments: Sequence[str]) -> int:
    given = parser().parse_args(arguments)
    host, port = given.listen
    try:
        serve((host, port), given.max_associations)
    except KeyboardInterrupt:
        return 0
    except OSError as error:
        print(f"sctp-multipath: exporter: --listen {shown(host, port)}: {error.strerror}", file=sys.stderr)
        return 1
    return 0
