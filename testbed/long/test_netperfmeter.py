# SPDX-License-Identifier: GPL-2.0
"""netperfmeter, built against the series' header, asks for all paths at once itself: `cmt=cmt` of a flow."""

import re
from pathlib import Path
from typing import Any

import pytest
from sctpkernel.netperfmeter import built
from sctplab.spec.model import Direction
from tests.kernel_run import run_scripts

pytestmark = pytest.mark.kernel
WALL_S, RUN_S = 300, 20
RATE_MBIT = 20.0
LINK = Direction(rate_mbit=RATE_MBIT, delay_ms=10)
SERVER = 'ip netns exec host2 "$NETPERFMETER" 9000 >server 2>&1 & server=$!; sleep 1; '
CLIENT = (
    'ip netns exec host1 "$NETPERFMETER" 10.1.2.1:9000 -local=10.1.1.1,10.2.1.1'
    f" -controllocal=10.1.1.1,10.2.1.1 -runtime={RUN_S} -scalar=n.sca -config=n.config"
    " -sctp const0:const1400:const0:const0:cmt="
)
END = "; ended=$?; kill $server; wait $server; cat n-passive*.sca; exit $ended"
RECEIVED = re.compile(
    r'^scalar "netPerfMeter\.passive\.flow\[0\]" "Received Bit Rate" +([\d.]+)$', re.MULTILINE
)


def flow(kernel: str, cmt: str, folder: Path) -> dict[str, Any]:
    """How a flow over two paths ended."""
    scripts = {cmt: f"mkdir {folder}/{cmt}; cd {folder}/{cmt}; {SERVER}{CLIENT}{cmt}{END}"}
    environment = {"NETPERFMETER": str(built())}
    ended: dict[str, Any] = run_scripts(kernel, LINK, folder, WALL_S, scripts, environment)[cmt]
    return ended


def received_mbit(ended: dict[str, Any]) -> float:
    assert ended["exit"] == 0, ended
    found = RECEIVED.search(ended["output"])
    assert found, ended["output"]
    return float(found[1]) / 1e6


def test_a_flow_uses_both_paths(tmp_path: Path) -> None:
    one, both = (received_mbit(flow("patched", cmt, tmp_path)) for cmt in ("off", "cmt"))
    print(f"cmt=off {one:.1f} Mbit/s, cmt=cmt {both:.1f} Mbit/s")
    assert one < RATE_MBIT
    assert both > 1.9 * one


def test_stock_refuses_it(tmp_path: Path) -> None:
    ended = flow("stock", "cmt", tmp_path)
    assert "Failed to configure CMT usage on SCTP socket (SCTP_CMT_ON_OFF option)" in ended["errors"], ended
