# SPDX-License-Identifier: GPL-2.0
"""A hostile peer, a hostile program, and the cost of a packet."""
