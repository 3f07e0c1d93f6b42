# SPDX-License-Identifier: GPL-2.0
"""How long a failover takes: the kernel's rules for timeouts, path states and probes, message by message."""
