# SPDX-License-Identifier: GPL-2.0
"""Scenario files: TOML in, a list of frozen RunSpecs out. Executes nothing.

A scenario file asks one question, written as a comment in its first line:

    # Does a second address make a stock SCTP sender slower?
    repeat = 5                        # seeds per cell unless --repeat says otherwise (default 1)

    [factors]                         # name with unit -> values; every combination is run
    d2_ms = [10, 50]

    [[topology.paths]]                # keys of Direction hold for both directions; see model.py
    name = "path1"
    rate_mbit = 34.368
    delay_ms = 10
    forward = { loss_pct = 1 }        # ... unless the direction says otherwise

    [[topology.paths]]
    name = "path2"
    rate_mbit = 34.368
    delay_ms = "{d2_ms}"              # the factor's value; "{40 - d2_ms}": what is left of 40

    [[topology.bottlenecks]]          # optional; what several paths go through, keys as of a path
    name = "shared"
    paths = ["path1", "path2"]
    rate_mbit = 20
    queue_bdp = 1                     # in place of queue_pkts: multiples of rate x round trip

    [[flows]]                         # keys of Flow; no paths = all paths (tcp, udp, iperf3: the first)
    size_mb = 40

    [[flows]]
    name = "rival"
    kind = "tcp"
    background = true
    rival = true                      # its goodput is a metric
    copies = 2                        # so many flows: rival1, rival2

    [[events]]                        # optional; keys of Event
    at_s = 3
    action = "cut"
    path = "path1"

    [sysctl]                          # optional; both hosts. [sysctl_host1], [sysctl_host2]: one of them
    "net.sctp.rto_min" = 1000

    [variants.dual-homed]             # optional; named alternatives, each run in every cell
    [variants.single-homed]
    flow = { paths = ["path1"] }      # replaces keys of all flows that are not background
    [variants.same]
    kernels = ["patched"]             # flavours that know these settings (default: all)
    profiles = ["10-signalling"]      # files of sysctl/, loaded in this order
    sysctl = { "net.sctp.rtx_policy" = "same" }     # then these; also sysctl_host1, sysctl_host2

    [refused.stock]                   # optional; factors' values that this flavour refuses: no such runs
    pmr = [0]

    [limits]                          # optional; keys of Limits
    [measure]                         # optional; keys of Measure
    [[plots]], [[contrasts]]          # optional; see wanted.py

A key that is not known, a factor that is not used and a value that cannot be are refused in one line.
"""

from __future__ import annotations

import itertools
import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Protocol

from sctplab.errors import LabError
from sctplab.paths import SCENARIOS
from sctplab.spec import profiles, report_spec
from sctplab.spec.model import FLAVOURS, LABEL, SPEC_FORMAT, USUAL_BASE, Bottleneck, Direction, RunSpec
from sctplab.spec.model import Path as LinkPath
from sctplab.spec.schema import At, build, count, mapping, nearest, number, refuse_unknown

SYSCTL_KEYS = ["sysctl", "sysctl_host1", "sysctl_host2"]
OPTIONAL = [
    "reference",
    "repeat",
    "factors",
    "events",
    "variants",
    "refused",
    "limits",
    "measure",
    *SYSCTL_KEYS,
]
TABLES = ["topology", "flows", *OPTIONAL, *report_spec.KEYS]
VARIANT_KEYS = ["kernels", "flow", "profiles", *SYSCTL_KEYS]
DIRECTION_KEYS = [f.name for f in fields(Direction)]
PATH_KEYS = [f.name for f in fields(LinkPath)] + DIRECTION_KEYS
BOTTLENECK_KEYS = [f.name for f in fields(Bottleneck)] + DIRECTION_KEYS + ["queue_bdp"]
QUEUE_BDP = number(0.01, 1000, "times rate x round trip")["check"]
COPIES = count(0, 100, "flows")["check"]
ETHERNET = 14
PLACEHOLDER = re.compile(r"\{(?:([0-9]+(?:\.[0-9]+)?) - )?([^{}]*)\}")


