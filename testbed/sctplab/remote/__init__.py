# SPDX-License-Identifier: GPL-2.0
"""Machines reached by a transport: inventory, connection, facts, preflight, conduct."""
