# SPDX-License-Identifier: GPL-2.0
"""Exceptions of all parts of the laboratory, for causes that the user can correct."""


class LabError(Exception):
    """Bad input, said in one line: which file, key or option, what was expected, what to do.

    The command line prints the text alone on stderr and ends with exit code 2.
    """


class RunError(Exception):
    """A step failed though the input was fine; the text is the one line to print (exit code 1)."""