@dataclass(frozen=True)
class Scenario:
    """A checked file; TREE is its content without factors and variants, placeholders unfilled."""

    name: str
    file: str
    question: str
    repeat: int
    factors: dict[str, tuple[Any, ...]]
    variants: dict[str, dict[str, Any]]
    refused: dict[str, dict[str, tuple[Any, ...]]]
    tree: dict[str, Any]


@dataclass(frozen=True)
class Choice:
    """Options of the command line that complete a scenario."""

    kernels: tuple[str, ...] = FLAVOURS
    base: str = USUAL_BASE
    place: str = "uml"
    repeat: int | None = None
    first_seed: int = 1
    pcap: bool = False
    build: str = "plain"
    peer: str | None = None
    inventory: str | None = None


def names() -> list[str]:
    """The scenarios that come with the laboratory."""
    return sorted(path.stem for path in SCENARIOS.glob("*.toml"))


def find(name: str) -> Path:
    """The file of a scenario given by name or by path."""
    if name.endswith(".toml"):
        path = Path(name)
        if not path.is_file():
            raise LabError(f"{name}: no such file")
        return path
    if name not in names():
        raise LabError(f"{name}: no such scenario; {nearest(name, names())}: {', '.join(names())}")
    return SCENARIOS / f"{name}.toml"


def load(path: Path) -> Scenario:
    """Read and check a scenario file, down to every run it would make."""
    try:
        source = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LabError(f"{path}: cannot be read: {error}") from error
    return checked(str(path), path.stem, source)


def checked(file: str, name: str, source: str) -> Scenario:
    """Likewise, of a text; FILE: how errors name it."""
    try:
        tree = tomllib.loads(source)
    except tomllib.TOMLDecodeError as error:
        raise LabError(f"{file}: cannot be read: {error}") from error
    scenario = parse(file, name, source.partition("\n")[0], tree)
    expand(scenario, {}, Choice(repeat=1))
    return scenario


def parse(file: str, name: str, first_line: str, tree: dict[str, Any]) -> Scenario:
    at = At(file, "")
    if not first_line.startswith("# ") or not first_line[2:].strip():
        raise LabError(f"{file}: line 1: got {first_line!r}, expected a comment with the question it answers")
    refuse_unknown(tree, TABLES, at)
    for needed in ("topology", "flows"):
        if needed not in tree:
            raise at.refuse(
                None, f"a table {needed}", f"add {'[[flows]]' if needed == 'flows' else '[topology]'}"
            )
    variants = mapping(tree.get("variants", {"default": {}}), at("variants"))
    for variant, content in variants.items():
        LABEL["check"](variant, at.inside("variants"))
        check_variant(mapping(content, at.inside("variants")(variant)), at.inside(f"variants.{variant}"))
    factors = read_factors(mapping(tree.get("factors", {}), at("factors")), at.inside("factors"))
    report_spec.read(tree, factors, at)
    apart = ("factors", "variants", "refused", "repeat", *report_spec.KEYS)
    return Scenario(
        name=name,
        file=file,
        question=first_line[2:].strip(),
        repeat=count(1, 100000, "seeds per cell")["check"](tree.get("repeat", 1), at("repeat")),
        factors=factors,
        variants={key: dict(value) for key, value in variants.items()},
        refused=read_refused(mapping(tree.get("refused", {}), at("refused")), factors, at.inside("refused")),
        tree={key: value for key, value in tree.items() if key not in apart},
    )


def check_variant(content: Mapping[str, Any], at: At) -> None:
    refuse_unknown(content, VARIANT_KEYS, at)
    kernels = content.get("kernels", list(FLAVOURS))
    if not isinstance(kernels, list) or not kernels or not all(one in FLAVOURS for one in kernels):
        raise at("kernels").refuse(kernels, "a list of " + ", ".join(FLAVOURS))
    loaded, known = content.get("profiles", []), profiles.known()
    if not isinstance(loaded, list) or not all(name in known for name in loaded):
        raise at("profiles").refuse(loaded, "a list of " + ", ".join(known))


