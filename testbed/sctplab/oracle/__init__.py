# SPDX-License-Identifier: GPL-2.0
"""Which of two series is better, cell by cell; the smallest run that still fails."""
