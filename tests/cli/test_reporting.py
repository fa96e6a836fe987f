"""`judgebayes calibrate --html` on the embedded example, and on names that try to break it."""

import hashlib
import shlex
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import pytest
from report.test_report import HOSTILE, check
from runner import CliRunner, Result

from judgebayes import BaseRate
from judgebayes.cli import app
from judgebayes.errors import JudgeBayesError
from judgebayes.evaluate.sweeps import evaluate_splits
from judgebayes.experiments.getting import example_tables
from judgebayes.measures.scores import absolute_loss
from judgebayes.report import first_items
from judgebayes.show.page import Table
from judgebayes.votes import Votes
from judgebayes.votes.columns import MAX_NAME
from judgebayes.workflow.comparing import compare
from judgebayes.workflow.next_steps import grow


def run(*args: object) -> Result:
    result = CliRunner().invoke(app, [str(a) for a in args])
    if isinstance(result.exception, JudgeBayesError):
        return result
    assert result.exit_code == 0, (result.output, result.exception)
    return result


def test_the_page_of_the_example_is_reproducible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    votes, gold = example_tables(0)
    gold = gold.head(50)
    others = votes.loc[~votes["item"].isin(gold["item"]), "item"].unique()[:10]
    kept = votes["item"].isin([*gold["item"], *others]) & (votes["sample"] <= 4)
    name = {"item": "Question ID"}
    votes = votes[kept].rename(columns=name)  # sizes that other tests compile for as well
    votes.to_csv("votes 1.csv", index=False)
    gold.rename(columns=name).to_csv("labels.csv", index=False)
    asked = ["--labels", "labels.csv", "--splits", "3", "--method", "davidson", "--seed", "1"]
    asked += [
        "--set",
        "empty_sets=true",
        "--conformal",
        "0.7",
        "--out",
        "answers.csv",
        "--html",
        "report.html",
    ]
    said = run("calibrate", "votes 1.csv", *asked).output
    assert "report.html: the page." in said
    markup = Path("report.html").read_text()
    page = check(markup)
    assert page.said("h2") == [
        "Decisions",
        "The methods",
        "The judges",
        "Calibrated probabilities",
        "Conformal sets",
        "Items to review",
        "The effect of more labels",
        "What was read",
        "To run it again",
    ]
    assert len(page.of("svg")) == 1 + 1 + 3 + 1  # losses; judges; three classes; NLL
    (again,) = page.said("code")
    words = shlex.split(again)
    assert words[:3] == ["judgebayes", "calibrate", "votes 1.csv"]
    assert sorted(words[3:]) == sorted(asked)
    run(*words[1:])
    assert Path("report.html").read_text() == markup
    table = pd.read_csv("answers.csv", dtype={"set": str}, keep_default_na=False)
    made = [f"{n}: {(table['decision'] == k).sum()}" for n, k in (("-1", -1), ("0", 0), ("+1", 1))]
    assert ", ".join(made) in page.said("dd")
    sets = table["set"].value_counts()
    assert f"{sets.iloc[0]}" in page.said("td")
    for name in ("votes 1.csv", "labels.csv"):
        digest = hashlib.sha256(Path(name).read_bytes()).hexdigest()
        assert f"SHA-256 {digest}" in page.said("dd")
    assert "Conformal sets at 70 %" in said
    # The number of items whose decision is not in their set is printed, here and on the page.
    inside = [
        name in held.split(" | ")
        for name, held in zip(
            table["decision"].map({-1: "-1", 0: "0", 1: "+1"}), table["set"], strict=True
        )
    ]
    assert not all(inside)
    first = table["Question ID"][inside.index(False)]
    sentence = f"On {inside.count(False)} of 60 items (the first is '{first}')"
    assert f"{sentence}, the decision is not in the set" in said
    assert any(sentence in words for words in page.said("p"))


def test_items_to_review_have_the_names_of_their_file_and_classes() -> None:
    answers = pd.DataFrame(
        {
            "Question ID": ["007", "2.10", "x"],
            "p(not_valid)": [0.4, 0.3, 0.0],
            "p(is_valid)": [0.6, 0.7, 1.0],
            "decision": ["is_valid"] * 3,
            "expected_loss": [0.4, 0.3, 0.0],
        }
    )
    table = first_items(answers, np.array([False, True, False]))
    assert isinstance(table, Table)
    assert [*table.head] == ["item", "p(not_valid)", "p(is_valid)", "decision", "expected loss"]
    assert [*map(tuple, table.rows)] == [("007", "0.400", "0.600", "is_valid", "0.400")]


def test_hostile_files_make_a_harmless_page(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    judges = [n for n in HOSTILE if n and "\x00" not in n and "\n" not in n]
    judges = [n if len(n) <= MAX_NAME else n[: MAX_NAME - 20] + n[-20:] for n in judges]
    items = [f"{HOSTILE[k % 3]} {k}" for k in range(60)]
    votes = pd.DataFrame(
        [(i, j, rng.integers(0, 2)) for i in items for j in judges],
        columns=["item", "judge", "vote"],
    )
    votes.to_json(tmp_path / "<b>votes.jsonl", orient="records", lines=True)
    gold = pd.DataFrame({"item": items, "label": rng.integers(0, 2, 60)}).head(8)
    gold.to_csv(tmp_path / "gold.csv", index=False)
    out = tmp_path / "page.html"
    args = [
        "calibrate",
        tmp_path / "<b>votes.jsonl",
        "--labels",
        tmp_path / "gold.csv",
        "--html",
        out,
    ]
    run(*args, "--method", "best-constant")
    markup = out.read_text()
    page = check(markup)
    assert len(markup) < 300_000
    (title,) = page.said("h1")
    assert title.endswith("/<b>votes.jsonl'")


def test_growth_is_that_of_nested_labels(votes: Votes, labels: np.ndarray) -> None:
    loss, method = absolute_loss(3), BaseRate()
    with jax.enable_x64(True):
        compared = compare({"best-constant": method}, votes, labels, None, loss, splits=3, seed=5)
        growth = grow(compared, "best-constant")
        assert growth.labels == (10, 20, 40)
        assert growth.nll[-1].mean == pytest.approx(compared.means["best-constant"]["nll"])
        for size, nll in zip(growth.labels, growth.nll, strict=True):
            parts = compared.parts.with_calibration(size)
            own = evaluate_splits(
                method, votes, labels, parts, fit_on="calibration", loss=loss, seed=5
            )
            truth, log_probs = np.asarray(own.labels), np.asarray(own.log_probs)
            scores = [
                -lp[t >= 0][np.arange((t >= 0).sum()), t[t >= 0]].mean()
                for lp, t in zip(log_probs, truth, strict=True)
            ]
            assert nll.mean == pytest.approx(np.mean(scores), abs=1e-9)
            assert np.isinf(nll.mean) or nll.low < nll.mean < nll.high
        assert np.isfinite(growth.nll[-2].mean)
