# SPDX-License-Identifier: GPL-2.0
"""Configuration fragments: read them, and check that a kernel's .config has what they ask for."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sctpkernel.errors import Problem

_SET = re.compile(r"CONFIG_(\w+)=(.+)")
_BASES = re.compile(r"# Bases: (.+)")
_UNSET = re.compile(r"# CONFIG_(\w+) is not set")
_ADDS = re.compile(r"^\+\s*(?:menu)?config (\w+)$", re.MULTILINE)
_DEFINES = re.compile(r"^\s*(?:menu)?config (\w+)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Option:
    """One line of a fragment; value "n" stands for "is not set". `bases`: those it is for, none for all."""

    name: str
    value: str
    path: Path
    bases: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """As it stands in a .config."""
        return f"# CONFIG_{self.name} is not set" if self.value == "n" else f"CONFIG_{self.name}={self.value}"


def parse_fragment(text: str, path: Path) -> list[Option]:
    """Options of a fragment; a line is an option, a comment or empty.

    The comment "# Bases: 6.1 6.12" says that the option in the next line is for these bases only.
    """
    options: list[Option] = []
    bases: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        match = _SET.fullmatch(line.strip())
        unset = _UNSET.fullmatch(line.strip())
        limit = _BASES.fullmatch(line.strip())
        if match:
            options.append(Option(match[1], match[2], path, bases))
        elif unset:
            options.append(Option(unset[1], "n", path, bases))
        elif line.strip() and not line.startswith("#"):
            raise Problem(
                f"{path}:{number}: {line.strip()!r} is not an option: write CONFIG_NAME=value or a comment"
            )
        bases = tuple(limit[1].split()) if limit else ()
    return options


def load_fragments(paths: Sequence[Path], base: str) -> list[Option]:
    """The options of all files for a base in order, each once; one with two values is refused."""
    options = [option for path in paths for option in parse_fragment(path.read_text(encoding="utf-8"), path)]
    first: dict[str, Option] = {}
    for option in options:
        if option.bases and base not in option.bases:
            continue
        before = first.setdefault(option.name, option)
        if before.value != option.value:
            raise Problem(
                f"CONFIG_{option.name} is {before.value} in {before.path} and {option.value} in {option.path}"
            )
    return list(first.values())


def parse_config(text: str) -> dict[str, str]:
    """Option name -> value of a whole .config; options that are not set have the value "n"."""
    values = {}
    for line in text.splitlines():
        match = _SET.fullmatch(line)
        unset = _UNSET.fullmatch(line)
        if match:
            values[match[1]] = match[2]
        elif unset:
            values[unset[1]] = "n"
    return values


def options_added(texts: Iterable[str]) -> set[str]:
    """Names of the options that patches with these texts add to Kconfig."""
    return {name for text in texts for name in _ADDS.findall(text)}


def options_known(tree: Path) -> set[str]:
    """Names of all options that a kernel tree defines, for any architecture."""
    files = (path for path in tree.rglob("Kconfig*") if path.is_file())
    return {name for path in files for name in _DEFINES.findall(path.read_text(errors="replace"))}


def verify(
    options: Sequence[Option], config: str, known: Callable[[], Collection[str]], brought: set[str]
) -> None:
    """Check that every option ended up in `config` (text of a .config) with its value.

    known    gives the options the tree defines; called only when one is missing from the .config
    brought  options that the series adds: where the tree does not define one of these, its patch is
             not applied there (a stock kernel, the middle of the series), and nothing is asked of it
    """
    have = parse_config(config)
    for option in options:
        got = have.get(option.name, "n")
        if option.name in have and got == option.value:
            continue
        defined = option.name in have or option.name in known()
        if not defined and option.name not in brought:
            raise Problem(
                f"{option.path}: CONFIG_{option.name} is not an option of this kernel: correct or remove it"
            )
        if defined and got != option.value:
            raise Problem(
                f"{option.path}: {option.line!r} did not reach the .config, which has {got!r}: "
                "one of the options it depends on is missing from the fragment, or another one forces it"
            )
