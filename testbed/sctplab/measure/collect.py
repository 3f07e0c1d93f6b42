# SPDX-License-Identifier: GPL-2.0
"""From what the agent brought back to metrics. Pure; absent means "does not apply".

goodput_mbit      payload delivered / transfer_s, all flows that are not background
transfer_s        first send to last delivery
capacity_share    goodput_mbit / sum over all paths of the rate x payload share of a full packet; paths
                  through one bottleneck count for no more than its rate together
rival_mbit        payload delivered of a rival / time from its first send to its last delivery; mean of all
share_of_rival    the same / the rival's fair share; mean of all rivals. The fair share: capacity as in
                  capacity_share, for a flow of its kind, / the number of flows that are under way, averaged
                  over the rival's time. A flow counts as one, however many paths it has; background flows
                  that are no rivals do not count
rtx_ratio         DATA chunks sent again / DATA chunks sent once (sender)
t3_timeouts, fast_rtx   how often the T3 timer expired, fast retransmissions (sender, SNMP)
sacks             SACK chunks that reached the sender
failover_s        first cut until a message sent after it is delivered
rto_ms            RTO of the primary path at the first cut, carrier-down or address-del
early_timeouts    T3 timeouts of the sender's host before that, when only random loss can have been a reason
return_s          last heal, carrier-up or address-add until new data leaves over that path: the first
                  DATA chunk whose TSN was never sent before; absent when none does
spurious_failovers      how often a sender gave up its primary path as unreachable though
                  nothing happened to it; for flows over several paths in runs without events
any_spurious_failover   1 when there was one, else 0: the mean is the share of transfers that had one
times_dormant     how often all paths of a flow came to be unreachable together
dormant_moves     how often data then went to another path (sender, SctpMpDormantMoves)
max_message_delay_s     longest one-way delay of a message
mean_message_delay_s, p99_message_delay_s     mean and 99th percentile (nearest rank) of these delays;
                  only where messages were logged
max_gap_s               longest time in which nothing was delivered
wire_mbit.PATH    what left the middle towards the receiver, headers included, / transfer_s
wire_mbit.BOTTLENECK    what left the bottleneck in that direction, all flows, / transfer_s

Of a flow of kind program: see programs.py.
Of a flow of kind sctp-striped: goodput_mbit, transfer_s and capacity_share as stripe.py says; the counts are
of the associations until each has transferred all; what tells of single messages or of wires is absent.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import pairwise
from statistics import fmean
from typing import Any

from sctplab.measure import programs
from sctplab.measure.capture import Chunk
from sctplab.plan import stripe
from sctplab.plan.link_commands import egress
from sctplab.plan.traffic import PORT, parts, payload_share, used_paths
from sctplab.spec.model import BREAKING, BY_KERNEL, PROGRAM, USRSCTP_SENDS, Bottleneck, Flow, Path, RunSpec

SERIES_POINTS = 2000
T3 = "SctpT3RtxExpireds"
KERNEL_SENDS = (*BY_KERNEL, "sctp-to-usrsctp")
Ends = tuple[dict[str, Any], dict[str, Any]]  # results of sender and receiver


def capacity_mbit(spec: RunSpec, flow: Flow) -> float:
    """Payload capacity of all paths for messages like this flow's."""
    way = "reverse" if flow.reverse else "forward"

    def carried(path: Path, rate_mbit: float) -> float:
        return rate_mbit * payload_share(flow.kind, path, flow.message_b)

    total = 0.0
    for path in spec.topology.paths:
        if spec.topology.bottleneck(path.name) is None:
            total += carried(path, getattr(path, way).rate_mbit)
    for one in spec.topology.shared:
        through = [spec.topology.path(name) for name in one.paths]
        rate = getattr(one, way).rate_mbit
        together = sum(carried(path, getattr(path, way).rate_mbit) for path in through)
        total += min(max(carried(path, rate) for path in through), together)
    return total


def events_of(outcome: dict[str, Any] | None, kind: str = "") -> list[dict[str, Any]]:
    """The JSON lines of one program, all or those of one kind; other output is skipped."""
    found: list[dict[str, Any]] = []
    mark = f'"event": "{kind}"' if kind else ""
    for line in (outcome or {}).get("output", "").splitlines():
        if mark in line and line.startswith("{") and line.endswith("}"):
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
    return found


def result_of(outcome: dict[str, Any] | None) -> dict[str, Any]:
    """The program's last "result" event; iperf3's own summary in the same words."""
    results = events_of(outcome, "result")
    return results[-1] if results else iperf3_result((outcome or {}).get("output", ""))


