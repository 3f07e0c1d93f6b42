# SPDX-License-Identifier: GPL-2.0
"""tools/patch/export: write the commits of a kernel tree back as the series of a base."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from sctpkernel.bases import find_base, point_key, reference_base
from sctpkernel.errors import Parser, Problem, run_main, warn
from sctpkernel.git import git, series_commits, try_git
from sctpkernel.numbering import assign
from sctpkernel.patchfile import Stored, from_commit, parse
from sctpkernel.paths import ROOT
from sctpkernel.series import PATCHES, load_series, load_testbed, series_names, update_series

EXPORTED = "refs/sctp-multipath/exported"  # the commit whose series is in patches/


def tree_path(base: str, testbed: bool) -> Path:
    """Where tools/patch/tree makes the tree of a base: the series, or the laboratory's own patches."""
    return ROOT / "build" / f"tree-{base}{'-testbed' if testbed else ''}"


def stored_series(repository: Path, base: str, old: Mapping[str, Stored]) -> dict[str, Stored]:
    """File name -> patch for all commits of the tree, in order.

    old  present file name -> patch. A commit with the subject of one of them keeps its name, and takes the
         fields from it that its own message lacks.
    """
    new = [from_commit(repository, commit) for commit in series_commits(repository)]
    known = {patch.subject: name for name, patch in old.items()}
    names = assign([patch.subject for patch in new], known)
    defaults = {"Forwarded": "no", "Bases": base}
    result = {}
    for name, patch in zip(names, new, strict=True):
        before = old.get(known.get(patch.subject, ""))
        fields = {key: before.field(key) if before else value for key, value in defaults.items()}
        result[name] = patch.with_fields({key: fields[key] or defaults[key] for key in defaults})
    return result


def target(name: str, patch: Stored, base: str, patches: Path) -> Path:
    """The file a patch goes to.

    patches/common/ is written on the reference base; another base gets a file of its own where it differs.
    """
    own, common = patches / base / name, patches / "common" / name
    if base == reference_base(patches / "bases.toml"):
        return common
    if common.is_file() and patch.meaning == parse(common.read_text(encoding="utf-8"), common).meaning:
        return common
    return own


def users(base: str, targets: Iterable[Path], patches: Path) -> dict[Path, list[str]]:
    """File -> the bases whose series name it, in rising order, when `base` names `targets`."""
    series = {path.name.removeprefix("series-") for path in patches.glob("series-*")} | {base}
    found: dict[Path, list[str]] = {}
    for other in sorted(series, key=point_key):
        paths = targets if other == base else [patch.path for patch in load_series(other, patches)]
        for path in paths:
            found.setdefault(path, []).append(other)
    return found


def _content(path: Path, patch: Stored, base: str, patches: Path) -> Stored:
    """The patch that is written to `path`: a common patch is as the reference base has it."""
    common = patches / "common" / path.name
    if not common.is_file() or base == reference_base(patches / "bases.toml"):
        return patch
    stored = parse(common.read_text(encoding="utf-8"), common)
    return stored if path == common else patch.with_fields({"Replaces": stored.fingerprint})


def write_series(base: str, series: Mapping[str, Stored], patches: Path) -> list[str]:
    """Write a series to `patches`; what was added, changed or removed, one line each.

    The field Bases of each patch follows from the series files.
    """
    listing = patches / f"series-{base}"
    text = listing.read_text(encoding="utf-8") if listing.is_file() else ""
    targets = {target(name, patch, base, patches): patch for name, patch in series.items()}
    for_bases = users(base, targets, patches)
    done = _write(
        {
            path: _content(path, patch, base, patches).with_bases(for_bases[path])
            for path, patch in targets.items()
        },
        patches,
    )
    changed = update_series(text, list(series))
    if changed != text:
        listing.write_text(changed, encoding="utf-8")
        done.append(f"changed {listing.name}")
    dropped = sorted(set(series_names(text)) - set(series))
    lists = [path for path in patches.glob("series-*") if path != listing]
    elsewhere = {name for path in lists for name in series_names(path.read_text(encoding="utf-8"))}
    gone = [path for path in sorted((patches / base).glob("*.patch")) if path not in targets]
    gone += [patches / "common" / name for name in dropped if name not in elsewhere]
    return done + _remove(gone, patches)


def write_testbed(base: str, series: Mapping[str, Stored], patches: Path) -> list[str]:
    """Write the laboratory's own patches to `patches`; what was added, changed or removed, one line each."""
    folder = patches / "testbed"
    gone = [patch.path for patch in load_testbed(base, patches) if patch.name not in series]
    return _write({folder / name: patch for name, patch in series.items()}, patches) + _remove(gone, patches)


def _write(files: Mapping[Path, Stored], patches: Path) -> list[str]:
    """Write patches that are not there or differ."""
    done = []
    for path, patch in files.items():
        before = path.read_text(encoding="utf-8") if path.is_file() else None
        if before != patch.render():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(patch.render(), encoding="utf-8")
            done.append(f"{'added' if before is None else 'changed'} {path.relative_to(patches)}")
    return done


def _remove(paths: Sequence[Path], patches: Path) -> list[str]:
    """Remove those of `paths` that are there."""
    present = [path for path in paths if path.is_file()]
    for path in present:
        path.unlink()
    return [f"removed {path.relative_to(patches)}" for path in present]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: says what changed in patches/, nothing when all was as it is."""
    parser = Parser(
        prog="tools/patch/export",
        description="Write the commits of a kernel tree, all after its first one, to patches/.",
    )
    parser.add_argument("base", help="kernel version, see patches/bases.toml")
    parser.add_argument(
        "--tree",
        type=Path,
        help="a git tree whose first commit is the source (default: the one tools/patch/tree made)",
    )
    parser.add_argument("--testbed", action="store_true", help="the laboratory's own patches, not the series")
    given = parser.parse_args(arguments)
    base = find_base(given.base).name
    repository: Path = given.tree or tree_path(base, given.testbed)
    if not (repository / ".git").exists():
        raise Problem(f"{repository}: not a git tree: make one with tools/patch/tree {base}")
    present = load_testbed(base) if given.testbed else load_series(base)
    old = {patch.name: parse(patch.text, patch.path) for patch in present}
    series = stored_series(repository, base, old)
    if try_git(repository, "diff", "--quiet", "HEAD").returncode:
        warn(f"{repository}: there are changes that are not committed: not exported")
    write = write_testbed if given.testbed else write_series
    for line in write(base, series, PATCHES):
        print(line)
    git(repository, "update-ref", EXPORTED, "HEAD")
    return 0


if __name__ == "__main__":
    run_main("tools/patch/export", main)
