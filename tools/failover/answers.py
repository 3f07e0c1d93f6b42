# SPDX-License-Identifier: GPL-2.0
"""failover_suspect: what answers of a path take, and when one is overdue (net/sctp/multipath/overdue.c)."""

from __future__ import annotations

from dataclasses import dataclass

SLACK_S = 0.002  # SCTP_MP_SUSPECT_SLACK
STEPS = 12  # SCTP_MP_SUSPECT_STEPS
NEEDLESS_S = 60.0  # SCTP_MP_NEEDLESS_LASTS
NEVER_S = float("-inf")


@dataclass
class Answers:
    """Of one path, seconds. SUSPECT_S: since when it is suspect; MESSAGE: whose answer was overdue then.

    Messages sent until ALIVE_S owe no answer; the last answer came at ANSWERED_S. SLOWEST_S: of those of the
    SACK in hand. COPIED: the answer to a copy has come over another path. STEPS: needless copies lately.
    """

    answer_s: float = 0.0
    var_s: float = 0.0
    slowest_s: float = 0.0
    alive_s: float = NEVER_S
    answered_s: float = NEVER_S
    suspect_s: float | None = None
    message: int | None = None
    copied: bool = False
    steps: int = 0
    needless_s: float = NEVER_S

    def wait_s(self, now: float, unmeasured_s: float) -> float:
        """How long after it was sent an answer is overdue (sctp_mp_suspect_wait). UNMEASURED_S: the round
        trip of a path that has carried no data.
        """
        answer, var = self.answer_s, self.var_s
        if not answer:
            answer, var = unmeasured_s, unmeasured_s / 2
        steps = self.steps if now - self.needless_s <= NEEDLESS_S else 0
        return answer + max(4 * var, answer / 4, SLACK_S) + steps * answer / 4

    def measured(self) -> None:
        """A SACK was processed (sctp_mp_suspect_measured)."""
        found, self.slowest_s = self.slowest_s, 0.0
        if found and not self.answer_s:
            self.answer_s, self.var_s = found, found / 2
        elif found:
            self.var_s = (3 * self.var_s + abs(found - self.answer_s)) / 4
            self.answer_s += (found - self.answer_s) / 8

    def alive(self, sent_s: float, now: float) -> None:
        """A message sent at SENT_S is answered (sctp_mp_suspect_alive)."""
        self.alive_s = max(self.alive_s, sent_s)
        self.answered_s, self.suspect_s = now, None

    def needless(self, now: float) -> None:
        """The message whose answer was overdue had arrived (sctp_mp_suspect_dup)."""
        self.message, self.needless_s = None, now
        self.steps = min(self.steps + 1, STEPS)
