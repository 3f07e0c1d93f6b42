# SPDX-License-Identifier: GPL-2.0
"""Kernel source: unpacked once per version, and trees with a list of patches applied on top of it.

A patched tree consists of hard links to the unpacked source; only files that a patch touches are files of its
own. When the patches change, just those files are written again: make rebuilds what depends on them, no more.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sctpkernel.bases import Base
from sctpkernel.errors import FAILED, Problem, warn
from sctpkernel.origin import origin, unpack
from sctpkernel.paths import cache_root, locked, need_space, new_folder
from sctpkernel.series import Patch

SOURCE_GB = 2.0  # unpacked kernel source of any base, with some room
_TARGET = re.compile(r"^(?:---|\+\+\+) [ab]/(\S+)", re.MULTILINE)


def unpacked(base: Base) -> Path:
    """The folder with the unpacked source of a base; fetched and unpacked when it is not there."""
    source = origin(base)
    folder = cache_root() / "src" / source.name
    if folder.is_dir():
        return folder
    with locked(cache_root() / "lock" / f"{folder.name}.lock"):
        if not folder.is_dir():
            need_space(folder.parent, SOURCE_GB, f"unpacking {source.path.name}")
            warn(f"unpacking {source.path} ...")
            with new_folder(folder) as temporary:
                unpack(source, temporary)
    return folder


def touched_files(patches: Sequence[Patch]) -> list[str]:
    """Names, relative to the tree, of all files that some patch changes, adds or removes."""
    return sorted({name for patch in patches for name in _TARGET.findall(patch.text)})


def copy_touched(source: Path, patches: Sequence[Patch], target: Path) -> None:
    """Copy the files that `patches` touch, and what decides how git shows a diff, to `target`."""
    for name in [".gitattributes", *touched_files(patches)]:
        if (source / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source / name, target / name)


def apply_patch(tree: Path, patch: Patch, source_name: str) -> None:
    """Apply one patch to the files below `tree`. Lines may have moved, context may not differ."""
    env = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tree.parent), "LC_ALL": "C"}
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        env.pop(name, None)
    result = subprocess.run(
        ["git", "apply", "--whitespace=nowarn", "-"],
        cwd=tree,
        env=env,
        input=patch.text,
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        reason = result.stderr.splitlines()[0] if result.stderr else "no message"
        raise Problem(f"{patch.path}: does not apply without fuzz to {source_name}: {reason}", FAILED)


def _patched_files(source: Path, patches: Sequence[Patch], scratch: Path) -> dict[str, Path | None]:
    """Touched file name -> its patched copy below `scratch`, or None when the patches leave no such file."""
    names = touched_files(patches)
    copy_touched(source, patches, scratch)
    for patch in patches:
        apply_patch(scratch, patch, source.name)
    return {name: scratch / name if (scratch / name).is_file() else None for name in names}


def _put(content: Path | None, target: Path) -> None:
    """Make `target` a copy of `content` (None: absent) with a fresh time stamp, unless it is that already."""
    if content is None:
        target.unlink(missing_ok=True)
        return
    if target.is_file() and target.read_bytes() == content.read_bytes():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.new")  # never write through a hard link
    shutil.copyfile(content, temporary)
    shutil.copymode(content, temporary)
    temporary.rename(target)


def state_of(place: Path) -> dict[str, Any]:
    """The recorded state of a build tree, {} when there is none."""
    path = place / "state.json"
    return dict(json.loads(path.read_text())) if path.is_file() else {}


def _copy_built(tree: Path, target: Path) -> None:
    """Copy what a build tree has of its own, with its time stamps, into another one of the same source."""
    for folder, _, names in os.walk(tree):
        place = target / Path(folder).relative_to(tree)
        for name in names:
            path = Path(folder, name)
            if path.lstat().st_nlink == 1:  # the source's files are hard links
                place.mkdir(parents=True, exist_ok=True)
                (place / name).unlink(missing_ok=True)
                shutil.copy2(path, place / name, follow_symlinks=False)


def patched_tree(source: Path, patches: Sequence[Patch], place: Path, like: Path | None = None) -> Path:
    """A build tree `place`/tree with exactly `patches` applied to `source`; an old one is brought up to date.

    like  another such place: a new tree starts from what was built there, and make renews what differs

    The caller holds the lock of `place`. `place`/state.json names the source and every file that may differ
    from it.
    """
    tree, state_file = place / "tree", place / "state.json"
    state, touched = state_of(place), []
    if state.get("source") != source.name or not tree.is_dir():
        shutil.rmtree(place, ignore_errors=True)
        with new_folder(tree) as temporary:
            subprocess.run(["cp", "-al", f"{source}/.", str(temporary)], check=True)
            if like and state_of(like).get("source") == source.name:
                _copy_built(like / "tree", temporary)
                touched = state_of(like)["touched"]
        state = {"source": source.name, "touched": touched}
    with tempfile.TemporaryDirectory(prefix="patched-", dir=place) as scratch:
        wanted = _patched_files(source, patches, Path(scratch))
        stale = [name for name in state["touched"] if name not in wanted]
        state_file.write_text(json.dumps({"source": source.name, "touched": sorted({*wanted, *stale})}))
        for name in stale:
            _put(source / name if (source / name).is_file() else None, tree / name)
        for name, content in wanted.items():
            _put(content, tree / name)
    state_file.write_text(json.dumps({"source": source.name, "touched": sorted(wanted)}))
    return tree
