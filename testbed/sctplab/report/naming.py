# SPDX-License-Identifier: GPL-2.0
"""How metrics and factors are called in tables and plots, and how their numbers are written."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from sctplab.measure.records import Value
from sctplab.report.stats import Estimate


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric's title and unit ("" for a pure number).

    skewed: judged by its median. share: 0 or 1 for one run, so that the mean is a share of runs.
    more: more of it is better, not less.
    """

    name: str
    title: str
    unit: str
    skewed: bool = False
    share: bool = False
    more: bool = False

    @property
    def axis(self) -> str:
        """Title with unit, for an axis or a table head."""
        return f"{self.title} ({self.unit})" if self.unit else self.title


# Those worth a table and a plot, the most telling first. Everything else is in summary.csv.
HEADLINES = (
    Metric("goodput_mbit", "Goodput", "Mbit/s", more=True),
    Metric("transfer_s", "Transfer time", "s"),
    Metric("capacity_share", "Share of the paths' capacity", "", more=True),
    Metric("share_of_rival", "Rival's share of its fair rate", "", more=True),
    Metric("failover_s", "Failover time", "s", skewed=True),
    Metric("return_s", "Time until data returns to a healed path", "s", skewed=True),
    Metric("max_gap_s", "Longest gap between deliveries", "s", skewed=True),
    Metric("max_message_delay_s", "Longest message delay", "s", skewed=True),
    Metric("any_spurious_failover", "Transfers with a spurious failover", "", share=True),
    Metric("spurious_failovers", "Spurious failovers", ""),
    Metric("rtx_ratio", "Retransmission ratio", ""),
)
# Each of them follows from another one at the same size and paths.
SPEEDS = ("goodput_mbit", "transfer_s", "capacity_share")
# Said first where something happens to a path during the run: the silence after it.
SILENCE = ("failover_s", "max_gap_s", "max_message_delay_s")
_BY_NAME = {m.name: m for m in HEADLINES}
_UNITS = {
    "_mbit": "Mbit/s",
    "_ms": "ms",
    "_us": "µs",
    "_s": "s",
    "_pct": "%",
    "_kb": "KB",
    "_mb": "MB",
    "_pkts": "packets",
}


def metric(name: str) -> Metric:
    """Title, unit and kind of a metric; for a name not in HEADLINES the unit comes from its suffix."""
    known = _BY_NAME.get(name)
    if known:
        return known
    stem, dot, part = name.partition(".")
    title, unit = _split(stem)
    return Metric(name, title.replace("_", " ") + (f" {part}" if dot else ""), unit)


def factor_axis(name: str) -> str:
    """'d2_ms' -> 'd2 (ms)'."""
    title, unit = _split(name)
    return f"{title.replace('_', ' ')} ({unit})" if unit else title.replace("_", " ")


def factor_setting(name: str, value: Value | None) -> str:
    """('d2_ms', 50) -> 'd2 = 50 ms'."""
    title, unit = _split(name)
    return (
        f"{title.replace('_', ' ')} = {value_text(value)}{' ' + unit if unit and value is not None else ''}"
    )


def value_text(value: Value | None) -> str:
    """A factor's value as a scenario file writes it; 'none' for a run that does not have the factor."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.10g}" if isinstance(value, int | float) else value


def decimals(values: Iterable[float]) -> int:
    """Digits after the point so that the largest value shows four significant ones (three below 1)."""
    largest = max((abs(v) for v in values), default=0.0)
    if largest == 0:
        return 0
    magnitude = math.floor(math.log10(largest))
    return min(6, max(0, (3 if magnitude >= 0 else 2) - magnitude))


def estimate_text(estimate: Estimate, digits: int) -> str:
    """'19.80 ± 0.12' for a mean, '1.09 [1.05, 1.12]' for a median or share; without interval the centre."""
    centre = f"{estimate.centre:.{digits}f}"
    if estimate.interval is None:
        return centre
    if estimate.skewed or estimate.share:
        return f"{centre} [{estimate.interval.low:.{digits}f}, {estimate.interval.high:.{digits}f}]"
    return f"{centre} ± {(estimate.interval.high - estimate.interval.low) / 2:.{digits}f}"


def ratio_text(ratio: Estimate) -> str:
    """'× 4.930 [4.802, 5.061]'."""
    digits = 3 if ratio.centre < 10 else 1
    interval = (
        f" [{ratio.interval.low:.{digits}f}, {ratio.interval.high:.{digits}f}]" if ratio.interval else ""
    )
    return f"× {ratio.centre:.{digits}f}{interval}"


def range_text(ratio: Estimate) -> str:
    """'0.861 to 1.090, 16 cells'."""
    digits = 3 if ratio.high < 10 else 1
    return f"{ratio.low:.{digits}f} to {ratio.high:.{digits}f}, {ratio.n} cells"


def difference_text(difference: Estimate) -> str:
    """'+22.10 ± 0.31', with the digits that the interval makes worth reading."""
    ends = (difference.interval.low, difference.interval.high) if difference.interval else ()
    text = estimate_text(difference, decimals([difference.centre, *ends]))
    return text if text.startswith("-") else f"+{text}"


def _split(name: str) -> tuple[str, str]:
    for ending, unit in _UNITS.items():
        if name.endswith(ending) and len(name) > len(ending):
            return name[: -len(ending)], unit
    return name, ""
