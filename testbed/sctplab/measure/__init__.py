# SPDX-License-Identifier: GPL-2.0
"""From captures, counters and program output to metrics; records; verdicts."""
