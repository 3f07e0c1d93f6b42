# SPDX-License-Identifier: GPL-2.0
"""Carries out runs: one folder and one process group per run, one record at its end."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sctplab import programs
from sctplab.errors import LabError, RunError
from sctplab.measure import capture, collect
from sctplab.place import get
from sctplab.place.base import Kernel, Place
from sctplab.plan import capabilities, run_plan
from sctplab.processes import Ended, Processes
from sctplab.programs import Tools
from sctplab.run import record
from sctplab.spec.model import RunSpec
from sctplab.spec.schema import plain

LAST_LINES = 200  # of the console of a kernel that crashed
KernelKey = tuple[str, str, str, str]  # place, base, flavour, build


@dataclass(frozen=True)
class Bench:
    """Everything that runs share."""

    tools: Tools
    kernels: dict[KernelKey, Kernel]
    processes: Processes

    def kernel(self, spec: RunSpec) -> Kernel:
        return self.kernels[kernel_key(spec)]


@dataclass(frozen=True)
class Job:
    """One run and where its record (and captures, when there are any) go."""

    spec: RunSpec
    record: Path
    captures: Path


def job_in(folder: Path, spec: RunSpec) -> Job:
    """A run whose record and captures are in a result folder."""
    return Job(spec, folder / "records" / f"{spec.run_id}.json", folder / "pcap" / spec.run_id)


def unfinished(jobs: list[Job], bench: Bench) -> list[Job]:
    """Those without a good record of the same run on the same kernel."""
    return [job for job in jobs if not record.finished(job.record, job.spec, bench.kernel(job.spec))]


def kernel_key(spec: RunSpec) -> KernelKey:
    return (spec.place, spec.base, spec.kernel, spec.build)


def kernels(specs: list[RunSpec]) -> dict[KernelKey, Kernel]:
    """Build or find every kernel that these runs need."""
    wanted = {kernel_key(spec): spec for spec in specs}
    return {key: get(spec.place).kernel(spec) for key, spec in sorted(wanted.items())}


@contextmanager
def bench_for(specs: list[RunSpec], built: dict[KernelKey, Kernel] | None = None) -> Iterator[Bench]:
    """Tools and kernels for these runs; whatever happens, no process of theirs is left at the end.

    BUILT: the kernels, where they are not those of this checkout.
    """
    tools = programs.collect(specs)
    made = Bench(tools, kernels(specs) if built is None else built, Processes())
    try:
        yield made
    finally:
        made.processes.stop()
        for name in {spec.place for spec in specs}:
            get(name).close()


def refuse(specs: list[RunSpec], workers: int | None) -> None:
    """Raise LabError when some place cannot do its runs, or not so many at a time; changes nothing."""
    for name in sorted({spec.place for spec in specs}):
        if workers and workers > 1 and not get(name).deterministic:
            raise LabError(f"--jobs: got {workers}, expected 1: runs in place {name} use real time")
        get(name).refuse([spec for spec in specs if spec.place == name])


def perform(job: Job, bench: Bench) -> dict[str, Any]:
    """One run, from crashed to its earned status; the record is on disk when this returns.

    Raises RunError when the record cannot be written and KeyboardInterrupt when the runs are being
    stopped; neither leaves a record of this run behind, nor touches that of an earlier one.
    """
    kernel = bench.kernel(job.spec)
    started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    first = not job.record.is_file()
    if first:
        record.write(job.record, record.crashed(job.spec, kernel))
    try:
        with tempfile.TemporaryDirectory(prefix="sctplab-") as name:
            folder = Path(name)
            ended, result = in_place(job.spec, bench, kernel, folder)
            if bench.processes.stopped:
                raise KeyboardInterrupt
            made = finish(job.spec, bench, kernel, ended, result, folder)
            if job.spec.pcap:
                keep_captures(folder, job.captures)
        if made["status"] != "ok":
            get(job.spec.place).close()
        made["host"] = {"wall_s": round(ended.wall_s, 3), "started": started}
        record.write(job.record, made)
    except BaseException as error:
        if first:
            job.record.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise RunError(
                f"{job.spec.run_id}: {error.strerror}: {error.filename}{record.advice(error)}"
            ) from error
        raise
    return made


def in_place(spec: RunSpec, bench: Bench, kernel: Kernel, folder: Path) -> tuple[Ended, dict[str, Any]]:
    """Let the place carry out the plan in FOLDER; the agent's result is {} when there is none."""
    place = get(spec.place)
    if bench.processes.stopped:  # by another run, since this one was taken up
        raise KeyboardInterrupt
    place.ready(spec, kernel)
    made = place.plan(spec, str(bench.tools.mpflow))
    (folder / "plan.json").write_text(
        json.dumps({**run_plan.as_json(made), "path": str(bench.tools.iproute2)})
    )
    command = place.command(spec, made.steady, str(kernel.folder / "linux"), str(folder))
    environment = place.environment(bench.tools, folder)
    ended = bench.processes.run(command, environment, folder, spec.limits.wall_s, place.deterministic)
    try:
        result: dict[str, Any] = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        result = {}
    return ended, result


