"""Votes without any label: Dawid-Skene answers, and says what its answers rest on."""

import numpy as np
import pandas as pd
import pytest

import judgebayes as jb
from judgebayes.errors import JudgeBayesError


def votes() -> tuple[pd.DataFrame, np.ndarray]:
    """Return the votes of five judges who are right on four of five items, and the truth."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 150)
    right = rng.random((150, 5)) < 0.8
    wide = pd.DataFrame(np.where(right, truth[:, None], 1 - truth[:, None]))
    wide["item"] = [f"i{i}" for i in range(150)]
    return wide.melt("item", var_name="judge", value_name="vote"), truth


def test_dawid_skene_needs_no_label_and_says_that_nothing_checks_it() -> None:
    table, truth = votes()
    result = jb.calibrate(table, method="dawid-skene")
    said = " ".join(result.sentences)
    assert "Without labels these probabilities cannot be checked" in said
    answers = result.answers.set_index("item").loc[[f"i{i}" for i in range(150)]]
    assert (answers["decision"].astype(int).to_numpy() == truth).mean() > 0.85


def test_a_majority_vote_claims_no_probabilities() -> None:
    said = " ".join(jb.calibrate(votes()[0], method="sc").sentences)
    assert "cannot be checked" not in said


def test_other_methods_need_labels() -> None:
    with pytest.raises(JudgeBayesError, match="Calibration needs labels"):
        jb.calibrate(votes()[0], method="one-coin")
