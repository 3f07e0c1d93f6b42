# SPDX-License-Identifier: GPL-2.0
"""The command testbed/vm. Exit codes: the script's own, 1 a step failed, 2 wrong input, 130 interrupted."""

from __future__ import annotations

import argparse
import shlex
import signal
import sys
import tempfile
from pathlib import Path

from sctpkernel.errors import Parser, heed_signals

from sctplab import vm_site
from sctplab.cli import whole
from sctplab.errors import LabError, RunError
from sctplab.spec import scenario
from sctplab.spec.model import BUILDS, FLAVOURS, USUAL_BASE
from sctplab.vm import limits
from sctplab.vm.machine import MODELS, Machine, Nic, image
from sctplab.vm.running import Running, running

IMAGES = "one of tools/build/image --help (default: %(default)s)"


def parser() -> argparse.ArgumentParser:
    top = Parser(
        prog="vm", description="Run virtual machines with Debian and its stock kernel, or another kernel."
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)
    run = commands.add_parser(
        "run", help="start, run a script in the first machine, stop; exits with the script's status"
    )
    up = commands.add_parser("up", help="start, print how to log in, run until interrupted")
    rates = commands.add_parser(
        "limits", help="measure wake-ups, round trips and packets per second between two machines"
    )
    for one in (run, up, rates):
        option = one.add_argument
        option("--image", default="debian-12-6.1", help=IMAGES)
        option(
            "--kernel", type=Path, metavar="DIR", help="boot DIR/bzImage, a kernel without modules, instead"
        )
        option("--machines", type=whole(1), default=1, help="number of machines vm1, vm2, ... (default: 1)")
        option("--nics", metavar="MODEL[,MODEL]", help="network cards: " + ", ".join(MODELS))
        option(
            "--copy",
            type=Path,
            action="append",
            default=[],
            metavar="FILE",
            help="copy to /root of each machine; repeatable",
        )
        option("--lean", action="store_true", help="start sshd only, which is faster")
        option("--memory", type=whole(128), default=768, metavar="MB")
    own = commands.add_parser(
        "site", help="start a scenario's machines, configured like physical hosts, for place remote"
    )
    own.add_argument("scenario", help="name, or path of a .toml file; only its topology is used")
    own.add_argument("--kernel", choices=FLAVOURS, default="stock", help="kernel of host1 (default: stock)")
    own.add_argument("--base", default=USUAL_BASE, help="base of host1's kernel (default: %(default)s)")
    own.add_argument(
        "--build", choices=BUILDS, default="debian", help="kernel build (default: the distribution's own)"
    )
    own.add_argument("--peer", metavar="FLAVOUR-BASE", help="kernel of host2 if different")
    rates.set_defaults(machines=2, nics=",".join(MODELS))
    run.add_argument(
        "--limit", type=whole(1), default=600, metavar="S", help="time limit of the script (default: 600)"
    )
    run.add_argument("script", type=Path, help="runs as root in /root; cannot reach the others by ssh")
    return top


def machines(options: argparse.Namespace) -> list[Machine]:
    """vm1, vm2, ...; card k of vm1 is joined to card k of vm2, of vm3 to vm4, and so on."""
    models = options.nics.split(",") if options.nics else []
    if models and options.machines % 2:
        raise LabError(f"--nics: got {options.machines} machines, expected an even number, joined in pairs")
    if options.kernel and not (options.kernel / "bzImage").is_file():
        raise LabError(
            f"--kernel: {options.kernel}/bzImage: not found; tools/build/kernel --variant x86 makes one"
        )
    folder = image(options.image)
    return [
        Machine(
            f"vm{number}",
            folder,
            options.kernel,
            tuple(Nic(model, f"pair{(number - 1) // 2}-{k}") for k, model in enumerate(models)),
            options.memory,
            lean=options.lean,
        )
        for number in range(1, options.machines + 1)
    ]


def own_site(options: argparse.Namespace) -> int:
    """The machines of a scenario, until interrupted."""
    found = scenario.load(scenario.find(options.scenario))
    flavour = (options.kernel,)
    choice = scenario.Choice(flavour, options.base, "qemu", 1, build=options.build, peer=options.peer)
    spec = scenario.expand(found, {}, choice)[0]
    with tempfile.TemporaryDirectory(prefix="vm-") as name, vm_site.site(spec, Path(name)) as (inventory, _):
        print(inventory, flush=True)
        signal.pause()
    return 0


def carry_out(options: argparse.Namespace) -> int:
    """Start the machines and do what was asked; the exit code."""
    if options.command == "site":
        return own_site(options)
    if options.command == "run" and not options.script.is_file():
        raise LabError(f"{options.script}: not found; expected a script")
    wanted = machines(options)
    with tempfile.TemporaryDirectory(prefix="vm-") as name, running(wanted, Path(name)) as vms:
        for vm in vms.values():
            if options.copy:
                vm.put(options.copy, "/root")
        if options.command == "up":
            print("\n".join(f"ssh -F {name}/ssh_config {vm}" for vm in vms), flush=True)
            signal.pause()
        if options.command == "limits":
            print(limits.table(limits.measure(vms["vm1"], vms["vm2"])))
            return 0
        return run_script(vms["vm1"], options)


def run_script(vm: Running, options: argparse.Namespace) -> int:
    vm.put([options.script], "/root")
    file = shlex.quote(f"./{options.script.name}")
    done = vm.run(f"chmod +x {file} && exec {file}", options.limit)
    print(done.output, end="")
    return done.code


def complain(message: str, code: int) -> int:
    print(f"vm: {message}", file=sys.stderr)
    return code


def main() -> int:
    heed_signals()
    try:
        return carry_out(parser().parse_args())
    except LabError as error:
        return complain(str(error), 2)
    except RunError as error:
        return complain(str(error), 1)
    except KeyboardInterrupt:
        return complain("interrupted; no machine is left", 130)


sys.exit(main())