def finish(
    spec: RunSpec, bench: Bench, kernel: Kernel, ended: Ended, result: dict[str, Any], folder: Path
) -> dict[str, Any]:
    """The record of a run in FOLDER that ended one way or the other."""
    status, reason = verdict(spec, ended, result)
    made: dict[str, Any] = {
        "format": record.RECORD_FORMAT,
        "status": status,
        "reason": reason,
        "spec": plain(spec),
        "kernel": kernel.info,
        "tools": {**bench.tools.versions, "python": result.get("python", "")},
        "deterministic": deterministic(spec, get(spec.place)),
    }
    if status != "ok":
        made["kernel_log"] = result.get("kernel_log", ended.console.splitlines()[-LAST_LINES:])
    if "start_t" not in result:
        return made
    made["start_t"] = result["start_t"]
    hosts = result["before"]
    counters = {host: collect.deltas(result["before"][host], result["after"][host]) for host in hosts}
    paths = [collect.path_counters(path, result["links"]) for path in spec.topology.paths]
    shared = [collect.path_counters(one, result["links"]) for one in spec.topology.shared]
    made["sysctls"] = result["sysctls"]
    made["metrics"] = {}
    if status == "ok":
        found = collect.metrics(spec, result, counters, paths + shared)
        made["metrics"] = found | returned(spec, result, folder)
    made["paths"] = paths
    if shared:
        made["bottlenecks"] = shared
    made["counters"] = counters
    made["flows"] = [flow_summary(flow) for flow in result["flows"]]
    made["events"] = [
        {"t": round(event["t"] - result["start_t"], 6), "label": event["label"]} for event in result["events"]
    ]
    made["series"] = collect.series(spec, result)
    if "clocks" in result:
        made["clocks"] = result["clocks"]
    made["virtual_s"] = round(result["end_t"] - result["start_t"], 6)
    return made


def returned(spec: RunSpec, result: dict[str, Any], folder: Path) -> dict[str, float]:
    """The metric return_s, from the captures that the plan made for it."""
    if not spec.measures_return:
        return {}
    chunks = capture.chunks(folder, spec.topology, spec.measured_flow.hosts[0])
    return collect.returned(spec, result["start_t"], chunks)


def deterministic(spec: RunSpec, place: Place) -> bool:
    return place.deterministic and place.plan(spec, "mpflow").steady


def flow_summary(flow: dict[str, Any]) -> dict[str, Any]:
    """Both ends' last words and what paths they saw change; messages are in the series."""
    return {
        "name": flow["name"],
        "sender": collect.result_of(flow["sender"]),
        "receiver": collect.result_of(flow["receiver"]),
        "path_events": collect.path_events(flow),
    }


def verdict(spec: RunSpec, ended: Ended, result: dict[str, Any]) -> tuple[str, str]:
    """(status, reason): ok has to be earned by an agent that says so, right content and a quiet kernel."""
    if ended.timed_out:
        return "timeout", f"no end after {spec.limits.wall_s:g} s (limits.wall_s); a program may be polling"
    if not result:
        console = ended.console.strip().splitlines()
        return (
            "crashed",
            f"no result, exit {ended.returncode}: {console[-1] if console else 'nothing was printed'}",
        )
    if result["status"] != "ok":
        return result["status"], result["reason"]
    if result.get("warnings"):
        return "failed", f"kernel: {result['warnings'][0]}"
    if result.get("left_behind"):
        return "failed", f"kernel: SCTP objects left behind: {result['left_behind']}"
    for line in capabilities.another(spec, result.get("sysctls", {})):
        return "failed", line
    for flow in result["flows"]:
        found = collect.result_of(flow["receiver"])
        for what in ("content", "order"):
            if found.get(what, "ok") not in ("ok", "not checked"):
                return "failed", f"flow {flow['name']}: {what} {found[what]}"
    return "ok", ""


def keep_captures(folder: Path, target: Path) -> None:
    """Move the captures of a run to where the user finds them."""
    found = sorted(folder.glob("*.pcap"))
    if found:
        target.mkdir(parents=True, exist_ok=True)
    for one in found:
        shutil.copyfile(one, target / one.name)


def perform_all(
    jobs: list[Job], bench: Bench, workers: int, report: Callable[[Job, dict[str, Any]], None]
) -> None:
    """All runs, WORKERS at a time; REPORT hears of each. An error ends what runs; nothing half-done stays."""
    if workers == 1:  # here, where an interrupt is heard while machines start
        for job in jobs:
            report(job, perform(job, bench))
        return
    with ThreadPoolExecutor(max_workers=workers) as pool:
        waiting = {pool.submit(perform, job, bench): job for job in jobs}
        try:
            while waiting:
                done, _ = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    report(waiting.pop(future), future.result())
        except BaseException:
            bench.processes.stop()
            cancel(waiting)
            raise


def cancel(futures: dict[Future[dict[str, Any]], Job]) -> None:
    for future in futures:
        future.cancel()


def default_workers(specs: list[RunSpec]) -> int:
    """As many runs at a time as there are processors; one where they share the real time."""
    return 1 if in_real_time(specs) else len(os.sched_getaffinity(0))


def in_real_time(specs: list[RunSpec]) -> bool:
    return not all(get(spec.place).deterministic for spec in specs)
