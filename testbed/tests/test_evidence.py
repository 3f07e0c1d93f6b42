# SPDX-License-Identifier: GPL-2.0
"""Tables and figures from summaries: selection, statistics, pages, and what is refused."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sctplab.errors import LabError, RunError
from sctplab.evidence import cell, command, data, manifest, pages, plot, table
from sctplab.evidence.data import Data, Row
from sctplab.report.stats import Interval

ONE_LINE = r"^[^\n]*$"
RUNS = manifest.RunSet(("demo",), repeat=2)
SOURCE = {"series": "abc", "kernel": "6.12.1", "laboratory": "def", "records": "123", "runs": "8"}


def runs() -> tuple[Row, ...]:
    """Goodput of 10 x d2 plus the seed, and twice that when patched."""
    return tuple(
        Row(
            {"scenario": "demo", "kernel": kernel, "variant": "cmt", "d2_ms": d2},
            seed,
            {"goodput_mbit": times * (10.0 * d2 + seed), "return_s": float(d2)},
        )
        for seed in (1, 2)
        for d2 in (10, 50)
        for kernel, times in (("stock", 1), ("patched", 2))
    )


DATA = Data(SOURCE, runs())
COLUMNS = [{"head": ["stock,", "two"], "kernel": "stock"}, {"head": "patched", "kernel": "patched"}]


def made(**keys: Any) -> table.Table:
    found = {"runs": "demo", "rows": {"by": ["d2_ms"]}, "columns": COLUMNS, "cell": "{goodput_mbit:.1f}"}
    return table.read("t", {**found, **keys}, "evidence.toml")


def filled(**keys: Any) -> table.Grid:
    return table.fill("t", made(**keys), lambda _: DATA)


def test_a_summary_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "demo.csv"
    path.write_text(data.text(DATA, RUNS))
    found = data.read(path)
    assert found.rows == DATA.rows
    assert found.source == {"command": "testbed/lab run demo --repeat 2", **SOURCE}


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("demo,patched,cmt,50,2,1004,50\n", "", "7 of 8 runs"),
        ("# series: abc\n", "", "no line '# series: '"),
        ("1004,50", "1004", "is shorter than"),
        ("1004", "many", "could not convert"),
        ("# series: abc", "# series", "length 1"),
        ("seed", "sown", "is not in list"),
    ],
)
def test_a_summary_that_is_damaged_is_refused(tmp_path: Path, old: str, new: str, why: str) -> None:
    path = tmp_path / "demo.csv"
    text = data.text(DATA, RUNS)
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    with pytest.raises(LabError, match=ONE_LINE) as error:
        data.read(path)
    assert str(error.value).startswith(f"{path}: damaged") and why in str(error.value)


def test_a_variant_that_no_scenario_has_is_refused() -> None:
    with pytest.raises(LabError, match=r"no variant 'cmt-per-pth'; expected one of .*, cmt-per-path,"):
        manifest.RunSet(("cmt-three",), variants=("cmt", "cmt-per-pth")).specs()


def test_rows_by_factor_and_heads_in_lines() -> None:
    assert table.rst(filled()) == [
        "=====  ======  =======",
        "d2_ms  stock,  patched",
        "       two",
        "=====  ======  =======",
        "10     101.5   203.0",
        "50     501.5   1003.0",
        "=====  ======  =======",
    ]
    assert table.markdown(filled())[0] == "| d2_ms | stock, two | patched |"


@pytest.mark.parametrize(
    ("what", "told"), [("n", "2"), ("least", "0.50"), ("median", "1.00"), ("1.5", "1"), ("0.4", "2")]
)
def test_transfers_over_all_paths_race_the_best_single_one(what: str, told: str) -> None:
    goodput = {(1, "all-paths"): 2, (1, "path1"): 4, (1, "path2"): 1, (2, "all-paths"): 3, (2, "path1"): 2}
    rows = [Row({"variant": name}, seed, {"x": float(one)}) for (seed, name), one in goodput.items()]
    alone = Row({"variant": "all-paths"}, 3, {"x": 9.0})
    assert cell.text(f"{{x:.2f race {what}}}", [*rows, alone]) == told
    if what == "least":
        with pytest.raises(LabError, match=r"race: none of 1 seeds has runs over all paths and"):
            cell.text("{x race least}", [alone])


def test_a_table_is_traced_to_its_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = manifest.read()
    name, one = "readme-jungmaier", found.runs["jungmaier"]
    there = command.runner.job_in(tmp_path / "jungmaier", one.specs()[0]).record
    there.parent.mkdir(parents=True)
    there.write_text("{}")
    assert command.trace(found, name, tmp_path) == 0
    lines = capsys.readouterr().out.splitlines()
    cells = [line for line in lines if not line.startswith("  ")]
    assert cells[0].startswith("10 ms / ") and cells[-1].endswith("testbed/lab evidence --only jungmaier")
    records = [line for line in lines if line.startswith("  ")]
    assert len(records) >= len(cells) - 1
    assert sum(line.endswith(" (not here)") for line in records) >= len(records) - 1
    with pytest.raises(
        LabError, match=r"--trace: got 'readme-jungmeier', .*; did you mean readme-jungmaier\?"
    ):
        command.trace(found, "readme-jungmeier", tmp_path)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{goodput_mbit:.1f}", "101.5"),
        ("{goodput_mbit:.1f ci}", "101.5 ± 6.4"),
        ("{return_s:.1f ci}", "10.0"),
        ("{goodput_mbit:.0f range}", "101 to 102"),
        ("{goodput_mbit:.1f max}, {return_s:.0f}", "102.0, 10"),
        ("{goodput_mbit:.2f share 102}", "0.50"),
        ("{goodput_mbit n}", "2"),
        ("{goodput_mbit below 102}", "1"),
    ],
)
def test_statistics(template: str, text: str) -> None:
    rows = table.select(DATA.rows, {"kernel": "stock", "d2_ms": 10})
    assert cell.text(template, rows) == text


def test_pairs_are_runs_with_equal_seed_and_settings() -> None:
    ours, others = (table.select(DATA.rows, {"kernel": kernel}) for kernel in ("patched", "stock"))
    assert cell.text("{goodput_mbit:.2f ratio ci}", ours, others) == "2.00 [2.00, 2.00]"
    assert cell.text("{return_s:.2f difference}", ours, others) == "0.00"


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ({"cell": "{goodput_mbit:.1f"}, "expected {METRIC:FORMAT STATISTIC}"),
        ({"cell": "{speed:.1f}"}, "speed: none of 2 runs has it"),
        ({"cell": "{goodput_mbit:.1f modus}"}, "modus: no such statistic"),
        ({"columns": [{"head": "all"}]}, "runs differ in kernel"),
        ({"columns": [{"head": "x", "kernel": "other"}]}, "no such run"),
        ({"corner": ["a", "b"]}, "got 2 heads, expected 1"),
    ],
)
def test_a_cell_that_cannot_be_is_one_line(keys: dict[str, Any], text: str) -> None:
    with pytest.raises(LabError, match=ONE_LINE) as refused:
        filled(**keys)
    assert text in str(refused.value)


def known(tmp_path: Path, **figure: Any) -> pages.Summaries:
    (tmp_path / "demo.csv").write_text(data.text(DATA, RUNS))
    tables = {"t": {"runs": "demo", "rows": {"by": ["d2_ms"]}, "columns": COLUMNS, "cell": "{return_s:.0f}"}}
    found = manifest.Manifest(tmp_path / "evidence.toml", {"demo": RUNS}, tables, (figure,) if figure else ())
    return pages.Summaries(found, tmp_path)


def test_figures_with_an_interval_of_their_own() -> None:
    """As other people's are: the interval is shown as it is, and a ratio is that of the values."""
    one, other = (
        Row({}, 0, {"transfer_s": value}, {"transfer_s": Interval(1.0, 3.0)}) for value in (2.0, 4.0)
    )
    assert cell.text("{transfer_s:.1f ci}", [one]) == "2.0 ± 1.0"
    assert cell.text("{transfer_s:.1f share}", [one]) == "2.0 [1.0, 3.0]"
    assert cell.text("{transfer_s:.1f ratio}", [one], [other]) == "0.5"


