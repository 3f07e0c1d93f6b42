# SPDX-License-Identifier: GPL-2.0
"""The command line. Exit codes: 0 all good, 1 a run or a step failed, 2 wrong input, 130 interrupted."""

from __future__ import annotations

import argparse
import itertools
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sctpkernel.errors import Parser, heed_signals

from sctplab import files, programs
from sctplab.errors import LabError, RunError
from sctplab.place import get
from sctplab.plan import run_plan
from sctplab.random import scenarios
from sctplab.random.choice import Generated
from sctplab.random.scenarios import specs_named
from sctplab.run import record, runner
from sctplab.run.progress import Progress, progress
from sctplab.spec import scenario
from sctplab.spec.model import BUILDS, FLAVOURS, USUAL_BASE, RunSpec

Handler = Callable[[argparse.Namespace], int]


def whole(low: int) -> Callable[[str], int]:
    """An argparse type: a whole number of at least LOW."""

    def read(word: str) -> int:
        if not (word.isascii() and word.isdecimal()) or int(word) < low:
            raise argparse.ArgumentTypeError(f"got {word!r}, expected a whole number from {low}")
        return int(word)

    return read


def flavours(word: str) -> tuple[str, ...]:
    """An argparse type: a comma list of kernel flavours."""
    found = tuple(word.split(","))
    if not set(found) <= set(FLAVOURS):
        raise argparse.ArgumentTypeError(f"got {word!r}, expected {', '.join(FLAVOURS)} or both with a comma")
    return found


def parser() -> argparse.ArgumentParser:
    top = Parser(prog="lab", description="Measure SCTP over several paths, reproducibly.")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)
    add(commands, "list", list_scenarios, "list the scenarios with their questions")
    show = add(
        commands, "show", show_scenario, "show a scenario's question, factors, variants and number of runs"
    )
    show.add_argument("scenario", help="name, or path of a .toml file")
    add_run(add(commands, "run", run, "run scenarios and write one record per run"))
    add_choice(
        add(commands, "specs", write_specs, "write the frozen specs of scenarios to files, for run-one")
    )
    one = add(commands, "run-one", run_one, "execute one run from its frozen spec, as a cluster engine does")
    one.add_argument("spec", type=Path, help="JSON: a spec, or the record of an earlier run")
    one.add_argument("record", type=Path, help="JSON file to write")
    report = add(commands, "report", make_report, "make summary.csv, plots and report.html from records")
    report.add_argument("dir", type=Path)
    check = add(
        commands,
        "check",
        check_machines,
        "check whether the machines of an inventory are ready; changes nothing",
    )
    check.add_argument("inventory", help="file, see Documentation/real-hosts.rst")
    add_ns2(add(commands, "ns2", ns2_reference, "run a scenario in ns-2 and write a reference file"))
    judge = add(
        commands, "judge", judge_results, "name random runs that stall or are slower than a single path"
    )
    judge.add_argument("dir", type=Path)
    judge.add_argument(
        "--behind", action="store_true", help="print only the seeds in which a single path was faster"
    )
    add_shrink(
        add(
            commands,
            "shrink",
            shrink_run,
            "reduce a failing random run to the smallest scenario that still fails",
        )
    )
    add_differential(
        add(commands, "differential", find_differences, "compare random runs of stock and patched kernels")
    )
    add_fuzz(
        add(commands, "fuzz", fuzz_kernel, "fuzz the kernel by a hostile peer or program, drawn from seeds")
    )
    add_races(
        add(commands, "races", find_races, "look for data races and the like on several processors at once")
    )
    add_cost(
        add(commands, "cost", count_cost, "count instructions and cycles of a packet, a SACK and a transfer")
    )
    add_evidence(
        add(commands, "evidence", evidence, "make the tables of README and Documentation from their runs")
    )
    add_from_pcap(
        add(commands, "from-pcap", from_pcap, "make a scenario from captures of an association, to replay it")
    )
    explained = add(commands, "explain", explain_run, "name what the deliveries of a captured run waited for")
    explained.add_argument("record", type=Path, help="record of a run with --pcap")
    explained.add_argument("--captures", type=Path, metavar="DIR", help="folder of its captures")
    explained.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw paths and waits over time")
    add_compare(add(commands, "compare", compare_results, "compare two results, or two patch series"))
    add_ablation(add(commands, "ablation", measure_rules, "measure the worth of each rule of the series"))
    return top


