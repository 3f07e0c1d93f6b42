# SPDX-License-Identifier: GPL-2.0
"""sctp-multipath paths and events: what each path of SCTP does, and why. Standard library only."""
