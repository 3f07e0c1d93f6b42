# SPDX-License-Identifier: GPL-2.0
"""Scenario files: expansion into runs, and one clear line for whatever is wrong."""

import dataclasses
import json
from pathlib import Path

import pytest
from sctplab.errors import LabError
from sctplab.plan.link_commands import address
from sctplab.plan.traffic import Means, mpflow
from sctplab.spec import scenario
from sctplab.spec.model import (
    ACTIONS,
    FLAVOURS,
    KINDS,
    Direction,
    Event,
    Flow,
    GeModel,
    Limits,
    Measure,
    RunSpec,
    Topology,
)
from sctplab.spec.model import Path as LinkPath
from sctplab.spec.profiles import settings_of
from sctplab.spec.scenario import Choice, expand, load, set_factors
from sctplab.spec.schema import At, build, plain

GOOD = """# Does it expand?
repeat = 2

[factors]
d2_ms = [10, 50]
size_mb = [1]

[[topology.paths]]
name = "path1"
rate_mbit = 10
delay_ms = 10
forward = { loss_pct = 1 }

[[topology.paths]]
name = "path2"
rate_mbit = 10
delay_ms = "{d2_ms}"

[[flows]]
size_mb = "{size_mb}"

[sysctl]
"net.sctp.rto_min" = 500

[variants.dual]
[variants.single]
flow = { paths = ["path1"] }
[variants.same]
kernels = ["patched"]
sysctl = { "net.sctp.rtx_policy" = "same" }
sysctl_host2 = { "net.sctp.rto_min" = 100 }
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "good.toml"
    path.write_text(GOOD)
    return path


def runs(path: Path, **choice: object) -> list[RunSpec]:
    return expand(load(path), {}, Choice(**choice))  # type: ignore[arg-type]


def test_every_combination_once(file: Path) -> None:
    found = runs(file)
    assert len(found) == 2 * 2 * (2 + 2 + 1)
    assert len({spec.run_id for spec in found}) == len(found)
    assert {spec.variant for spec in found if spec.kernel == "stock"} == {
        "dual",
        "single",
    }
    assert [spec.seed for spec in found] == sorted(spec.seed for spec in found)


def test_values_reach_the_spec(file: Path) -> None:
    spec = next(spec for spec in runs(file) if spec.variant == "same" and spec.factors["d2_ms"] == 50)
    first, second = spec.topology.paths
    assert (first.forward.loss_pct, first.reverse.loss_pct) == (1, 0)
    assert (second.forward.delay_ms, second.reverse.delay_ms) == (50, 50)
    assert spec.sysctl.host1 == {
        "net.sctp.rto_min": "500",
        "net.sctp.rtx_policy": "same",
    }
    assert spec.sysctl.host2["net.sctp.rto_min"] == "100"
    assert spec.question == "Does it expand?"


def test_profiles_come_before_the_variants_own_settings(file: Path) -> None:
    asked = 'profiles = ["10-signalling", "25-cmt"]\nsysctl = { "net.sctp.cmt" = 0 }\n'
    file.write_text(GOOD + f'[variants.profiles]\nkernels = ["patched"]\n{asked}')
    spec = next(spec for spec in runs(file) if spec.variant == "profiles")
    assert spec.sysctl.host1 == {
        "net.sctp.rto_min": "200",
        **settings_of("10-signalling"),
        **settings_of("25-cmt"),
        "net.sctp.cmt": "0",
    }


def test_a_value_may_be_what_another_leaves(file: Path) -> None:
    file.write_text(GOOD.replace("rate_mbit = 10", 'rate_mbit = "{70 - d2_ms}"', 1))
    assert {spec.topology.paths[0].forward.rate_mbit for spec in runs(file)} == {60, 20}


def test_seeds_and_kernels_are_chosen(file: Path) -> None:
    found = runs(file, kernels=("stock",), repeat=3, first_seed=7)
    assert {spec.seed for spec in found} == {7, 8, 9}
    assert {spec.kernel for spec in found} == {"stock"}


def test_spec_survives_json(file: Path) -> None:
    for spec in runs(file):
        again = build(RunSpec, json.loads(json.dumps(plain(spec))), At("spec.json", ""))
        assert again == spec and again.digest == spec.digest


def test_what_a_flavour_refuses_is_left_out(file: Path) -> None:
    file.write_text(GOOD + "[refused.stock]\nd2_ms = [10]\n")
    delays = {
        kernel: {spec.factors["d2_ms"] for spec in runs(file, kernels=(kernel,))} for kernel in FLAVOURS
    }
    assert delays == {"stock": {50}, "patched": {10, 50}}


def test_set_replaces_values(file: Path) -> None:
    found = load(file)
    given = set_factors(found, ["d2_ms=5,7.5,9"])
    assert given == {"d2_ms": (5, 7.5, 9)}
    assert len(expand(found, given, Choice(repeat=1, kernels=("stock",)))) == 6


@pytest.mark.parametrize(
    ("assignment", "words"),
    [
        ("d3_ms=1", "no such factor"),
        ("d2_ms", "FACTOR=VALUE"),
        ("d2_ms=fast", "expected a number"),
    ],
)
def test_set_refuses(file: Path, assignment: str, words: str) -> None:
    with pytest.raises(LabError, match=words):
        set_factors(load(file), [assignment])


def test_set_values_are_checked_like_the_files(file: Path) -> None:
    found = load(file)
    with pytest.raises(LabError, match=r"delay_ms: got -1, expected a number from 0"):
        expand(found, set_factors(found, ["d2_ms=-1"]), Choice())


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "# Does it expand?",
            "",
            "line 1: got '', expected a comment with the question",
        ),
        (
            "[factors]",
            "[factor]",
            r"got 'factor', expected one of the keys .*; did you mean factors\?",
        ),
        (
            "delay_ms = 10",
            "delay = 10",
            r"\[topology.paths 1\]: got 'delay', .*did you mean delay_ms\?",
        ),
        (
            "rate_mbit = 10",
            "rate_mbit = 0",
            r"rate_mbit: got 0, expected a number from 0.001 .*Mbit/s",
        ),
        (
            "rate_mbit = 10",
            'rate_mbit = "fast"',
            r"rate_mbit: got 'fast', expected a number",
        ),
        (
            "loss_pct = 1",
            "loss_pct = 101",
            r"forward\] loss_pct: got 101, expected a number from 0 to 100",
        ),
        (
            "d2_ms = [10, 50]",
            "d2_ms = 10",
            r"\[factors\] d2_ms: got 10, expected a list",
        ),
        ("d2_ms = [10, 50]", 'd2_ms = [10, "x"]', "numbers only or texts only"),
        (
            "d2_ms = [10, 50]",
            "d2_ms = [10]\nd3_ms = [1]",
            r"\[factors\] d3_ms: got 'no use'",
        ),
        ('"{d2_ms}"', '"{d4_ms}"', r"got '\{d4_ms\}', expected a factor"),
        ('"{d2_ms}"', '"{40 + d2_ms}"', r"got '\{40 \+ d2_ms\}', expected a factor"),
        (
            "d2_ms = [10, 50]\nsize_mb = [1]\n\n[[topology.paths]]",
            'd2_ms = ["low"]\nsize_mb = [1]\n\n[[topology.paths]]\nmtu = "{70 - d2_ms}"',
            "got 'low', expected a number to take from 70",
        ),
        (
            'size_mb = "{size_mb}"',
            'size_mb = "{size_mb}"\nmessages = 3',
            "exactly one of size_mb, messages",
        ),
        (
            'size_mb = "{size_mb}"',
            'size_mb = "{size_mb}"\nsend_at_s = [1, 2]',
            "got 'size_mb and send_at_s', expected exactly one of",
        ),
        (
            'size_mb = "{size_mb}"',
            'size_mb = "{size_mb}"\nsend_at_s = [2, 1]',
            r"send_at_s: got \[2, 1\], expected a list of 1 to 1000 times in ascending order",
        ),
        (
            'size_mb = "{size_mb}"',
            "interval_ms = 3 # {size_mb}",
            "exactly one of|no use",
        ),
        (
            '["path1"]',
            '["path9"]',
            r"paths: got 'path9', expected one of the paths path1, path2",
        ),
        ('["patched"]', '["mended"]', r"\[variants.same\] kernels: got \['mended'\]"),
        (
            'kernels = ["patched"]',
            'profiles = ["5-none"]',
            r"\[variants.same\] profiles: got \['5-none'\], expected a list of 00-off, ",
        ),
        (
            'name = "path2"',
            'name = "path1"',
            r"paths: got 'path1', expected names that differ",
        ),
        (
            'name = "path2"',
            'name = "Path 2"',
            "expected a name of 1 to 11 small letters",
        ),
        (
            '"net.sctp.rto_min" = 500',
            '"rto_min" = 500',
            "got 'rto_min', expected a sysctl",
        ),
        (
            "[sysctl]",
            "[refused.stick]\nd2_ms = [5]\n[sysctl]",
            "got 'stick', expected one of the keys stock, p",
        ),
        ("[sysctl]", "[refused.stock]\nd3_ms = [5]\n[sysctl]", "got 'd3_ms', expected one of the keys d2_ms"),
        ("repeat = 2", "repeat = 0", "repeat: got 0, expected a whole number"),
        ("repeat = 2", "repeat =", "cannot be read: Invalid value"),
    ],
)
def test_one_clear_line(file: Path, old: str, new: str, words: str) -> None:
    assert old in GOOD
    file.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(LabError, match=words) as caught:
        load(file)
    assert "\n" not in str(caught.value) and str(caught.value).startswith(str(file))


def test_unknown_scenario_is_named() -> None:
    with pytest.raises(LabError, match=r"rtx-polcy: no such scenario; did you mean rtx-policy\?"):
        scenario.find("rtx-polcy")


@pytest.mark.parametrize("name", scenario.names())
def test_shipped_scenarios_load_and_ask_a_question(name: str) -> None:
    found = load(scenario.find(name))
    assert found.question.endswith("?")
    assert expand(found, {}, Choice())


def test_the_readme_names_every_key() -> None:
    text = (scenario.SCENARIOS / "README.md").read_text()
    classes = (Direction, GeModel, LinkPath, Topology, Flow, Event, Limits, Measure)
    keys = {field.name for cls in classes for field in dataclasses.fields(cls)} - {"paths"}
    missing = [
        key
        for key in sorted(keys | {*scenario.TABLES, *scenario.VARIANT_KEYS, *KINDS, *ACTIONS})
        if key not in text
    ]
    assert missing == []


def test_the_primary_path_reaches_the_sender() -> None:
    spec = expand(load(scenario.find("caro")), {}, Choice(("patched",), repeat=1))[0]
    argv = mpflow(spec.flows[0], spec.topology, 0, Means("mpflow", 1))[0].sender.argv
    assert argv[argv.index("--primary") + 1] == address(spec.topology, "host2", "primary")


def test_other_socket_options_reach_mpflow_in_order() -> None:
    options = {
        "sockopts": ["sctp:18:01000000", "sctp:125:0000000001000000"],
        "receiver_sockopts": ["sctp:21:00"],
    }
    flow = build(Flow, {"name": "f", "messages": 1, **options}, At("file", ""))
    spec = expand(load(scenario.find("caro")), {}, Choice(("patched",), repeat=1))[0]
    made = mpflow(flow, spec.topology, 0, Means("mpflow", 1))[0]
    assert " ".join(made.sender.argv).endswith(
        "--sockopt sctp:18:01000000 --sockopt sctp:125:0000000001000000"
    )
    assert made.receiver.argv[-2:] == ("--sockopt", "sctp:21:00")
    with pytest.raises(LabError, match="LEVEL:OPTION:HEX"):
        build(Flow, {"name": "f", "messages": 1, "sockopts": ["sctp:21"]}, At("file", ""))


def test_a_striped_flow_is_one_association_per_path() -> None:
    spec = expand(load(scenario.find("demo")), {}, Choice(("stock",), repeat=1))[0]
    flow = Flow("main", kind="sctp-striped", size_mb=8)
    found = mpflow(flow, spec.topology, 0, Means("mpflow", 1))
    assert [one.name for one in found] == ["main.path1", "main.path2"]
    for one, path in zip(found, ("path1", "path2"), strict=True):
        argv = one.sender.argv
        assert argv[argv.index("--to") + 1] == address(spec.topology, "host2", path)
        assert argv[argv.index("--bytes") + 1] == "8000000"
        assert "--progress-log" in one.receiver.argv and "sctp-striped" not in argv


@pytest.mark.parametrize(
    "key", ["unordered = true", "streams = 2", "message_log = true", "send_at_s = [1]", 'primary = "path1"']
)
def test_a_striped_flow_adds_up_ordered_bytes_only(file: Path, key: str) -> None:
    size = "" if "send_at" in key else 'size_mb = "{size_mb}"'
    file.write_text(GOOD.replace('size_mb = "{size_mb}"', f'kind = "sctp-striped"\n{size}\n{key}', 1))
    with pytest.raises(LabError, match=r"for sctp-striped|no use"):
        load(file)


CMT = ["--cmt", "base"]
DELAYED = ["--cmt-sack", "delayed"]


@pytest.mark.parametrize(
    ("kind", "programs", "sender", "receiver", "sysctls"),
    [
        ("sctp", ("mpflow", "mpflow"), CMT, CMT + DELAYED, []),
        ("usrsctp", ("mpflow-usrsctp", "mpflow-usrsctp"), CMT + DELAYED, CMT + DELAYED, []),
        ("usrsctp-to-sctp", ("mpflow-usrsctp", "mpflow"), CMT + DELAYED, DELAYED, ["host2 udp_port"]),
        (
            "sctp-to-usrsctp",
            ("mpflow", "mpflow-usrsctp"),
            CMT,
            CMT + DELAYED,
            ["host1 udp_port", "host1 encap_port"],
        ),
    ],
)
def test_each_end_has_its_stack_and_its_part_of_cmt(
    kind: str, programs: tuple[str, str], sender: list[str], receiver: list[str], sysctls: list[str]
) -> None:
    spec = expand(load(scenario.find("demo")), {}, Choice(("stock",), repeat=1))[0]
    flow = Flow("main", kind=kind, size_mb=1, cmt="base", cmt_sack="delayed")
    made = mpflow(flow, spec.topology, 0, Means("mpflow", 1))[0]
    ends = made.sender.argv, made.receiver.argv
    assert tuple(argv[0] for argv in ends) == programs
    assert all(argv[argv.index("--proto") + 1] == "sctp" for argv in ends)
    for argv, expected in zip(ends, (sender, receiver), strict=True):
        given = [i for i, word in enumerate(argv) if word.startswith("--cmt")]
        assert [word for i in given for word in argv[i : i + 2]] == expected
    set_here = [one for one in made.setup if one.argv[0] == "sysctl"]
    assert [f"{one.where} {one.argv[-1].split('.')[-1].split('=')[0]}" for one in set_here] == sysctls


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ('kind = "mptcp"\ncmt = "base"', "cmt: got 'base', expected none for mptcp; remove it"),
        ('cmt = "rpv1"', "cmt: got 'rpv1', expected off or base for sctp"),
        ('kind = "sctp-to-usrsctp"\ncmt = "rpv2"', "expected off or base for sctp-to-usrsctp"),
        ('kind = "usrsctp"\ncmt_sack = "per-path"', "expected standard or delayed for usrsctp"),
        (
            'kind = "usrsctp"\n[[flows]]\nkind = "usrsctp-to-sctp"\nsize_mb = 1',
            "got 'several with usrsctp', expected one",
        ),
    ],
)
def test_what_a_stack_cannot_do_is_refused(file: Path, keys: str, words: str) -> None:
    file.write_text(GOOD.replace('size_mb = "{size_mb}"', f'size_mb = "{{size_mb}}"\n{keys}', 1))
    with pytest.raises(LabError, match=words):
        load(file)
