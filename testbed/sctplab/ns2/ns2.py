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
- Caro's transfers count from the first packet of the handshake; CMT and the parts of a striped flow count
  from the first data, as the laboratory's do, since a lost INIT costs 3 s of a few.
- The base agent and CMT mix their counters' traces with scraps of memory, so only arrivals are read of them.
- Agent/SCTP/CMT does not fast-retransmit a packet twice; a SACK that its timer sends says that it answers no
  packet at all.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from sctplab.errors import RunError
from sctplab.files import write_text
from sctplab.measure.records import Environment, Run
from sctplab.ns2.agents import Agent, Association, agents, associations, parameters, shares
from sctplab.paths import SETUP
from sctplab.plan import stripe
from sctplab.processes import last_line
from sctplab.report.reference import reference_csv, replaced
from sctplab.report.summary import sections
from sctplab.run.progress import Progress
from sctplab.spec.model import RunSpec
from sctplab.spec.report_spec import of_scenario

SCRIPT = Path(__file__).resolve().parents[2] / "ns2" / "transfer.tcl"


@dataclass(frozen=True)
class Outcome:
    """Figures from ns-2's trace of one run, up to the arrival of the last DATA chunk."""

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


def tcl(value: object) -> str:
    """A Tcl word: dicts and lists as Tcl has them."""
    if isinstance(value, Mapping):
        return "{" + " ".join(f"{key} {tcl(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "{" + " ".join(map(tcl, value)) + "}"
    return str(value)


def simulate(spec: RunSpec, agent: Agent) -> dict[str, float]:
    """The metrics of one run; raises RunError when ns-2 fails or the transfer is not complete."""
    traces = [trace(one, agent) for one in associations(spec)]
    found = shared(traces, chunks(spec)) if shares(spec) else alone(traces[0], chunks(spec))
    if not found:
        raise RunError(f"{spec.run_id}: {agent.source}: the transfer did not end")
    return found


def alone(lines: Iterable[str], chunks: int) -> dict[str, float]:
    """The metrics of a transfer over one path at a time; none when it did not end."""
    outcome = read(lines, chunks)
    return outcome.metrics() if outcome else {}


def shared(traces: Iterable[Iterable[str]], chunks: int) -> dict[str, float]:
    """The metrics of a transfer by these associations together; none when it did not end."""
    taken, received = stripe.moment([list(progress(lines)) for lines in traces], chunks)
    return {"transfer_s": round(taken, 6)} if received >= chunks else {}


def trace(one: Association, agent: Agent) -> list[str]:
    """The output of transfer.tcl for one association, by lines; raises RunError with ns-2's message."""
    command = ["ns", str(SCRIPT), tcl(parameters(one, agent))[1:-1]]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        reason = (done.stderr.strip() or f"ended with {done.returncode}").splitlines()[-1]
        raise RunError(f"{one.spec.run_id}: {agent.source}: {reason}")
    return done.stdout.splitlines()


def chunks(spec: RunSpec) -> int:
    """How many DATA chunks the flow is."""
    flow = spec.flows[0]
    return -(-round((flow.size_mb or 0) * 1e6) // flow.message_b)


_STATE = re.compile(r"time: (\S+) .* daddr: (\d+) .* dstatus: (\w+)")
_TIMEOUTS = re.compile(r"time: (\S+) .* daddr: (\d+) .* timeoutCount: (\d+)")


def read(lines: Iterable[str], chunks: int) -> Outcome | None:
    """The outcome of a run of so many CHUNKS from what transfer.tcl prints; None when some never arrived."""
    arrived: set[int] = set()
    given_up = fast = 0
    timeouts: dict[str, int] = {}
    primary, state = "", "ACTIVE"
    for line in lines:
        if arrival := _arrival(line):
            arrived.add(arrival[2])
            if len(arrived) == chunks:
                return Outcome(arrival[0], given_up, sum(timeouts.values()), fast)
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


def progress(lines: Iterable[str]) -> Iterator[tuple[float, int]]:
    """(s after the first data left, chunks that have arrived in order) of one association."""
    delays: dict[str, float] = {}
    start = None
    waiting: set[int] = set()
    expected = 1
    for line in lines:
        if line.startswith("path "):
            _, far, delay_s = line.split()
            delays[far] = float(delay_s)
        elif arrival := _arrival(line):
            t, far, tsn = arrival
            start = t - delays[far] if start is None else start
            waiting.add(tsn)
            while expected in waiting:
                waiting.remove(expected)
                expected += 1
            yield t - start, expected - 1


def _arrival(line: str) -> tuple[float, str, int] | None:
    """(time, node, TSN) of a packet with DATA that reached the receiver."""
    if not line.startswith("r "):
        return None
    fields = line.split()
    return (float(fields[1]), fields[3], int(fields[11])) if fields[6][7] == "D" else None


def as_run(spec: RunSpec, agent: Agent, metrics: dict[str, float]) -> Run:
    """The metrics in the form that reports work on."""
    return Run(
        path=Path(spec.run_id),
        status="ok",
        reason="",
        scenario=spec.scenario,
        place="ns2",
        base="",
        kernel=agent.source,
        variant=spec.variant if shares(spec) else "",
        factors=tuple(spec.factors.items()),
        seed=spec.seed,
        metrics=metrics,
        environment=Environment({}, {}, {}, {}),
        question=spec.question,
        events=0,
        reference="",
        series=(),
        virtual_s=metrics["transfer_s"],
        wall_s=0.0,
    )


@dataclass(frozen=True)
class Asked:
    """The user's choices; without agents, those that follow each spec. COMMAND goes into the file's head."""

    agents: tuple[Agent, ...]
    jobs: int
    command: str


Todo = list[tuple[RunSpec, Agent]]


def todo(specs: list[RunSpec], given: tuple[Agent, ...]) -> Todo:
    """Every run; all refusals come before the first. Raises LabError."""
    found = [(spec, agent) for spec in specs for agent in given or agents(spec)]
    for spec, agent in found:
        for one in associations(spec):
            parameters(one, agent)
    return found


def write_reference(runs: Todo, asked: Asked, out: Path, shown: Progress) -> None:
    """Do all RUNS and write the reference file OUT; it keeps figures of other agents."""
    if subprocess.run([str(SETUP), "--with", "ns2"], check=False).returncode:
        raise RunError("tools/setup --with ns2 failed")
    version = last_line(["dpkg-query", "-W", "-f=${Version}", "ns2"], "dpkg-query ns2")
    done = simulate_all(runs, asked.jobs, shown)
    plots = of_scenario(runs[0][0].scenario).plots
    made = reference_csv(sections(done)[0], plots, f"{asked.command} (ns2 {version})")
    write_text(out, replaced(out, made))


def simulate_all(runs: Todo, jobs: int, shown: Progress) -> list[Run]:
    """All runs; the first error ends them."""
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        futures = {pool.submit(simulate, spec, agent): (spec, agent) for spec, agent in runs}
        done = []
        try:
            for future in as_completed(futures):
                spec, agent = futures[future]
                done.append(as_run(spec, agent, future.result()))
                shown.step(f"{agent.source}: {spec.run_id}")
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return done
