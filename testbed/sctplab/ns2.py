# SPDX-License-Identifier: GPL-2.0
"""A scenario's runs by ns-2's SCTP module, as figures to set beside the kernel's: a reference file.

The parameters are those of the scenario's expanded specs; a spec that ns-2 cannot follow is refused. ns-2 is
Debian's (2.35, SCTP module 3.8 of the University of Delaware, where the papers were written). It differs in:

- Agent/SCTP/MultipleFastRtx: like the base agent it sends a HEARTBEAT at once to a path that became inactive.
  Agent/SCTP/MfrHbAfterRto, the papers' own: after *every* timeout, and its ACK clears the error counter.
- A HEARTBEAT that times out counts against its path, doubles the RTO and is repeated at once, also on a path
  that is active.
- Packets count without Ethernet header, and a queue's limit without packets on their way.
- changePrimaryThresh_ is compared as a signed number, so that its default of -1 would move the primary at the
  first error. It is set to a number that is never reached.
- initialCwnd_ = 4: the first window is of three packets whatever it says, but MfrHbAfterRto takes it as the
  lower bound of ssthresh after a timeout: 4 MTU since RFC 4460, in the other agents and in the kernel.
- Window and flight are both counted in DATA chunks. The kernel counts the window in path MTUs (1500) and the
  flight in payload (1452), so that its smallest window after a loss, 4 MTU, holds five full packets and not
  four. MultipleFastRtx:mtu_=1532 does the same in ns-2: 1500 for a window's MTU.
- Traces are read up to the moment at which everything has arrived: heartbeats go on after it and may be lost.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sctplab.errors import LabError
from sctplab.load_records import Environment, Run
from sctplab.model import Direction, Flow, RunSpec
from sctplab.place.base import RunError, last_line
from sctplab.progress import Progress
from sctplab.reference import reference_csv, replaced
from sctplab.report import write_text
from sctplab.summary import sections
from sctplab.toolbox import SETUP
from sctplab.wanted import of_scenario

SCRIPT = Path(__file__).resolve().parents[1] / "ns2" / "transfer.tcl"
AGENTS = ("MfrHbAfterRto", "MultipleFastRtx", "MultipleFastRtx:mtu_=1532")
CHUNK_HEADER, PACKET_HEADERS = 16, 32
QUIET_RTOS = 3  # without data for so many of the longest timeouts, a transfer is over
NEVER = 1000000

Number = Callable[[str], Any]


def seconds(value: str) -> float:
    return int(value) / 1000


# sysctl of the sender -> variable of the agent, and how its value is written there
SENDER: dict[str, tuple[str, Number | Mapping[str, int]]] = {
    "net.sctp.path_max_retrans": ("pathMaxRetrans_", int),
    "net.sctp.association_max_retrans": ("associationMaxRetrans_", int),
    "net.sctp.rto_initial": ("initialRto_", seconds),
    "net.sctp.rto_min": ("minRto_", seconds),
    "net.sctp.rto_max": ("maxRto_", seconds),
    "net.sctp.hb_interval": ("heartbeatInterval_", lambda value: round(seconds(value))),
    "net.sctp.rtx_policy": ("rtxToAlt_", {"same": 0, "alternate": 1, "fr-same-rto-alt": 2}),
    "net.sctp.dormant_policy": ("dormantAction_", {"hop": 0, "primary": 1, "last": 2}),
}
RECEIVER: dict[str, tuple[str, Number | Mapping[str, int]]] = {
    "net.sctp.sack_timeout": ("sackDelay_", seconds),
}
# what these agents always do
ALWAYS = {
    "net.sctp.multiple_fast_rtx": "1",
    "net.sctp.failover_heartbeat": "1",
    "net.sctp.pf_enable": "0",
}


@dataclass(frozen=True)
class Agent:
    """A class below Agent/SCTP, with variables of the sender in place of those that a spec gives."""

    name: str
    changes: tuple[tuple[str, str], ...]

    @property
    def source(self) -> str:
        """What its figures are called in a reference file."""
        return " ".join(["ns-2", self.name, *(f"{name}={value}" for name, value in self.changes)])


def agent(text: str) -> Agent:
    """CLASS[:VARIABLE=VALUE[,VARIABLE=VALUE]]; raises LabError."""
    change = r"[A-Za-z]+_=[-+.0-9A-Za-z]+"
    if not re.fullmatch(rf"[A-Za-z][A-Za-z0-9]*(:{change}(,{change})*)?", text):
        raise LabError(f"--agent: got {text!r}, expected CLASS or CLASS:VARIABLE=VALUE such as {AGENTS[2]}")
    name, _, changes = text.partition(":")
    pairs = (word.partition("=") for word in changes.split(",") if word)
    return Agent(name, tuple((variable, value) for variable, _, value in pairs))


@dataclass(frozen=True)
class Outcome:
    """What ns-2's trace of one run says, up to the moment at which everything had arrived."""

    transfer_s: float
    spurious_failovers: int
    timeouts: int  # of data and of heartbeats, all paths
    fast_rtx: int  # SACKs that led to one

    def metrics(self) -> dict[str, float]:
        return {
            "transfer_s": self.transfer_s,
            "spurious_failovers": self.spurious_failovers,
            "any_spurious_failover": int(self.spurious_failovers > 0),
            "timeouts": self.timeouts,
            "fast_rtx": self.fast_rtx,
        }


