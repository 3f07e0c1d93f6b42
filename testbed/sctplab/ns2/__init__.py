# SPDX-License-Identifier: GPL-2.0
"""The same runs by ns-2."""
