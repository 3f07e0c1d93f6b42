# SPDX-License-Identifier: GPL-2.0
"""Makes small result folders for the tests of everything that reads records."""

import json
from pathlib import Path
from typing import Any


def record(scenario: str = "rtx-policy", seed: int = 1, **more: Any) -> dict[str, Any]:
    """A complete record; MORE may hold kernel, variant, factors, metrics, status and any other member."""
    kernel = more.pop("kernel", "patched")
    spec = {
        "scenario": scenario,
        "question": "Does it pay to retransmit on the same path?",
        "place": more.pop("place", "uml"),
        "kernel": kernel,
        "base": more.pop("base", "6.12"),
        "variant": more.pop("variant", "fr-same-rto-alt"),
        "factors": more.pop("factors", {"d2_ms": 50}),
        "seed": seed,
        "sysctl": {},
        **more.pop("spec", {}),
    }
    made = {
        "format": 1,
        "status": "ok",
        "reason": "",
        "spec": spec,
        "kernel": {
            "base": "6.12",
            "flavour": kernel,
            "source_version": "6.12.117-1",
            "series_id": "stock" if kernel == "stock" else "5e41e5",
            "key": f"key-{kernel}",
        },
        "tools": {"iproute2": "6.15.0", "mpflow": "1.0", "python": "3.11.2"},
        "sysctls": {"host1": {"net.sctp.rto_min": "1000"}, "host2": {"net.sctp.rto_min": "1000"}},
        "metrics": {},
        "virtual_s": 12.5,
        "host": {"wall_s": 0.5},
    }
    return made | more


def write(folder: Path, *records: dict[str, Any]) -> Path:
    """Writes the records as the laboratory does and returns the result folder."""
    (folder / "records").mkdir(parents=True, exist_ok=True)
    for data in records:
        spec = data["spec"]
        factors = "-".join(f"{name}={value}" for name, value in spec["factors"].items())
        name = "-".join(
            [spec["scenario"], spec["place"], spec["kernel"], spec["variant"], factors, str(spec["seed"])]
        )
        (folder / "records" / f"{name}.json").write_text(json.dumps(data))
    return folder
