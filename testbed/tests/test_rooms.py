# SPDX-License-Identifier: GPL-2.0
"""The laboratory's packages stand on each other in one order."""

import ast
from collections.abc import Iterator
from pathlib import Path

from sctplab.paths import ROOT

LABORATORY = ROOT / "testbed" / "sctplab"
# Each may use those before it; a folder is a package, the others are modules.
ORDER = (
    *("errors", "files", "paths", "processes", "spec", "programs", "plan", "vm", "remote", "place", "random"),
    *(
        "measure",
        "run",
        "report",
        "replay",
        "evidence",
        "ns2",
        "stress",
        "oracle",
        "cli",
        "vm_site",
        "vm_cli",
        "__main__",
    ),
)


def used(file: Path) -> Iterator[str]:
    """Packages, and modules beside them, that FILE imports."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "sctplab":
            words = node.module.split(".")
            yield from words[1:2] or [alias.name for alias in node.names]


def test_no_package_uses_a_later_one() -> None:
    for file in sorted(LABORATORY.rglob("*.py")):
        name = file.relative_to(LABORATORY).with_suffix("").parts[0]
        if name != "__init__":
            later = [other for other in used(file) if ORDER.index(other) > ORDER.index(name)]
            assert not later, f"{file}: uses {later}"
