# SPDX-License-Identifier: GPL-2.0
"""Strict reading of tables into frozen dataclasses: every key known, every value checked.

A dataclass field names its check in ``field(metadata=check(...))``. The same checks read scenario
files (TOML) and frozen specs (JSON), so there is one place that says what a value may be.
Every refusal is one line: FILE: [table] key: got X, expected Y; do Z.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from sctplab.errors import LabError


@dataclass(frozen=True)
class At:
    """Where a value stands: file, table, key. Used for messages only."""

    file: str
    table: str
    key: str = ""

    def __call__(self, key: str) -> At:
        return At(self.file, self.table, key)

    def inside(self, table: str) -> At:
        return At(self.file, f"{self.table}.{table}" if self.table else table)

    def refuse(self, got: object, expected: str, hint: str = "") -> LabError:
        place = f"{self.file}: [{self.table}]" if self.table else f"{self.file}:"
        key = f" {self.key}" if self.key else ""
        tail = f"; {hint}" if hint else ""
        return LabError(f"{place}{key}: got {got!r}, expected {expected}{tail}")


Check = Callable[[object, At], Any]
T = TypeVar("T")


def check(function: Check) -> dict[str, Check]:
    """Metadata of a dataclass field that is read with FUNCTION."""
    return {"check": function}


def number(low: float, high: float, unit: str, whole: bool = False) -> dict[str, Check]:
    """A number in [low, high]; whole numbers stay int, others become float."""
    kind = "a whole number" if whole else "a number"
    expected = f"{kind} from {low:g} to {high:g} ({unit})"

    def read(value: object, at: At) -> float | int:
        good = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not good or (whole and not isinstance(value, int)):
            raise at.refuse(value, expected)
        assert isinstance(value, (int, float))
        if not low <= value <= high:
            raise at.refuse(value, expected)
        return value if whole else float(value)

    return check(read)


def count(low: int, high: int, unit: str) -> dict[str, Check]:
    return number(low, high, unit, whole=True)


def flag() -> dict[str, Check]:
    def read(value: object, at: At) -> bool:
        if not isinstance(value, bool):
            raise at.refuse(value, "true or false")
        return value

    return check(read)


def text(pattern: str, expected: str) -> dict[str, Check]:
    """A string that matches PATTERN as a whole."""

    def read(value: object, at: At) -> str:
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise at.refuse(value, expected)
        return value

    return check(read)


def choice(*names: str) -> dict[str, Check]:
    def read(value: object, at: At) -> str:
        if value not in names:
            raise at.refuse(value, "one of " + ", ".join(names), nearest(str(value), names))
        return str(value)

    return check(read)


def names(expected: str, pattern: str = ".*") -> dict[str, Check]:
    """A list of strings, each of which matches PATTERN as a whole; kept as a tuple."""

    def read(value: object, at: At) -> tuple[str, ...]:
        if not isinstance(value, (list, tuple)) or not all(
            isinstance(item, str) and re.fullmatch(pattern, item) for item in value
        ):
            raise at.refuse(value, f"a list of {expected}")
        return tuple(value)

    return check(read)


def moments(high: float) -> dict[str, Check]:
    """A list of times in s from 0 to HIGH in ascending order, kept as a tuple; 1000 at most."""
    expected = f"a list of 1 to 1000 times in ascending order, 0 to {high:g} (s)"

    def read(value: object, at: At) -> tuple[float, ...]:
        if not isinstance(value, (list, tuple)) or not 1 <= len(value) <= 1000:
            raise at.refuse(value, expected)
        if not all(isinstance(item, (int, float)) and not isinstance(item, bool) for item in value):
            raise at.refuse(value, expected)
        if list(value) != sorted(value) or not 0 <= value[0] <= value[-1] <= high:
            raise at.refuse(value, expected)
        return tuple(float(item) for item in value)

    return check(read)


def settings() -> dict[str, Check]:
    """A table of sysctl name -> text or whole number; values are kept as text, order is kept."""

    def read(value: object, at: At) -> dict[str, str]:
        found: dict[str, str] = {}
        for key, item in mapping(value, at).items():
            if not re.fullmatch(r"net\.[a-z0-9_.-]+", key):
                raise at.refuse(
                    key, 'a sysctl such as "net.sctp.rto_min"', "quote the name, it contains dots"
                )
            if isinstance(item, bool) or not isinstance(item, (int, str)):
                raise at(key).refuse(item, "a whole number or a text")
            found[key] = str(item)
        return found

    return check(read)


def scalars() -> dict[str, Check]:
    """A table of name -> number, text or flag, as it is."""

    def read(value: object, at: At) -> dict[str, Any]:
        return dict(mapping(value, at))

    return check(read)


def table(cls: type[T]) -> dict[str, Check]:
    """A nested table read as CLS."""
    return check(lambda value, at: build(cls, value, at.inside(at.key) if at.key else at))


def tables(cls: type[T], at_least: int = 0) -> dict[str, Check]:
    """A list of tables read as CLS each, kept as a tuple."""

    def read(value: object, at: At) -> tuple[T, ...]:
        if not isinstance(value, (list, tuple)) or len(value) < at_least:
            raise at.refuse(value, f"{at_least or 'any number of'} or more tables [[{at.key}]]")
        return tuple(build(cls, item, at.inside(f"{at.key} {i}")) for i, item in enumerate(value, 1))

    return check(read)


def mapping(value: object, at: At) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise at.refuse(value, "a table")
    return value


def nearest(word: str, known: tuple[str, ...] | list[str]) -> str:
    """'did you mean X?' or the list of what is known, as a hint."""
    close = difflib.get_close_matches(word, known, n=1)
    return f"did you mean {close[0]}?" if close else "choose one of these"


def known_keys(cls: type[Any]) -> list[str]:
    return [f.name for f in dataclasses.fields(cls)]


def refuse_unknown(found: Mapping[str, Any], known: list[str], at: At) -> None:
    """Raise for the first key of FOUND that is not KNOWN."""
    for key in found:
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {close[0]}?" if close else "remove it"
            raise at.refuse(key, "one of the keys " + ", ".join(known), hint)


def build(cls: type[T], value: object, at: At) -> T:
    """Make a CLS from a table; unknown and missing keys and wrong values raise LabError.

    A class with a ``validate(at)`` method also checks what one field alone cannot.
    """
    found = mapping(value, at)
    refuse_unknown(found, known_keys(cls), at)
    values: dict[str, Any] = {}
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if field.name in found:
            values[field.name] = field.metadata["check"](found[field.name], at(field.name))
        elif required:
            raise at(field.name).refuse(None, "a value", f"add {field.name} = ...")
    made = cls(**values)
    validate = getattr(made, "validate", None)
    if validate is not None:
        validate(at)
    return made


def plain(value: Any) -> Any:
    """The inverse of build: JSON-ready dicts and lists; members that are None are left out."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        members = ((f.name, getattr(value, f.name)) for f in dataclasses.fields(value))
        return {name: plain(member) for name, member in members if member is not None}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value