def test_a_table_is_put_between_its_markers(tmp_path: Path) -> None:
    page = tmp_path / "page.rst"
    text = "Before\n\n.. evidence: t\n\nold\n\n.. end of evidence\n\nAfter\n"
    new = pages.written(page, text, known(tmp_path))
    assert "old" not in new and "50     50      50" in new and new.endswith("\nAfter\n")
    assert (
        "``testbed/lab evidence --only demo``: series abc, Linux 6.12.1, laboratory def, 8 records 123."
        in new
    )
    assert pages.written(page, new, known(tmp_path)) == new


def test_a_table_that_is_not_in_the_manifest(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"evidence other: no \[tables.other\]"):
        pages.written(tmp_path / "p.rst", ".. evidence: other\n.. end of evidence\n", known(tmp_path))


def test_figures_in_a_sentence(tmp_path: Path) -> None:
    value = {"runs": "demo", "kernel": "stock", "d2_ms": 50, "cell": "{return_s:.0f}"}
    figure = {"page": "p", "text": "back after {a} s, not {b} s", "a": value, "b": {**value, "d2_ms": 10}}
    summaries = known(tmp_path, **figure)
    new = pages.sentence("It is back\nafter 7 s, not\n8 s.\n", figure, "at", summaries)
    assert new == "It is back\nafter 50 s, not\n10 s.\n"
    with pytest.raises(LabError, match="0 times on p, expected once"):
        pages.sentence("Never.\n", figure, "at", summaries)


