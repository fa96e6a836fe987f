"""Items that are sent to a person: which items, the risk of the others, and their rows in tables."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from runner import CliRunner

import judgebayes as jb
from judgebayes.cli import app
from judgebayes.evaluate.one_split import Evaluation
from judgebayes.evaluate.splits import random_splits
from judgebayes.measures.scores import absolute_loss
from judgebayes.votes import Classes
from judgebayes.workflow.answers import abstention
from judgebayes.workflow.comparing import Compared
from judgebayes.workflow.losses import PERSON, Losses, losses_of

ITEMS, SPLITS, LOSS = 50, 20, absolute_loss(3)
CLASSES = Classes((-1, 0, 1), pairwise=True)


def asking(price: float | None) -> Losses:
    return losses_of(None if price is None else f"person={price}", CLASSES)


@pytest.fixture(scope="module")
def compared() -> Compared:
    """Known probabilities, labels drawn from them."""
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([0.4] * 3, ITEMS)
    labels = (rng.random((ITEMS, 1)) > probs.cumsum(1)).sum(1)
    parts = random_splits(ITEMS, splits=SPLITS, calibration=0.6, seed=1)
    items = parts.evaluation
    own = Evaluation(
        items,
        labels[items],
        np.log(probs)[items],
        (probs @ LOSS.T).argmin(1)[items],
        np.zeros(SPLITS, int),
    )
    return Compared(parts, {}, {"own": own}, ITEMS, None)


def test_share_and_risk_are_those_of_the_definition(compared: Compared) -> None:
    own = compared.evaluations["own"]
    n_sent, lost, kept = 0, 0.0, 0
    for probs, labels, decisions in zip(
        np.exp(own.log_probs), own.labels, own.decisions, strict=True
    ):
        for p, label, decision in zip(probs, labels, decisions, strict=True):
            if p @ LOSS[decision] > 0.3:
                n_sent += 1
            else:
                kept += 1
                lost += LOSS[decision, label]
    summary = abstention(compared, "own", asking(0.3))
    assert summary.share.mean == pytest.approx(n_sent / (n_sent + kept))
    assert summary.risk.mean == pytest.approx(lost / kept)
    assert 0 <= summary.risk.low <= summary.risk.mean <= summary.risk.high
    assert f"{summary.risk.mean:.3f}" in summary.sentence


def test_an_unsure_border_widens_the_share_and_few_losses_the_risk(compared: Compared) -> None:
    """Other labels would move all items near the border at once, and exclude no rare loss."""
    own = compared.evaluations["own"]
    sure = np.log([[0.8, 0.1, 0.1]])
    by_split = np.where(np.arange(SPLITS) % 2, 0.5, 0.0)[:, None, None]
    near = np.log(np.array([[0.8, 0.1, 0.1]]) * (1 - by_split) + by_split / 3)
    shape = own.log_probs.shape
    nothing = np.zeros_like(own.labels)
    right = replace(own, labels=nothing, decisions=nothing)
    moving, fixed = (
        replace(
            compared,
            evaluations={"own": replace(right, log_probs=np.broadcast_to(log_probs, shape))},
        )
        for log_probs in (near, sure)
    )
    together, none = (abstention(one, "own", asking(0.5)) for one in (moving, fixed))
    assert together.share.mean == pytest.approx(0.5)
    assert together.share.high - together.share.low > 0.25
    assert none.share.mean == 0
    assert none.risk.mean == none.risk.low == 0
    assert none.risk.high == pytest.approx(2 * (1 - 0.1 ** (1 / len(np.unique(own.items)))))


def test_the_tables_name_who_decides_and_the_fit_goes_on_sending(tmp_path: Path) -> None:
    CliRunner().invoke(app, ["example", str(tmp_path)])
    votes, labels, fit = tmp_path / "votes.csv", tmp_path / "labels.csv", tmp_path / "fit.json"
    plain = jb.calibrate(votes, labels, method="davidson", splits=3)
    result = jb.calibrate(votes, labels, method="davidson", splits=3, loss="person=0.3")
    to_person = plain.answers["expected_loss"] > 0.3
    assert 0 < to_person.mean() < 1
    assert (result.answers["decision"] == PERSON).equals(to_person)
    kept = result.answers["decision"][~to_person].astype(int)
    assert kept.tolist() == plain.answers["decision"][~to_person].astype(int).tolist()
    assert f"sent to a person: {to_person.sum()}" in str(result)
    jb.save(result, fit)
    again = jb.apply(fit, votes, loss="person=0.3")
    pd.testing.assert_frame_equal(again.answers, result.answers)
    with pytest.raises(jb.JudgeBayesError, match="the cost of asking a person is -1; it must be 0"):
        jb.calibrate(votes, labels, loss="absolute:person=-1")


ONE_SIDED = pd.DataFrame(
    {"-1": [0.0, 1.0, 5.0, 0.5], "0": [1.0, 0.0, 1.0, 0.2], "+1": [2.0, 1.0, 0.0, 0.5]},
    index=["-1", "0", "+1", PERSON],
)


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("example")
    CliRunner().invoke(app, ["example", str(folder)])
    return folder


def test_a_table_of_losses_decides_and_prices_a_person_by_class(example: Path) -> None:
    files = example / "votes.csv", example / "labels.csv"
    result = jb.calibrate(*files, method="davidson", splits=3, loss=ONE_SIDED)
    table = result.answers
    probs = table[[f"p({name})" for name in ("-1", "0", "+1")]].to_numpy()
    risks = probs @ ONE_SIDED.to_numpy().T
    best = risks[:, :3].min(1)
    np.testing.assert_allclose(table["expected_loss"], best, atol=1e-9)
    to_person = table["decision"] == PERSON
    np.testing.assert_array_equal(to_person, risks[:, 3] < best - 1e-9)
    assert 0 < to_person.sum() < len(table)
    own = table["decision"][~to_person].astype(int).to_numpy() + 1
    np.testing.assert_allclose(risks[~to_person][np.arange(len(own)), own], best[~to_person])
    assert "Loss of a decision: as given by --loss. Extra loss" in str(result)
    assert "an expected loss above the expected cost of asking go to a person" in str(result)


@pytest.mark.parametrize("form", ["shuffled", "file", "matrix", "first column"])
def test_losses_are_the_same_in_every_form(form: str, tmp_path: Path) -> None:
    expected = ONE_SIDED.to_numpy()
    shuffled = ONE_SIDED.loc[[PERSON, "+1", "-1", "0"], ["0", "+1", "-1"]]
    given: object
    if form == "shuffled":
        given = shuffled
    elif form == "matrix":
        given = expected.tolist()
    elif form == "first column":
        given = shuffled.rename_axis("what").reset_index()
    else:
        given = tmp_path / "losses.csv"
        shuffled.to_csv(given)
    losses = losses_of(given, CLASSES)
    np.testing.assert_array_equal(losses.matrix, expected[:3])
    np.testing.assert_array_equal(losses.person, expected[3])
    assert losses.cost is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            [[0, 1], [1, 0]],
            "--loss is 2 x 2; it needs a row per decision and a column per",
        ),
        (
            "abc",
            "'abc' is neither absolute, zero-one (with a cost of asking: absolute:person=0.3) nor",
        ),
        ("zero-one:person=x", "the cost of asking a person is x; it must be"),
        ([["a"] * 3] * 3, "--loss is not a matrix of numbers"),
        ([*LOSS.tolist(), [1, np.nan, 1]], "deciding 'person' if '0' is right is nan"),
        ((-LOSS).tolist(), "deciding '-1' if '0' is right is -1.0; it must be a finite"),
        (ONE_SIDED.drop("0"), "its rows are"),
        (ONE_SIDED.drop(columns="0"), "its columns are -1, +1; it needs one for each of"),
        (ONE_SIDED.rename(index={"0": "tie"}), "the classes -1, 0, +1, and may have a row"),
    ],
)
def test_invalid_losses_are_refused_in_a_sentence(given: object, message: str) -> None:
    with pytest.raises(jb.JudgeBayesError, match=re.escape(message)):
        losses_of(given, CLASSES)
