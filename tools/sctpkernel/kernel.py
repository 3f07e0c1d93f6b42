# SPDX-License-Identifier: GPL-2.0
"""tools/build/kernel: base + patches + configuration -> a cached kernel, made once per set of inputs."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from sctpkernel.bases import find_base, point_release, release_warning
from sctpkernel.errors import Parser, Problem, run_main, warn
from sctpkernel.fragment import Option, load_fragments, options_added, options_known, verify
from sctpkernel.make import begin_log, make
from sctpkernel.origin import origin
from sctpkernel.paths import ROOT, cache_root, lock_if_free, locked, need_space, new_folder
from sctpkernel.series import PATCHES, Patch, load_patch, load_series, load_testbed, short_id
from sctpkernel.source import patched_tree, unpacked

RECIPE = 1  # raise when this file makes another kernel from the same inputs
BUILD_GB = 1.5  # objects of one flavour
FLAVOURS = ("stock", "patched")


@dataclass(frozen=True)
class Variant:
    """How a kernel is made. `start`: configuration before the fragments; `product`: a file in the tree.

    patches  applied below the series, beside the laboratory's own
    kept     files of the tree that are kept below the kernel's folder at their place, as a pattern
    """

    fragments: tuple[str, ...]
    arch: str = "um"
    start: str = "defconfig"
    product: str = "linux"
    patches: tuple[str, ...] = ()
    kept: str = ""

    @property
    def name(self) -> str:
        """Of the product, which is also the name of what make is to make."""
        return self.product.rpartition("/")[2]


UML = ("Kconfig.fragment", "testbed/kernel.fragment", "testbed/network.fragment")
X86 = ("Kconfig.fragment", "testbed/x86.fragment", "testbed/network.fragment")
MACHINE = ("x86_64", "allnoconfig", "arch/x86/boot/bzImage")
DEBUG = "tools/build/debug.fragment"
VARIANTS = {
    "uml": Variant(UML),
    # on top of the same options: most files then come from ccache
    "kunit": Variant((*UML, "tools/build/kunit.fragment")),
    "doctor": Variant((*UML, "tools/build/doctor.fragment")),
    "trace": Variant((*UML, "tools/build/trace.fragment")),
    "debug": Variant((*UML, DEBUG, "tools/build/debug-uml.fragment")),
    "x86": Variant(X86, *MACHINE),
    "x86-debug": Variant((*X86, DEBUG, "tools/build/debug-x86.fragment"), *MACHINE),
    "x86-kcsan": Variant(
        (*X86, "tools/build/kcsan-x86.fragment"), *MACHINE, patches=("tools/build/kcsan.patch",)
    ),
}
# Environment. KERNELS: a folder of kernels BASE-FLAVOUR-VARIANT, taken instead of any built here.
KERNELS = "SCTPMP_KERNELS"
COUNTING = "SCTPMP_COUNTING"  # not empty: of the kernels of the series, those that count; see tools/coverage
VARIANTS |= {
    f"{name}-gcov": replace(variant, patches=("tools/build/gcov.patch",), kept="net/sctp/**/*.gcno")
    for name, variant in VARIANTS.items()
    if variant.arch == "um"
} | {
    f"{name}-kcov": replace(VARIANTS[name], patches=("tools/build/kcov.patch",), kept="net/sctp/**/*.o")
    for name in ("uml", "debug")
}


@dataclass(frozen=True)
class Inputs:
    """All that decides what a kernel is like."""

    base: str
    flavour: str
    variant: str
    source_version: str
    compiler: str
    testbed: tuple[Patch, ...]
    series: tuple[Patch, ...]
    options: tuple[Option, ...]

    @property
    def key(self) -> str:
        """Name of the cached folder: readable, and different whenever an input is."""
        text = json.dumps(
            [
                RECIPE,
                self.source_version,
                self.compiler,
                short_id(self.testbed, "none"),
                short_id(self.series, "stock"),
                [option.line for option in self.options],
            ]
        )
        return f"{self.base}-{self.flavour}-{self.variant}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"

    def info(self) -> dict[str, str]:
        """The content of info.json."""
        return {
            "base": self.base,
            "source_version": self.source_version,
            "flavour": self.flavour,
            "variant": self.variant,
            "key": self.key,
            "series_id": short_id(self.series, "stock"),
            "testbed_id": short_id(self.testbed, "none"),
        }


def compiler_version() -> str:
    """The first line of gcc --version."""
    return subprocess.run(
        ["gcc", "--version"], capture_output=True, text=True, check=True
    ).stdout.splitlines()[0]


def gather(base_name: str, flavour: str, variant: str, patches: Path = PATCHES) -> Inputs:
    """Read everything that decides about the kernel; touches no kernel tree.

    PATCHES has the series; configuration and the laboratory's own patches are those of this checkout.
    """
    base = find_base(base_name)
    if patches != PATCHES and not (patches / f"series-{base.name}").is_file():
        raise Problem(f"{patches}: no file series-{base.name}: name a folder that is laid out like patches/")
    version = origin(base).version
    warning = release_warning(base, version)
    if warning:
        warn(warning)
    return Inputs(
        base=base.name,
        flavour=flavour,
        variant=variant,
        source_version=version,
        compiler=compiler_version(),
        testbed=(
            *(load_testbed(base.name) if VARIANTS[variant].arch == "um" else ()),
            *(load_patch(ROOT / name) for name in VARIANTS[variant].patches),
        ),
        series=tuple(load_series(base.name, patches)) if flavour == "patched" else (),
        options=tuple(load_fragments([ROOT / name for name in VARIANTS[variant].fragments], base.name)),
    )


def counting(flavour: str, variant: str) -> str:
    """The variant to build for `variant`: with COUNTING set, the one of the series that counts."""
    other = f"{variant}-gcov"
    return other if os.environ.get(COUNTING) and flavour == "patched" and other in VARIANTS else variant


def given_kernel(base: str, flavour: str, variant: str) -> Path | None:
    """The kernel of this kind in the folder KERNELS, if any."""
    folder = Path(os.environ.get(KERNELS) or "/nonexistent", f"{base}-{flavour}-{variant}")
    return folder if folder.is_dir() else None


def configure(tree: Path, inputs: Inputs, log: Path, title: str) -> None:
    """Make the tree's .config from where the variant starts and the fragments; check that it has them."""
    settings = {"ARCH": VARIANTS[inputs.variant].arch}
    make(tree, [VARIANTS[inputs.variant].start], log, title, settings)
    config = tree / ".config"
    with config.open("a", encoding="utf-8") as handle:
        handle.writelines(f"{option.line}\n" for option in inputs.options)
    make(tree, ["olddefconfig"], log, title, settings)
    brought = options_added(path.read_text(encoding="utf-8") for path in PATCHES.rglob("*.patch"))
    verify(inputs.options, config.read_text(encoding="utf-8"), lambda: options_known(tree), brought)


