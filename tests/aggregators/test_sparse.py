"""Sparse votes: every estimator gives the same result as for the votes as an array."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from panels import judged

from judgebayes import priors
from judgebayes.aggregators import (
    EM,
    AccuracyWeighted,
    DawidSkene,
    LogOddsWeighted,
    MajorityVote,
    OneCoin,
    VoteShare,
)
from judgebayes.aggregators.dawid_skene import fit_sparse
from judgebayes.errors import JudgeBayesError
from judgebayes.experiments.distribution_calibrated.confidence_votes import SoftVote
from judgebayes.inference import NUTS, Status
from judgebayes.models.dawid_skene import Prior
from judgebayes.votes import Votes, encode_sparse, from_dense, sparse

SINGLE = ("one-coin", "sc-first")
"""Methods that are also tested with single votes."""
PLAIN = EM(max_steps=20)
"""Both routes take the same steps; later ones of the array are extrapolated."""
METHODS = {
    "sc-first": MajorityVote("first"),
    "sc": MajorityVote(),
    "sc-outer": MajorityVote("outer"),
    "vote-share": VoteShare(),
    "accuracy-weighted": AccuracyWeighted(label_noise=0.05),
    "log-odds": LogOddsWeighted(),
    "one-coin": OneCoin(priors.OneCoin((2.0, 1.0)), class_prior="labels", label_noise=0.05),
    "dawid-skene": DawidSkene(PLAIN),
    "dawid-skene-flat": DawidSkene(PLAIN, prior=Prior(0.0, 0.0, 0.0)),
    "dawid-skene-noisy": DawidSkene(PLAIN, label_noise=0.1),
}
Panel = tuple[Votes, np.ndarray, np.ndarray]


@pytest.fixture(scope="module")
def panel() -> Panel:
    """Three classes, five judges, up to two samples, missing votes, items without votes; weights."""
    accuracy = np.array([0.9, 0.7, 0.6, 0.5, 0.8])
    votes, labels = judged(accuracy, 60, n_classes=3, samples=2, missing=0.4, seed=4)
    with jax.enable_x64(True):
        index = votes.index.at[jnp.array([7, 59])].set(-1)
    some = np.where(np.arange(60) % 4 == 0, labels, -1)
    weight = np.random.default_rng(1).integers(0, 3, 60) / 2
    return Votes(index, None, None, None, 3), some, weight


@pytest.fixture(autouse=True)
def _small_slabs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse, "SLAB_ROWS", 64)


@pytest.mark.parametrize("name", list(METHODS))
def test_the_results_are_those_of_the_array(name: str, panel: Panel) -> None:
    votes, labels, weight = panel
    thin = from_dense(votes)
    votes = thin.dense()  # later samples replace missing ones
    dense = METHODS[name].fit(votes, labels, weight=weight)
    fit = METHODS[name].fit(thin, labels, weight=weight)
    np.testing.assert_allclose(np.exp(fit(thin)), np.exp(dense(votes)), atol=1e-10)
    assert int(fit.status) == int(dense.status)


@pytest.mark.parametrize("name", SINGLE)
def test_the_results_with_single_votes_are_those_of_the_array(name: str, panel: Panel) -> None:
    votes, labels, weight = panel
    votes = Votes(votes.index[..., :1], None, None, None, 3)
    thin = from_dense(votes)
    dense, fit = (METHODS[name].fit(v, labels, weight=weight) for v in (votes, thin))
    np.testing.assert_allclose(np.exp(fit(thin)), np.exp(dense(votes)), atol=1e-10)


def test_the_whole_fit_of_dawid_and_skene_is_the_same(panel: Panel) -> None:
    votes, labels, weight = panel
    dense = DawidSkene(PLAIN).fit(votes, labels, weight=weight)
    fit = DawidSkene(PLAIN).fit(from_dense(votes), labels, weight=weight)
    assert int(fit.steps) == int(dense.steps)
    for name in ("draws", "votes_by_class", "log_posterior", "pseudo_votes"):
        mine, other = (jax.tree.leaves(getattr(f, name)) for f in (fit, dense))
        for a, b in zip(mine, other, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(fit.reliability().low, dense.reliability().low, rtol=1e-9)


def test_both_routes_end_at_the_same_mode(panel: Panel) -> None:
    """They stop where a step gains 1e-12 an item: parameters may differ by the root of that."""
    votes, labels, _ = panel
    thin = from_dense(votes)
    dense, fit = DawidSkene().fit(thin.dense(), labels), DawidSkene().fit(thin, labels)
    assert int(fit.status) == int(dense.status) == Status.CONVERGED
    np.testing.assert_allclose(fit.log_posterior, dense.log_posterior, rtol=0, atol=1e-9)
    np.testing.assert_allclose(np.exp(fit(thin)), np.exp(dense(votes)), atol=1e-5)


def test_a_run_that_is_cut_short_has_the_status_max_steps(panel: Panel) -> None:
    votes, labels, _ = panel
    fit = DawidSkene(EM(max_steps=3)).fit(from_dense(votes), labels)
    assert int(fit.status) == Status.MAX_STEPS
    assert int(fit.steps) == 3


def test_votes_on_disk_are_read_in_every_step(panel: Panel, tmp_path: object) -> None:
    votes, labels, _ = panel
    item, judge, sample = np.nonzero(np.asarray(votes.index) >= 0)
    given = np.asarray(votes.index)[item, judge, sample]
    frame = pd.DataFrame({"item": item, "judge": judge, "vote": given})
    path = tmp_path / "votes.parquet"
    frame.to_parquet(path)
    stored, coding = encode_sparse(
        path, classes=(0, 1, 2), repeats=True, store=tmp_path / "store", rows=50
    )
    truth = labels[coding.items]
    fit = fit_sparse(DawidSkene(PLAIN), stored, truth)
    expected = DawidSkene(PLAIN).fit(votes.take(np.asarray(coding.items)), truth)
    np.testing.assert_allclose(
        np.asarray(fit.draws["pi"]), np.asarray(expected.draws["pi"]), rtol=1e-9
    )
    assert isinstance(stored.index, np.memmap)


def test_unsupported_uses_of_sparse_votes_raise_errors(panel: Panel) -> None:
    votes, labels, _ = panel
    thin = from_dense(votes)
    with pytest.raises(JudgeBayesError, match="SoftVote does not accept sparse votes"):
        SoftVote().fit(thin, labels)(thin)
    with pytest.raises(JudgeBayesError, match="convert them to an array"):
        DawidSkene(NUTS()).fit(thin, labels)
    with pytest.raises(JudgeBayesError, match="The labels have the shape"):
        DawidSkene().fit(thin, labels[:5])
