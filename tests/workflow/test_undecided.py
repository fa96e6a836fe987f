"""Votes for a class that no label has: found, named, undone, and as good as taken out."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from runner import CliRunner

import judgebayes as jb
from judgebayes.cli import app

ACCURACY = (0.85, 0.75, 0.7, 0.65)
OPTIONS: dict[str, Any] = {"splits": 4, "method": "one-coin", "calibrator": "none"}


def pair_panel(
    words: tuple[object, object, object], n: int = 160
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return votes for B, a tie or A in some words, a quarter of them ties, and labels without ties."""
    rng = np.random.default_rng(3)
    truth = rng.choice([0, 2], n)
    right = rng.random((n, len(ACCURACY))) < ACCURACY
    vote = np.where(right, truth[:, None], 2 - truth[:, None])
    vote = np.where(rng.random(vote.shape) < 0.25, 1, vote)
    table = pd.DataFrame(
        {
            "item": np.repeat(np.arange(n), len(ACCURACY)),
            "judge": np.tile(list("abcd"), n),
            "vote": [words[v] for v in vote.ravel()],
        }
    )
    return table, pd.DataFrame({"item": np.arange(n), "label": [words[k] for k in truth]})


@pytest.mark.parametrize("words", [(-1, 0, 1), ("B", "tie", "A")])
def test_ties_among_votes_alone_count_as_missing_for_pairs(words: tuple[object, ...]) -> None:
    votes, labels = pair_panel(words)  # type: ignore[arg-type]
    labels = labels.iloc[:60]
    result = jb.calibrate(votes, labels=labels, **OPTIONS)
    gone = jb.calibrate(votes, labels=labels, missing=str(words[1]), **OPTIONS)
    assert result.given.coding.classes.values == (words[0], words[2])
    assert result.compared is not None
    assert gone.compared is not None
    np.testing.assert_allclose(result.log_probs, gone.log_probs, atol=1e-12)
    assert result.compared.means == gone.compared.means
    assert any(f"are {words[1]!r}, and no label is" in line for line in result.sentences)
    np.testing.assert_allclose(result.judges["accuracy"], gone.judges["accuracy"])
    np.testing.assert_allclose(result.judges["undecided"], 0.25, atol=0.1)
    assert (result.judges["missing"] == 0).all()


def test_with_few_labels_or_on_request_a_tie_is_a_class() -> None:
    votes, labels = pair_panel((-1, 0, 1))
    few = jb.read(votes, labels=labels.iloc[:19])
    asked = jb.read(votes, labels=labels, undecided="none")
    one_tie = labels.iloc[:30].assign(label=labels["label"].where(labels["item"] > 0, 0))
    with_tie = jb.read(votes, labels=one_tie)
    for data in (few, asked, with_tie):
        assert data.coding.classes.values == (-1, 0, 1)
    assert jb.read(votes, labels=labels.iloc[:20]).coding.classes.undecided == (0,)


def words_panel(rates: tuple[float, float], n: int, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return votes no, unsure and yes, unsure at a rate by label, and all labels."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n)
    right = rng.random((n, len(ACCURACY))) < ACCURACY
    vote = np.where(right, truth[:, None], 1 - truth[:, None])
    unsure = rng.random(vote.shape) < np.array(rates)[truth][:, None]
    words = np.where(unsure, "unsure", np.array(["no", "yes"])[vote])
    wide = pd.DataFrame(words, columns=list("abcd")).rename_axis("item").reset_index()
    votes = wide.melt("item", var_name="judge", value_name="vote")
    return votes, pd.DataFrame({"item": np.arange(n), "label": np.array(["no", "yes"])[truth]})


def test_undecided_words_are_named_used_and_applied_to_later_votes(tmp_path: Path) -> None:
    votes, labels = words_panel((0.4, 0.1), 400, 0)
    some = labels.iloc[:150]
    with pytest.raises(jb.JudgeBayesError, match="--set undecided=unsure"):
        jb.read(votes, labels=some)
    fit = jb.calibrate(votes, labels=some, undecided="unsure", **OPTIONS)
    gone = jb.calibrate(votes, labels=some, missing="unsure", **OPTIONS)
    truth = (labels["label"] == "yes").to_numpy(int)[150:]
    own, other = (
        -np.asarray(each.log_probs)[150:][np.arange(len(truth)), truth].mean()
        for each in (fit, gone)
    )
    assert own < other - 0.02
    jb.save(fit, tmp_path / "fit.json")
    later, _ = words_panel((0.4, 0.1), 50, 1)
    applied = jb.apply(tmp_path / "fit.json", later)
    votes_of = jb.read(later, undecided="unsure").votes
    np.testing.assert_allclose(
        applied.answers[["p(no)", "p(yes)"]], np.exp(fit.fitted(votes_of)), atol=1e-9
    )


def test_undecided_values_must_be_votes_and_not_labels() -> None:
    votes, labels = words_panel((0.2, 0.2), 60, 0)
    with pytest.raises(jb.JudgeBayesError, match="no vote is 'maybe'"):
        jb.read(votes, labels=labels, undecided="unsure,maybe")
    labels.loc[3, "label"] = "unsure"
    with pytest.raises(jb.JudgeBayesError, match="Row 4 of column 'label' contains"):
        jb.read(votes, labels=labels, undecided="unsure")


def test_a_diagnosis_names_rates_by_label_and_judges_that_rarely_decide(tmp_path: Path) -> None:
    votes, labels = words_panel((0.75, 0.45), 400, 0)
    result = jb.diagnose(votes, labels=labels, undecided="unsure").findings
    undecided = [finding for finding in result if finding.topic == "undecided"]
    assert [set(finding.judges) for finding in undecided] == [set("abcd")] * 2
    votes.to_csv(tmp_path / "v.csv", index=False)
    labels.to_csv(tmp_path / "l.csv", index=False)
    files = [
        str(tmp_path / "v.csv"),
        "--labels",
        str(tmp_path / "l.csv"),
        "--set",
        "undecided=unsure",
    ]
    shown = CliRunner().invoke(app, ["diagnose", *files])
    assert shown.exit_code == 0, shown.output
    assert "undecided" in shown.output
    assert "--set undecided=none" in shown.output