def test_a_repeated_run_that_differs_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "FOLDER", tmp_path)
    (tmp_path / "demo.csv").write_text(data.text(DATA, RUNS))
    assert not list(command.different("demo", runs()))
    changed = Row(runs()[0].settings, 1, {"return_s": 11.0})
    (line,) = command.different("demo", [changed])
    assert line.endswith("return_s is 11, the summary has 10.0")


def test_the_hash_of_records_leaves_out_the_clock_and_the_order() -> None:
    first, second = {"spec": 1, "host": {"wall_s": 2}}, {"spec": 2, "host": {"wall_s": 3}}
    later = {**first, "host": {"wall_s": 9}}
    assert data.record_hash([first, second]) == data.record_hash([second, later])
    assert data.record_hash([first]) != data.record_hash([second])


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ('[runs.x]\nscenarios = ["demo"]\nrepat = 1\n', "did you mean repeat?"),
        ("[runs.x]\nscenarios = []\n", "at least one scenario"),
        ('[runs.x]\nscenarios = ["demo"]\nset = { d2_ms = 10 }\n', "a list of at least one value"),
        ('older = 1\n[runs.x]\nscenarios = ["demo"]\n', "older"),
        ("[table.x]\n", "did you mean tables?"),
        ("runs\n", "cannot be read"),
    ],
)
def test_what_the_manifest_should_not_say(tmp_path: Path, text: str, refused: str) -> None:
    file = tmp_path / "evidence.toml"
    file.write_text(text)
    with pytest.raises(LabError, match=ONE_LINE) as error:
        manifest.read(file)
    assert refused in str(error.value)


def test_older_may_be_said_of_all_sets(tmp_path: Path) -> None:
    file = tmp_path / "evidence.toml"
    sets = '[runs.x]\nscenarios = ["demo"]\n[runs.y]\nscenarios = ["demo"]\nolder = "own"\n'
    file.write_text(sets)
    assert [one.older for one in manifest.read(file).runs.values()] == ["", "own"]
    file.write_text('older = "same packets"\n' + sets)
    assert [one.older for one in manifest.read(file).runs.values()] == ["same packets", "own"]


