# SPDX-License-Identifier: GPL-2.0
"""Tables and figures of README and Documentation, from one manifest, testbed/evidence.toml."""
