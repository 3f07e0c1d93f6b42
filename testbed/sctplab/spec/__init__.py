# SPDX-License-Identifier: GPL-2.0
"""The description of a run: schema, model, scenarios, outages. Pure."""
