# SPDX-License-Identifier: GPL-2.0
"""sctp-multipath doctor: faults of a host that defeat multihoming, found before they hurt.

facts.py gathers, findings.py judges and is pure, cli.py prints. Reads only. Standard library only: the
package installs this folder as it is.
"""
