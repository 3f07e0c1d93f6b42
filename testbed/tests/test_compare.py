# SPDX-License-Identifier: GPL-2.0
"""Two sets of records side by side."""

import json
from pathlib import Path
from types import ModuleType

import pytest
from sctplab import cli
from sctplab.errors import LabError
from sctplab.oracle import ablation, bench
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
    assert "New, in B only: 1 cells\n  rtx-policy, d2 = 100 ms" in text
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


def cells(folder: Path, goodputs: dict[int, float], **more: object) -> Path:
    """Three seeds for each d2, with its goodput."""
    return write(
        folder,
        *(
            record(
                seed=seed, factors={"d2_ms": d2}, metrics={"goodput_mbit": value * (1 + seed / 10)}, **more
            )
            for d2, value in goodputs.items()
            for seed in (1, 2, 3)
        ),
    )


def test_the_worst_cells_come_first_and_the_median_counts_all(tmp_path: Path) -> None:
    a = cells(tmp_path / "a", dict.fromkeys(range(1, 16), 10.0))
    b = cells(tmp_path / "b", {d2: 10 - (d2 - 3) / 10 for d2 in range(1, 16)})
    lines = compare(a, b).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("Goodput (Mbit/s), more is better"))
    assert lines[start].endswith(
        "15 cells, median ratio 0.950 (0.880 to 1.020); beyond their interval worse 12, better 2"
    )
    assert lines[start + 1] == "  worst cells of 12 that lose:"
    assert lines[start + 2] == "    × 0.880 [0.880, 0.880]  rtx-policy, d2 = 15 ms"
    assert [line for line in lines[start + 2 :] if line.startswith("    ×")][-1].endswith("d2 = 6 ms")


def test_of_a_time_less_is_better(tmp_path: Path) -> None:
    sides = {
        name: write(
            tmp_path / name,
            *(
                record(seed=seed, factors={"d2_ms": d2}, metrics={"transfer_s": value, "rtx_ratio": 0})
                for d2, value in values.items()
                for seed in (1, 2)
            ),
        )
        for name, values in {"a": {10: 4.0, 50: 4.0}, "b": {10: 5.0, 50: 2.0}}.items()
    }
    text = compare(sides["a"], sides["b"])
    assert "Transfer time (s), less is better: 2 cells, median ratio 0.875 (0.500 to 1.250)" in text
    assert "worst cells of 1 that lose:\n    × 1.250 [1.250, 1.250]  rtx-policy, d2 = 10 ms" in text
    assert "Retransmission ratio, less is better: 2 cells, median ratio 1.000" in text


def test_of_metrics_that_say_the_same_the_first_is_shown(tmp_path: Path) -> None:
    same = {"goodput_mbit": 8.0, "transfer_s": 1.0, "capacity_share": 0.5}
    a = write(tmp_path / "a", *(record(seed=seed, metrics=same) for seed in (1, 2)))
    text = compare(a, a)
    assert "Goodput" in text and "Transfer time" not in text and "capacity" not in text


def test_the_same_on_both_sides_is_1(tmp_path: Path) -> None:
    a = cells(tmp_path / "a", {10: 3.0, 50: 7.0})
    text = compare(a, a)
    assert text.count("× 1.000 [1.000, 1.000]") == 2
    assert "2 cells, median ratio 1.000 (1.000 to 1.000); beyond their interval worse 0, better 0" in text
    assert "worst" not in text and "New" not in text and "Gone" not in text and "Not ok" not in text


def test_zeros_that_change_have_no_ratio(tmp_path: Path) -> None:
    sides = [
        write(tmp_path / name, *(record(seed=s, metrics={"spurious_failovers": count}) for s in (1, 2)))
        for name, count in (("a", 0), ("b", 3))
    ]
    text = compare(sides[0], sides[1])
    expected = "Spurious failovers, less is better: 1 cells; beyond their interval worse 0, better 0; 1 with"
    assert expected in text


def test_the_seeds_of_a_drawn_scenario_are_listed(tmp_path: Path) -> None:
    sides = [
        write(
            tmp_path / name,
            *(
                record("cmt-random", seed, factors={"losses": 0}, metrics={"goodput_mbit": value})
                for seed, value in enumerate(values, 1)
            ),
        )
        for name, values in (("a", (4.0, 4.0, 4.0)), ("b", (4.0, 2.0, 3.0)))
    ]
    text = compare(sides[0], sides[1])
    assert "worst cells of 1 that lose" in text
    assert (
        "worst seeds of 2 that lose:\n    × 0.500  cmt-random, seed 2\n"
        "    × 0.750  cmt-random, seed 3" in text
    )


def test_what_is_gone_and_what_fails(tmp_path: Path) -> None:
    a = cells(tmp_path / "a", {10: 3.0, 50: 7.0, 100: 8.0})
    b = cells(tmp_path / "b", {10: 3.0, 200: 8.0})
    failed = {"status": "failed", "reason": "kernel: WARNING", "metrics": {}}
    write(b, *(record(seed=seed, factors={"d2_ms": 50}, **failed) for seed in (1, 2, 3)))
    text = compare(a, b)
    assert (
        "Not ok in B, and ok in A: 3 runs\n  rtx-policy, d2 = 50 ms, seed 1: failed: kernel: WARNING" in text
    )
    assert "Gone, in A only: 2 cells\n  rtx-policy, d2 = 100 ms\n  rtx-policy, d2 = 50 ms: Goodput" in text
    assert "New, in B only: 1 cells\n  rtx-policy, d2 = 200 ms" in text


def test_another_kernel_is_no_difference_of_a_run(tmp_path: Path) -> None:
    a = cells(tmp_path / "a", {10: 3.0})
    other = {**record()["kernel"], "series_id": "0123456789ab", "key": "another"}
    b = cells(tmp_path / "b", {10: 3.0}, kernel="patched")
    for path in (b / "records").glob("*.json"):
        path.write_text(json.dumps({**json.loads(path.read_text()), "kernel": other}))
    assert 'Identical apart from "host" and "kernel": 3 of 3 pairs' in compare(a, b)


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


@pytest.mark.parametrize(
    ("module", "words"), [(bench, ["compare", "a", "b"]), (ablation, ["ablation", "--only", "hold"])]
)
def test_the_seeds_asked_for_reach_the_runs(
    module: ModuleType, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(name: str, seeds: int = 1) -> None:
        raise LabError(f"{name}: {seeds}")

    monkeypatch.setattr(module, "specs_of", told)
    options = cli.parser().parse_args([*words, "--set", "rules", "--seeds", "5"])
    with pytest.raises(LabError, match=r"^rules: 5$"):
        options.handler(options)
