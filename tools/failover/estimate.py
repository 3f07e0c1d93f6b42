# SPDX-License-Identifier: GPL-2.0
"""RFC 9260 section 6.3.1 as Linux computes it: whole jiffies, shifts that round down."""

from __future__ import annotations

from dataclasses import dataclass

ALPHA_SHIFT, BETA_SHIFT = 3, 2  # 1/8 and 1/4
GRANULARITY = 1  # jiffies


@dataclass(frozen=True)
class Limits:
    """RTO.Min and RTO.Max, in jiffies."""

    rto_min: int
    rto_max: int


@dataclass(frozen=True)
class Estimate:
    """SRTT, RTTVAR and RTO of a path, in jiffies; both 0 before the first sample."""

    rto: int
    srtt: int = 0
    rttvar: int = 0

    def sampled(self, rtt: int, limits: Limits) -> Estimate:
        """After one more round trip (sctp_transport_update_rto)."""
        if self.srtt or self.rttvar:
            off = abs(self.srtt - rtt)
            rttvar = self.rttvar - (self.rttvar >> BETA_SHIFT) + (off >> BETA_SHIFT)
            srtt = self.srtt - (self.srtt >> ALPHA_SHIFT) + (rtt >> ALPHA_SHIFT)
        else:
            srtt, rttvar = rtt, rtt >> 1
        rttvar = rttvar or GRANULARITY
        rto = min(max(srtt + 4 * rttvar, limits.rto_min), limits.rto_max)
        return Estimate(rto, srtt, rttvar)

    def doubled(self, limits: Limits) -> Estimate:
        """After a timeout: only RTO.Max bounds it."""
        return Estimate(min(2 * self.rto, limits.rto_max), self.srtt, self.rttvar)
