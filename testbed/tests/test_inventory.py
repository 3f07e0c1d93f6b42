# SPDX-License-Identifier: GPL-2.0
"""The machines' file: what it means, and one clear line for each mistake in it."""

from pathlib import Path

import pytest
from sctplab.errors import LabError
from sctplab.remote import inventory
from tests.lab_run import lab

TWO_PATHS = """
# a comment
REMOTE_TYPE=ssh
REMOTE_ARGS="-p 2222 root@hostb"
NETIF=eth1
LOCAL_V4=192.0.2.1
REMOTE_V4=198.51.100.1   # behind the router
NETIF_2='eth2'
LOCAL_V6_2=2001:db8::1
REMOTE_V6_2=2001:DB8:0::2
LOCAL_V4_2=
"""


def read(text: str) -> inventory.Inventory:
    return inventory.parse("hosts", text.splitlines())


def test_two_hosts() -> None:
    found = read(TWO_PATHS)
    assert [(one.name, one.transport, one.args) for one in found.machines] == [
        ("host1", "local", ()),
        ("host2", "ssh", ("-p", "2222", "root@hostb")),
    ]
    first, second = found.cables
    assert (first.interface, first.local, first.remote) == (
        "eth1",
        {"ipv4": "192.0.2.1"},
        {"ipv4": "198.51.100.1"},
    )
    assert second.address("host2", "ipv6") == "2001:db8::2" and second.address("host2", "ipv4") is None
    assert not found.routers and not first.router


@pytest.mark.parametrize(
    ("more", "routers", "of_paths"),
    [
        ("ROUTER_TYPE=ssh\nROUTER_ARGS=root@r", ["router"], ["router", "router"]),
        (
            "ROUTER_TYPE=ssh\nROUTER_ARGS=root@r\nROUTER_TYPE_2=ssh\nROUTER_ARGS_2=root@s",
            ["router", "router2"],
            ["router", "router2"],
        ),
    ],
)
def test_routers(more: str, routers: list[str], of_paths: list[str]) -> None:
    found = read(TWO_PATHS + more)
    assert found.routers == routers
    assert [cable.router for cable in found.cables] == of_paths


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("NETIF=eth1", "NETIF", "line 5: got 'NETIF', expected KEY=VALUE"),
        ("NETIF=eth1", "NETIFF=eth1", "line 5: got 'NETIFF', expected a known key; did you mean NETIF?"),
        ("NETIF=eth1", "NETIF=a\nNETIF=b", "line 6: NETIF is given twice; remove one"),
        ("NETIF=eth1", "NETIF='eth1", 'NETIF: got "\'eth1": No closing quotation; close the quotes'),
        ("REMOTE_TYPE=ssh", "REMOTE_TYPE=rsh", "REMOTE_TYPE: got rsh, expected one of ssh, netns, local"),
        ("REMOTE_TYPE=ssh", "", "REMOTE_TYPE: got none, expected one of ssh, netns, local"),
        ('REMOTE_ARGS="-p 2222 root@hostb"', "", "REMOTE_ARGS: got none, expected USER@HOST"),
        ("NETIF=eth1", "LOCAL_ARGS=x\nNETIF=eth1", "LOCAL_ARGS: got x, expected none"),
        ("LOCAL_V4=192.0.2.1", "LOCAL_V4=192.0.2", "LOCAL_V4: got '192.0.2', expected an ipv4 address"),
        ("LOCAL_V4=192.0.2.1", "", "LOCAL_V4, REMOTE_V4: expected addresses of one family at both ends"),
        ("NETIF_2='eth2'", "", "got a path without NETIF_2; add NETIF_2=..."),
        ("NETIF=eth1", "ROUTER_TYPE=ssh\nNETIF=eth1", "ROUTER_ARGS: got none, expected USER@HOST"),
    ],
)
def test_a_mistake_is_one_line(old: str, new: str, complaint: str) -> None:
    with pytest.raises(LabError) as raised:
        read(TWO_PATHS.replace(old, new, 1))
    said = str(raised.value)
    assert said.startswith("hosts: ") and complaint in said and "\n" not in said


def test_no_path_at_all() -> None:
    with pytest.raises(LabError, match="NETIF: got none, expected host1's interface of path 1"):
        read("REMOTE_TYPE=netns\nREMOTE_ARGS=b")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["check", "no-such"], "--inventory no-such: cannot be read"),
        (
            ["run", "demo", "--place", "remote"],
            "--inventory: expected an inventory file",
        ),
        (["run", "demo", "--inventory", "x"], "--inventory: expected an inventory file"),
        (["run", "demo", "--place", "remote", "--inventory", "no-such"], "no-such: cannot be read"),
        (["run", "demo", "--peer", "stock"], "peer: got 'stock', expected FLAVOUR-BASE, such as stock-6.1"),
        (["run", "demo", "--peer", "stock-6.1"], "--peer: got 'stock-6.1', expected none in place uml"),
    ],
)
def test_wrong_use_of_the_command_is_one_line(words: list[str], complaint: str, tmp_path: Path) -> None:
    done = lab(*words, cwd=tmp_path)
    assert done.returncode == 2 and complaint in done.stderr and done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_machine_that_is_not_reached_is_one_line(tmp_path: Path) -> None:
    """By a name that is never given to a machine."""
    file = tmp_path / "hosts"
    file.write_text(TWO_PATHS.replace("root@hostb", "root@hostb.invalid"))
    done = lab("check", str(file))
    assert done.returncode == 1 and done.stderr.startswith("lab: host2: ssh -p 2222 root@hostb.invalid: ")
    assert done.stderr.count("\n") == 1
