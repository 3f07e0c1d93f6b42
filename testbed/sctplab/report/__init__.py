# SPDX-License-Identifier: GPL-2.0
"""Statistics, tables, plots and pages from records."""