def test_quick_is_a_part_of_the_runs() -> None:
    part = manifest.RunSet(("demo",), quick={"d2_ms": (10,)}).quick_specs()
    assert part and {spec.factors["d2_ms"] for spec in part} == {10}
    with pytest.raises(LabError, match="quick: got"):
        manifest.RunSet(("demo",), quick={"d3_ms": (10,)}).quick_specs()


def test_every_set_of_the_manifest_can_be_made() -> None:
    for runs_of in manifest.read().runs.values():
        one_seed = replace(runs_of, repeat=1)
        assert one_seed.specs()
        assert runs_of.quick is None or one_seed.quick_specs()


def test_a_changed_digit_in_a_page_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "README.md"
    page.write_text("Two paths of 34.368 Mbit/s, `sysctl a=5`.\n\n    make x=7\n\nAnd 10 ms.\n")
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    summaries = known(tmp_path)
    (tmp_path / pages.GIVEN).write_text("\n".join(pages.given_lines(summaries.manifest)))
    assert (tmp_path / pages.GIVEN).read_text() == "README.md: 34.368 10"
    assert not list(pages.not_given(summaries))
    page.write_text(page.read_text().replace("34.368", "34.386"))
    (line,) = pages.not_given(summaries)
    assert line.startswith("README.md: numbers from no record: new 34.386, gone 34.368;")


PLOT = {"runs": "demo", "metric": "goodput_mbit", "x": "d2_ms", "labels": ["x", "y"]}


def test_a_plot_is_the_same_each_time() -> None:
    drawn = plot.read("p", {**PLOT, "lines": [{"head": "stock", "kernel": "stock"}]}, "evidence.toml")
    assert plot.points("p", drawn, lambda _: DATA) == [("stock", [(10.0, 101.5), (50.0, 501.5)])]
    first, second = (plot.svg("p", drawn, lambda _: DATA) for _ in range(2))
    assert first == second and "stock" in first


@pytest.mark.parametrize(
    ("lines", "text"),
    [([], "a list of tables with head"), ([{"head": "x", "kernel": "other"}], "no run of demo has")],
)
def test_a_plot_that_cannot_be(lines: list[Any], text: str) -> None:
    with pytest.raises(LabError, match=ONE_LINE) as error:
        plot.svg("p", plot.read("p", {**PLOT, "lines": lines}, "evidence.toml"), lambda _: DATA)
    assert text in str(error.value)


def finished(kernel: str, seed: int) -> dict[str, Any]:
    """A record as far as a summary reads it."""
    spec = {"scenario": "demo", "kernel": kernel, "variant": "cmt", "factors": {"d2_ms": 10}, "seed": seed}
    build = {"series_id": "stock" if kernel == "stock" else "abc", "source_version": "6.12.1"}
    return {"format": 1, "spec": spec, "kernel": build, "metrics": {"return_s": 1 / 3}}


def test_a_summary_names_its_series_and_kernel() -> None:
    found = data.source([finished("stock", 1), finished("patched", 1)])
    assert (found["series"], found["kernel"], found["runs"]) == ("abc", "6.12.1", "2")
    assert data.source([finished("stock", 1)])["series"] == "none"
    assert data.row(finished("stock", 1), {"return_s"}).metrics == {"return_s": 0.3333333333}


