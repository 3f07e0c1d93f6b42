# SPDX-License-Identifier: GPL-2.0
"""python -m failover."""

from failover.cli import entry

entry()
