# SPDX-License-Identifier: GPL-2.0
"""Carries out the cases of settings.py, thresholds.py and cmt.py. Standard library only.

Every case has a network namespace of its own with a loopback interface. The result names the cases that went
wrong and how.
"""

import signal
import time
import traceback
from collections.abc import Callable
from typing import Any

import cmt
import settings
import thresholds
from options import namespace

LIMIT_S = 30  # of a case, in virtual time
CASES: dict[str, list[Callable[[], None]]] = {
    flavour: settings.CASES[flavour] + thresholds.CASES[flavour] + cmt.CASES[flavour]
    for flavour in ("patched", "stock")
}


def outcome(case: Callable[[], None], limit_s: int = LIMIT_S) -> str:
    """ "" when the case holds, else how it went wrong."""
    print(case.__name__, flush=True)  # should the kernel die: where it was
    signal.alarm(limit_s)
    try:
        namespace()
        case()
    except Exception:
        return traceback.format_exc()
    finally:
        signal.alarm(0)
    return ""


def over_the_limit(*_: object) -> None:
    raise TimeoutError("took too long")


def carry_out(plan: dict[str, Any]) -> dict[str, Any]:
    signal.signal(signal.SIGALRM, over_the_limit)
    cases = {case.__name__: outcome(case) for case in CASES[plan["flavour"]]}
    namespace()
    time.sleep(5)  # the namespaces end: whatever the kernel has to say about that
    return {"status": "ok", "cases": cases}
