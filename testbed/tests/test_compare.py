# SPDX-License-Identifier: GPL-2.0
"""Two sets of records side by side."""

from pathlib import Path

import pytest
from sctplab.errors import LabError
from sctplab.report.compare import compare, differences
from tests.report_builder import record, write


def runs(folder: Path, kernel: str, variant: str, factor: float, d2s: tuple[int, ...] = (10, 50)) -> Path:
    made = [
        record(
            seed=seed,
            kernel=kernel,
            variant=variant,
            factors={"d2_ms": d2},
            metrics={"goodput_mbit": factor * (10 + seed)},
        )
        for d2 in d2s
        for seed in (1, 2, 3)
    ]
    return write(folder, *made)


def test_kernels_are_matched_by_factors(tmp_path: Path) -> None:
    text = compare(
        runs(tmp_path / "a", "stock", "kernel", 1), runs(tmp_path / "b", "patched", "same", 2, (10, 50, 100))
    )
    assert "kernel: A stock, B patched" in text and "variant: A kernel, B same" in text
    assert text.count("× 2.000 [2.000, 2.000]") == 2
    assert "Only in B: 1 cells\n  rtx-policy, d2 = 100 ms" in text
    assert "Identical" not in text


def test_where_a_side_has_both_kernels_the_kernel_is_matched_too(tmp_path: Path) -> None:
    runs(tmp_path / "a", "stock", "kernel", 1)
    runs(tmp_path / "a", "patched", "kernel", 2)
    text = compare(tmp_path / "a", tmp_path / "a")
    assert "rtx-policy, patched, d2 = 10 ms" in text and "× 1.000" in text
    assert 'Identical apart from "host": 12 of 12' in text


def test_same_seed_same_record(tmp_path: Path) -> None:
    one, other = record(metrics={"goodput_mbit": 1.5}), record(metrics={"goodput_mbit": 1.5})
    other["host"] = {"wall_s": 99.0}
    a, b = write(tmp_path / "a", one), write(tmp_path / "b", other)
    assert 'Identical apart from "host": 1 of 1' in compare(a, b)
    other["metrics"] = {"goodput_mbit": 2.5}
    other["counters"] = {"host1": {"SctpOutSCTPPacks": 3}}
    text = compare(a, write(tmp_path / "b", other))
    assert "0 of 1" in text and "metrics.goodput_mbit: 1.5 against 2.5" in text
    assert "counters: nothing against {'host1'" in text


def test_single_records(tmp_path: Path) -> None:
    a = next((runs(tmp_path / "a", "stock", "kernel", 1, (10,)) / "records").glob("*-1.json"))
    b = next((runs(tmp_path / "b", "patched", "kernel", 3, (10,)) / "records").glob("*-1.json"))
    text = compare(a, b)
    assert "× 3.000" in text and "+22.00" in text and "±" not in text.replace("± and [ ]", "")


def test_nothing_in_common(tmp_path: Path) -> None:
    a = write(tmp_path / "a", record("caro", factors={"pmr": 1}))
    b = write(tmp_path / "b", record("lsfr"))
    with pytest.raises(LabError, match="nothing to compare"):
        compare(a, b)


def test_differences_look_into_lists_and_ignore_only_the_host() -> None:
    a = {"host": {"wall_s": 1}, "flows": [{"host": "x"}, {"bytes": 1}], "n": 1}
    b = {"host": {"wall_s": 2}, "flows": [{"host": "y"}, {"bytes": 1}], "n": 1.0}
    assert list(differences(a, b)) == ["flows[0].host: 'x' against 'y'", "n: 1 against 1.0"]


def test_differences_name_the_place() -> None:
    one = {"metrics": {"a": 1}, "series": {"x": [[0, 1], [1, 2]]}, "host": {"wall_s": 1}}
    assert list(differences(one, {**one, "host": {"wall_s": 2}})) == []
    assert list(differences(one, {**one, "metrics": {"a": 2}})) == ["metrics.a: 1 against 2"]
    changed = {**one, "series": {"x": [[0, 1], [1, 3]]}}
    assert list(differences(one, changed)) == ["series.x[1][1]: 2 against 3"]
