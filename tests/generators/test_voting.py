import numpy as np
import pytest

from judgebayes.errors import JudgeBayesError
from judgebayes.experiments.beyond_consensus.fig5 import ensemble_rates
from judgebayes.experiments.beyond_consensus.voting import (
    choose_threshold,
    ensemble_precision,
    ensembles,
)
from judgebayes.votes import Votes


def test_every_threshold_matches_counts_item_by_item(item_votes: Votes, drawn: tuple) -> None:
    vote, label, generator = drawn
    valid, veto = ensembles(item_votes, "valid"), ensembles(item_votes, "veto")
    for n in range(1, 7):
        for i, row in enumerate(vote[:200]):
            assert valid[n - 1, i] == (sum(v == 1 for v in row) >= n)
            assert veto[n - 1, i] == (sum(v == 0 for v in row) < n)
    share = ensemble_precision(veto, generator, 5)
    assert share[2, 1] == pytest.approx(veto[2][generator == 1].mean())
    rates = ensemble_rates(veto, label)
    assert rates.tpr[2] == pytest.approx(veto[2][label == 1].mean())
    assert rates.tnr[2] == pytest.approx(1 - veto[2][label == 0].mean())


def test_without_missing_votes_the_two_kinds_mirror_each_other(item_votes: Votes) -> None:
    full = item_votes.take(np.flatnonzero((np.asarray(item_votes.index) >= 0).all((1, 2))))
    valid, veto = ensembles(full, "valid"), ensembles(full, "veto")
    for n in range(1, 7):
        np.testing.assert_array_equal(veto[n - 1], valid[6 - n])


def test_missing_votes_hurt_the_valid_kind_only(item_votes: Votes) -> None:
    from dataclasses import replace

    without_votes = replace(item_votes, index=np.full_like(item_votes.index, -1))
    assert not ensembles(without_votes, "valid").any()
    assert ensembles(without_votes, "veto").all()


def test_the_threshold_is_chosen_on_the_calibration_generators_only() -> None:
    truth = np.array([0.9, 0.8, 0.5])
    shares = {"valid": np.array([[0.9, 0.7, 0.5]]), "veto": np.array([[0.85, 0.8, 0.1]])}
    chosen = choose_threshold(shares, truth, np.array([True, True, False]))
    assert (chosen.kind, chosen.threshold) == ("veto", 1)
    assert chosen.error == pytest.approx(0.05)
    with pytest.raises(JudgeBayesError, match="No generator is labelled"):
        choose_threshold(shares, truth, np.zeros(3, bool))


def test_three_classes_are_refused(votes: Votes) -> None:
    with pytest.raises(JudgeBayesError, match="one binary vote"):
        ensembles(votes, "veto")
