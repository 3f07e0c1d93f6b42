# SPDX-License-Identifier: GPL-2.0
"""Patch series and kernel builds: the code behind tools/patch/ and tools/build/. Standard library only."""
