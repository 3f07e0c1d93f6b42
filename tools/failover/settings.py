# SPDX-License-Identifier: GPL-2.0
"""The settings that decide a failover: kernel defaults, a profile, a running host, the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from sctpkernel.errors import Problem

PROC = Path("/proc/sys/net/sctp")
PREFIX = "net.sctp."
LONGEST_MS = 86_400_000  # what the kernel accepts as a timeout
DORMANT = ("kernel", "hop", "primary", "last")

Check = Callable[[str], int | str]


def whole(low: int, high: int = 2**31 - 1) -> Any:
    """A setting that is a whole number from LOW to HIGH."""

    def check(word: str) -> int:
        if not word.isdecimal() or not low <= int(word) <= high:
            raise ValueError(f"a whole number from {low} to {high}")
        return int(word)

    return {"check": check}


def one_of(*names: str) -> Any:
    """A setting that is one of NAMES."""

    def check(word: str) -> str:
        if word not in names:
            raise ValueError("one of " + ", ".join(names))
        return word

    return {"check": check}


@dataclass(frozen=True)
class Settings:
    """net.sctp.* under the kernel's names, times in ms; the defaults are the kernel's own."""

    rto_initial: int = field(default=3000, metadata=whole(1, LONGEST_MS))
    rto_min: int = field(default=1000, metadata=whole(1, LONGEST_MS))
    rto_max: int = field(default=60000, metadata=whole(1, LONGEST_MS))
    sack_timeout: int = field(default=200, metadata=whole(1, 500))
    hb_interval: int = field(default=30000, metadata=whole(1, LONGEST_MS))
    path_max_retrans: int = field(default=5, metadata=whole(0))
    association_max_retrans: int = field(default=10, metadata=whole(1))
    pf_enable: int = field(default=1, metadata=whole(0))
    pf_retrans: int = field(default=0, metadata=whole(0))
    failover_heartbeat: int = field(default=0, metadata=whole(0, 1))
    failover_suspect: int = field(default=0, metadata=whole(0, 1))
    failover_link: int = field(default=0, metadata=whole(0, 1))
    failover_return: int = field(default=0, metadata=whole(0, 1))
    failover_useless: int = field(default=0, metadata=whole(0, 1))
    init_alternate: int = field(default=0, metadata=whole(0, 1))
    cmt: int = field(default=0, metadata=whole(0, 1))
    dormant_policy: str = field(default="kernel", metadata=one_of(*DORMANT))

    @property
    def never_pf(self) -> bool:
        """Whether RFC 7829 is on and no error count is above pf_retrans and below path_max_retrans."""
        return bool(self.pf_enable and self.path_max_retrans and self.pf_retrans + 1 >= self.path_max_retrans)

    @property
    def uses_paths(self) -> bool:
        """sctp_mp_uses_paths, without cmt."""
        return bool(
            self.failover_heartbeat or self.failover_useless or self.failover_link or self.failover_return
        )


OTHER = "ps_retrans"  # of stock: it plays no part here and is nearly pf_retrans
NEARLY = 0.85  # as like each other as rto_min and rto_mn; pf_enable and pf_expose are 0.67
KEYS: dict[str, Check] = {one.name: one.metadata["check"] for one in fields(Settings)}


def changed(old: Settings, values: Mapping[str, str], source: str, strict: bool) -> Settings:
    """OLD with VALUES; names with or without net.sctp.

    STRICT: a name that plays no part here is refused, else one that is nearly that of a setting that does.
    """
    found: dict[str, Any] = {}
    for name, word in values.items():
        key = name.removeprefix(PREFIX)
        if key not in KEYS:
            if strict:
                raise Problem(f"{source}: {name}: expected one of {', '.join(KEYS)}")
            near = get_close_matches(key, KEYS, 1, NEARLY)
            if near and key != OTHER:
                raise Problem(f"{source}: {name}: no such setting; expected {PREFIX}{near[0]}?")
            continue
        try:
            found[key] = KEYS[key](word)
        except ValueError as error:
            raise Problem(f"{source}: {name}: got {word!r}, expected {error}") from None
    return replace(old, **found)


def assignment(text: str, source: str) -> tuple[str, str]:
    """(name, value) of a line of a sysctl.d file, or of --set."""
    name, equals, value = text.strip().removeprefix("-").partition("=")
    if not equals or not name.strip() or not value.strip():
        raise Problem(f"{source}: got {text.strip()!r}, expected NAME=VALUE")
    return name.strip().replace("/", "."), " ".join(value.split())


def lines_of(path: Path) -> dict[str, tuple[int, str]]:
    """Setting -> its line and value of a file in sysctl.d form, in its order; of one said twice the last
    counts.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise Problem(f"{path}: cannot be read: {reason}") from None
    found = {}
    for number, line in enumerate(lines, 1):
        if line.strip() and line.strip()[0] not in "#;":
            name, value = assignment(line, f"{path}: line {number}")
            found[name] = number, value
    return found


def profile(path: Path) -> dict[str, str]:
    """The values of all settings of such a file."""
    return {name: value for name, (_, value) in lines_of(path).items()}


def from_profile(path: Path, old: Settings) -> Settings:
    """OLD with the settings of a file in sysctl.d form; other keys in it play no part."""
    return changed(old, profile(path), str(path), strict=False)


def from_host(proc: Path = PROC) -> Settings:
    """The settings of this host's network namespace; keys that its kernel lacks keep stock's behaviour."""
    if not proc.is_dir():
        raise Problem(f"{proc}: not there: load SCTP first (modprobe sctp)")
    present = {key: proc / key for key in KEYS if (proc / key).is_file()}
    return changed(
        Settings(), {key: path.read_text().strip() for key, path in present.items()}, str(proc), True
    )
