# SPDX-License-Identifier: GPL-2.0
"""The profiles of sysctl/, by their names without .conf."""

from __future__ import annotations

from failover.settings import profile

from sctplab.paths import ROOT

FOLDER = ROOT / "sysctl"


def known() -> list[str]:
    return sorted(one.stem for one in FOLDER.glob("*.conf"))


def settings_of(name: str) -> dict[str, str]:
    """Its sysctls, in its order."""
    return profile(FOLDER / f"{name}.conf")
