# SPDX-License-Identifier: GPL-2.0
"""The laboratory: scenarios, runs, records, reports."""