def read_factors(found: Mapping[str, Any], at: At) -> dict[str, tuple[Any, ...]]:
    for name, values in found.items():
        if not isinstance(values, list) or not values:
            raise at(name).refuse(values, "a list of at least one value", f"write {name} = [...]")
        for value in values:
            if kind(value) != kind(values[0]) or kind(value) == "other":
                raise at(name).refuse(value, "numbers only or texts only")
        if len(set(values)) < len(values):
            raise at(name).refuse(values, "values that differ")
    return {name: tuple(values) for name, values in found.items()}


def read_refused(
    found: Mapping[str, Any], factors: Mapping[str, tuple[Any, ...]], at: At
) -> dict[str, dict[str, tuple[Any, ...]]]:
    """Flavour -> factor -> values."""
    refuse_unknown(found, list(FLAVOURS), at)
    read = {}
    for kernel, table in found.items():
        read[kernel] = read_factors(mapping(table, at(kernel)), at.inside(kernel))
        refuse_unknown(read[kernel], list(factors), at.inside(kernel))
    return read


def refuses(scenario: Scenario, kernel: str, cell: Mapping[str, Any]) -> bool:
    """Whether this flavour knows no run with such values."""
    return any(cell[name] in values for name, values in scenario.refused.get(kernel, {}).items())


def kind(value: object) -> str:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return "number"
    return "text" if isinstance(value, str) else "other"


class HasFactors(Protocol):
    """A scenario, with or without a file."""

    @property
    def name(self) -> str: ...

    @property
    def factors(self) -> dict[str, tuple[Any, ...]]: ...


def set_factors(scenario: HasFactors, assignments: list[str]) -> dict[str, tuple[Any, ...]]:
    """The values that --set KEY=VALUE[,VALUE...] gives; raises LabError for names that are no factor."""
    given: dict[str, tuple[Any, ...]] = {}
    known = list(scenario.factors)
    for assignment in assignments:
        name, equals, values = assignment.partition("=")
        if not equals or not values:
            raise LabError(f"--set: got {assignment!r}, expected FACTOR=VALUE[,VALUE...]")
        if name not in known:
            factors = ", ".join(known) or "none"
            raise LabError(f"--set {name}: {scenario.name} has no such factor; expected one of {factors}")
        if name in given:
            raise LabError(f"--set {name}: got it twice, expected one list: {name}=VALUE,VALUE")
        given[name] = tuple(typed(name, word, scenario.factors[name][0]) for word in values.split(","))
        if len(set(given[name])) < len(given[name]):
            raise LabError(f"--set {name}: got {values!r}, expected values that differ")
    return given


def typed(name: str, word: str, like: object) -> Any:
    """WORD as a value of the kind that the scenario's own value LIKE has."""
    if kind(like) == "text":
        return word
    for convert in (int, float):
        try:
            return convert(word)
        except ValueError:
            continue
    raise LabError(f"--set {name}: got {word!r}, expected a number")


def expand(scenario: Scenario, given: dict[str, tuple[Any, ...]], choice: Choice) -> list[RunSpec]:
    """All runs: seeds x factors x variants x kernels, seeds slowest so that a stopped sweep is balanced."""
    factors = {**scenario.factors, **given}
    seeds = range(choice.first_seed, choice.first_seed + (choice.repeat or scenario.repeat))
    runs = [
        one_run(scenario, cell, variant, kernel, seed, choice)
        for seed in seeds
        for cell in (
            dict(zip(factors, values, strict=True)) for values in itertools.product(*factors.values())
        )
        for variant, content in scenario.variants.items()
        for kernel in choice.kernels
        if kernel in content.get("kernels", FLAVOURS) and not refuses(scenario, kernel, cell)
    ]
    for factor in scenario.factors:
        if not uses(scenario, factor):
            raise At(scenario.file, "factors")(factor).refuse(
                "no use", f'"{{{factor}}}" in some value', "remove it"
            )
    return runs