def iperf3_result(output: str) -> dict[str, Any]:
    """The result in the output of the sender's `iperf3 -J`; {} if it is no such output."""
    try:
        found = json.loads(output)
        end, start = found["end"]["sum_received"], found["start"]["timestamp"]["timesecs"]
    except (ValueError, KeyError, TypeError):
        return {}
    return {
        "event": "result",
        "role": "send",
        "proto": "iperf3",
        "bytes": end["bytes"],
        "elapsed_s": end["seconds"],
        "goodput_mbit": end["bits_per_second"] / 1e6,
        "first_t": start,
        "last_t": start + end["seconds"],
        "content": "not checked",
    }


def deltas(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    """Differences of counters, zeros left out; gauges such as SctpCurrEstab are differences too."""
    return {
        name: value - before.get(name, 0) for name, value in after.items() if value != before.get(name, 0)
    }


def path_counters(path: Path | Bottleneck, links: list[dict[str, Any]]) -> dict[str, Any]:
    """Both directions of a path or bottleneck: what its netem passed on and dropped, and what it was told."""
    found: dict[str, Any] = {"name": path.name}
    for one in ("forward", "reverse"):
        where = egress(path, one)
        link = next(item for item in links if (item["where"], item["interface"]) == where)
        values = getattr(path, one)
        found[one] = {
            "tx_packets": link["qdisc"]["packets"],
            "tx_bytes": link["qdisc"]["bytes"],
            "drops": link["qdisc"]["drops"],
            "rate_mbit": values.rate_mbit,
            "delay_ms": values.delay_ms,
            "queue_pkts": values.queue_pkts,
        }
    return found


def metrics(spec: RunSpec, result: dict[str, Any], counters: dict[str, dict[str, int]],
            paths: list[dict[str, Any]]) -> dict[str, float]:  # fmt: skip
    """All metrics of a finished run."""
    found: dict[str, float] = {}
    main = [flow for flow in spec.flows if not flow.background]
    pairs = [ends(flow, outcomes(spec, flow, result)) for flow in main]
    if main[0].kind == PROGRAM:
        (outcome,) = outcomes(spec, main[0], result)
        told = events_of(outcome["receiver"], "message") or events_of(outcome["sender"], "message")
        found = programs.metrics(spec, pairs[0], told, result, counters)
        return {name: round(value, 9) for name, value in found.items()}
    found |= speed(spec, main[0], pairs)
    kernel_sctp = any(flow.kind in KERNEL_SENDS for flow in spec.flows)
    if kernel_sctp:
        found |= recovery(counters[main[0].hosts[0]], pairs)
    elif main[0].kind in USRSCTP_SENDS:
        found |= repeated([send["association_stats"] for send, _ in pairs if "association_stats" in send])
    found |= rivals(spec, result)
    first, *others = outcomes(spec, main[0], result)
    if not others:
        found |= delays(spec, result, first)
    if kernel_sctp and not others:
        found |= before_break(result, first, main[0].hosts[0])
    if flows := multihomed(spec, result):
        found["times_dormant"] = sum(times_dormant(flow) for flow in flows)
        found["dormant_moves"] = counters[main[0].hosts[0]].get("SctpMpDormantMoves", 0)
        if not spec.events:
            found |= spurious(flows)
    for path in paths:
        way = path["reverse" if main[0].reverse else "forward"]
        if "transfer_s" in found and not others:
            found[f"wire_mbit.{path['name']}"] = way["tx_bytes"] * 8e-6 / found["transfer_s"]
    return {name: round(value, 9) for name, value in found.items()}


def outcomes(spec: RunSpec, flow: Flow, result: dict[str, Any]) -> list[dict[str, Any]]:
    """The results of the flow's parts: one, or one per path where it is striped."""
    names = parts(flow, spec.topology)
    return [one for one in result["flows"] if one["name"] in names]


def ends(flow: Flow, found: list[dict[str, Any]]) -> Ends:
    """(sender's result, receiver's result) of the flow, its parts merged."""
    each = [(result_of(one["sender"]), result_of(one["receiver"])) for one in found]
    if flow.kind != "sctp-striped":
        return each[0]
    logs = [events_of(one["receiver"], "progress") for one in found]
    return stripe.merged(flow, [(*pair, log) for pair, log in zip(each, logs, strict=True)])


def speed(spec: RunSpec, flow: Flow, pairs: list[Ends]) -> dict[str, float]:
    """transfer_s, goodput_mbit, capacity_share."""
    whole = [(send, recv if "last_t" in recv else send) for send, recv in pairs if "first_t" in send]
    if len(whole) < len(pairs):
        return {}
    seconds = max(recv["last_t"] for _, recv in whole) - min(send["first_t"] for send, _ in whole)
    if seconds <= 0:
        return {}
    goodput = sum(recv["bytes"] for _, recv in whole) * 8e-6 / seconds
    return {
        "goodput_mbit": goodput,
        "transfer_s": seconds,
        "capacity_share": goodput / capacity_mbit(spec, flow),
    }


Interval = tuple[float, float]


def rivals(spec: RunSpec, result: dict[str, Any]) -> dict[str, float]:
    """rival_mbit and share_of_rival; none where a rival brought nothing."""
    measured = [flow for flow in spec.flows if flow.rival or not flow.background]
    under_way = {flow.name: span(*ends(flow, outcomes(spec, flow, result))) for flow in measured}
    others = [time for time in under_way.values() if time]
    speeds, shares = [], []
    for flow in (flow for flow in measured if flow.rival):
        time = under_way[flow.name]
        if time is None:
            return {}
        received = ends(flow, outcomes(spec, flow, result))[1]["bytes"]
        speeds.append(received * 8e-6 / (time[1] - time[0]))
        shares.append(speeds[-1] / capacity_mbit(spec, flow) / alone(time, others))
    if not speeds:
        return {}
    return {"rival_mbit": sum(speeds) / len(speeds), "share_of_rival": sum(shares) / len(shares)}


def span(send: dict[str, Any], recv: dict[str, Any]) -> Interval | None:
    """From the first send to the last delivery; a sender that was stopped may have told nothing."""
    start, end = send.get("first_t", recv.get("first_t")), recv.get("last_t", send.get("last_t"))
    return (start, end) if start is not None and end is not None and end > start else None


def alone(time: Interval, flows: list[Interval]) -> float:
    """The mean over TIME of 1 / the number of FLOWS under way, one of which has that time."""
    moments = sorted({min(max(t, time[0]), time[1]) for flow in flows for t in flow})
    parts = (
        (end - start) / sum(flow[0] <= start and end <= flow[1] for flow in flows)
        for start, end in pairwise(moments)
    )
    return sum(parts) / (time[1] - time[0])


def recovery(sender: dict[str, int], pairs: list[Ends]) -> dict[str, float]:
    """Loss recovery of the sender: t3_timeouts, fast_rtx, rtx_ratio, sacks."""
    found: dict[str, float] = {
        "t3_timeouts": sender.get(T3, 0),
        "fast_rtx": sender.get("SctpFastRetransmits", 0),
    }
    chunks = sender.get("SctpOutOrderChunks", 0) + sender.get("SctpOutUnorderChunks", 0)
    stats = [send["association_stats"] for send, _ in pairs if "association_stats" in send]
    return found | repeated(stats, chunks)


def repeated(stats: list[dict[str, int]], chunks: int | None = None) -> dict[str, float]:
    """rtx_ratio and sacks; CHUNKS sent once, where the associations' own count does not do."""
    if chunks is None:
        chunks = sum(item["data_chunks_out"] for item in stats)
    if not stats or not chunks:
        return {}
    return {
        "rtx_ratio": sum(item["rtx_chunks"] for item in stats) / chunks,
        "sacks": sum(item["sacks_in"] for item in stats),
    }


def multihomed(spec: RunSpec, result: dict[str, Any]) -> list[dict[str, Any]]:
    """The results of the foreground SCTP flows over more than one path."""
    return [
        outcomes(spec, flow, result)[0] for flow in spec.flows
        if flow.kind == "sctp" and not flow.background and len(used_paths(flow, spec.topology)) > 1
    ]  # fmt: skip


def spurious(flows: list[dict[str, Any]]) -> dict[str, float]:
    """spurious_failovers, any_spurious_failover."""
    given_up = [
        event
        for flow in flows
        for event in path_events(flow)
        if event["state"] == "unreachable" and event["address"] == primary(flow)
    ]
    return {"spurious_failovers": len(given_up), "any_spurious_failover": int(bool(given_up))}


def times_dormant(flow: dict[str, Any]) -> int:
    """How often the last path that was left became unreachable."""
    alive = {path["address"] for one in sender_events(flow, "connected") for path in one["paths"]}
    found = 0
    for event in path_events(flow):
        if event["state"] == "available":
            alive.add(event["address"])
        elif event["state"] == "unreachable" and event["address"] in alive:
            alive.remove(event["address"])
            found += not alive
    return found


def primary(flow: dict[str, Any]) -> str | None:
    """The receiver's address that the sender's kernel had as the primary when the association was up."""
    paths = (path for one in sender_events(flow, "connected") for path in one["paths"])
    return next((path["address"] for path in paths if path["primary"]), None)


def path_events(flow: dict[str, Any]) -> list[dict[str, Any]]:
    """The changes of path states that the flow's sender was told of, in order."""
    return sender_events(flow, "path")


def sender_events(flow: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """The events of one kind that the flow's sender printed, in order."""
    return events_of(flow["sender"], kind)


def delays(spec: RunSpec, result: dict[str, Any], flow: dict[str, Any]) -> dict[str, float]:
    """max_message_delay_s, max_gap_s; of logged messages also mean, p99 and, if a path broke, failover_s."""
    receiver = result_of(flow["receiver"])
    found: dict[str, float] = {
        name: receiver[name] for name in ("max_message_delay_s", "max_gap_s") if name in receiver
    }
    breaks = [event.at_s for event in spec.events if event.action in BREAKING]
    log = messages(flow)
    if log:
        each = sorted(item["delay_us"] / 1e6 for item in log)
        found["mean_message_delay_s"] = fmean(each)
        found["p99_message_delay_s"] = each[-(-len(each) * 99 // 100) - 1]
    if breaks and log:
        moment = result["start_t"] + min(breaks)
        after = [item["received"] for item in log if item["sent"] > moment]
        if after:
            found["failover_s"] = min(after) - moment
    return found


def before_break(result: dict[str, Any], flow: dict[str, Any], sender: str) -> dict[str, float]:
    """rto_ms and early_timeouts, from what the agent saw as a path broke; SENDER is a host."""
    broke = (event for event in result.get("events", ()) if event["label"].startswith(BREAKING))
    first = next(broke, None)
    if first is None:
        return {}
    found: dict[str, float] = {"early_timeouts": first["t3"][sender] - result["before"][sender].get(T3, 0)}
    rto = [int(row["RTO"]) for row in first["paths"][sender] if row["ADDR"] == primary(flow)]
    if len(rto) == 1 and result["hz"]:
        found["rto_ms"] = rto[0] * 1000 / result["hz"]
    return found


def returned(spec: RunSpec, start_t: float, chunks: Iterable[Chunk]) -> dict[str, float]:
    """return_s from CHUNKS, what crossed the sender's interfaces; START_T: when the first flow started."""
    moment = start_t + spec.last_heals[0].at_s
    healed = {event.path for event in spec.last_heals}
    port = PORT + spec.flows.index(spec.measured_flow)
    newest = 0
    for chunk in chunks:
        if chunk.tsn is None or chunk.ports[1] != port or chunk.tsn <= newest:
            continue
        newest = chunk.tsn
        if chunk.path in healed and chunk.time_ns >= moment * 1e9:
            return {"return_s": round(chunk.time_ns / 1e9 - moment, 9)}
    return {}


def messages(flow: dict[str, Any]) -> list[dict[str, Any]]:
    return events_of(flow["receiver"], "message")


def thinned(points: list[list[float]]) -> list[list[float]]:
    """At most SERIES_POINTS of them; of neighbours the one with the largest value stays."""
    step = -(-len(points) // SERIES_POINTS) or 1
    return [max(points[i : i + step], key=lambda point: point[1]) for i in range(0, len(points), step)]


def series(spec: RunSpec, result: dict[str, Any]) -> dict[str, list[list[float]]]:
    """Time series for plots; t in seconds after the start of the first flow."""
    start = result["start_t"]
    found: dict[str, list[list[float]]] = {}
    flow, *others = outcomes(spec, spec.measured_flow, result)
    told = {} if others else result_of(flow["receiver"])
    for name, points in told.get("series", {}).items():
        if isinstance(points, list):
            label = {"delay": "message_delay", "goodput_mbit": "goodput"}[name]
            found[label] = [[round(t - start, 6), value] for t, value in points]
    log = [[round(item["sent"] - start, 6), item["delay_us"] / 1e6] for item in messages(flow)]
    if log:
        found["message_delay"] = thinned(log)
    receiver = spec.measured_flow.hosts[1]
    samples = [(item["t"] - start, item["rx_bytes"][receiver]) for item in result["samples"]]
    for (t0, old), (t1, new) in pairwise(samples):
        for name in (path.name for path in spec.topology.paths):
            mbit = (new.get(name, 0) - old.get(name, 0)) * 8e-6 / (t1 - t0)
            found.setdefault(f"wire_mbit.{name}", []).append([round(t1, 6), round(mbit, 6)])
    return found
