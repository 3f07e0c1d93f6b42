# SPDX-License-Identifier: GPL-2.0
"""The way back of a command, from what the machine says before it is carried out."""

import pytest
import undo
from commands import CommandFailed

FEATURES = """Features for data1:
rx-checksumming: on [fixed]
tx-checksumming: on
\ttx-checksum-ipv4: off [fixed]
\ttx-checksum-ip-generic: on
scatter-gather: on
tcp-segmentation-offload: on
\ttx-tcp-segmentation: on
\ttx-tcp-ecn-segmentation: off [requested on]
generic-segmentation-offload: off [requested on]
large-receive-offload: off
"""


@pytest.fixture
def says(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The output of commands, by command line; other commands fail, with the output ""."""
    known: dict[str, str] = {}
    monkeypatch.setattr(undo, "output", lambda argv: known.get(" ".join(argv), ""))
    return known


def test_offloads_as_they_were_asked_for(says: dict[str, str]) -> None:
    """One that waits for another one is off, and on again with that one: what was asked for counts."""
    says["ethtool -k data1"] = FEATURES
    ((program, option, dev, *words),) = undo.way_back(["ethtool", "-K", "data1", "sg", "off"])
    assert (program, option, dev) == ("ethtool", "-K", "data1")
    assert dict(zip(words[::2], words[1::2], strict=True)) == {
        "tx-checksum-ip-generic": "on",
        "scatter-gather": "on",
        "tx-tcp-segmentation": "on",
        "tx-tcp-ecn-segmentation": "on",
        "generic-segmentation-offload": "on",
        "large-receive-offload": "off",
    }


def test_a_qdisc_of_somebody_else_stays(says: dict[str, str]) -> None:
    add = ["tc", "qdisc", "add", "dev", "data1", "root", "netem", "delay", "10ms"]
    says["tc -j qdisc show dev data1"] = '[{"kind": "mq", "handle": "0:", "root": true}]'
    assert undo.way_back(add) == [["tc", "qdisc", "del", "dev", "data1", "root"]]
    says["tc -j qdisc show dev data1"] = '[{"kind": "tbf", "handle": "1:", "root": true}]'
    with pytest.raises(
        CommandFailed, match="data1: has a qdisc already, tbf; remove it: tc qdisc del dev data1 root"
    ):
        undo.way_back(add)


def test_what_has_no_way_back_is_not_carried_out() -> None:
    with pytest.raises(CommandFailed, match="rm file: no way back is known"):
        undo.way_back(["rm", "file"])
