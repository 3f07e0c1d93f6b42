# SPDX-License-Identifier: GPL-2.0
"""Scenarios drawn from seeds."""
