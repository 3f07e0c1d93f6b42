# SPDX-License-Identifier: GPL-2.0
"""Reading the list of an installed set of selftests."""

from __future__ import annotations

from sctpkernel.selftests import listed

LIST = "net/sctp:mp_cmt.sh\nnet/sctp:mp_sockopt\nnet:rtnetlink.sh\nnet/sctp/other:x.sh\n"


def test_only_the_tests_of_sctp_are_listed() -> None:
    assert listed(LIST) == ["mp_cmt.sh", "mp_sockopt"]