def add(commands: Any, name: str, handler: Handler, text: str) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    made.set_defaults(handler=handler)
    return made


def add_choice(choice_parser: argparse.ArgumentParser) -> None:
    """Options that say which runs are meant."""
    option = choice_parser.add_argument
    option("scenarios", nargs="+", metavar="SCENARIO", help="name, or path of a .toml file")
    option("--place", default="uml", help="place of the runs (default: uml)")
    there = "in places netns and remote: the running kernel"
    option("--kernel", type=flavours, help=f"stock, patched or stock,patched (default; {there})")
    option("--base", help=f"kernel base (default: {USUAL_BASE}; {there})")
    option("--peer", metavar="FLAVOUR-BASE", help="kernel of host2 if different, such as stock-6.1")
    option("--inventory", metavar="FILE", help="inventory of the machines, for place remote")
    option("--build", choices=BUILDS, default="plain", help="debug: kernels with runtime checks, slower")
    option("--set", action="append", default=[], metavar="FACTOR=VALUE[,VALUE]", help="values of a factor")
    option("--repeat", type=whole(1), help="seeds per cell (default: the scenario's)")
    option("--first-seed", type=whole(0), default=1)
    option("--out", type=Path, help="result folder (default: results/SCENARIO[+SCENARIO...])")
    option("--pcap", action="store_true", help="capture every interface into OUT/pcap/RUN/")


def add_run(run_parser: argparse.ArgumentParser) -> None:
    add_choice(run_parser)
    option = run_parser.add_argument
    option("--jobs", type=whole(1), help="parallel runs (default: number of CPUs)")
    option("--dry-run", action="store_true", help="print every command of every run and stop")
    option(
        "--resume", action="store_true", help="keep successful records of the same runs, execute the others"
    )


def add_ns2(ns2_parser: argparse.ArgumentParser) -> None:
    option = ns2_parser.add_argument
    option("scenario", help="name, or path of a .toml file")
    option("--set", action="append", default=[], metavar="FACTOR=VALUE[,VALUE]", help="values of a factor")
    option("--repeat", type=whole(1), help="seeds per cell (default: the scenario's)")
    option("--first-seed", type=whole(0), default=1)
    option("--jobs", type=whole(1), help="parallel runs (default: number of CPUs)")
    option("--variant", metavar="NAME[,NAME]", help="variants to run (default: all)")
    senders = (
        "sender; repeatable (default: CMT or one per path where the paths are shared, else Caro's two and one"
        " that counts cwnd as the kernel does)"
    )
    option("--agent", action="append", metavar="CLASS[:VARIABLE=VALUE,...]", help=senders)
    option("--out", type=Path, required=True, metavar="CSV", help="file to write")


def add_shrink(shrink_parser: argparse.ArgumentParser) -> None:
    option = shrink_parser.add_argument
    option("scenario", help="one that is drawn from seeds")
    option("--seed", type=whole(0), required=True)
    option("--kernel", choices=FLAVOURS, default="patched")
    option("--tries", type=whole(1), default=200, help="smaller files to run at most (default: 200)")
    option("--jobs", type=whole(1), default=1, help="parallel runs (default: 1)")
    option("--out", type=Path, metavar="FILE", help="scenario file to write (default: print it)")


def add_differential(differential_parser: argparse.ArgumentParser) -> None:
    option = differential_parser.add_argument
    option("--seeds", metavar="A-B", default="1-20", help="seeds A to B (default: %(default)s)")
    option(
        "--against",
        nargs="+",
        default=["off"],
        metavar="PROFILE",
        help="off (default): every packet; a file of sysctl/ such as 25-cmt: waits and goodput",
    )
    option("--jobs", type=whole(1), default=1, help="parallel seeds (default: 1)")
    option("--out", type=Path, metavar="DIR", help="folder of the findings; what it has is not run again")
    option("--unnamed", action="store_true", help="leave the fixes that explain without names")