def parameters(spec: RunSpec, agent: Agent) -> dict[str, Any]:
    """What transfer.tcl needs for one run; raises LabError for a spec that ns-2 cannot follow."""
    if spec.events or len(spec.flows) != 1:
        raise refused(spec, "events or several flows", "one flow and no event")
    flow = spec.flows[0]
    mtu = min(path.mtu for path in spec.topology.paths)
    if flow.primary not in (None, spec.topology.paths[0].name):
        raise refused(spec, f"primary = {flow.primary}", "the first path")
    if flow.kind != "sctp" or flow.size_mb is None or flow.paths:
        raise refused(spec, f"flow {flow.name}", "an sctp flow of size_mb over all paths")
    if flow.message_b % 4 or flow.message_b + CHUNK_HEADER > mtu - PACKET_HEADERS:
        raise refused(
            spec, f"message_b = {flow.message_b}", "a multiple of 4 that fills no more than a packet"
        )
    for key, value in ALWAYS.items():
        if spec.sysctl.host1.get(key) != value:
            raise refused(spec, f"{key} = {spec.sysctl.host1.get(key, 'default')}", f"{value}, as ns-2 does")
    both: dict[str, object] = {
        "mtu_": mtu,
        "dataChunkSize_": flow.message_b + CHUNK_HEADER,
        "initialRwnd_": flow.rcvbuf_kb * 1024,
        **variables(spec, spec.sysctl.host2, RECEIVER),
    }
    sender: dict[str, object] = {
        "changePrimaryThresh_": NEVER,
        "initialSsthresh_": flow.rcvbuf_kb * 1024,
        "initialCwnd_": 4,
        **variables(spec, spec.sysctl.host1, SENDER),
        **dict(agent.changes),
    }
    return {
        "seed": spec.seed,
        "agent": agent.name,
        "bytes": round(flow.size_mb * 1e6),
        "message": flow.message_b,
        "idle_s": QUIET_RTOS * float(str(sender["maxRto_"])),
        "idle_bytes": 2 * mtu,
        "limit_s": spec.limits.virtual_s,
        "both": both,
        "sender": sender,
        "paths": [
            {one: link(spec, getattr(path, one)) for one in ("forward", "reverse")}
            for path in spec.topology.paths
        ],
    }


def variables(
    spec: RunSpec, settings: Mapping[str, str], known: Mapping[str, tuple[str, Number | Mapping[str, int]]]
) -> dict[str, object]:
    """A host's sysctls as variables of ns-2; each must be set, since ns-2's defaults are its own."""
    found: dict[str, object] = {}
    for key, (name, convert) in known.items():
        value = settings.get(key, "default")
        if isinstance(convert, Mapping):
            if value not in convert:
                raise refused(spec, f"{key} = {value}", "one of " + ", ".join(convert))
            found[name] = convert[value]
        elif value == "default":
            raise refused(spec, f"{key} at its default", "a value in [sysctl]")
        else:
            found[name] = convert(value)
    return found


def link(spec: RunSpec, direction: Direction) -> dict[str, float]:
    if direction.gemodel or direction.jitter_ms or direction.reorder_pct:
        raise refused(spec, "gemodel, jitter_ms or reorder_pct", "loss_pct, delay_ms and rate_mbit only")
    names = ("rate_mbit", "delay_ms", "queue_pkts", "loss_pct")
    return {name: getattr(direction, name) for name in names}


def refused(spec: RunSpec, got: str, expected: str) -> LabError:
    return LabError(f"{spec.scenario}: ns-2 cannot follow {got}; expected {expected}")


