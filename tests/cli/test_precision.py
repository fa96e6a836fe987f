from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from runner import CliRunner, Result

from judgebayes.cli import app
from judgebayes.errors import JudgeBayesError


@pytest.fixture(scope="module")
def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(0)
    rows, gold = [], []
    for name, g in (("alpha", 0.9), ("beta", 0.75), ("gamma", 0.6)):
        for i in range(150):
            item, label = f"{name} {i}", int(rng.random() < g)
            gold.append((item, label))
            for judge in ("one", "two", "three"):
                right = rng.random() < 0.85
                rows.append((item, name, judge, label if right else 1 - label))
    votes = pd.DataFrame(rows, columns=["item", "generator", "validator", "vote"])
    labels = pd.DataFrame(gold, columns=["item", "label"])
    return votes, labels[~labels["item"].str.startswith("gamma")]


def run(*args: object) -> Result:
    return CliRunner().invoke(app, ["precision", *map(str, args)])


def test_labels_of_a_part_are_used_item_by_item(
    tables: tuple[pd.DataFrame, pd.DataFrame], tmp_path: Path
) -> None:
    votes, labels, chosen = (tmp_path / f"{n}.csv" for n in ("votes", "labels", "chosen"))
    tables[0].to_csv(votes, index=False)
    tables[1].to_csv(labels, index=False)
    result = run(votes, "--labels", labels, "--next", 30, "--out", chosen)
    assert result.exit_code == 0, (result.output, result.exception)
    assert "Label next: 30 item(s)" in result.output
    assert "10 more are not shown" in result.output
    template = pd.read_csv(chosen)
    # The other two generators are labelled in full.
    assert set(template["generator"]) == {"gamma"}
    assert template["item"].is_unique
    assert template["label"].isna().all()
    template["label"] = np.arange(30) % 2
    pd.concat([tables[1], template]).to_csv(labels, index=False)
    result = run(votes, "--labels", labels)
    assert result.exit_code == 0, (result.output, result.exception)
    assert " 30/150" in result.output
    assert "Check: each labelled generator, predicted from the others" in result.output
    assert "Mean error in points: predicted" in result.output.replace("\n", " ")
    strata = run(votes, "--labels", labels, "--method", "strata")
    assert strata.exit_code == 0, (strata.output, strata.exception)
    assert "Check:" not in strata.output
    unknown = run(votes, "--labels", labels, "--method", "best")
    assert "auto" in str(unknown.exception)
    assert "panel" in str(unknown.exception)


def test_odd_and_reversed_judges_are_named(
    tables: tuple[pd.DataFrame, pd.DataFrame], tmp_path: Path
) -> None:
    votes, labels = tables
    one = votes[votes["validator"] == "one"]
    yes = one.assign(validator="yes", vote=1)
    turned = one.assign(validator="turned", vote=1 - one["vote"])
    votes = pd.concat([votes, votes.assign(validator=votes["validator"] + " again"), yes, turned])
    votes.to_csv(tmp_path / "votes.csv", index=False)
    labels.to_csv(tmp_path / "labels.csv", index=False)
    result = run(tmp_path / "votes.csv", "--labels", tmp_path / "labels.csv")
    said = " ".join(result.output.split())
    assert "Judge 'yes' votes unlike the others on 3 of 3 generator(s)" in said
    assert "it calls 100 % valid" in said
    assert "Judge 'turned' calls invalid items valid more often than valid ones" in said
    assert "Judge 'one' calls" not in said
    assert "Judge 'yes' calls invalid" not in said


def test_the_item_is_no_generator(
    tables: tuple[pd.DataFrame, pd.DataFrame], tmp_path: Path
) -> None:
    tables[0].to_csv(tmp_path / "votes.csv", index=False)
    result = run(tmp_path / "votes.csv", "--set", "generator=item")
    assert isinstance(result.exception, JudgeBayesError)
    assert "Column 'item' is the item; a generator makes several items" in str(result.exception)


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_a_seed_that_is_none(
    seed: int, tables: tuple[pd.DataFrame, pd.DataFrame], tmp_path: Path
) -> None:
    tables[0].to_csv(tmp_path / "votes.csv", index=False)
    result = run(tmp_path / "votes.csv", "--seed", seed)
    assert isinstance(result.exception, JudgeBayesError)
    assert "A seed is a whole number from 0 to 2^63 - 1" in str(result.exception)
