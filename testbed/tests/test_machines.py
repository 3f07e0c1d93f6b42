# SPDX-License-Identifier: GPL-2.0
"""Machines that take part in a run, here a shell that says what the agent would."""

import pytest
from sctplab.errors import RunError
from sctplab.plan.site import Address
from sctplab.remote.connection import Machine


def test_a_machine_that_is_lost_says_so_every_time_it_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run fails with that line; then the machine is asked to take things back, as all are."""
    script = """echo '{"event": "up", "python": "3.11"}'; echo no route >&2"""
    monkeypatch.setattr(Address, "command", lambda *_: ["sh", "-c", script])
    machine = Machine(Address("host1", "ssh", ("there",)), b"")
    for _ in range(2):
        with pytest.raises(RunError, match=r"^host1: ssh there: no route$"):
            machine.release()
    machine.close()
