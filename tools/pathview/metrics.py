# SPDX-License-Identifier: GPL-2.0
"""Associations and their paths as metrics: what a scrape of the exporter gets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    StateSetMetricFamily,
)
from prometheus_client.samples import Sample

from pathview.model import STATES, WAIT_LIMITS_US, Association, Part, Path

STOCK_COUNTERS = ("SctpT3RtxExpireds", "SctpFastRetransmits")  # shown beside those of the series


@dataclass(frozen=True)
class Figure:
    """A number of a path or an association. FIELD: of the model; it is divided by PER."""

    name: str
    help: str
    field: str
    per: int = 1


PATH_GAUGES = (
    Figure("sctp_path_state_seconds", "Time since the path has got its state.", "state_ms", 1000),
    Figure("sctp_path_heard_seconds", "Time since a chunk came from the address.", "heard_ms", 1000),
    Figure("sctp_path_srtt_seconds", "Smoothed round trip.", "srtt_us", 1_000_000),
    Figure("sctp_path_rtt_min_seconds", "Least round trip lately.", "rtt_min_us", 1_000_000),
    Figure("sctp_path_rto_seconds", "Retransmission timeout.", "rto_ms", 1000),
    Figure("sctp_path_cwnd_bytes", "Congestion window.", "cwnd"),
    Figure("sctp_path_flight_bytes", "Sent over the path and not acknowledged.", "flight"),
    Figure("sctp_path_errors", "Timeouts and HEARTBEATs without an answer, in a row.", "errors"),
    Figure("sctp_path_error_limit", "One more error makes the path inactive.", "error_limit"),
)
PATH_COUNTERS = (
    Figure("sctp_path_t3_timeouts", "Timeouts of data.", "t3_timeouts"),
    Figure("sctp_path_fast_retransmissions", "Fast retransmissions, times.", "fast_retransmissions"),
    Figure("sctp_path_sent_bytes", "Bytes of chunks sent to the address.", "out_bytes"),
    Figure("sctp_path_received_bytes", "Bytes of chunks that came from the address.", "in_bytes"),
    Figure("sctp_path_sent_chunks", "DATA chunks sent, again when sent again.", "out_chunks"),
    Figure("sctp_path_received_chunks", "DATA chunks received, duplicates included.", "in_chunks"),
)
ASSOCIATION_GAUGES = (
    Figure("sctp_association_paths", "Addresses of the peer.", "path_count"),
    Figure("sctp_association_outstanding_bytes", "Sent and not acknowledged.", "outstanding"),
    Figure("sctp_association_queued_bytes", "Not sent yet.", "queued"),
    Figure("sctp_association_unread_bytes", "Received and not read by the program.", "unread"),
    Figure("sctp_association_peer_window_bytes", "The peer's window, less what is outstanding.", "peer_rwnd"),
    Figure("sctp_association_errors", "Timeouts in a row without an answer from the peer.", "errors"),
    Figure("sctp_association_error_limit", "One more error ends the association.", "error_limit"),
)


@dataclass(frozen=True)
class Scrape:
    """Data of one scrape. COUNTERS: of /proc/net/sctp/snmp.

    COMPLETE: the loaded SCTP tells all of its paths, not only addresses and states.
    """

    part: Part
    counters: Mapping[str, int]
    complete: bool


def labels_of(one: Association) -> dict[str, str]:
    """Those of an association: its first address stays the first."""
    peer = one.paths[0].address if one.paths else ""
    return {"local_port": str(one.local_port), "peer_port": str(one.peer_port), "peer": peer}


def unlike(found: Sequence[Association]) -> dict[tuple[str, ...], Association]:
    """By labels: of two with the same, which differ in our address alone, the older one."""
    kept: dict[tuple[str, ...], Association] = {}
    for one in found:
        kept.setdefault(tuple(labels_of(one).values()), one)
    return kept


Labelled = Sequence[tuple[Mapping[str, str], Association | Path]]


def family(figure: Figure, kind: type[Metric], suffix: str, subjects: Labelled) -> Metric:
    """One figure of each; what is not known is absent."""
    made = kind(figure.name, figure.help)  # type: ignore[call-arg]
    name = figure.name + suffix
    for labels, one in subjects:
        value = getattr(one, figure.field)
        if value is not None:
            made.samples.append(Sample(name, dict(labels), value / figure.per))
    return made


LIMITS_S = (*(str(us / 1_000_000) for us in WAIT_LIMITS_US), "+Inf")


def waits(found: Sequence[tuple[Mapping[str, str], Association]]) -> Metric:
    """Of the associations that count them."""
    said = "Time that messages waited until the program had read them."
    made = HistogramMetricFamily("sctp_association_unread_wait_seconds", said, labels=())
    for labels, one in found:
        if one.unread_waits:
            buckets = zip(LIMITS_S, accumulate(one.unread_waits.counts), strict=True)
            for limit, count in buckets:
                made.samples.append(Sample(f"{made.name}_bucket", {**labels, "le": limit}, count))
            made.samples.append(Sample(f"{made.name}_count", dict(labels), sum(one.unread_waits.counts)))
            made.samples.append(Sample(f"{made.name}_sum", dict(labels), one.unread_waits.us / 1_000_000))
    return made


def states(paths: Sequence[tuple[Mapping[str, str], Path]]) -> Metric:
    made = StateSetMetricFamily("sctp_path_state", "State of the path: the one that is 1.")
    for labels, path in paths:
        for state in STATES if path.state in STATES else ():
            made.samples.append(Sample(made.name, {**labels, made.name: state}, int(state == path.state)))
    return made


def about(paths: Sequence[tuple[Mapping[str, str], Path]]) -> Iterator[Metric]:
    """Words and marks."""
    info = GaugeMetricFamily("sctp_path_reason", "Always 1: why the path is in its state, from our address.")
    primary = GaugeMetricFamily("sctp_path_primary", "1: the primary path.")
    data = GaugeMetricFamily("sctp_path_new_data", "1: new data may take the path; with CMT several.")
    for labels, path in paths:
        if path.reason is not None:
            words = {**labels, "reason": path.reason, "source": path.source or ""}
            info.samples.append(Sample(info.name, words, 1))
            data.samples.append(Sample(data.name, dict(labels), int("active" in (path.marks or ()))))
        if path.marks is not None:
            primary.samples.append(Sample(primary.name, dict(labels), int("primary" in path.marks)))
    yield from (info, primary, data)


def counter_name(name: str) -> str:
    """SctpMpFailoverProbes -> sctp_mp_failover_probes; SctpT3RtxExpireds -> sctp_t3_rtx_expireds."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def of_the_namespace(scrape: Scrape, left_out: int) -> Iterator[Metric]:
    part = scrape.part
    for name, said, value in (
        (
            "sctp_multipath",
            "1: the loaded SCTP tells all of its paths; 0: addresses and states.",
            scrape.complete,
        ),
        ("sctp_associations", "Associations.", part.total),
        ("sctp_associations_left_out", "Associations without series of their own: too many.", left_out),
    ):
        yield GaugeMetricFamily(name, said, value=int(value))
    all_paths = GaugeMetricFamily("sctp_paths", "Paths of all associations.", labels=["state"])
    for state in dict.fromkeys((*STATES, *part.states)):
        all_paths.add_metric([state], part.states.get(state, 0))
    yield all_paths
    for name, value in scrape.counters.items():
        if name.startswith("SctpMp") or name in STOCK_COUNTERS:
            yield CounterMetricFamily(counter_name(name), f"{name} of /proc/net/sctp/snmp.", value=value)


def families(scrape: Scrape) -> Iterator[Metric]:
    """All metrics."""
    kept = list(unlike(scrape.part.associations).values())
    yield from of_the_namespace(scrape, scrape.part.total - len(kept))
    labelled = [(labels_of(one), one) for one in kept]
    for figure in ASSOCIATION_GAUGES:
        yield family(figure, GaugeMetricFamily, "", labelled)
    yield waits(labelled)
    paths = [({**labels, "path": path.address}, path) for labels, one in labelled for path in one.paths]
    yield states(paths)
    yield from about(paths)
    for figure in PATH_GAUGES:
        yield family(figure, GaugeMetricFamily, "", paths)
    for figure in PATH_COUNTERS:
        yield family(figure, CounterMetricFamily, "_total", paths)
