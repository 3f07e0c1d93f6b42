# SPDX-License-Identifier: GPL-2.0
"""Whether a library can be preloaded into a program: what its file says."""

from __future__ import annotations

import os
import stat
import struct
from pathlib import Path

PROGRAM_HEADERS, INTERPRETER = 64, 3  # size of an ELF64 header, PT_INTERP
GO = b"\xff Go buildinf:"
DEPTH = 4  # of scripts whose interpreter is a script


def obstacle(file: Path, depth: int = DEPTH) -> str:
    """Why not, in one line; "" when it can. A script is what its interpreter is."""
    try:
        content = file.read_bytes()
    except (OSError, ValueError) as error:
        return f"{file}: cannot be read ({getattr(error, 'strerror', error)}), expected a program or a script"
    if content.startswith(b"#!") and depth:
        words = content.split(b"\n", 1)[0][2:].split()
        if not words:
            return f"{file}: no interpreter after #!, expected a path"
        return obstacle(Path(os.fsdecode(words[0])), depth - 1)
    return _of_elf(file, content) or _of_rights(file)


def _of_elf(file: Path, content: bytes) -> str:
    if not content.startswith(b"\x7fELF"):
        return f"{file}: neither a program (ELF) nor a script, expected one of them"
    if len(content) < PROGRAM_HEADERS or content[4] != 2:
        return f"{file}: not a 64-bit program, expected one like the library"
    if GO in content:
        return (
            f"{file}: made with Go, which calls the kernel without the C library; set options in its source"
        )
    if not _interpreter(content):
        return f"{file}: linked statically, so no library can be preloaded; install a dynamic build of it"
    return ""


def _interpreter(content: bytes) -> bool:
    """Whether one of the program headers names a dynamic linker."""
    offset = struct.unpack_from("<Q", content, 32)[0]
    size, count = struct.unpack_from("<HH", content, 54)
    places = (offset + number * size for number in range(count))
    return any(
        struct.unpack_from("<I", content, at)[0] == INTERPRETER for at in places if at + 4 <= len(content)
    )


def _of_rights(file: Path) -> str:
    """The dynamic linker preloads nothing from elsewhere into a program with more rights than its caller."""
    about = file.stat()
    if about.st_mode & stat.S_ISUID and about.st_uid != os.geteuid():
        return f"{file}: runs as another user (set-user-ID), so no library is preloaded; run it as that user"
    if about.st_mode & stat.S_ISGID and about.st_gid != os.getegid():
        return (
            f"{file}: runs as another group (set-group-ID), so no library is preloaded; run it as that group"
        )
    if os.geteuid() and _has_capabilities(file):
        return f"{file}: has file capabilities (setcap), so no library is preloaded; run it as root"
    return ""


def _has_capabilities(file: Path) -> bool:
    try:
        return bool(os.getxattr(file, "security.capability"))
    except OSError:
        return False