def add_fuzz(fuzz_parser: argparse.ArgumentParser) -> None:
    option = fuzz_parser.add_argument
    option("--seed", metavar="CASE", help="a single one; 17@40:991: from draw 40 on that of seed 991")
    option("--seeds", metavar="A-B", help="seeds A to B (default: 1-20)")
    option("--cases", type=Path, metavar="FILE", help="those of a file like testbed/fuzz/corpus.txt first")
    option("--minutes", type=whole(1), help="run seeds from --seed (or 1) on for this time")
    option("--kernel", choices=FLAVOURS, default="patched")
    option("--build", choices=("debug", "uml"), default="debug", help="debug: the kernel with runtime checks")
    option("--local", action="store_true", help="a hostile program instead of a hostile peer")
    option("--coverage", action="store_true", help="also say what of net/sctp ran")
    option("--guided", action="store_true", help="the same; derive cases from those that reach more")
    option("--keep", type=Path, metavar="FILE", help="then write few cases that run all of it, for --cases")
    option("--jobs", type=whole(1), default=1, help="parallel kernels (default: 1)")
    option("--out", type=Path, metavar="FILE", help="write a record of all seeds as JSON")


def add_races(races_parser: argparse.ArgumentParser) -> None:
    option = races_parser.add_argument
    option("--build", choices=("kcsan", "debug"), default="kcsan", help="data races, or all other checks")
    option("--kernel", choices=FLAVOURS, default="patched")
    option("--cpus", type=whole(2), default=4, help="processors of the machine (default: 4)")
    option("--seeds", metavar="A-B", default="1-200", help="seeds of each kind (default: %(default)s)")
    option("--minutes", type=whole(1), default=30, help="stop after this time (default: %(default)s)")
    option("--jobs", type=whole(1), default=8, help="seeds at a time (default: %(default)s)")
    option("--baseline", type=Path, metavar="FILE", help="record of the stock kernel: its reports are known")
    option("--out", type=Path, metavar="FILE", help="write a record of all reports as JSON")


def add_cost(cost_parser: argparse.ArgumentParser) -> None:
    option = cost_parser.add_argument
    option(
        "--kind",
        action="append",
        default=[],
        help="data, heartbeat, sack, ...; repeatable (default: all)",
    )
    option(
        "--chunks",
        type=whole(100),
        default=40000,
        help="largest number of outstanding chunks (default: 40000)",
    )
    option("--repeat", type=whole(1), default=1, help="boots that count instructions, per case and kernel")
    option("--times", type=whole(0), default=5, help="boots that measure time (default: 5)")
    option(
        "--functions", type=whole(0), default=0, metavar="N", help="print the N functions that differ most"
    )
    option("--json", type=Path, metavar="FILE", help="write a record with the functions of each case")


def add_evidence(evidence_parser: argparse.ArgumentParser) -> None:
    option = evidence_parser.add_argument
    option(
        "--only",
        nargs="+",
        default=[],
        metavar="RUNS",
        help="only these sets of runs of testbed/evidence.toml",
    )
    option("--jobs", type=whole(1), help="parallel runs (default: number of CPUs)")
    option(
        "--out",
        type=Path,
        default=Path("results/evidence"),
        help="folder of the records (default: %(default)s)",
    )
    what = evidence_parser.add_mutually_exclusive_group()
    what.add_argument(
        "--quick", action="store_true", help="repeat some runs and compare them with the summaries"
    )
    what.add_argument(
        "--check", action="store_true", help="compare pages, summaries and series; without kernels"
    )
    what.add_argument("--write", action="store_true", help="write the pages from the summaries; without runs")
    what.add_argument(
        "--accept", action="store_true", help="accept the pages' numbers that are from no record"
    )
    what.add_argument("--trace", metavar="TABLE", help="name the records behind each cell of a table")
    what.add_argument("--pack", type=Path, metavar="FILE", help="pack all records into one .tar.xz")
    what.add_argument("--verify", type=Path, metavar="FILE", help="check whether such a file has the records")


def add_from_pcap(replay_parser: argparse.ArgumentParser) -> None:
    option = replay_parser.add_argument
    option(
        "files", nargs="+", type=Path, metavar="FILE", help="pcap or pcapng, of one end or both; also gzipped"
    )
    option("--out", type=Path, required=True, metavar="TOML", help="scenario file to write")
    option("--assoc", metavar="PORT-PORT[/TAG]", help="which association, if the files hold several")