def uses(scenario: Scenario, factor: str) -> bool:
    found = map(placeholder, itertools.chain(leaves(scenario.tree), leaves(scenario.variants)))
    return any(one is not None and one[2] == factor for one in found)


def placeholder(value: object) -> re.Match[str] | None:
    """A text that stands for a factor's value: its group 2 is the name, 1 what it is taken from or None."""
    return PLACEHOLDER.fullmatch(value) if isinstance(value, str) else None


def leaves(tree: object) -> Iterator[object]:
    if isinstance(tree, Mapping):
        tree = list(tree.values())
    if isinstance(tree, list):
        for item in tree:
            yield from leaves(item)
    else:
        yield tree


def fill(tree: Any, factors: Mapping[str, Any], at: At) -> Any:
    """TREE with every text "{name}" replaced by the factor's value, "{40 - name}" by what that leaves."""
    if isinstance(tree, Mapping):
        return {key: fill(value, factors, at(key)) for key, value in tree.items()}
    if isinstance(tree, list):
        return [fill(item, factors, at) for item in tree]
    if found := placeholder(tree):
        whole, name = found.groups()
        if name not in factors:
            raise at.refuse(
                tree, "a factor: " + (", ".join(factors) or "none is defined"), "add it to [factors]"
            )
        return factors[name] if whole is None else rest(whole, factors[name], at)
    return tree


def rest(whole: str, value: Any, at: At) -> Any:
    """WHOLE - VALUE; without a fraction where both have none, so that it can be a count."""
    if kind(value) != "number":
        raise at.refuse(value, f"a number to take from {whole}")
    return (float(whole) if "." in whole else int(whole)) - value


def one_run(
    scenario: Scenario, cell: dict[str, Any], variant: str, kernel: str, seed: int, choice: Choice
) -> RunSpec:
    at = At(scenario.file, "")
    tree = fill(scenario.tree, cell, at)
    changes = fill(scenario.variants[variant], cell, at.inside(f"variants.{variant}"))
    made = [split_path(path, f"paths {i}", PATH_KEYS, at) for i, path in enumerate(paths(tree, at), 1)]
    spec = {
        "format": SPEC_FORMAT,
        "scenario": scenario.name,
        "question": scenario.question,
        "place": choice.place,
        "kernel": kernel,
        "base": choice.base,
        "variant": variant,
        "factors": cell,
        "seed": seed,
        "topology": {**tree["topology"], "paths": made, **bottlenecks(tree["topology"], made, at)},
        "flows": flows(tree["flows"], changes.get("flow", {}), at),
        "events": tree.get("events", []),
        "sysctl": both_hosts(tree, changes, at),
        "limits": tree.get("limits", {}),
        "measure": tree.get("measure", {}),
        "pcap": choice.pcap,
        "build": choice.build,
        "reference": tree.get("reference", ""),
    }
    where = {"peer": choice.peer, "inventory": choice.inventory}
    return build(RunSpec, {**spec, **{key: value for key, value in where.items() if value}}, at)


def paths(tree: Mapping[str, Any], at: At) -> list[Any]:
    topology = mapping(tree["topology"], at("topology"))
    refuse_unknown(topology, ["paths", "offload", "nic", "bottlenecks"], at.inside("topology"))
    found = topology.get("paths")
    if not isinstance(found, list) or not found:
        raise at.inside("topology")("paths").refuse(found, "at least one [[topology.paths]]")
    return found


def split_path(path: Any, table: str, keys: list[str], at: At) -> dict[str, Any]:
    """The table of a path or a bottleneck with its common values moved into forward and reverse."""
    at = at.inside(f"topology.{table}")
    found = mapping(path, at)
    refuse_unknown(found, keys, at)
    common = {key: value for key, value in found.items() if key in DIRECTION_KEYS}
    split = {key: value for key, value in found.items() if key not in DIRECTION_KEYS}
    for direction in ("forward", "reverse"):
        split[direction] = {**common, **mapping(found.get(direction, {}), at(direction))}
    return split