@contextmanager
def sibling(inputs: Inputs) -> Iterator[Path | None]:
    """The build tree of another kernel of the same base and architecture, kept from changing meanwhile.

    One with the same configuration comes first: less of it is built again.
    """
    arch, own_options = VARIANTS[inputs.variant].arch, set(VARIANTS[inputs.variant].fragments)
    all_kinds = product(FLAVOURS, VARIANTS.items())
    for flavour, (variant, other) in sorted(
        all_kinds, key=lambda kind: len(own_options.symmetric_difference(kind[1][1].fragments))
    ):
        name = f"{inputs.base}-{flavour}-{variant}"
        place = cache_root() / "build" / name
        own = (flavour, variant) == (inputs.flavour, inputs.variant)
        if own or other.arch != arch or not (place / "tree" / other.product).is_file():
            continue
        with lock_if_free(cache_root() / "lock" / f"kernel-{name}.lock") as free:
            if free:
                yield place
                return
    yield None


def build(inputs: Inputs, result: Path) -> None:
    """Build the kernel into the folder `result`. The caller holds the lock of this flavour and variant."""
    base = find_base(inputs.base)
    name = f"{inputs.base}-{inputs.flavour}-{inputs.variant}"
    title = f"building Linux {point_release(inputs.source_version)} ({inputs.flavour}, {inputs.variant})"
    log = cache_root() / "log" / f"kernel-{name}.log"
    start = time.monotonic()
    source = unpacked(base)
    need_space(cache_root(), BUILD_GB, title)
    begin_log(log, title)
    with sibling(inputs) as like:
        tree = patched_tree(source, [*inputs.testbed, *inputs.series], cache_root() / "build" / name, like)
    configure(tree, inputs, log, title)
    variant = VARIANTS[inputs.variant]
    make(tree, [variant.name], log, title, {"ARCH": variant.arch})
    with new_folder(result) as temporary:
        shutil.copy(tree / variant.product, temporary / variant.name)
        shutil.copyfile(tree / ".config", temporary / "config")
        for path in tree.glob(variant.kept) if variant.kept else ():
            place = temporary / path.relative_to(tree)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, place)
        (temporary / "info.json").write_text(json.dumps(inputs.info(), indent=1) + "\n")
    log.unlink()
    warn(f"{title}: done in {time.monotonic() - start:.0f} s")


def cached(inputs: Inputs) -> Path:
    """The folder with the kernel of these inputs, built when it is not there yet."""
    result = cache_root() / "kernel" / inputs.key
    if result.is_dir():
        return result
    with locked(cache_root() / "lock" / f"kernel-{inputs.base}-{inputs.flavour}-{inputs.variant}.lock"):
        if not result.is_dir():
            build(inputs, result)
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: prints the path of the cached folder."""
    parser = Parser(
        prog="tools/build/kernel",
        description="Build a kernel of the laboratory, or find it in the cache. "
        "The last line printed is the folder with linux or bzImage, config and info.json.",
    )
    parser.add_argument(
        "--base", default="6.12", help="kernel version, see patches/bases.toml (default: %(default)s)"
    )
    parser.add_argument(
        "--flavour",
        choices=FLAVOURS,
        default="patched",
        help="with or without the series (default: %(default)s)",
    )
    parser.add_argument(
        "--variant",
        choices=tuple(VARIANTS),
        default="uml",
        help="uml: User Mode Linux for the laboratory; kunit: the series' unit tests; "
        "trace: with tracepoints; debug: with the kernel's runtime checks of memory and locks; "
        "x86, x86-debug: the same for virtual machines; x86-kcsan: for them, with reports of data races; "
        "*-gcov: with counters for each line of net/sctp; *-kcov: with edges of net/sctp that ran "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--patches",
        type=Path,
        metavar="DIR",
        help="take the series from DIR, which is laid out like patches/ (default: patches/ itself)",
    )
    given = parser.parse_args(arguments)
    variant = counting(given.flavour, given.variant)
    folder = None if given.patches else given_kernel(given.base, given.flavour, variant)
    print(folder or cached(gather(given.base, given.flavour, variant, given.patches or PATCHES)))
    return 0


if __name__ == "__main__":
    run_main("tools/build/kernel", main)
