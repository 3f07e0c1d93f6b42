# SPDX-License-Identifier: GPL-2.0
"""The smallest scenario file that still fails: changes, one by one, kept while the fault is there. Pure.

Steps, the large ones first: leave out outages, paths, flows, settings, losses and options; halve the length;
round numbers to one digit; use seed 1.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from sctplab.oracle.as_file import ENDS, Tree
from sctplab.spec.model import LASTS

DISTURBANCES = (
    "loss_pct",
    "gemodel",
    "jitter_ms",
    "reorder_pct",
    "ecn",
    "hole_b",
    "seed",
    "queue_pkts",
    "family",
    "mtu",
)
CMT = "net.sctp.cmt"
SYSCTLS = ("sysctl", "sysctl_host1", "sysctl_host2")
LENGTHS = {"size_mb": 0.01, "messages": 1, "duration_s": 0.1}  # what has so little is not halved any more


@dataclass(frozen=True)
class Case:
    """The content of a scenario file, and the seed it runs with."""

    tree: Tree
    seed: int


@dataclass(frozen=True)
class Step:
    """A change of a case that may make it smaller."""

    text: str
    case: Case


def shrink(case: Case, fails: Callable[[Case], bool], tries: int, say: Callable[[str], None]) -> Case:
    """The smallest case found with so many calls of FAILS; SAY hears of each.

    A step that is kept leaves its place to the next one: when a path is gone, the one that follows it is
    tried. Passes go on until one of them keeps nothing.
    """
    progress = True
    while progress:
        progress, place = False, 0
        while place < len(found := list(steps(case))):
            if not tries:
                return case
            tries -= 1
            step = found[place]
            kept = fails(step.case)
            say(f"{'kept' if kept else 'undone'}: {step.text}")
            if kept:
                case, progress = step.case, True
            else:
                place += 1
    return case


def steps(case: Case) -> Iterator[Step]:
    """All that may be tried now; none that changes nothing."""
    for kind in (events, rivals, paths, flows, settings, path_keys, flow_keys, lengths, digits, first_seed):
        for step in kind(case):
            if step.case != case:
                yield step


def changed(case: Case, text: str, change: Callable[..., object], *words: Any) -> Step:
    """CHANGE works on a copy of the tree."""
    tree = copy.deepcopy(case.tree)
    change(tree, *words)
    return Step(text, replace(case, tree=tree))


def events(case: Case) -> Iterator[Step]:
    """Without all events, those of a path, two that follow each other there: a cut and its end."""
    found = case.tree.get("events", [])
    if found:
        yield changed(case, "without all events", drop_events, range(len(found)))
    for name in dict.fromkeys(one["path"] for one in found):
        places = [i for i, one in enumerate(found) if one["path"] == name]
        yield changed(case, f"without the events of {name}", drop_events, places)
        for first in range(0, len(places), 2):
            pair = places[first : first + 2]
            text = f"without what happens to {name} at {found[pair[0]]['at_s']:g} s"
            yield changed(case, text, drop_events, pair)


def rivals(case: Case) -> Iterator[Step]:
    """Without the single paths beside which the transfer is judged, but for the last one."""
    found = [name for name, content in case.tree["variants"].items() if "flow" in content]
    for name in found if len(found) > 1 else []:
        yield changed(case, f"not beside {name}", drop, "variants", name)


def paths(case: Case) -> Iterator[Step]:
    found = [path["name"] for path in case.tree["topology"]["paths"]]
    for name in found if len(found) > 1 else []:
        yield changed(case, f"without {name}", drop_path, name)


def flows(case: Case) -> Iterator[Step]:
    found = case.tree["flows"]
    for i, flow in enumerate(found if len(found) > 1 else []):
        yield changed(case, f"without {flow['name']}", drop, "flows", i)


def settings(case: Case) -> Iterator[Step]:
    """Without all settings but that of CMT, then without each."""
    for table in SYSCTLS:
        names = [name for name in case.tree.get(table, {}) if name != CMT]
        if len(names) > 1:
            yield changed(case, f"without the settings in {table}", drop, table, *names)
        for name in names:
            yield changed(case, f"without {name}", drop, table, name)


def path_keys(case: Case) -> Iterator[Step]:
    """Both directions alike; without each disturbance and oddity, everywhere, then on each path."""
    every = case.tree["topology"]["paths"]
    for end, other in (ENDS, ENDS[::-1]):
        for i, path in enumerate(every):
            if end in path or other in path:
                yield changed(case, f"{path['name']}: {end} as {other}", drop_direction, i, end, other)
    for key in DISTURBANCES:
        having = [i for i, path in enumerate(every) if any(key in part for part in parts(path))]
        if len(having) > 1:
            yield changed(case, f"without {key} of all paths", drop_path_key, having, key)
        for i in having:
            yield changed(case, f"without {key} of {every[i]['name']}", drop_path_key, [i], key)
    for key in case.tree["topology"]:
        if key != "paths":
            yield changed(case, f"without {key}", drop, "topology", key)


def flow_keys(case: Case) -> Iterator[Step]:
    for i, flow in enumerate(case.tree["flows"]):
        for key in flow:
            if key not in ("name", "kind", *LASTS):
                yield changed(case, f"{flow['name']} without {key}", drop_flow_key, i, key)


def lengths(case: Case) -> Iterator[Step]:
    """All flows half as long, then each."""
    every = range(len(case.tree["flows"]))
    yield changed(case, "all flows half as long", halve, every)
    for i in every if len(every) > 1 else []:
        yield changed(case, f"{case.tree['flows'][i]['name']} half as long", halve, [i])


def digits(case: Case) -> Iterator[Step]:
    """All numbers with one digit, then those of each path, flow and event."""
    count = len(tables(case.tree))
    yield changed(case, "numbers of one digit", round_tables, range(count))
    for i, one in enumerate(tables(case.tree)):
        name = one.get("name") or f"{one['action']} at {one['at_s']:g} s"
        yield changed(case, f"numbers of one digit in {name}", round_tables, [i])


def first_seed(case: Case) -> Iterator[Step]:
    yield Step("seed 1", replace(case, seed=1))


def drop(tree: Tree, table: str, *members: str | int) -> None:
    for member in members:
        del tree[table][member]


def drop_events(tree: Tree, places: range | list[int]) -> None:
    tree["events"] = [one for i, one in enumerate(tree["events"]) if i not in places]


def drop_path(tree: Tree, name: str) -> None:
    """With all that is said of it."""
    tree["topology"]["paths"] = [path for path in tree["topology"]["paths"] if path["name"] != name]
    tree["events"] = [one for one in tree.get("events", []) if one["path"] != name]
    tree["variants"].pop(name, None)
    for flow in tree["flows"]:
        if "paths" in flow:
            flow["paths"] = [one for one in flow["paths"] if one != name]


def drop_direction(tree: Tree, place: int, end: str, other: str) -> None:
    """Remove the table of direction END; the values of OTHER then hold for both."""
    path = tree["topology"]["paths"][place]
    path.pop(end, None)
    path.update(path.pop(other, {}))


def drop_path_key(tree: Tree, places: list[int], key: str) -> None:
    """Marks go with the losses that they stand for."""
    for i in places:
        for part in parts(tree["topology"]["paths"][i]):
            part.pop(key, None)
            if key == "loss_pct":
                part.pop("ecn", None)


def drop_flow_key(tree: Tree, place: int, key: str) -> None:
    del tree["flows"][place][key]


def halve(tree: Tree, places: range | list[int]) -> None:
    for i in places:
        flow = tree["flows"][i]
        for key, least in LENGTHS.items():
            if flow.get(key, 0) > least:
                flow[key] = math.ceil(flow[key] / 2) if key == "messages" else round(flow[key] / 2, 3)


def round_tables(tree: Tree, places: range | list[int]) -> None:
    for i in places:
        for part in parts(tables(tree)[i]):
            part.update({key: one_digit(value) for key, value in part.items()})


def tables(tree: Tree) -> list[Tree]:
    """Those with numbers: paths, flows, events."""
    return [*tree["topology"]["paths"], *tree["flows"], *tree.get("events", [])]


def parts(table: Tree) -> list[Tree]:
    """The table, and those of a path's directions."""
    return [table, *(table[end] for end in ENDS if isinstance(table.get(end), dict))]


def one_digit(value: Any) -> Any:
    """0.0173 -> 0.02, 1462 -> 1000; a whole number stays one."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value:
        return value
    return round(value, -math.floor(math.log10(abs(value))))
