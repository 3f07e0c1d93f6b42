# SPDX-License-Identifier: GPL-2.0
"""From a description to commands: links, traffic, placement. Pure."""
