# SPDX-License-Identifier: GPL-2.0
"""From captures of an association to a scenario that replays it."""
