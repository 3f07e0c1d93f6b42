# SPDX-License-Identifier: GPL-2.0
"""Programs of Documentation/programs.rst by name: whether they set SCTP_NODELAY. A test asks each."""

NODELAY = {
    "diameter": False,
    "erlang": False,
    "freediameter": True,
    "gensio": False,
    "go": False,
    "iperf3": False,
    "kamailio": True,
    "ncat": False,
    "netperfmeter": False,
    "osmo-stp": True,
    "sctp_darn": False,
    "socat": False,
}
