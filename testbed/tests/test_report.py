# SPDX-License-Identifier: GPL-2.0
"""Records in, summary.csv, plots and report.html out."""

import io
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from matplotlib.figure import Figure
from rich.console import Console
from sctplab.errors import LabError
from sctplab.measure.records import load_runs
from sctplab.report import reference
from sctplab.report.report import make_report
from sctplab.report.summary import sections
from sctplab.report.tables import commands
from sctplab.report.terminal import print_results
from tests.report_builder import record, write

VOID = {"meta", "link", "br", "hr", "img", "input"}


class Checker(HTMLParser):
    """Notes elements that do not nest, ids given twice, and every address."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.faults: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self.handle_startendtag(tag, attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.addresses += [value or "" for name, value in attrs if name in ("href", "src", "xlink:href")]

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(tag)


def cells(**more: Any) -> list[dict[str, Any]]:
    """Two kernels, two delays, three seeds: goodput 10 + d2 / 10 + seed on stock, twice that on patched."""
    return [
        record(
            seed=seed,
            kernel=kernel,
            variant=variant,
            factors={"d2_ms": d2},
            metrics={"goodput_mbit": factor * (10 + d2 / 10 + seed), "t3_timeouts": 2},
            **more,
        )
        for kernel, variant, factor in (("stock", "dual-homed", 1), ("patched", "fr-same-rto-alt", 2))
        for d2 in (10, 50)
        for seed in (1, 2, 3)
    ]


def page(folder: Path) -> str:
    return make_report(folder).read_text()


def test_summary_csv_is_this(tmp_path: Path) -> None:
    make_report(write(tmp_path, *cells()))
    assert (tmp_path / "summary.csv").read_text() == (
        "scenario,kernel,variant,d2_ms,metric,n,median,mean,ci_low,ci_high,interval_of\n"
        "rtx-policy,stock,dual-homed,10,goodput_mbit,3,13,13,10.51586229,15.48413771,mean\n"
        "rtx-policy,stock,dual-homed,10,t3_timeouts,3,2,2,2,2,mean\n"
        "rtx-policy,stock,dual-homed,50,goodput_mbit,3,17,17,14.51586229,19.48413771,mean\n"
        "rtx-policy,stock,dual-homed,50,t3_timeouts,3,2,2,2,2,mean\n"
        "rtx-policy,patched,fr-same-rto-alt,10,goodput_mbit,3,26,26,21.03172458,30.96827542,mean\n"
        "rtx-policy,patched,fr-same-rto-alt,10,t3_timeouts,3,2,2,2,2,mean\n"
        "rtx-policy,patched,fr-same-rto-alt,50,goodput_mbit,3,34,34,29.03172458,38.96827542,mean\n"
        "rtx-policy,patched,fr-same-rto-alt,50,t3_timeouts,3,2,2,2,2,mean\n"
    )


def test_few_runs_get_a_picture_each(tmp_path: Path) -> None:
    asked: list[str] = []

    def picture(record: Path) -> Figure | None:
        asked.append(record.name)
        return Figure() if len(asked) == 1 else None

    few = cells()
    page = make_report(write(tmp_path / "few", *few), picture).read_text()
    assert page.count("paths and waits") == 1 and len(asked) == len(few)
    make_report(write(tmp_path / "many", *few, *cells(place="netns")), picture)
    assert len(asked) == len(few)


def test_places_and_bases_get_a_column_only_where_there_are_several(tmp_path: Path) -> None:
    make_report(write(tmp_path, *cells(), *cells(place="netns")))
    lines = (tmp_path / "summary.csv").read_text().splitlines()
    assert lines[0].startswith("scenario,kernel,variant,place,d2_ms,")
    assert lines[1].startswith("rtx-policy,stock,dual-homed,netns,10,")
    assert "patched uml: fr-same-rto-alt" in page(tmp_path)


def test_two_reports_are_the_same_bytes(tmp_path: Path) -> None:
    write(tmp_path / "a", *cells(series={"goodput": [[0, 1], [1, 2]]}))
    make_report(tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b" / "a")
    make_report(tmp_path / "b" / "a")
    files = [path for path in sorted((tmp_path / "a").rglob("*")) if path.is_file()]
    assert len([path for path in files if path.suffix in (".svg", ".png")]) == 4
    for path in files:
        assert path.read_bytes() == (tmp_path / "b" / path.relative_to(tmp_path)).read_bytes(), path


def test_the_page_is_whole_and_needs_no_network(tmp_path: Path) -> None:
    text = page(write(tmp_path, *cells(), *cells_with_series()))
    assert text.count("<svg") == 2 and text.startswith("<!DOCTYPE html>")
    assert not re.search(r"https?:|//[a-z]|<script|@import", text)
    checker = Checker()
    checker.feed(text)
    assert not checker.faults and not checker.open
    assert len(checker.ids) == len(set(checker.ids))
    for address in checker.addresses:
        if address.startswith("#"):
            assert address[1:] in checker.ids
        else:
            assert (tmp_path / unquote(address)).exists(), address


def cells_with_series() -> list[dict[str, Any]]:
    events = [{"at_s": 2, "action": "cut", "path": "path1"}]
    return [
        record(
            "failover-cut",
            seed=seed,
            metrics={"failover_s": 1.0 + seed / 10, "max_message_delay_s": 1.1},
            series={"message_delay": [[0, 0.02], [1, 0.02], [2, 1.2], [3.5, 0.02]]},
            spec={"events": events},
        )
        for seed in range(1, 8)
    ]


def test_failed_runs_give_no_numbers_and_are_named(tmp_path: Path) -> None:
    bad = record(
        seed=4,
        kernel="stock",
        variant="dual-homed",
        factors={"d2_ms": 10},
        status="failed",
        reason="content wrong at offset 7",
        metrics={"goodput_mbit": 1e6},
    )
    lost = record(
        seed=1, kernel="stock", variant="dual-homed", factors={"d2_ms": 99}, status="timeout", reason="limit"
    )
    text = page(write(tmp_path, *cells(), bad, lost))
    assert "14 runs: 12 ok, 1 failed, 1 timeout" in text
    assert "content wrong at offset 7" in text and "no result" in text and "missing" in text
    assert "13.00 ± 2.48" in text
    assert "1000000" not in (tmp_path / "summary.csv").read_text()


def test_a_folder_without_any_good_run_still_has_a_report(tmp_path: Path) -> None:
    text = page(write(tmp_path, record(status="crashed", reason="never ended")))
    assert "No run of this scenario gives a number" in text and "never ended" in text


def test_medians_below_six_runs_have_no_interval(tmp_path: Path) -> None:
    runs = [
        record(seed=seed, factors={"pmr": pmr}, metrics={"failover_s": 1.0 + seed})
        for seed in range(1, 6)
        for pmr in (0, 1)
    ]
    text = page(write(tmp_path, *runs))
    assert "Median, no interval below 6 runs; n = 5" in text
    assert ",failover_s,5,4,4,,,median\n" in (tmp_path / "summary.csv").read_text()


def test_a_single_setting_makes_one_table_of_lines(tmp_path: Path) -> None:
    made = [
        record(kernel=kernel, metrics={"goodput_mbit": 5, "transfer_s": 30})
        for kernel in ("stock", "patched")
    ]
    bad = record(kernel="stock", seed=2, status="timeout", reason="limit")
    text = page(write(tmp_path, *made, bad))
    assert "Goodput (Mbit/s)</th><th" in text and "Completed</th>" in text
    assert "1 of 2" in text and "1 of 1" in text


def test_pairs_against_stock(tmp_path: Path) -> None:
    text = page(write(tmp_path, *cells()))
    assert "Goodput against stock: dual-homed" in text
    assert "× 2.000 [2.000, 2.000]" in text and "+13.00 ± 2.48 Mbit/s, 3 seeds" in text


def test_commands_name_factors_kernels_and_seeds(tmp_path: Path) -> None:
    (section,) = sections(load_runs(write(tmp_path, *cells())))
    assert commands(section, "results/x") == [
        "testbed/lab run rtx-policy --place uml --kernel stock,patched --base 6.12 --set d2_ms=10,50 "
        "--repeat 3 --first-seed 1 --out results/x"
    ]


def test_a_copied_record_is_no_second_run(tmp_path: Path) -> None:
    folder = write(tmp_path, record(metrics={"goodput_mbit": 1})) / "records"
    (file,) = folder.iterdir()
    (folder / "copy.json").write_bytes(file.read_bytes())
    with pytest.raises(LabError, match=r"the same run as .*copy.json; remove one of them"):
        list(load_runs(tmp_path))


def test_settings_are_shown_and_checked_against_what_was_read_back(tmp_path: Path) -> None:
    spec = {"sysctl": {"host1": {"net.sctp.rto_min": "200"}, "host2": {"net.sctp.rto_min": "200"}}}
    text = page(write(tmp_path, record(metrics={"goodput_mbit": 1}, spec=spec)))
    assert "<td>host1, host2</td><td>200</td>" in text
    assert "net.sctp.rto_min on host1: set to 200, read back as 1000" in text


def test_mixed_builds_are_said(tmp_path: Path) -> None:
    one, other = (record(seed=seed, metrics={"goodput_mbit": 1}) for seed in (1, 2))
    other["kernel"]["key"] = "another"
    text = page(write(tmp_path, one, other))
    assert "Doubtful: records of several builds of the patched kernel are mixed here." in text


def test_reference_figures_stand_beside_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "SCENARIOS", tmp_path)
    (tmp_path / "paper.csv").write_text(
        "# from the text of section 4\nd2_ms,variant,metric,value,source\n"
        "10,dual-homed,goodput_mbit,12.5,Author 2004\n"
        "50,,goodput_mbit,77.25,Author 2004\n"
        "70,,goodput_mbit,55.5,Author 2004\n"
    )
    text = page(write(tmp_path / "r", *cells(spec={"reference": "paper.csv"})))
    assert '<th scope="col">Author 2004</th>' in text
    assert "<td>12.5<small>dual-homed</small></td>" in text and "<td>77.25</td>" in text
    assert "<td>55.5" not in text
    assert ">Author 2004</text>" in text


def test_a_reference_that_is_not_here_is_said(tmp_path: Path) -> None:
    text = page(write(tmp_path, *cells(spec={"reference": "gone.csv"})))
    assert "gone.csv is not beside the scenario files" in text


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "no column metric, value, source"),
        ("metric,value,source\ngoodput_mbit,fast,X\n", "data row 1: value is 'fast'"),
        ("metric,value\ngoodput_mbit,1\n", "no column source"),
        ("metric,value,source\ngoodput_mbit,1\n", "data row 1"),
    ],
)
def test_bad_reference_files(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "paper.csv"
    path.write_text(content)
    with pytest.raises(LabError, match=words) as error:
        reference.load_reference(path)
    assert str(path) in str(error.value)


def test_empty_folder_and_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("{}")
    with pytest.raises(LabError, match="expected a result folder"):
        make_report(tmp_path / "file")
    (tmp_path / "file").unlink()
    with pytest.raises(LabError, match="no records here"):
        make_report(tmp_path)
    with pytest.raises(LabError, match="no such record or result folder"):
        make_report(tmp_path / "gone")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": 2}, "written in format 2, this program knows up to 1"),
        ({"format": "1"}, "format is '1', expected 1"),
        ({"status": "fine"}, "status is 'fine'"),
        ({"metrics": {"goodput_mbit": "fast"}}, "metric goodput_mbit is 'fast'"),
        ({"metrics": {"goodput_mbit": float("nan")}}, "is 'nan', expected a number below"),
        ({"metrics": {"goodput_mbit": 10**400}}, "expected a number below 1e\\+100"),
        ({"metrics": []}, "metrics is .*an object"),
        ({"host": {"wall_s": "long"}}, "wall_s is 'long'"),
    ],
)
def test_bad_records_are_refused_in_one_line(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    write(tmp_path, record() | change)
    with pytest.raises(LabError, match=words) as error:
        make_report(tmp_path)
    assert ".json: " in str(error.value) and "\n" not in str(error.value)
    assert not (tmp_path / "report.html").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"format": 1, "sta', "damaged"),
        ("[]", "not a record"),
        ('{"name": 1}', "not a record"),
        (json.dumps({"format": 1, "status": "ok", "spec": {"kernel": "stock"}}), "'scenario' is missing"),
        ("\udcff".encode("utf-8", "surrogateescape").decode("latin1"), "damaged"),
    ],
)
def test_files_that_are_no_records(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "x.json").write_text(text)
    with pytest.raises(LabError, match=words) as error:
        make_report(tmp_path)
    assert "x.json" in str(error.value)


def test_plots_of_an_earlier_report_go(tmp_path: Path) -> None:
    make_report(write(tmp_path, *cells()))
    assert (tmp_path / "plots" / "rtx-policy-goodput_mbit.svg").exists()
    (tmp_path / "plots" / "a-sketch.svg").write_text("of somebody's own")
    shutil.rmtree(tmp_path / "records")
    make_report(write(tmp_path, *(record(factors={"d2_ms": d2}, metrics={"transfer_s": 3}) for d2 in (1, 2))))
    assert sorted(path.name for path in (tmp_path / "plots").iterdir()) == [
        "a-sketch.svg",
        "rtx-policy-transfer_s.png",
        "rtx-policy-transfer_s.svg",
    ]


def test_terminal_table(tmp_path: Path) -> None:
    out = io.StringIO()
    print_results(write(tmp_path, *cells()), Console(file=out))
    text = out.getvalue()
    assert "(ms)" in text and "fr-same-rto-alt |" in text and "34.00 ± 4.97" in text
    assert "rtx-policy: 12 runs: 12 ok" in text and "\x1b" not in text


def test_many_records(tmp_path: Path) -> None:
    """A grid too large for one figure and one table of a page."""
    runs = [
        record(
            "caro",
            seed=seed,
            factors={"pmr": pmr, "loss_pct": loss, "alt_loss_pct": alt},
            metrics={"transfer_s": 80.0 + loss * pmr + seed},
        )
        for pmr in range(6)
        for loss in range(5)
        for alt in range(4)
        for seed in (1, 2)
    ]
    text = page(write(tmp_path, *runs))
    assert text.count("<svg") == 1 and "pmr = 5" in text and "alt loss = 3 %" in text
    assert "<details><summary>Table: Transfer time (s)" in text