def add_compare(compare_parser: argparse.ArgumentParser) -> None:
    option = compare_parser.add_argument
    option("a", help="result folder or record; with --set a folder laid out like patches/, or a git revision")
    option("b", help="likewise")
    option("--set", metavar="NAME", help="run this set on the kernels of both series: bench, or a .toml file")
    option("--out", type=Path, help="with --set: result folder (default: results/NAME); good records stay")
    option("--jobs", type=whole(1), help="with --set: parallel runs (default: number of CPUs)")
    option("--pairs", type=whole(0), help="with --set: measurements of the processor time (default: 5)")
    option("--seeds", type=whole(1), help="with --set: seeds per cell at least (default: the set's)")


def add_ablation(ablation_parser: argparse.ArgumentParser) -> None:
    option = ablation_parser.add_argument
    option("--set", metavar="NAME", default="bench", help="the runs: bench (default), or a .toml file")
    which = ablation_parser.add_mutually_exclusive_group().add_argument
    which("--only", nargs="+", default=[], metavar="RULE", help="only these rules of testbed/ablation.toml")
    which("--together", nargs="+", default=[], metavar="RULE", help="leave out all of these at once")
    option("--seeds", type=whole(1), default=1, help="seeds per cell at least (default: the set's)")
    option("--out", type=Path, default=Path("results/ablation"), help="result folder; good records stay")
    option("--jobs", type=whole(1), help="parallel runs (default: number of CPUs)")


def list_scenarios(_: argparse.Namespace) -> int:
    for name in scenario.names():
        print(f"{name:20} {scenario.load(scenario.find(name)).question}")
    for drawn in scenarios.SCENARIOS.values():
        print(f"{drawn.name:20} {drawn.question}")
    return 0


def show_scenario(options: argparse.Namespace) -> int:
    if options.scenario in scenarios.SCENARIOS:
        return show_drawn(scenarios.SCENARIOS[options.scenario])
    found = scenario.load(scenario.find(options.scenario))
    specs = scenario.expand(found, {}, scenario.Choice())
    print(f"{found.name}: {found.question}\nfile: {found.file}")
    for name, values in found.factors.items():
        print(f"factor {name}: {', '.join(map(str, values))}")
    for name, content in found.variants.items():
        print(f"variant {name} ({', '.join(content.get('kernels', FLAVOURS))})")
    print(f"runs: {len(specs)} ({found.repeat} seeds per cell)")
    return 0


def show_drawn(drawn: Generated) -> int:
    """A scenario without a file."""
    one = f"testbed/lab run {drawn.name} --first-seed 1 --repeat 1 --dry-run"
    print(f"{drawn.name}: {drawn.question}\nfile: none, each run is drawn from its seed; to see one: {one}")
    for name, values in drawn.factors.items():
        print(f"factor {name}: {', '.join(map(str, values))}")
    print(f"runs: {len(drawn.expand({}, scenario.Choice()))} ({drawn.repeat} seeds per cell)")
    return 0


def specs_of(options: argparse.Namespace) -> list[RunSpec]:
    if (options.place == "remote") != bool(options.inventory):
        raise LabError("--inventory: expected an inventory file with --place remote, and only there")
    kernels: tuple[str, ...] = FLAVOURS
    base = USUAL_BASE
    if not (options.kernel and options.base):
        kernels, base = get(options.place).here(options.inventory)
    choice = scenario.Choice(
        options.kernel or kernels,
        options.base or base,
        options.place,
        options.repeat,
        options.first_seed,
        options.pcap,
        options.build,
        options.peer,
        options.inventory,
    )
    get(options.place)
    return [spec for name in options.scenarios for spec in specs_named(name, options.set, choice)]


def folder_of(options: argparse.Namespace) -> Path:
    found: Path | None = options.out
    return found or Path("results") / "+".join(Path(name).stem for name in options.scenarios)


def something(specs: list[RunSpec]) -> list[RunSpec]:
    if not specs:
        raise LabError("nothing to run: no variant of these scenarios applies to the chosen kernels")
    return specs


