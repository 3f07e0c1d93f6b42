# SPDX-License-Identifier: GPL-2.0
"""sctp-multipath run: an unchanged program with SCTP's options as asked for, or with SCTP in place of TCP."""
