# SPDX-License-Identifier: GPL-2.0
"""A report as its scenario asks for it: pooled plots, distributions, contrasts, figures beside them."""

import re
from pathlib import Path
from typing import Any

import pytest
from sctplab.errors import LabError
from sctplab.measure.records import load_runs
from sctplab.report import reference
from sctplab.report.report import make_report
from sctplab.report.summary import sections
from sctplab.spec import report_spec
from sctplab.spec.schema import At
from tests.report_builder import record, write

SCENARIO = """# Is it asked for?
[factors]
pmr = [0, 5]
loss_pct = [2, 8]
alt_loss_pct = [1, 10]

[[plots]]
metric = "any_spurious_failover"
x = "loss_pct"
curves = ["pmr"]
pool = ["alt_loss_pct"]
title = "shares of all alternates"

[[plots]]
metric = "spurious_failovers"
kind = "cdf"
up_to = 3
panels = ["loss_pct"]
curves = ["pmr"]
pool = ["alt_loss_pct"]

[[contrasts]]
metric = "transfer_s"
factor = "pmr"
against = 5
"""

REFERENCE = """pmr,loss_pct,alt_loss_pct,metric,value,n,ci_low,ci_high,source
0,8,all,any_spurious_failover,0.77,,,,Pooled 2004
0,8,1,any_spurious_failover,0.66,20,0.4,0.8,Single 2004
0,8,all,spurious_failovers<=1,0.5,,,,Pooled 2004
"""


def failovers(pmr: int, loss: int, seed: int) -> int:
    """None at 2 %; at 8 % as many as the seed says with PMR 0, and none with 5."""
    return seed if pmr == 0 and loss == 8 else 0


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(report_spec, "SCENARIOS", tmp_path)
    monkeypatch.setattr(reference, "SCENARIOS", tmp_path)
    (tmp_path / "asked.toml").write_text(SCENARIO)
    (tmp_path / "others.csv").write_text(REFERENCE)
    runs = [
        record(
            scenario="asked",
            seed=seed,
            factors={"pmr": pmr, "loss_pct": loss, "alt_loss_pct": alt},
            metrics={
                "transfer_s": (100 + seed) * (0.9 if pmr == 0 and loss == 8 else 1),
                "spurious_failovers": failovers(pmr, loss, seed),
                "any_spurious_failover": min(1, failovers(pmr, loss, seed)),
            },
            spec={"reference": "others.csv"},
        )
        for pmr in (0, 5)
        for loss in (2, 8)
        for alt in (1, 10)
        for seed in range(4)
    ]
    return write(tmp_path / "results", *runs)


def test_what_is_asked_for_replaces_what_would_be_drawn(folder: Path) -> None:
    page = make_report(folder).read_text()
    names = sorted(path.name for path in (folder / "plots").glob("*.svg"))
    assert names == [
        "asked-any_spurious_failover-all=alt_loss_pct.svg",
        "asked-spurious_failovers-cdf-all=alt_loss_pct.svg",
    ]
    assert "asked: shares of all alternates" in page


def test_pooled_cells_stand_beside_figures_for_all(folder: Path) -> None:
    page = make_report(folder).read_text()
    pooled, single = page.split('<table aria-label="Transfers with a spurious failover">')[1:]
    assert "0.77" in pooled.split("</table>")[0] and "0.66" not in pooled.split("</table>")[0]
    assert "0.66" in single.split("</table>")[0] and "0.77" not in single.split("</table>")[0]


def test_a_distribution_counts_runs_up_to_each_number(folder: Path) -> None:
    section = sections(load_runs(folder))[0].pooled(["alt_loss_pct"])
    line = section.lines[0]
    assert section.factors == ("pmr", "loss_pct")
    shares = [section.at_most(line, (0, 8), "spurious_failovers", k) for k in range(4)]
    assert [share and (share.n, share.mean) for share in shares] == [(8, 0.25), (8, 0.5), (8, 0.75), (8, 1.0)]
    assert "share of runs with at most so many" in make_report(folder).read_text()


def test_a_contrast_is_seed_by_seed(folder: Path) -> None:
    page = make_report(folder).read_text()
    table = page.split('<table aria-label="Transfer time against pmr = 5">')[1].split("</table>")[0]
    assert table.count("× 0.900 [0.900, 0.900]") == 2  # both alternates at 8 %
    assert table.count("× 1.000 [1.000, 1.000]") == 2


def test_the_last_row_of_a_contrast_is_over_all_of_them(folder: Path) -> None:
    page = make_report(folder).read_text()
    table = page.split('<table aria-label="Transfer time against pmr = 5">')[1].split("</table>")[0]
    last = table.rsplit("<tr>", 1)[1]
    assert "all rows" in last
    assert "× 0.949" in last  # the geometric mean of 0.9, 0.9, 1 and 1
    assert "0.900 to 1.000, 4 cells" in last