def write_specs(options: argparse.Namespace) -> int:
    """OUT/specs/RUN.json; tools and kernels are built, so that run-one need not."""
    specs = something(specs_of(options))
    folder = folder_of(options) / "specs"
    with runner.bench_for(specs):
        for spec in specs:
            record.write_spec(folder / f"{spec.run_id}.json", spec)
    print(f"{len(specs)} specs in {folder}")
    return 0


def run(options: argparse.Namespace) -> int:
    specs = specs_of(options)
    out = folder_of(options)
    if options.dry_run:
        return dry_run(specs)
    runner.refuse(something(specs), options.jobs)
    with runner.bench_for(specs) as shared:
        jobs = [runner.job_in(out, spec) for spec in specs]
        todo = runner.unfinished(jobs, shared) if options.resume else jobs
        if runner.in_real_time(specs):
            todo.sort(key=lambda job: job.spec.kernel)  # machines stay up while the kernel is the same
        with progress(len(todo), len(jobs) - len(todo)) as shown:
            runner.perform_all(todo, shared, options.jobs or runner.default_workers(specs), shown.ended)
    return summary(shown, out, len(jobs))


def summary(shown: Progress, out: Path, total: int) -> int:
    print(
        f"{total} runs, {shown.bad} not ok; records in {out}/records;"
        f" see: testbed/lab report {shlex.quote(str(out))}"
    )
    return 1 if shown.bad else 0


def dry_run(specs: list[RunSpec]) -> int:
    """Every command, needing no kernel and no tool."""
    print(f"# {len(specs)} runs")
    for spec in specs:
        made = get(spec.place).plan(spec, str(programs.mpflow_path()))
        variant = " --variant debug" if spec.build == "debug" else ""
        linux = f"$(tools/build/kernel --base {spec.base} --flavour {spec.kernel}{variant})/linux"
        command = get(spec.place).command(spec, made.steady, "LINUX", "FOLDER")
        start = shlex.join(command).replace("LINUX", f'"{linux}"').replace("FOLDER", '"$folder"')
        print(f"\n## {spec.run_id}\n{start} </dev/null\n# which executes, inside:")
        print("\n".join(run_plan.listing(made)))
    return 0


def run_one(options: argparse.Namespace) -> int:
    spec = record.read_spec(options.spec)
    runner.refuse([spec], None)
    with runner.bench_for([spec]) as shared:
        captures = options.record.with_suffix(".pcap")
        made = runner.perform(runner.Job(spec, options.record, captures), shared)
    if made["status"] != "ok":
        raise RunError(f"{spec.run_id}: {made['status']}: {made['reason']}")
    return 0


def make_report(options: argparse.Namespace) -> int:
    from sctplab.replay import picture
    from sctplab.report import report, terminal

    page = report.make_report(options.dir, picture.of_run)
    terminal.print_results(options.dir)
    print(page)
    return 0


def ns2_reference(options: argparse.Namespace) -> int:
    from sctplab.ns2 import agents, ns2

    found = scenario.load(scenario.find(options.scenario))
    choice = scenario.Choice(("patched",), repeat=options.repeat, first_seed=options.first_seed)
    specs = scenario.expand(found, scenario.set_factors(found, options.set), choice)
    asked = ns2.Asked(
        tuple(map(agents.agent, options.agent or ())),
        options.jobs or runner.default_workers(specs),
        shlex.join(["testbed/lab", *sys.argv[1:]]),
    )
    runs = ns2.todo(of_variants(found, specs, options.variant), asked.agents)
    files.ready(options.out)
    with progress(len(runs), 0) as shown:
        ns2.write_reference(runs, asked, options.out, shown)
    print(options.out)
    return 0


def of_variants(found: scenario.Scenario, specs: list[RunSpec], names: str | None) -> list[RunSpec]:
    """Those of the variants in a comma list, or all; raises LabError for a name that is none."""
    wanted = names.split(",") if names else list(found.variants)
    for name in wanted:
        if name not in found.variants:
            known = ", ".join(found.variants)
            raise LabError(f"--variant: {found.name} has no variant {name!r}; expected one of {known}")
    return something([spec for spec in specs if spec.variant in wanted])


