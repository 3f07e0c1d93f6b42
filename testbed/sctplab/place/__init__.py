# SPDX-License-Identifier: GPL-2.0
"""Where a run happens. One module per kind, found by its name."""

from __future__ import annotations

import importlib
import pkgutil

from sctplab.errors import LabError
from sctplab.place.base import Place


def kinds() -> list[str]:
    """Names of the modules in this folder that are places."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name != "base")


def get(name: str) -> Place:
    """The place called NAME; raises LabError when there is none."""
    if name not in kinds():
        raise LabError(f"--place: got {name!r}, expected one of {', '.join(kinds())}")
    place: Place = importlib.import_module(f"sctplab.place.{name}").PLACE
    return place