def bottlenecks(topology: Mapping[str, Any], paths: list[dict[str, Any]], at: At) -> dict[str, Any]:
    """The topology's bottlenecks with their queues in packets; no such member where there are none."""
    found = topology.get("bottlenecks", [])
    if not isinstance(found, list):
        raise at.inside("topology")("bottlenecks").refuse(found, "tables [[topology.bottlenecks]]")
    made = [bottleneck(one, f"bottlenecks {i}", paths, at) for i, one in enumerate(found, 1)]
    return {"bottlenecks": made} if made else {}


def bottleneck(found: Any, table: str, paths: list[dict[str, Any]], at: At) -> dict[str, Any]:
    """A bottleneck's table as Bottleneck has it: queue_bdp turned into packets."""
    split = split_path(found, table, BOTTLENECK_KEYS, at)
    at = at.inside(f"topology.{table}")
    share = split.pop("queue_bdp", None)
    if share is None:
        return split
    QUEUE_BDP(share, at("queue_bdp"))
    if any("queue_pkts" in split[way] for way in ("forward", "reverse")):
        raise at("queue_bdp").refuse(share, "queue_bdp or queue_pkts", "remove one of the two")
    made = build(Bottleneck, split, at)
    through = [build(LinkPath, one, at("paths")) for one in paths if one.get("name") in made.paths]
    for way in ("forward", "reverse"):
        split[way] |= {"queue_pkts": queue_pkts(share, made, getattr(made, way), through)}
    return split


def queue_pkts(share: float, made: Bottleneck, way: Direction, through: list[LinkPath]) -> int:
    """SHARE of rate x longest round trip in packets of the largest MTU, and those on their way in WAY.

    Round trips are those of empty queues.
    """
    own_ms = made.forward.delay_ms + made.reverse.delay_ms
    trip_ms = own_ms + max((one.forward.delay_ms + one.reverse.delay_ms for one in through), default=0)
    packet_b = ETHERNET + max((one.mtu for one in through), default=1500)
    per_ms = way.rate_mbit * 1000 / 8 / packet_b
    return max(1, round(share * trip_ms * per_ms) + math.ceil(way.delay_ms * per_ms))


def flows(found: Any, changes: Mapping[str, Any], at: At) -> list[dict[str, Any]]:
    if not isinstance(found, list) or not found:
        raise at("flows").refuse(found, "at least one [[flows]]")
    tables = [{"name": f"flow{i}", **mapping(flow, at("flows"))} for i, flow in enumerate(found, 1)]
    return [
        {**flow, **({} if flow.get("background") else mapping(changes, at("flow")))}
        for table in tables
        for flow in copies(table, at.inside(f"flows {table['name']}")("copies"))
    ]


def copies(flow: dict[str, Any], at: At) -> Iterator[dict[str, Any]]:
    """The flow, or as many as its key copies says, numbered."""
    if "copies" not in flow:
        yield flow
        return
    alike = {key: value for key, value in flow.items() if key != "copies"}
    for i in range(1, COPIES(flow["copies"], at) + 1):
        yield {**alike, "name": f"{flow['name']}{i}"}


def both_hosts(tree: Mapping[str, Any], changes: Mapping[str, Any], at: At) -> dict[str, dict[str, Any]]:
    """Settings per host; the variant's come after the scenario's, one host's after both hosts'.

    The variant's profiles come between.
    """
    loaded: dict[str, str] = {}
    for name in changes.get("profiles", []):
        loaded |= profiles.settings_of(name)
    result: dict[str, dict[str, Any]] = {}
    for host in ("host1", "host2"):
        result[host] = {}
        for source in (tree, {"sysctl": loaded}, changes):
            for key in ("sysctl", f"sysctl_{host}"):
                result[host].update(mapping(source.get(key, {}), at(key)))
    return result
