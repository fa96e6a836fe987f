"""Problems of judges and labels: too few labels, constant votes, and judges without any label."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cases.asking import result_of, run

import judgebayes as jb
from judgebayes.panel.agreement import agreement_table, check_agreement, check_constant
from judgebayes.votes import encode


def votes_of(columns: dict[str, np.ndarray]) -> pd.DataFrame:
    """Return a row per vote; -1 is no vote."""
    table = pd.DataFrame(columns).rename_axis("item").reset_index()
    long = table.melt("item", var_name="judge", value_name="vote")
    return long[long["vote"] >= 0]


def panel(rng: np.random.Generator, n: int, *accuracies: float) -> tuple[pd.DataFrame, np.ndarray]:
    label = rng.integers(0, 2, n)
    votes = {
        f"j{k}": np.where(rng.random(n) < right, label, 1 - label)
        for k, right in enumerate(accuracies)
    }
    return votes_of(votes), label


def diagnosed(table: pd.DataFrame, label: np.ndarray | None = None) -> Any:
    labels = (
        None if label is None else pd.DataFrame({"item": np.arange(len(label)), "label": label})
    )
    return jb.diagnose(table, labels, classes="0,1")


def problems(result: Any) -> list[str]:
    return [each.sentence for each in result.findings if each.severity == "bad"]


@pytest.mark.parametrize("labelled", [1, 2, 9])
def test_a_few_labels_are_a_problem(labelled: int) -> None:
    table, label = panel(np.random.default_rng(0), 60, 0.8, 0.7)
    result = diagnosed(table, label[:labelled])
    assert f"Only {labelled} item(s) are labelled" in " ".join(problems(result))
    assert not any(each.severity == "good" for each in result.findings)


def test_many_judges_with_three_labels_each_are_a_problem() -> None:
    """300 judges vote on three items each, all of which are labelled."""
    rng = np.random.default_rng(1)
    label = rng.integers(0, 2, 90)
    rows = [
        (int(item), f"worker {j}", int(label[item] if rng.random() < 0.8 else 1 - label[item]))
        for j in range(300)
        for item in rng.choice(90, 3, replace=False)
    ]
    result = diagnosed(pd.DataFrame(rows, columns=["item", "judge", "vote"]), label)
    assert "300 of 300 judges have votes on fewer than 5 labelled items (median 3)" in " ".join(
        problems(result)
    )


def test_enough_labels_are_no_problem() -> None:
    table, label = panel(np.random.default_rng(2), 60, 0.8, 0.7, 0.75)
    assert problems(diagnosed(table, label)) == []


@pytest.mark.parametrize("with_labels", [True, False])
def test_constant_votes_are_a_problem(with_labels: bool) -> None:
    rng = np.random.default_rng(3)
    table, label = panel(rng, 60, 0.8, 0.7)
    constant = votes_of({"stuck": np.ones(60, int)})
    result = diagnosed(pd.concat([table, constant]), label if with_labels else None)
    (line,) = [each for each in problems(result) if "same vote on every item" in each]
    assert "1 judge(s)" in line
    assert "stuck (1, 60 items)" in line


def test_constant_votes_on_one_sided_items_are_none() -> None:
    """97 % of the items have one class: 40 equal votes are no surprise."""
    rng = np.random.default_rng(4)
    label = (rng.random(40) < 0.97).astype(int)
    label[0] = 0
    table = votes_of({"a": np.ones(40, int), "b": label})
    votes, coding = encode(table)
    assert check_constant(votes, label, list(coding.judges), (0, 1)) == []


def test_agreement_is_that_of_the_formula() -> None:
    rng = np.random.default_rng(5)
    table, _ = panel(rng, 80, 0.9, 0.6, 0.7)
    table = table.sample(frac=0.8, random_state=0)
    votes, coding = encode(table)
    result = agreement_table(votes, (0, 1))
    wide = table.pivot(index="item", columns="judge", values="vote")
    for place, judge in enumerate(coding.judges):
        equal = [
            np.mean(
                [
                    row[judge] == row[other]
                    for other in wide.columns
                    if other != judge and row[other] >= 0
                ]
            )
            for _, row in wide.dropna(subset=[judge]).iterrows()
            if row.drop(judge).notna().any()
        ]
        np.testing.assert_allclose(result["agreement"][place], np.mean(equal))
        np.testing.assert_allclose(result["share 1"][place], wide[judge].mean())


def test_judges_without_labels_are_compared_with_one_another(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    table, label = panel(rng, 80, 0.85, 0.8, 0.75)
    first = table[table["judge"] == "j0"]
    reversed_votes = np.where(rng.random(80) < 0.85, 1 - label, label)
    table = pd.concat([table, first.assign(judge="copy"), votes_of({"backwards": reversed_votes})])
    table.to_csv(tmp_path / "v.csv", index=False)
    result = result_of("diagnose", tmp_path / "v.csv", out=tmp_path / "r.json")
    said = " ".join(result["sentences"])
    assert "two votes on an item are equal in" in said
    assert "Krippendorff's alpha" in said
    assert "1 pair(s) of judges give the same vote on every item: j0 and copy (80 items)" in said
    assert "1 judge(s) agree with the others less than votes at random would: backwards" in said
    rows = {row["judge"]: row for row in result["tables"]["judges"]}
    assert rows["j0"]["agreement"] > 0.6 > 0.4 > rows["backwards"]["agreement"]
    assert abs(rows["j1"]["share 0"] + rows["j1"]["share 1"] - 1) < 1e-12
    shown = run("diagnose", tmp_path / "v.csv")
    assert "agreement share 0 share 1" in shown


def test_independent_judges_are_rarely_called_copies_or_reversed() -> None:
    rng = np.random.default_rng(7)
    false = 0
    for _ in range(40):
        table, _ = panel(rng, 50, 0.5, 0.6, 0.5, 0.7)
        votes, coding = encode(table)
        findings = check_agreement(votes, list(coding.judges))
        false += any(each.severity == "bad" for each in findings)
    assert false <= 1
