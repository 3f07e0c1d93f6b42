# SPDX-License-Identifier: GPL-2.0
"""The scenario that replays what was seen: TOML in which every figure says where it came from."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import tomli_w

from sctplab.replay.figures import DEFAULTS, USUAL_MTU, Figure, Figures, own
from sctplab.replay.messages import MOST_TIMES, Messages
from sctplab.replay.outages import Outage
from sctplab.spec.profiles import known

LEAD_S = 5.0  # until the replay is where a capture began that has no set-up
FEWEST_BACK = 10  # messages the other way that are worth a flow
MOST_LOGGED = 100_000  # messages of which each one's delay is kept
OFF = "00-off"
NODELAY_SHARE = 0.1
MARGIN_S = 120.0  # of virtual time, beside three times as long as it took


@dataclass(frozen=True)
class File:
    """NAME: of the scenario. SOURCES: file and host, for the head. NUMBERS: seen path -> its place here."""

    figures: Figures
    name: str
    sources: str
    reference: str

    @property
    def order(self) -> list[int]:
        """The path that carried data first is the first, and so the primary."""
        story = self.figures.story
        first = max(story.first_path, 0)
        return [first, *(i for i in range(len(story.paths)) if i != first)]

    def path(self, seen: int) -> str:
        return f"path{self.order.index(seen) + 1}"

    @property
    def whole(self) -> bool:
        return bool(self.figures.story.init_ns)

    @property
    def zero_ns(self) -> int:
        """The capture's time that is 0 s here."""
        story = self.figures.story
        if not self.whole:
            return story.start_ns - round(LEAD_S * 1e9)
        if story.survey.at("host1"):
            return story.init_ns
        return story.init_ns - round(self.figures.paths[self.order[0]].ways["forward"].delay_ms.value * 1e6)

    def at_s(self, time_ns: int) -> float:
        return max(round((time_ns - self.zero_ns) / 1e9, 6), 0.0)

    def text(self) -> str:
        parts = [self.head(), *self.paths(), *self.flows(), *self.events(), self.limits(), *self.variants()]
        return "\n\n".join(parts) + "\n"

    def head(self) -> str:
        story = self.figures.story
        cuts = len(self.figures.outages)
        lines = [
            f"# How do other kernels and settings fare with the association {story.survey.association.name}"
            f" and its {cuts} outage{'' if cuts == 1 else 's'}?",
            f"# By testbed/lab from-pcap, from {self.sources}. Each figure says where it came from;",
            '# "assumed" are those that the capture does not tell.',
        ]
        if story.survey.clocks:
            lines.append(f"# Delays one way: {story.survey.clocks}.")
        if story.in_udp:
            lines.append("# It was in UDP (RFC 6951); here it is not, and packets are 8 bytes shorter.")
        since = (
            "its first INIT" if self.whole else f"{LEAD_S:g} s before its first packet: set-up is not in it"
        )
        lines.append(f"# 0 s is {since}. host1 sent most of the data.")
        lines += ["", *assigned("reference", self.reference, "what happened, beside the results in reports")]
        return "\n".join(lines if self.reference else lines[:-2])

    def paths(self) -> Iterator[str]:
        for number, seen in enumerate(self.order, 1):
            one = self.figures.paths[seen]
            lines = [
                "[[topology.paths]]",
                f'name = "path{number}"    # {one.addresses[0]} - {one.addresses[1]}',
            ]
            if ip_address(one.addresses[1]).version == 6:
                lines.append('family = "ipv6"')
            mtu = self.mtu()
            lines += assigned("mtu", mtu.value, mtu.why) if mtu else []
            for way in ("forward", "reverse"):
                values = one.ways[way]
                lines += [f"[topology.paths.{way}]"]
                lines += figure("rate_mbit", values.rate_mbit)
                lines += figure("delay_ms", values.delay_ms, 3)
                lines += figure("loss_pct", values.loss_pct)
                lines += figure("reorder_pct", values.reorder_pct) if values.reorder_pct else []
                lines += figure("queue_pkts", values.queue_pkts, 0) if values.queue_pkts else []
            yield "\n".join(lines)

    def mtu(self) -> Figure | None:
        seen = max((one.fragmented_b for one in self.figures.story.messages.values()), default=0)
        largest = max((way.meter.largest_b for way in self.figures.story.ways.values()), default=0)
        if seen:
            value = min(max(-(-(seen - 14) // 4) * 4, 576), 65535)
            return (
                Figure(value, "the largest packet of messages that took several")
                if value != USUAL_MTU
                else None
            )
        if largest - 14 > USUAL_MTU:
            return Figure(min(largest - 14, 65535), "the largest packet")
        return None

    def flows(self) -> Iterator[str]:
        story = self.figures.story
        there = story.messages.get("host1") or Messages()
        yield "\n".join(["[[flows]]", 'name = "main"', *self.flow(there, False)])
        back = story.messages.get("host2")
        if back and back.count >= FEWEST_BACK:
            note = "# In the capture, these messages were of the same association."
            yield "\n".join(["[[flows]]", note, 'name = "back"', "reverse = true", "background = true",
                             *self.flow(back, True)])  # fmt: skip

    def flow(self, messages: Messages, background: bool) -> Iterator[str]:
        sizes = sorted(messages.sizes.elements()) or [messages.size_b]
        spread = f"{sizes[0]} to {sizes[-1]} bytes, the mean of {messages.count}"
        yield from assigned("message_b", messages.size_b, spread)
        yield from self.pace(messages, background)
        if messages.streams > 1:
            yield from assigned("streams", messages.streams, "the highest stream seen, and 1")
        if messages.unordered > messages.count / 2:
            yield from assigned("unordered", True, f"{messages.unordered} of {messages.count} messages were")
        if not background and messages.count <= MOST_LOGGED:
            yield from assigned("message_log", True, "for failover_s")

    def pace(self, messages: Messages, background: bool) -> Iterator[str]:
        """How messages follow each other: as fast as can be, at an interval, or each at its time."""
        lasted_ns = messages.last_ns - messages.first_ns
        lead = 0.0 if self.whole else LEAD_S
        if self.bulk(messages):
            if not background:
                size = messages.total_b / 1e6
                size += lead * size / max(lasted_ns / 1e9, 1)
                why = "all bytes seen; messages followed SACKs, or filled the path"
                yield from assigned("size_mb", max(round(size, 3), 0.001), why)
            return
        yield from assigned("nodelay", self.nodelay(messages), "small messages were sent beside others"
                            if self.nodelay(messages) else "small messages waited for SACKs")  # fmt: skip
        few = 1 <= messages.count <= MOST_TIMES
        if not messages.steady and few and not background:
            times = [round(lead + (t - messages.times_ns[0]) / 1e9, 4) for t in messages.times_ns]
            yield f"send_at_s = {times}    # after the set-up, as seen"
            return
        interval = messages.interval_ns if messages.steady else lasted_ns / max(messages.count - 1, 1)
        why = "the median" if messages.steady else "assumed: the mean; the messages came at irregular times"
        yield from assigned("interval_ms", round(max(interval, 1000) / 1e6, 3), why)
        if not background:
            lasted = round(max(lead + (lasted_ns + interval) / 1e9, 0.001), 3)
            yield from assigned(
                "duration_s", lasted, "as seen" if self.whole else f"as seen, and {LEAD_S:g} s"
            )

    def bulk(self, messages: Messages) -> bool:
        story = self.figures.story
        full = any(one.meter.queue_mbit or one.meter.steady for one in story.ways.values())
        return messages.waits_for_sacks or (full and not story.survey.at("host1"))

    def nodelay(self, messages: Messages) -> bool:
        sender = own(self.figures.story)
        return not sender.small or sender.in_flight > NODELAY_SHARE * sender.small

    def events(self) -> Iterator[str]:
        for cut in self.figures.outages:
            how = f"{cut.lost} packets were lost" + (
                "; assumed both ways, since nothing came the other way" if cut.assumed else ""
            )
            yield self.event("cut", cut, cut.start, how)
            if cut.end:
                yield self.event("heal", cut, cut.end, "the first packet that passed again")

    def event(self, action: str, cut: Outage, bracket: tuple[int, int], why: str) -> str:
        low, high = map(self.at_s, bracket)
        when = assigned("at_s", self.at_s(sum(bracket) // 2), f"between {low:g} and {high:g}: {why}")
        lines = ["[[events]]", *when, f'action = "{action}"', f'path = "{self.path(cut.path)}"']
        return "\n".join([*lines, f'direction = "{cut.way}"'] if cut.way != "both" else lines)

    def limits(self) -> str:
        story = self.figures.story
        lasted = (story.end_ns - self.zero_ns) / 1e9
        return f"[limits]\nvirtual_s = {min(round(3 * lasted + MARGIN_S), 10**6)}\nwall_s = 1800"

    def variants(self) -> Iterator[str]:
        """stock, settings as seen where they differ, and each profile."""
        seen = self.figures.settings
        notes = [f"# {name}: {one.value:g}: {one.why}" for name, one in seen.items()]
        notes += [f"# {name}: not seen; assumed {DEFAULTS[name]}, Linux's default" for name in DEFAULTS
                  if name not in seen]  # fmt: skip
        yield "\n".join(["# Timers and thresholds (net.sctp):", *notes])
        yield '[variants.stock]    # with the defaults\nkernels = ["stock"]'
        own_values = {f"net.sctp.{name}": round(one.value) for name, one in seen.items()
                      if round(one.value) != DEFAULTS[name]}  # fmt: skip
        if own_values:
            yield variant("seen", "stock", {"sysctl": own_values}, "    # with the timers above")
        for profile in known():
            if profile != OFF:
                yield variant(profile.partition("-")[2], "patched", {"profiles": [profile]})


def variant(name: str, kernel: str, settings: dict[str, Any], why: str = "") -> str:
    made = tomli_w.dumps({"variants": {name: {"kernels": [kernel], **settings}}}).strip()
    first, _, rest = made.partition("\n")
    return f"{first}{why}\n{rest}"


def figure(key: str, one: Figure, digits: int = 6) -> Iterator[str]:
    value = round(one.value, digits) if digits else round(one.value)
    return assigned(key, value, one.why)


def assigned(key: str, value: float | str | bool, why: str) -> Iterator[str]:
    yield f"{tomli_w.dumps({key: value}).strip()}    # {why}"


def reference(found: Figures) -> str:
    """Metrics of the capture, as a reference file of the report (CSV); "" if none can be told."""
    rows = []
    if found.failover_s:
        rows.append(("failover_s", found.failover_s.value))
    messages = found.story.messages.get("host1")
    if messages and messages.waits_for_sacks and messages.last_ns > messages.first_ns:
        lasted = (messages.last_ns - messages.first_ns) / 1e9
        rows += [("transfer_s", lasted), ("goodput_mbit", messages.total_b * 8e-6 / lasted)]
    if not rows:
        return ""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["metric", "value", "source"])
    writer.writerows([name, f"{value:.6g}", "the capture"] for name, value in rows)
    return out.getvalue()


def sources_of(found: Figures) -> str:
    return ", ".join(f"{path.name} ({host})" for path, host in found.story.survey.files.items())


def reference_path(out: Path) -> Path:
    return out.with_name(f"{out.stem}-seen.csv")
