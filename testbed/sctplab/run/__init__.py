# SPDX-License-Identifier: GPL-2.0
"""Runs and their records."""
