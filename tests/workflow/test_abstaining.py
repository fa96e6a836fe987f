"""Items that are sent to a person: which, what is left, and what the tables say of them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import judgebayes as jb
from judgebayes.cli import app
from judgebayes.evaluate.one_split import Evaluation
from judgebayes.evaluate.splits import random_splits
from judgebayes.measures.decide import absolute_loss, risk
from judgebayes.workflow.abstaining import abstention, risk_curve
from judgebayes.workflow.answers import PERSON, sent
from judgebayes.workflow.comparing import Compared

ITEMS, SPLITS, LOSS = 50, 20, absolute_loss(3)


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


def test_sending_is_the_bayes_action_of_a_loss_with_one_more_row() -> None:
    probs = np.random.default_rng(1).dirichlet([0.5] * 3, 200)
    cost = 0.4
    longer = np.concatenate([LOSS, np.full((1, 3), cost)])
    risks = np.asarray(risk(np.log(probs), longer))
    np.testing.assert_array_equal(sent((probs @ LOSS.T).min(1), cost), risks.argmin(1) == 3)


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
    found = abstention(compared, "own", LOSS, 0.3)
    assert found.share.mean == pytest.approx(n_sent / (n_sent + kept))
    assert found.risk.mean == pytest.approx(lost / kept)
    assert 0 <= found.risk.low <= found.risk.mean <= found.risk.high
    assert f"{found.risk.mean:.3f}" in found.sentence


def test_a_price_of_nothing_sends_all_and_a_high_one_nobody(compared: Compared) -> None:
    everyone = abstention(compared, "own", LOSS, 0.0)
    assert everyone.share.mean == 1
    assert np.isnan(everyone.risk.mean)
    assert "no decision is left" in everyone.sentence
    nobody = abstention(compared, "own", LOSS, 2.0)
    losses = compared.evaluations["own"].losses(LOSS)
    assert nobody.share.mean == 0
    assert nobody.risk.mean == pytest.approx(losses.mean())
    whole = compared.mean_loss("own", losses, 2.0, level=0.9)
    np.testing.assert_allclose(nobody.risk, whole, atol=1e-12)


def test_the_curve_ends_at_the_whole_and_passes_through_every_price(compared: Compared) -> None:
    curve = risk_curve(compared, "own", LOSS)
    last = curve.iloc[-1]
    assert last["decided"] == 1
    assert last["risk"] == pytest.approx(compared.evaluations["own"].losses(LOSS).mean())
    found = abstention(compared, "own", LOSS, 0.3)
    row = curve[curve["cost"] <= 0.3].iloc[-1]
    assert row["decided"] == pytest.approx(1 - found.share.mean)
    assert row["risk"] == pytest.approx(found.risk.mean)


def test_the_tables_name_who_decides_and_the_fit_goes_on_sending(tmp_path: Path) -> None:
    CliRunner().invoke(app, ["example", str(tmp_path)])
    votes, labels, fit = tmp_path / "votes.csv", tmp_path / "labels.csv", tmp_path / "fit.json"
    plain = jb.calibrate(votes, labels, method="davidson", splits=5)
    found = jb.calibrate(votes, labels, method="davidson", splits=5, abstain_cost=0.3)
    gone = plain.answers["expected_loss"] > 0.3
    assert 0 < gone.mean() < 1
    assert (found.answers["decision"] == PERSON).equals(gone)
    kept = found.answers["decision"][~gone].astype(int)
    assert kept.tolist() == plain.answers["decision"][~gone].astype(int).tolist()
    assert f"sent to a person: {gone.sum()}" in str(found)
    jb.save(found, fit)
    again = jb.apply(fit, votes, abstain_cost=0.3)
    pd.testing.assert_frame_equal(again.answers, found.answers)
    with pytest.raises(jb.JudgeBayesError, match="--abstain-cost -1; right would be"):
        jb.calibrate(votes, labels, abstain_cost=-1.0)