def judge_results(options: argparse.Namespace) -> int:
    from sctplab.measure import judge

    verdict = judge.judge(options.dir)
    if options.behind:
        print("\n".join(map(str, verdict.behind)))
        return 0
    print("\n".join([*verdict.complaints, verdict.counted]))
    return 1 if verdict.complaints else 0


def shrink_run(options: argparse.Namespace) -> int:
    from sctplab.oracle import failing

    asked = failing.Asked(
        options.scenario, options.seed, options.kernel, options.tries, options.jobs, options.out
    )
    files.ready(options.out)
    text = failing.smallest(asked, lambda line: print(line, file=sys.stderr, flush=True))
    if options.out:
        files.write_text(options.out, text)
    print(options.out or text, end="\n" if options.out else "")
    return 0


def check_machines(options: argparse.Namespace) -> int:
    from sctplab.remote import facts, inventory, preflight

    found = preflight.findings(facts.survey(inventory.read(options.inventory)))
    print("\n".join(map(str, found)))
    wrong = sum(one.level == "bad" for one in found)
    print(f"{len(found)} findings, {wrong} bad")
    return 1 if wrong else 0


def fuzz_cases(options: argparse.Namespace, program: str) -> Iterator[str]:
    """Those that are asked for, before any are derived."""
    from sctplab.stress import fuzz, guide

    if options.seeds and (options.seed or options.minutes):
        raise LabError("--seeds: got it with --seed or --minutes, expected one of them")
    given = fuzz.corpus(program, options.cases) if options.cases else []
    one = guide.text(guide.streams(options.seed)) if options.seed else ""
    if options.minutes:
        if "@" in one:
            raise LabError(f"--minutes: got it with --seed {one}, expected a seed to start from")
        return itertools.chain(given, map(str, itertools.count(int(one or 1))))
    if one:
        return iter([*given, one])
    seeds = fuzz.seed_range(options.seeds or "1-20") if options.seeds or not given else range(0)
    return iter([*given, *map(str, seeds)])


def fuzz_kernel(options: argparse.Namespace) -> int:
    from sctplab.stress import fuzz, guide

    program = "fuzz-local" if options.local else "fuzz-wire"
    counting = options.guided or options.coverage
    if options.keep and not counting:
        raise LabError("--keep: got it alone, expected --guided or --coverage with it")
    for file in (options.keep, options.out):
        files.ready(file)
    guided = guide.Guide(fuzz_cases(options, program), options.guided)
    asked = fuzz.Asked(
        program, guided.cases(), options.kernel, options.build, options.jobs, options.minutes, counting
    )

    def tell(one: dict[str, Any]) -> None:
        if counting:
            guided.learn(one)
        print(fuzz.line(one), flush=True)

    records = fuzz.fuzz(asked, tell)
    found = fuzz.summary(asked, records)
    if counting:
        found["coverage"] = guided.record(fuzz.kernel(asked))
        print(guide.line(found["coverage"]))
    if options.keep:
        files.write_text(options.keep, guide.page(program, found["coverage"]))
    if options.out:
        record.write(options.out, found)
    failed = found["failed"]
    print(f"{len(records)} seeds, {found['packets'] + found['calls']} packets or calls, {len(failed)} failed")
    return 1 if failed else 0


def find_differences(options: argparse.Namespace) -> int:
    from sctplab.oracle import differential
    from sctplab.stress import fuzz

    files.ready(options.out and options.out / "findings")
    asked = differential.Asked(
        tuple(fuzz.seed_range(options.seeds)),
        tuple(options.against),
        options.out,
        options.jobs,
        not options.unnamed,
    )
    found = differential.perform(asked, lambda text: print(text, flush=True))
    print("\n".join(differential.summary(found)))
    return 1 if any(one.fault for one in found) else 0


def find_races(options: argparse.Namespace) -> int:
    from sctplab.stress import fuzz, races

    files.ready(options.out)
    asked = races.Asked(
        options.build,
        options.kernel,
        options.cpus,
        fuzz.seed_range(options.seeds),
        options.minutes,
        options.jobs,
    )
    found = races.races(asked, races.titles_of(options.baseline) if options.baseline else [])
    if options.out:
        record.write(options.out, found)
    print("\n".join(races.table(found)))
    return 1 if races.guilty(found) or found["end"] != "whole" else 0


