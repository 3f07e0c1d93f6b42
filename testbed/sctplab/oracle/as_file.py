# SPDX-License-Identifier: GPL-2.0
"""A frozen run as the content of a scenario file, and that content as TOML. Pure."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from typing import Any

from sctplab.spec.model import HOSTS, Direction, Event, Flow, RunSpec
from sctplab.spec.model import Path as LinkPath
from sctplab.spec.schema import plain

Tree = dict[str, Any]
ENDS = ("forward", "reverse")


def tree_of(whole: RunSpec, others: list[RunSpec]) -> Tree:
    """The file that gives these runs; OTHERS differ from WHOLE in variant and in the paths of all flows."""
    tree: Tree = {
        "topology": {
            **without_defaults(whole.topology, "paths"),
            "paths": [path_table(path) for path in whole.topology.paths],
        },
        "flows": [without_defaults(flow) for flow in whole.flows],
        "events": [without_defaults(event) for event in whole.events],
        **settings(whole),
        "limits": plain(whole.limits),
        "variants": {whole.variant: {"kernels": [whole.kernel]}},
    }
    for other in others:
        flow = {"paths": list(other.flows[0].paths)}
        tree["variants"][other.variant] = {"kernels": [other.kernel], "flow": flow}
    return {key: value for key, value in tree.items() if value}


def path_table(path: LinkPath) -> Tree:
    """What both directions have in common, and what each has of its own."""
    ways = {end: without_defaults(getattr(path, end)) for end in ENDS}
    common = {key: value for key, value in ways["forward"].items() if ways["reverse"].get(key) == value}
    own = {end: {k: v for k, v in way.items() if k not in common} for end, way in ways.items()}
    return {
        **without_defaults(path, *ENDS),
        **common,
        **{end: way for end, way in own.items() if way},
    }


def settings(whole: RunSpec) -> Tree:
    """Of both hosts where they are the same."""
    of_host = {host: dict(getattr(whole.sysctl, host)) for host in HOSTS}
    if of_host["host1"] == of_host["host2"]:
        return {"sysctl": of_host["host1"]}
    return {f"sysctl_{host}": values for host, values in of_host.items()}


def without_defaults(value: LinkPath | Direction | Flow | Event | Any, *left_out: str) -> Tree:
    """The members of a dataclass that are not what they would be anyway."""
    found = {}
    for field in dataclasses.fields(value):
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        member = getattr(value, field.name)
        if field.name not in left_out and member is not None and member != default:
            found[field.name] = plain(member)
    return found


def toml(tree: Tree) -> str:
    """The file's text, without a first line."""
    blocks = ["\n".join(lines) for lines in tables(tree)]
    return "\n\n".join(block for block in blocks if block) + "\n"


def tables(tree: Tree) -> Iterator[list[str]]:
    """A list of lines for each table."""
    for key, value in tree.items():
        if key == "topology":
            yield table("[topology]", {k: v for k, v in value.items() if k != "paths"})
            yield from (table("[[topology.paths]]", path) for path in value["paths"])
        elif key == "variants":
            yield from (table(f"[variants.{word(name)}]", content) for name, content in value.items())
        elif isinstance(value, list):
            yield from (table(f"[[{key}]]", one) for one in value)
        else:
            yield table(f"[{key}]", value)


def table(head: str, content: Mapping[str, Any]) -> list[str]:
    """[] for an empty one, but for a variant."""
    lines = [f"{word(key)} = {literal(value)}" for key, value in content.items()]
    return [head, *lines] if lines or head.startswith("[variants.") else []


def word(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() else json.dumps(key)


def literal(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{word(key)} = {literal(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(literal, value))}]"
    return json.dumps(value)  # numbers, flags and texts are written alike