def tcl(value: object) -> str:
    """A Tcl word: dicts and lists as Tcl has them."""
    if isinstance(value, Mapping):
        return "{" + " ".join(f"{key} {tcl(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "{" + " ".join(map(tcl, value)) + "}"
    return str(value)


def simulate(spec: RunSpec, agent: Agent) -> Outcome:
    """One run; raises RunError when ns-2 fails or the transfer is not complete."""
    given = parameters(spec, agent)
    command = ["ns", str(SCRIPT), tcl(given)[1:-1]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    flow: Flow = spec.flows[0]
    found = read(done.stdout.splitlines(), -(-given["bytes"] // flow.message_b))
    if done.returncode or found is None:
        reason = (done.stderr.strip() or "the transfer did not end").splitlines()[-1]
        raise RunError(f"{spec.run_id}: {agent.source}: {reason}")
    return found


_STATE = re.compile(r"time: (\S+) .* daddr: (\d+) .* dstatus: (\w+)")
_TIMEOUTS = re.compile(r"time: (\S+) .* daddr: (\d+) .* timeoutCount: (\d+)")


def read(lines: Iterable[str], chunks: int) -> Outcome | None:
    """The outcome of a run of so many CHUNKS from what transfer.tcl prints; None when some never arrived."""
    arrived: set[int] = set()
    given_up = fast = 0
    timeouts: dict[str, int] = {}
    primary, state = "", "ACTIVE"
    for line in lines:
        if line.startswith("r "):
            fields = line.split()
            if fields[6][7] == "D":
                arrived.add(int(fields[11]))
                if len(arrived) == chunks:
                    return Outcome(float(fields[1]), given_up, sum(timeouts.values()), fast)
        elif line.startswith("primary "):
            primary = line.split()[1]
        elif found := _STATE.match(line):
            if found[2] == primary:
                given_up += state == "ACTIVE" and found[3] == "INACTIVE"
                state = found[3]
        elif found := _TIMEOUTS.match(line):
            timeouts[found[2]] = int(found[3])
        elif "frCount:" in line and primary:  # its value is not printed, only that it changed
            fast += 1
    return None


def as_run(spec: RunSpec, agent: Agent, outcome: Outcome) -> Run:
    """The outcome in the form that reports work on."""
    return Run(
        path=Path(spec.run_id),
        status="ok",
        reason="",
        scenario=spec.scenario,
        place="ns2",
        base="",
        kernel=agent.source,
        variant="",
        factors=tuple(spec.factors.items()),
        seed=spec.seed,
        metrics=outcome.metrics(),
        environment=Environment({}, {}, {}, {}),
        question=spec.question,
        events=0,
        reference="",
        series=(),
        virtual_s=outcome.transfer_s,
        wall_s=0.0,
    )


@dataclass(frozen=True)
class Asked:
    """What the user asked for; the command goes into the head of the file."""

    agents: tuple[Agent, ...]
    jobs: int
    command: str


def write_reference(specs: list[RunSpec], asked: Asked, out: Path, shown: Progress) -> None:
    """Run all specs by each agent and write the reference file OUT; it keeps figures of other agents."""
    for agent in asked.agents:
        for spec in specs:
            parameters(spec, agent)  # all refusals before the first run
    if subprocess.run([str(SETUP), "--with", "ns2"], check=False).returncode:
        raise RunError("tools/setup --with ns2 failed")
    version = last_line(["dpkg-query", "-W", "-f=${Version}", "ns2"], "dpkg-query ns2")
    runs = simulate_all(specs, asked, shown)
    plots = of_scenario(specs[0].scenario).plots
    made = reference_csv(sections(runs)[0], plots, f"{asked.command} (ns2 {version})")
    write_text(out, replaced(out, made))


def simulate_all(specs: list[RunSpec], asked: Asked, shown: Progress) -> list[Run]:
    """All runs by each agent; the first error ends them."""
    todo = [(spec, agent) for agent in asked.agents for spec in specs]
    with ThreadPoolExecutor(max_workers=asked.jobs) as pool:
        futures = {pool.submit(simulate, spec, agent): (spec, agent) for spec, agent in todo}
        runs = []
        try:
            for future in as_completed(futures):
                spec, agent = futures[future]
                runs.append(as_run(spec, agent, future.result()))
                shown.step(f"{agent.source}: {spec.run_id}")
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return runs
