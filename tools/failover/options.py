# SPDX-License-Identifier: GPL-2.0
"""Numbers of socket options at level IPPROTO_SCTP."""

RTOINFO, ASSOCINFO, NODELAY, PEER_ADDR_PARAMS, DELAYED_SACK, PEER_ADDR_THLDS = 0, 1, 3, 9, 16, 31
PATHMAXRXT_ZERO = 0x1284
OURS = {  # of the series with struct sctp_assoc_value, by the name under net.sctp
    "rtx_policy": 0x1280,
    "failover_heartbeat": 0x1281,
    "dormant_policy": 0x1282,
    "cmt_scheduler": 0x1283,
    "failover_suspect": 0x1285,
    "failover_link": 0x1286,
    "init_alternate": 0x1287,
    "failover_useless": 0x1288,
    "failover_return": 0x1289,
    "redundant_bytes": 0x128A,
    "redundant_pct": 0x128B,
    "unread_waits": 0x128C,
    "cmt": 0x1200,
    "cmt_sack": 0x1201,
}
