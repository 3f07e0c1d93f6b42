# SPDX-License-Identifier: GPL-2.0
"""From settings and a situation to a prediction: associations that differ in what nobody can know."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from random import Random
from statistics import median_low

from failover.association import Association, Step
from failover.clock import Clock
from failover.estimate import Estimate
from failover.settings import Settings
from failover.situation import Moment, Situation

TRIALS = 31
RTT_KNOWN_MS = 0.5
NAGLE_PHASES = 32  # messages that may wait for a SACK, or more
WHEEL = 8**5  # jiffies after which the timer wheel's levels in use repeat


@dataclass(frozen=True)
class Range:
    """The lowest, the middle and the highest of the trials; seconds."""

    low: float
    typical: float
    high: float


@dataclass(frozen=True)
class Prediction:
    """Seconds after the cut, but for srtt_ms, rto_ms (when it happens) and max_message_delay_s. None: never.

    failover_s: the first message sent after the cut arrives. leaves_s: new messages leave over the alternate.
    returns_s: new messages leave over the primary again. lost_s: the association ends.
    early_timeouts: how many there were before the cut, when nothing had been lost.
    wait_ms: after which an answer is overdue when it happens, made of answer_ms and answer_var_ms, its
    deviation; 0 without failover_suspect.
    """

    failover_s: Range | None
    max_message_delay_s: Range | None
    leaves_s: Range | None
    returns_s: Range | None
    lost_s: Range | None
    srtt_ms: float
    rto_ms: float
    early_timeouts: int
    steps: tuple[Step, ...]
    answer_ms: float = 0.0
    answer_var_ms: float = 0.0
    wait_ms: float = 0.0


@dataclass(frozen=True)
class Trial:
    """One association that met the cut; as Prediction."""

    failover_s: float | None
    longest_s: float | None
    leaves_s: float | None
    returns_s: float | None
    lost_s: float | None
    srtt_ms: float
    rto_ms: float
    early_timeouts: int
    steps: tuple[Step, ...]
    answer_ms: float
    answer_var_ms: float
    wait_ms: float


def some_moment(situation: Situation, random: Random) -> Moment:
    """A cut that falls anywhere between two messages, and between two SACKs: with Nagle's algorithm, among
    the messages that wait for one.
    """
    before = round(situation.lasted_s * 1000 / situation.interval_ms)
    phases = situation.sack_freq if situation.nodelay else NAGLE_PHASES
    return Moment(before + random.randrange(phases), random.random() * situation.interval_ms / 1000)


def out_of_step(situation: Situation, random: Random) -> Situation:
    """Round trips that are known to half a millisecond: one that is a multiple of the interval exactly would
    have each SACK come with a message, and decide for all trials which of them wait.
    """
    more_ms = random.random() * RTT_KNOWN_MS
    return replace(
        situation,
        rtt_ms=situation.rtt_ms + more_ms,
        alternate_rtt_ms=situation.alternate_rtt_ms + more_ms,
    )


def trial(settings: Settings, situation: Situation, number: int, moment: Moment | None) -> Trial:
    """Where the cut falls between ticks, the jitter, and MOMENT unless given follow from NUMBER."""
    random = Random(number)
    moment = moment or some_moment(situation, random)
    if not situation.nodelay:
        situation = out_of_step(situation, random)
    clock = Clock(situation.hz, random.random(), random.randrange(WHEEL) + WHEEL)
    made = Association(settings, situation, clock, moment, random)
    before: list[tuple[Estimate, float, float, float]] = []
    made.at(0.0, lambda: before.append(as_it_happens(made)))
    made.run()
    estimate, answer_s, var_s, wait_s = before[0]
    found = made.arrived.get(0)
    delays = {one: t - made.due(one) for one, t in made.arrived.items() if t >= 0}
    slowest = max(delays, key=lambda one: delays[one]) if found is not None else None
    return Trial(
        found,
        None if slowest is None else delays[slowest],
        made.leaves_s,
        made.returns_s,
        made.lost_s,
        clock.ms(estimate.srtt),
        clock.ms(estimate.rto),
        made.early_timeouts,
        steps(made, slowest),
        answer_s * 1000,
        var_s * 1000,
        wait_s * 1000,
    )


def as_it_happens(made: Association) -> tuple[Estimate, float, float, float]:
    """Of the primary path: the RTO and what it is made of; an answer, its deviation, when it is overdue."""
    path = made.primary
    wait_s = made.watch.wait_s(path) if made.watch else 0.0
    return path.estimate, path.answers.answer_s, path.answers.var_s, wait_s


def steps(made: Association, slowest: int | None) -> tuple[Step, ...]:
    """The events of a trial, with the arrival of the message that waited longest."""
    if slowest is None:
        return tuple(made.steps)
    arrived = made.arrived[slowest]
    what = f"the message that waited longest arrives, {arrived - made.due(slowest):.3f} s old"
    return tuple(sorted([*made.steps, Step(arrived, "", what)], key=lambda step: step.t))


def spread(values: Iterable[float | None]) -> Range | None:
    """Of what happened, None in the trials in which it did not."""
    known = [value for value in values if value is not None]
    return Range(min(known), median_low(known), max(known)) if known else None


def answer(found: Prediction, situation: Situation) -> Range | None:
    """From a request to its answer: the request waits, or the answer that takes the same path, or both."""
    wait, back_s = found.max_message_delay_s, situation.rtt_ms / 2000
    return wait and Range(wait.low + back_s, wait.typical + back_s, 2 * wait.high)


def predict(
    settings: Settings, situation: Situation, trials: int = TRIALS, moment: Moment | None = None
) -> Prediction:
    """The steps are those of the trial with the typical failover. MOMENT: in place of lasted_s."""
    situation = situation.thinned()
    found = [trial(settings, situation, number, moment) for number in range(trials)]
    failover = spread(one.failover_s for one in found)
    shown = next(one for one in found if failover is None or one.failover_s == failover.typical)
    return Prediction(
        failover,
        spread(one.longest_s for one in found),
        spread(one.leaves_s for one in found),
        spread(one.returns_s for one in found),
        spread(one.lost_s for one in found),
        shown.srtt_ms,
        shown.rto_ms,
        shown.early_timeouts,
        shown.steps,
        shown.answer_ms,
        shown.answer_var_ms,
        shown.wait_ms,
    )
