"""`judgebayes calibrate` and `apply` on the votes of several judges."""

from pathlib import Path

import jax
import numpy as np
import pandas as pd
import pytest
from runner import CliRunner, Result

from judgebayes.cli import app
from judgebayes.errors import JudgeBayesError
from judgebayes.votes import encode
from judgebayes.workflow.methods import Choice, build, suited
from judgebayes.workflow.options import CALIBRATORS, METHODS


def run(*args: object) -> Result:
    result = CliRunner().invoke(app, [str(a) for a in args])
    if isinstance(result.exception, JudgeBayesError):
        return result
    assert result.exit_code == 0, (result.output, result.exception)
    return result


@pytest.fixture(scope="module")
def panel() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Four judges of unequal accuracy, one of them below chance, on 80 pairs; 60 labels."""
    rng = np.random.default_rng(3)
    label = rng.integers(0, 2, 80)
    accuracy = {"good": 0.9, "fair": 0.75, "coin": 0.5, "contrary": 0.2}
    rows = [
        (f"pair {i}", judge, "A" if (y == 1) == (rng.random() < p) else "B")
        for i, y in enumerate(label)
        for judge, p in accuracy.items()
    ]
    votes = pd.DataFrame(rows, columns=["item", "judge", "vote"])
    gold = pd.DataFrame(
        {"item": [f"pair {i}" for i in range(60)], "label": np.where(label[:60], "A", "B")}
    )
    return votes, gold


@pytest.fixture
def files(tmp_path: Path, panel: tuple[pd.DataFrame, pd.DataFrame]) -> tuple[Path, Path]:
    votes, gold = tmp_path / "votes.csv", tmp_path / "gold.csv"
    panel[0].to_csv(votes, index=False)
    panel[1].to_csv(gold, index=False)
    return votes, gold


def test_auto_says_what_it_compared_and_adds_conformal_sets(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    votes, gold = files
    out = tmp_path / "out.csv"
    said = run(
        "calibrate", votes, "--labels", gold, "--splits", 3, "--conformal", 0.8, "--out", out
    ).output
    assert "held-out NLL" in said
    for name in ("davidson", "one-coin + beta", "dawid-skene + beta", "stacking", "best-constant"):
        assert name in said
    assert "Conformal sets at 80 %: method fitted on 40 labels, threshold from the other 20" in said
    table = pd.read_csv(out, keep_default_na=False)
    assert set(table["set"]) <= {"(empty)", "A", "B", "B | A"}
    surest = table[["p(B)", "p(A)"]].max(axis=1)
    certain = surest >= surest.quantile(0.7)
    assert (table.loc[certain, "set"] == table.loc[certain, "decision"]).mean() > 0.9


def test_label_noise_reaches_every_fit_that_learns_from_labels(
    panel: tuple[pd.DataFrame, pd.DataFrame],
) -> None:
    votes, coding = encode(panel[0])
    # The first needs several methods, the others tasks, three classes and ten judges.
    elsewhere = ("auto", "hierarchical", "margin-threshold", "top-5", "top-10")
    without_noise = []
    for name in METHODS:
        if name not in elsewhere:
            method = build(Choice(name, "none", label_noise=0.2), coding.classes, votes)
            if 0.2 not in jax.tree.leaves(method):
                without_noise.append(name)
    assert without_noise == ["vote-share", "sc"]  # they learn nothing from labels
    ternary, graded = encode(panel[0].assign(vote=np.arange(len(panel[0])) % 3 - 1))
    choice = Choice("margin-threshold", "none", label_noise=0.2)
    assert 0.2 in jax.tree.leaves(build(choice, graded.classes, ternary))
    for name in CALIBRATORS:
        method = build(Choice("sc", name, label_noise=0.2), coding.classes, votes)
        assert (0.2 in jax.tree.leaves(method)) == (name not in ("auto", "none"))


def test_a_kept_panel_fit_finds_its_judges_by_name(
    files: tuple[Path, Path], panel: tuple[pd.DataFrame, pd.DataFrame], tmp_path: Path
) -> None:
    votes, gold = files
    fit, out, again = (tmp_path / name for name in ("fit.json", "out.csv", "again.csv"))
    run(
        *("calibrate", votes, "--labels", gold, "--method", "one-coin", "--splits", 3),
        *("--save", fit, "--out", out),
    )
    # Another order of judges, a judge that is new and one that is absent.
    other = panel[0].sort_values(["judge", "item"], ascending=False)
    stranger = other[other["judge"] == "coin"].assign(judge="stranger")
    pd.concat([stranger, other]).to_csv(votes, index=False)
    said = run("apply", fit, votes, "--out", again).output
    assert "The votes of stranger are not used" in said
    one = pd.read_csv(out).set_index("item").sort_index()
    two = pd.read_csv(again).set_index("item").sort_index()
    np.testing.assert_allclose(one["p(A)"], two["p(A)"], atol=1e-12)
    other[other["judge"] != "coin"].to_csv(votes, index=False)
    assert (
        "1 judge(s) of the fit have no votes in this file: coin" in run("apply", fit, votes).output
    )
    stranger.to_csv(votes, index=False)
    refused = run("apply", fit, votes)
    assert "None of the judges stranger is in the fit" in str(refused.exception)


def test_nearly_constant_labels_get_no_nll(
    files: tuple[Path, Path], panel: tuple[pd.DataFrame, pd.DataFrame]
) -> None:
    votes, gold = files
    table = panel[1].assign(label=["B", *["A"] * 59])
    table.to_csv(gold, index=False)
    asked = ("calibrate", votes, "--labels", gold, "--method", "one-coin", "--splits", 3)
    said = run(*asked).output
    assert "refused" in said
    assert "98.3 % of the labels are" in said
    assert "refused" not in run(*asked, "--set", "allow_degenerate=true").output


@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        ("--calibrator", "magic", "--calibrator 'magic' is unknown; choose one of: auto, none"),
        ("--conformal", "90", "it must be a coverage between 0 and 1"),
        ("--method", "top-10", "--method top-10 needs 10 judges; there are 4"),
    ],
)
def test_wrong_options_get_a_sentence(
    files: tuple[Path, Path], option: str, value: str, sentence: str
) -> None:
    votes, gold = files
    assert sentence in str(run("calibrate", votes, "--labels", gold, option, value).exception)


def test_every_method_can_be_built(panel: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    votes, coding = encode(panel[0])
    possible = [
        m
        for m in METHODS
        if m not in ("auto", "hierarchical", "margin-threshold", "top-5", "top-10")
    ]
    for name in possible:
        for calibrator in ("auto", "isotonic"):
            made = build(Choice(name, calibrator), coding.classes, votes)
            assert hasattr(made, "fit"), name
    assert suited(votes)[-1] == "best-constant"
    assert Choice("one-coin").name == "one-coin + beta"
    assert Choice("stacking").name == "stacking"