def test_variants_are_contrasted_on_the_same_kernel_where_they_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_spec, "SCENARIOS", tmp_path)
    (tmp_path / "asked.toml").write_text(
        '# Which?\n[[contrasts]]\nmetric = "transfer_s"\nfactor = "variant"\nagainst = "alone"\n'
    )
    times = {
        ("stock", "alone"): 100,
        ("patched", "alone"): 50,
        ("stock", "other"): 90,
        ("patched", "cmt"): 20,
    }
    runs = [
        record(
            scenario="asked", kernel=kernel, variant=variant, seed=seed, metrics={"transfer_s": time + seed}
        )
        for (kernel, variant), time in times.items()
        for seed in (0, 1)
    ]
    page = make_report(write(tmp_path / "results", *runs)).read_text()
    table = page.split('<table aria-label="Transfer time against variant = alone">')[1].split("</table>")[0]
    assert "× 0.900 [" in table and "× 0.406 [" in table  # 90 of 100 on stock, 20 of 50 on patched
    assert table.count("×") == 2


def test_numbers_written_as_a_reference_are_read_back(folder: Path, tmp_path: Path) -> None:
    section = sections(load_runs(folder))[0]
    plots = report_spec.of_scenario("asked").plots
    file = tmp_path / "ours.csv"
    file.write_text(reference.reference_csv(section, plots, "a test"))
    figures = reference.load_reference(file)
    settings = {"pmr": 0, "loss_pct": 8, "variant": "fr-same-rto-alt"}
    pooled = {figure.metric: figure for figure in figures if figure.matches(settings)}
    assert pooled["spurious_failovers<=1"].value == 0.5
    share = pooled["any_spurious_failover"]
    assert (share.value, share.n, share.source) == (0.75, 8, "patched")
    assert share.interval is not None and share.interval.low < 0.75 < share.interval.high
    single = [figure for figure in figures if figure.matches({**settings, "alt_loss_pct": 1})]
    assert {figure.metric for figure in single} == set(section.metrics)


def test_numbers_of_variants_belong_to_them(tmp_path: Path) -> None:
    runs = [
        record(kernel=f"ns-2 {variant}", variant=variant, factors={"a": 1}, metrics={"transfer_s": value})
        for variant, value in (("cmt", 2.0), ("appstripe", 3.0))
    ]
    section = sections(load_runs(write(tmp_path, *runs)))[0]
    head, *rows = reference.reference_csv(section, (), "a test").splitlines()[2:]
    assert head == "a,variant,metric,value,n,ci_low,ci_high,source"
    assert rows == ["1,appstripe,transfer_s,3,1,,,ns-2 appstripe", "1,cmt,transfer_s,2,1,,,ns-2 cmt"]


def test_a_source_replaces_its_own_figures_only(tmp_path: Path) -> None:
    file = tmp_path / "ours.csv"
    file.write_text("# a: old\n# b: kept\npmr,metric,value,source\n0,x,1,a\n0,x,2,b\n")
    made = reference.replaced(file, "# a: new\npmr,metric,value,source\n0,x,3,a\n")
    assert made == "# b: kept\n# a: new\npmr,metric,value,source\n0,x,2,b\n0,x,3,a\n"
    assert reference.replaced(tmp_path / "none.csv", made) == made
    with pytest.raises(LabError, match="has the columns pmr,metric,value,source, expected loss,metric"):
        reference.replaced(file, "loss,metric,value,source\n0,x,3,a\n")


def test_no_scenario_file_means_nothing_is_asked() -> None:
    assert report_spec.of_scenario("no-such-scenario") == report_spec.Wanted()


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        (
            {"plots": [{"metric": "transfer_s", "x": "loss"}]},
            "[plots 1]: got 'loss', expected one of the factors",
        ),
        ({"plots": [{"metric": "transfer_s", "x": "a", "pool": ["a"]}]}, "each factor in one place"),
        ({"plots": [{"metric": "transfer_s", "kind": "cdf", "x": "a"}]}, "no x for a cdf"),
        ({"plots": [{"metrics": "transfer_s"}]}, "did you mean metric?"),
        (
            {"contrasts": [{"metric": "transfer_s", "factor": "b", "against": 1}]},
            "expected one of the factors a",
        ),
        ({"contrasts": [{"metric": "transfer_s", "factor": "a"}]}, "add against = ..."),
    ],
)
def test_one_clear_line(tree: dict[str, Any], words: str) -> None:
    with pytest.raises(LabError, match=re.escape(words)):
        report_spec.read(tree, ("a",), At("x.toml", ""))
