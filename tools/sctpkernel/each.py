# SPDX-License-Identifier: GPL-2.0
"""tools/build/each: the series cut off behind each patch warns of nothing, and its KUnit cases pass.

A case that leans on what only a later patch brings fails here, and nowhere else. The kernels are those of the
variant kunit, of the series cut off behind each patch, one after the other in a tree of their own.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sctpkernel.bases import Base, find_base
from sctpkernel.errors import FAILED, Parser, Problem, run_main, warn
from sctpkernel.fragment import options_added
from sctpkernel.kernel import VARIANTS, Inputs, configure, gather
from sctpkernel.lint import check_series
from sctpkernel.make import begin_log, make
from sctpkernel.paths import cache_root, locked, need_space
from sctpkernel.source import patched_tree, unpacked

KUNIT = "kunit"
KUNIT_GB = 2.0  # a tree, its objects, a kernel
KUNIT_OPTION = "SCTP_MULTIPATH_KUNIT_TEST"
RUN_S = 300  # some seconds on an idle machine
# KTAP: the number of results at the outermost level, and a result at any.
_PLAN = re.compile(r"^1\.\.(\d+)$", re.MULTILINE)
_RESULT = re.compile(r"^( *)(not )?ok \d+ (\S+)(.*)$", re.MULTILINE)
_WHERE = re.compile(r"^ *# (\S+): (?:EXPECTATION|ASSERTION) FAILED at (\S+)$", re.MULTILINE)


def failures(output: str) -> list[str]:
    """The cases and suites that failed in the output of a kernel with KUnit; how it ended early, if so.

    The outermost level is not indented: a result for each suite, of which a case's has one level more.
    """
    plan = _PLAN.search(output)
    results = _RESULT.findall(output)
    outermost = [name for indent, _, name, _ in results if not indent]
    where = dict(reversed(_WHERE.findall(output)))
    found = [
        f"{name} failed" + (f" at {where[name]}" if name in where else "")
        for indent, no, name, note in results
        if no and indent and "# SKIP" not in note
    ]
    found += [f"suite {name} failed" for indent, no, name, note in results if no and not indent and not found]
    if not plan or len(outermost) != int(plan[1]):
        lines = [line.strip() for line in output.splitlines() if line.strip()]
        found.append(f"the tests did not end: {len(outermost)} suites, last line: {(lines or ['none'])[-1]}")
    return found


def run_kernel(linux: Path, folder: Path) -> str:
    """All that a kernel with KUnit prints; it runs its tests when it starts, and halts."""
    command = [str(linux), "mem=512M", "console=tty", "kunit_shutdown=halt"]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=RUN_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        return (error.stdout or b"").decode(errors="replace") + f"\nno end after {RUN_S} s\n"
    return done.stdout.decode(errors="replace")


def check_cases(inputs: Inputs, title: str) -> list[str]:
    """Build the kernel of `inputs` and run its cases: a line for each that fails. The caller has the lock."""
    base = find_base(inputs.base)
    place = cache_root() / "build" / f"{inputs.base}-each-{KUNIT}"
    log = cache_root() / "log" / f"each-{inputs.base}.log"
    variant = VARIANTS[KUNIT]
    begin_log(log, title)
    tree = patched_tree(unpacked(base), [*inputs.testbed, *inputs.series], place)
    configure(tree, inputs, log, title)
    # Without ccache: it once gave an object of another patch, with another layout of the structures.
    make(tree, [variant.name], log, title, {"ARCH": variant.arch, "CC": "gcc"})
    return failures(run_kernel(tree / variant.product, place))


def cut_off(inputs: Inputs) -> list[Inputs]:
    """The inputs of the series cut off behind each patch, from the one on that brings the first case."""
    series = inputs.series
    starts = [count for count, patch in enumerate(series, 1) if KUNIT_OPTION in options_added([patch.text])]
    first = starts[0] if starts else len(series) + 1
    return [replace(inputs, series=series[:count]) for count in range(first, len(series) + 1)]


def check_each(base: Base) -> list[str]:
    """A line for each KUnit case that fails behind a patch; one that passed before is not tried again."""
    todo = [(at, cache_root() / "each" / at.key) for at in cut_off(gather(base.name, "patched", KUNIT))]
    todo = [(at, stamp) for at, stamp in todo if not stamp.exists()]
    need_space(cache_root(), KUNIT_GB, "KUnit behind each patch")
    found: list[str] = []
    with locked(cache_root() / "lock" / f"each-{base.name}.lock"):
        for at, stamp in todo:
            name = at.series[-1].name
            said = check_cases(at, f"KUnit behind {name}")
            found += [f"{name}: {line}" for line in said]
            if not said:
                stamp.parent.mkdir(exist_ok=True)
                stamp.touch()
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: prints each new warning and each case that fails; exit code 0 for none."""
    parser = Parser(
        prog="tools/build/each",
        description="Cut the series off behind each patch in turn. Build net/sctp with W=1 built in, as a "
        "module and with the option off, with sparse, and the last one as tools/build/lint does: fail on a "
        "warning that the stock source does not give. Then build a kernel with the KUnit tests and run them. "
        "Patches that passed before are not tried again.",
    )
    parser.add_argument("base", nargs="?", default="6.12", help="kernel version (default: %(default)s)")
    base = find_base(parser.parse_args(arguments).base)
    found = check_series(base, each=True) + check_each(base)
    for line in found:
        print(line)
    if found:
        raise Problem(f"{len(found)} warnings and failed cases", FAILED)
    warn("each patch builds and passes alone")
    return 0


if __name__ == "__main__":
    run_main("tools/build/each", main)