def count_cost(options: argparse.Namespace) -> int:
    from sctplab.stress import cost

    asked = cost.Asked(tuple(options.kind), cost.VARIANTS, options.chunks, options.repeat, options.times)
    cost.cases(asked)
    files.ready(options.json)

    kept: list[dict[str, Any]] = []

    def tell(row: list[cost.Result]) -> None:
        print("\n".join([cost.line(row), *cost.differences(row, options.functions)]), flush=True)
        kept.extend(map(cost.plain, row))
        if options.json:
            record.write(options.json, {"results": kept})

    print(cost.head(asked.variants), flush=True)
    results = cost.measure(asked, tell)
    print("\n".join(map(str, cost.targets(results))))
    return 0


def evidence(options: argparse.Namespace) -> int:
    from sctplab.evidence import command, manifest

    found = manifest.read()
    whole_pages = options.check or options.write or options.accept
    if options.only and (whole_pages or options.trace or options.pack or options.verify):
        raise LabError("--only: got it with an option that takes all sets, expected it alone or with --quick")
    if options.check:
        return command.check(found)
    if options.write:
        return command.write(found)
    if options.accept:
        return command.accept(found)
    if options.trace:
        return command.trace(found, options.trace, options.out)
    if options.pack:
        return command.pack(found, options.out, options.pack)
    if options.verify:
        return command.verify(found, options.verify)
    act = command.quick if options.quick else command.make
    return act(found, options.only, options.out, options.jobs)


def from_pcap(options: argparse.Namespace) -> int:
    from sctplab.replay import command

    print(command.from_pcap(options.files, options.assoc, options.out))
    return 0


def explain_run(options: argparse.Namespace) -> int:
    from sctplab.replay import explain

    if options.plot and options.plot.suffix != ".svg":
        raise LabError(f"--plot: got {options.plot}, expected a name that ends in .svg")
    told = explain.tell(options.record, options.captures)
    if options.plot:
        from sctplab.replay import picture  # matplotlib, which takes a second to load

        picture.write(told, options.plot)
    print(explain.explain(told))
    return 0


def compare_results(options: argparse.Namespace) -> int:
    if options.set:
        return compare_series(options)
    from sctplab.report import compare

    for name in ("out", "jobs", "pairs", "seeds"):
        if getattr(options, name) is not None:
            raise LabError(f"--{name}: got it without --set, expected both or neither")
    print(compare.compare(Path(options.a), Path(options.b)))
    return 0


def compare_series(options: argparse.Namespace) -> int:
    from sctplab.oracle import bench

    asked = bench.Asked(
        options.set,
        options.a,
        options.b,
        options.out or Path("results") / Path(options.set).stem,
        options.jobs,
        bench.PAIRS if options.pairs is None else options.pairs,
        options.seeds or 1,
    )
    bench.compare_series(asked, lambda text: print(text, flush=True))
    return 0


def measure_rules(options: argparse.Namespace) -> int:
    from sctplab.oracle import ablation, bench

    left_out = ablation.groups(ablation.read(), options.only, options.together)
    asked = bench.Asked(options.set, "", "", options.out, options.jobs, 0, options.seeds)
    ablation.measure(asked, left_out, lambda text: print(text, flush=True))
    print(f"The table: {options.out / 'ablation.csv'}")
    return 0


def main(argv: list[str] | None = None) -> int:
    heed_signals()
    try:
        options = parser().parse_args(argv)
        code: int = options.handler(options)
        if sys.stdout:  # none where the caller has closed it
            sys.stdout.flush()
        return code
    except LabError as error:
        return complain(str(error), 2)
    except RunError as error:
        return complain(str(error), 1)
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except OSError as error:
        return complain(f"{error.filename or 'output'}: {error.strerror}", 1)
    except KeyboardInterrupt:
        return complain("interrupted; finished records are kept, go on with --resume", 130)


def complain(message: str, code: int) -> int:
    print(f"lab: {message}", file=sys.stderr)
    return code
