from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

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


def test_tables_file_and_plot(tables: tuple[pd.DataFrame, pd.DataFrame], tmp_path: Path) -> None:
    votes, labels = tmp_path / "votes.csv", tmp_path / "labels.csv"
    tables[0].to_csv(votes, index=False)
    tables[1].to_csv(labels, index=False)
    out, plot = tmp_path / "out.csv", tmp_path / "plot.png"
    more = run(votes, "--labels", labels)
    assert "90 % intervals about more items like these" in more.output
    assert " known " not in more.output  # the share among more items never is
    result = run(votes, "--labels", labels, "--out", out, "--plot", plot, "--target", "these")
    assert result.exit_code == 0, (result.output, result.exception)
    assert "90 % intervals about these items" in result.output
    assert "300 items of 2 generator(s) are labelled" in result.output
    assert "Judges" in result.output
    lines = result.output.splitlines()
    alpha = next(line for line in lines if line.startswith("alpha "))
    assert " known " in alpha  # all of its items are labelled
    assert alpha.endswith("1.00, settled")
    assert "Known: every item is labelled." in result.output
    assert "settled if at least 0.95" in result.output
    assert plot.stat().st_size > 5000
    table = pd.read_csv(out).set_index("generator")
    assert list(table.index) == ["alpha", "beta", "gamma"]
    assert table.loc["alpha", "low"] == pytest.approx(table.loc["alpha", "high"])
    assert table.loc["gamma", "low"] < 0.6 < table.loc["gamma", "high"]
    assert abs(table.loc["gamma", "estimate"] - 0.6) < 0.1
    assert table.loc["alpha", "order settled"] == "yes"


def test_without_labels_a_warning_explains_the_intervals(
    tables: tuple[pd.DataFrame, pd.DataFrame], tmp_path: Path
) -> None:
    tables[0].to_csv(tmp_path / "votes.csv", index=False)
    plot = tmp_path / "plot.png"
    result = run(tmp_path / "votes.csv", "--plot", plot)
    assert result.exit_code == 0, (result.output, result.exception)
    assert "No item is labelled" in result.output
    assert "not corrected for the judges' errors" in result.output
    assert "Generators (raw means, not corrected)" in result.output
    assert "Estimate:" not in result.output
    assert "90 % interval" not in result.output
    assert "settled if" not in result.output
    out = tmp_path / "out.csv"
    rule = run(tmp_path / "votes.csv", "--method", "majority", "--out", out, "--plot", plot)
    assert rule.exit_code == 0, (rule.output, rule.exception)
    assert "at least 2 of 3 judges call it valid" in rule.output
    assert list(pd.read_csv(out)) == ["generator", "estimate", "raw mean", "items", "labelled"]
    assert plot.stat().st_size > 5000


def test_without_a_column_of_generators_all_items_are_one_systems(
    tables: tuple[pd.DataFrame, pd.DataFrame], tmp_path: Path
) -> None:
    tables[0].drop(columns="generator").to_csv(tmp_path / "votes.csv", index=False)
    result = run(tmp_path / "votes.csv")
    assert result.exit_code == 0, result.exception
    assert "all items count as one system's; name their column with --generator." in " ".join(
        result.output.split()
    )
    named = run(tmp_path / "votes.csv", "--generator", "writer")
    assert "There is no column 'writer' for the generator" in str(named.exception)


def test_labels_of_a_part_are_used_item_by_item(
    tables: tuple[pd.DataFrame, pd.DataFrame], tmp_path: Path
) -> None:
    votes, labels, chosen = (tmp_path / f"{n}.csv" for n in ("votes", "labels", "chosen"))
    tables[0].to_csv(votes, index=False)
    tables[1].to_csv(labels, index=False)
    result = run(votes, "--labels", labels, "--next", 30, "--next-out", chosen)
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
    impression = run(votes, "--labels", labels, "--method", "impression")
    assert "Use --method panel" in str(impression.exception)
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


def test_win_rates_and_a_ranking_of_systems(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    strength = {"weak": 0.0, "middling": 1.0, "strong": 2.5}
    rows = []
    for i in range(450):
        a, b = rng.permutation(list(strength))[:2]
        won = rng.random() < 1 / (1 + np.exp(strength[b] - strength[a]))
        label = "A" if won else "B"
        for judge in ("one", "two", "three"):
            vote = "tie" if rng.random() < 0.1 else label
            if rng.random() < 0.15:
                vote = "B" if won else "A"
            rows.append((i, a, b, judge, vote, label if i % 2 else None))
    table = pd.DataFrame(rows, columns=["item", "left", "right", "judge", "vote", "label"])
    table.to_csv(tmp_path / "votes.csv", index=False)
    out = tmp_path / "out.csv"
    result = run(tmp_path / "votes.csv", "--systems", "left,right", "--out", out)
    assert result.exit_code == 0, (result.output, result.exception)
    assert "vote(s) for a tie count as missing" in result.output
    rates = pd.read_csv(out).set_index("pair")
    assert rates.loc["middling over strong", "high"] < 0.5
    assert rates.loc["strong over weak", "low"] > 0.5
    ranking = result.output[result.output.index("Systems") :]
    assert ranking.index("strong") < ranking.index("middling") < ranking.index("weak")
    wrong = run(tmp_path / "votes.csv", "--systems", "left")
    assert "needs two columns" in str(wrong.exception)
    wrong = run(tmp_path / "votes.csv", "--systems", "left,top")
    assert "no columns 'left' and 'top'" in str(wrong.exception)


def test_the_item_is_no_generator(
    tables: tuple[pd.DataFrame, pd.DataFrame], tmp_path: Path
) -> None:
    tables[0].to_csv(tmp_path / "votes.csv", index=False)
    result = run(tmp_path / "votes.csv", "--generator", "item")
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