@pytest.mark.parametrize(
    ("series", "older", "lines"), [("abc", "", 0), ("new", "", 1), ("new", "kept on purpose", 0)]
)
def test_a_summary_of_another_series(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, series: str, older: str, lines: int
) -> None:
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    (tmp_path / "README.md").write_text("<!-- evidence: t -->\n<!-- end of evidence -->\n")
    summaries = known(tmp_path)
    marked = manifest.Manifest(
        summaries.manifest.file, {"demo": replace(RUNS, older=older)}, summaries.manifest.tables, ()
    )
    summaries = pages.Summaries(marked, tmp_path)
    text = (tmp_path / "README.md").read_text()
    (tmp_path / "README.md").write_text(pages.written(tmp_path / "README.md", text, summaries))
    assert ("An earlier series: kept on purpose." in (tmp_path / "README.md").read_text()) is bool(older)
    found = list(pages.faults(summaries, series))
    assert len(found) == lines and all("of series abc, patches/ is new" in line for line in found)


def test_a_hand_in_a_table_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    page = tmp_path / "README.md"
    summaries = known(tmp_path)
    page.write_text(pages.written(page, "<!-- evidence: t -->\n<!-- end of evidence -->\n", summaries))
    assert not list(pages.faults(summaries, "abc"))
    page.write_text(page.read_text().replace("| 50 |", "| 51 |", 1))
    assert any(
        "not the tables and figures of its summaries" in line for line in pages.faults(summaries, "abc")
    )


def test_an_archive_has_the_records_of_the_summaries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "FOLDER", tmp_path)
    runs_of = manifest.RunSet(("demo",), kernels=("stock",), repeat=1, set={"d2_ms": (10,)})
    asked = manifest.Manifest(tmp_path / "evidence.toml", {"demo": runs_of}, {}, ())
    work = command.Work("demo", runs_of, tuple(runs_of.specs()), tmp_path / "demo")
    for number, job in enumerate(work.jobs()):
        job.record.parent.mkdir(parents=True, exist_ok=True)
        job.record.write_text(json.dumps({**finished("stock", number), "status": "ok"}))
    records = [json.loads(job.record.read_text()) for job in work.jobs()]
    made = Data(data.source(records), tuple(data.row(record, {"return_s"}) for record in records))
    (tmp_path / "demo.csv").write_text(data.text(made, runs_of))

    archive = tmp_path / "records.tar.xz"
    assert command.pack(asked, tmp_path, archive) == 0
    assert command.verify(asked, archive) == 0
    (tmp_path / "demo.csv").write_text(
        data.text(Data({**made.source, "records": "other"}, made.rows), runs_of)
    )
    assert command.verify(asked, archive) == 1
    other = tmp_path / "other.tar.xz"
    with pytest.raises(RunError, match="not the records of all summaries; run evidence --only demo"):
        command.pack(asked, tmp_path, other)
    assert not other.exists()
    with pytest.raises(LabError, match=r"evidence\.toml: cannot be read: .*evidence --pack$") as refused:
        (tmp_path / "evidence.toml").write_text("no archive")
        command.verify(asked, tmp_path / "evidence.toml")
    assert "\n" not in str(refused.value)


def test_a_set_that_is_not_in_the_manifest() -> None:
    with pytest.raises(LabError, match="--only: got 'other', expected one of demo"):
        command.chosen(manifest.Manifest(Path("evidence.toml"), {"demo": RUNS}, {}, ()), ["other"])


def test_a_summary_is_current_for_its_runs_metrics_and_series(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data, "FOLDER", tmp_path)
    specs = RUNS.specs()
    assert not command.current("demo", specs, {"return_s"})
    rows = tuple(Row(manifest.settings(spec), spec.seed, {"return_s": 1.0}) for spec in specs)
    source = {**SOURCE, "runs": str(len(rows))}
    (tmp_path / "demo.csv").write_text(data.text(Data({**source, "series": data.series_id()}, rows), RUNS))
    assert command.current("demo", specs, {"return_s"})
    assert not command.current("demo", specs[1:], {"return_s"})
    assert not command.current("demo", specs, {"goodput_mbit"})
    (tmp_path / "demo.csv").write_text(data.text(Data(source, rows), RUNS))
    assert not command.current("demo", specs, {"return_s"})
