# SPDX-License-Identifier: GPL-2.0
"""Programs that people run: their files, their lines of the page, both ends' plans, what is counted."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from drive import Counted, filling, line_of
from sctplab.errors import LabError
from sctplab.measure import programs
from sctplab.plan import packaged
from sctplab.random.scenarios import specs_named
from sctplab.spec import program
from sctplab.spec.model import RunSpec
from sctplab.spec.scenario import Choice
from sctplab.spec.schema import At, build
from tests.programs_run import specs

LINE = r"^(?P<number>\d+) (?P<sent>\d+) (?P<filling>\S*)$"
SMALL = {"packages": ["xx"], "port": 1, "server": {"run": ["x"], "counts": LINE}, "client": {"run": ["y"]}}


def spec() -> RunSpec:
    return specs("socat", [])[0]


def test_each_program_has_its_lines_on_the_page_and_each_line_its_program() -> None:
    page = program.blocks(program.PAGE.read_text())
    assert set(page) == {(name, end) for name in program.known() for end in program.ENDS}
    for name in program.known():
        found = program.find(name)
        for end in program.ENDS:
            half: program.End = getattr(found, end)
            texts = [*half.run, *half.files.values()]
            assert sum(text.count("{page}") for text in texts) == 1, f"{name}: {end}"


def test_the_scenario_has_each_program() -> None:
    tree = tomllib.loads((program.ROOT / "testbed" / "scenarios" / "programs.toml").read_text())
    assert sorted(tree["factors"]["program"]) == program.known()


def test_a_plan_has_the_lines_of_the_page_with_the_addresses_of_the_run() -> None:
    one = spec()
    plan = packaged.plan_of(one.flows[0], one.topology, "client")
    assert plan["run"] == ["socat -u - SCTP-CONNECT:10.1.2.1:5001"]
    server = packaged.plan_of(one.flows[0], one.topology, "server")
    assert (server["watchers"], server["run"]) == ({}, ["socat -u SCTP-LISTEN:5001 -"])
    erlang = specs("erlang", [])[0]
    text = packaged.plan_of(erlang.flows[0], erlang.topology, "client")["files"]["talk.erl"]
    assert "{ip, {10,1,1,1}}, {ip, {10,2,1,1}}" in text


def test_options_of_the_run_command_go_before_the_first_command() -> None:
    (one,) = specs("osmo-stp", [], ("nodelay",))
    first, second = packaged.plan_of(one.flows[0], one.topology, "client")["run"]
    assert re.search(r" run --nodelay osmo-stp -c osmo-stp.cfg$", first)
    assert "nodelay" not in second


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"port": 0}, "x.toml: port: got 0, expected a whole number from 1 to 65535 (a port)"),
        ({"trouble": ["("]}, "x.toml: trouble: got '(', expected a regular expression (missing ), "),
        (
            {"server": {"run": ["x"]}},
            "x.toml: counts: got '', expected a regular expression at one of the ends",
        ),
        ({"clients": {}}, "x.toml: got 'clients', expected one of the keys packages"),
    ],
)
def test_a_wrong_file_is_one_line(change: dict[str, Any], said: str) -> None:
    with pytest.raises(LabError) as caught:
        build(program.Program, {**SMALL, **change}, At("x.toml", ""))
    assert re.sub(r"toml:+ ", "toml: ", str(caught.value)).startswith(said)


def test_an_unknown_program_is_one_line() -> None:
    with pytest.raises(LabError, match=r"program: got 'socta', expected one of .*did you mean socat"):
        program.find("socta")
    with pytest.raises(LabError, match=r"programs.rst: no block after '.. program: none client'; add it"):
        program.from_page("none", "client")


def test_a_block_ends_with_its_indentation() -> None:
    server = ".. program: a server\n\n::\n\n     one\n      two\n\n"
    client = ".. program: a client\n\nIts words::\n\n    three\n\nEnd.\n"
    assert program.blocks(server + client) == {("a", "server"): " one\n  two\n", ("a", "client"): "three\n"}


def test_messages_are_counted_with_their_waits(capsys: pytest.CaptureFixture[str]) -> None:
    found = Counted()
    for number, wrong in ((0, ""), (1, ""), (1, ""), (2, "x")):
        number_of, sent, text = line_of(number).decode().split()
        matched = re.search(LINE, f"{number_of} {sent} {text}{wrong}")
        assert matched
        found.take(matched, int(sent) / 1e9 + 0.25)
    told = found.result()
    assert (told["received"], told["doubled"], told["content"]) == (3, 1, "1 messages are not as sent")
    assert told["max_message_delay_s"] == pytest.approx(0.25, abs=1e-5)
    assert capsys.readouterr().out.count('"event": "message"') == 4
    assert len({filling(number) for number in range(26)}) == 26


def test_a_file_of_the_client_tells_messages_that_arrived_at_the_server() -> None:
    one = program.find("netperfmeter")
    found = Counted()
    for line in (
        "AbsTime RelTime SeqNumber\tAbsBytes AbsPackets\tRelBytes RelPackets\tDelay Jitter\n",
        "000001 1700000017541177 2.500000 0\t100 1 0\t100 1 0\t20.021 20.021 1.251\n",
        "000002 1700000017790047 2.750000 1\t200 2 0\t100 1 0\t218.890 -49.999 13.602\n",
    ):
        if matched := re.search(one.client.counts, line):
            found.take(matched, 100.0)
    told = found.result()
    assert (told["received"], told["doubled"], told["last_t"]) == (2, 0, 102.75)
    assert told["max_message_delay_s"] == pytest.approx(0.21889)
    assert not one.tells_answers
    assert program.find("kamailio").tells_answers


def test_waits_belong_to_the_cut_before_them() -> None:
    one = spec()
    messages = [{"sent": 100 + t, "delay_us": d} for t, d in ((19.9, 70000), (50, 20000), (65.1, 90000))]
    rows = [{"ADDR": "10.1.2.1", "STATE": "2"}, {"ADDR": "127.0.0.1", "STATE": "2"}]
    result = {"start_t": 100.0, "events": [{"label": "cut path1 both", "paths": {"host1": rows}}]}
    client = {"sent": 4, "trouble": ["no"], "early": []}
    server = {"received": 3, "doubled": 0, "trouble": [], "early": []}
    found = programs.metrics(one, (client, server), messages, result, {"host1": {}})
    assert (found["wait_1_s"], found["wait_2_s"], found["missing"]) == (0.07, 0.09, 1)
    assert (found["troubles"], found["active_paths"]) == (1, 1)


def test_a_flow_without_a_program_is_refused(tmp_path: Path) -> None:
    text = (program.ROOT / "testbed" / "scenarios" / "programs.toml").read_text()
    for line in ('program = "{program}"\n', 'messages = "{messages}"\n'):
        file = tmp_path / "wrong.toml"
        file.write_text(text.replace(line, "duration_s = 1\n" if "messages" in line else ""))
        with pytest.raises(LabError, match=r"program|messages"):
            specs_named(str(file), [], Choice(("stock",), repeat=1))
