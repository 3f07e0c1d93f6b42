# SPDX-License-Identifier: GPL-2.0
"""Files of /proc."""

from pathlib import Path


def text_of(file: Path) -> str:
    """ "" when there is none: SCTP is not loaded."""
    try:
        return file.read_text(encoding="utf-8")
    except OSError:
        return ""
