# SPDX-License-Identifier: GPL-2.0
"""A run of `testbed/lab races`: its transfers and events, and somebody who reads and sets all the time."""

import subprocess
import threading
import time
from typing import Any

import counters
from commands import inside, remember_home, run_all
from run import Conductor

PAUSE_S = 0.5


def disturb(plan: dict[str, Any]) -> None:
    """Look at the associations in both ways that there are, and write the settings again."""
    settings = [one for one in plan["setup"] if one["argv"][-1].startswith("net.sctp.")]
    while True:
        counters.sample(plan["hosts"], time.time())
        for host in plan["hosts"]:
            with inside(host):
                subprocess.run(["ss", "-OHnai", "--sctp"], stdout=subprocess.DEVNULL, check=False)
        run_all(settings)
        time.sleep(PAUSE_S)


def carry_out(plan: dict[str, Any]) -> dict[str, Any]:
    """Until the flows have ended or the time is over; the namespaces go while associations may live."""
    remember_home()
    run_all(plan["setup"])
    conductor = Conductor(plan)
    threading.Thread(target=disturb, args=(plan,), daemon=True).start()
    conductor.play()
    conductor.stop()
    status = "failed" if conductor.failure else "timeout" if conductor.timeout else "ok"
    return {"status": status, "reason": conductor.failure}
