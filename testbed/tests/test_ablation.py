# SPDX-License-Identifier: GPL-2.0
"""Rules by name, and what two sets of runs say a rule is worth."""

from pathlib import Path

import pytest
from sctplab.errors import LabError
from sctplab.oracle import ablation
from sctplab.oracle.ablation import Row
from sctplab.paths import ROOT


def test_each_rule_is_a_function_of_the_patches_it_names() -> None:
    for name, rule in ablation.read().items():
        file, function = rule.function.split(":")
        for number in rule.patch.split(", "):
            (patch,) = (ROOT / "patches" / "common").glob(f"{number}-*.patch")
            assert f"+++ b/{file}" in patch.read_text(), f"{name}: {number} does not touch {file}"
        every = "".join(path.read_text() for path in (ROOT / "patches" / "common").glob("*.patch"))
        assert f"{function}(" in every, name


def test_only_some_rules() -> None:
    rules = ablation.read()
    assert ablation.groups(rules, [], []) == {name: [rule] for name, rule in rules.items()}
    assert list(ablation.groups(rules, ["hold"], [])) == ["hold"]
    with pytest.raises(LabError, match=r"--only hol: expected one of .*; did you mean hold\?"):
        ablation.groups(rules, ["hol"], [])


def test_rules_together() -> None:
    rules = ablation.read()
    assert ablation.groups(rules, [], ["undo", "hold"]) == {"hold+undo": [rules["hold"], rules["undo"]]}
    assert rules["undo"].word == rules["undo"].function
    assert rules["blest"].word == f"{rules['blest'].function}=false"
    with pytest.raises(LabError, match=r"--together und: .*; did you mean undo\?"):
        ablation.groups(rules, [], ["und"])


@pytest.mark.parametrize(
    ("worths", "keeps"),
    [
        ((1.0, 1.0, 1.0), False),
        ((0.9, 1.0, 1.029), False),
        ((0.9, 1.0, 1.03), True),
        ((1.0, 1.01, 1.02), True),
    ],
)
def test_what_keeps_a_rule(worths: tuple[float, ...], keeps: bool) -> None:
    row = Row("runs", "0420", "goodput_mbit", tuple((worth, f"cell {i}") for i, worth in enumerate(worths)))
    assert row.keeps is keeps
    assert row.words()[:5] == ("runs", "0420", "goodput_mbit", "3", f"{worths[1]:.3f}")
    assert row.words()[5:] == (
        f"{worths[2]:.3f}", "cell 2", f"{worths[0]:.3f}", "cell 0", "yes" if keeps else "no"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[rule.runs]\n", "expected one of the keys rules"),
        ('[rules.runs]\ntitle = "a"\npatch = "0420"\n', "function: got None, expected a value"),
        ('[rules.runs]\ntitle = "a"\npatch = "420"\nfunction = "a.c:b"\n', "numbers of patches"),
        ("[rules", "cannot be read"),
    ],
)
def test_files_that_are_none(text: str, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "ablation.toml").write_text(text)
    with pytest.raises(LabError, match=complaint):
        ablation.read(tmp_path / "ablation.toml")
