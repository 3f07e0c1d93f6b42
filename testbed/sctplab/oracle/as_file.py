# SPDX-License-Identifier: GPL-2.0
"""A frozen run as the content of a scenario file, and that content as TOML. Pure."""

from __future__ import annotations

import dataclasses
from typing import Any

import tomli_w

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
    """Values common to both directions at the top, others in a table per direction; defaults left out."""
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
    return tomli_w.dumps(tree)
