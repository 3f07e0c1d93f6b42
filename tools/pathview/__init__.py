# SPDX-License-Identifier: GPL-2.0
"""sctp-multipath paths, top, events and exporter: what each path of SCTP does, and why.

Standard library only, but for the exporter, which needs prometheus_client.
"""
