# SPDX-License-Identifier: GPL-2.0
"""No module imports one that imports it, be it by others, inside a function or for its types alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from sctpkernel.paths import ROOT

# Folders whose files and packages are imported by their names.
ROOMS = ("tools", "testbed", "testbed/agent", "testbed/tests/kernel/work")


def modules(root: Path) -> dict[str, Path]:
    """Name -> file, of the modules in ROOT and in packages below it."""
    found = {}
    for file in sorted(root.rglob("*.py")):
        words = file.relative_to(root).with_suffix("").parts
        if all(word.isidentifier() for word in words):
            found[".".join(words).removesuffix(".__init__")] = file
    return found


def named(text: str) -> Iterator[str]:
    """Modules, and names in them, that a module's TEXT imports."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{one.name}" for one in node.names)


def imports(known: Mapping[str, Path]) -> dict[str, set[str]]:
    """Module -> those of KNOWN that it imports. A package that only gives its name to one of them is none."""
    found = {}
    for name, file in known.items():
        words = set(named(file.read_text()))
        inside = {word.rpartition(".")[0] for word in words if word in known}
        found[name] = ((words & known.keys()) - inside) - {name}
    return found


def circle(graph: Mapping[str, set[str]]) -> list[str]:
    """The modules of one circle, the first one again at its end; none: []."""
    done: set[str] = set()

    def walk(way: list[str]) -> list[str]:
        for other in sorted(graph[way[-1]] - done):
            if other in way:
                return [*way[way.index(other) :], other]
            if found := walk([*way, other]):
                return found
        done.add(way[-1])
        return []

    return next((found for name in sorted(graph) if name not in done and (found := walk([name]))), [])


def test_circles_are_found(tmp_path: Path) -> None:
    for name, text in (
        ("one", "from two import x"),
        ("two", "def f():\n    import three"),
        ("three", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from one import y"),
    ):
        (tmp_path / f"{name}.py").write_text(text)
    known = modules(tmp_path)
    assert circle(imports(known)) == ["one", "two", "three", "one"]
    del known["three"]
    assert circle(imports(known)) == []


@pytest.mark.parametrize("room", ROOMS)
def test_no_module_is_in_a_circle(room: str) -> None:
    known = modules(ROOT / room)
    assert known
    assert circle(imports(known)) == []
