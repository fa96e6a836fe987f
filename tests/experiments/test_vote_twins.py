import jax.numpy as jnp
import numpy as np
import pytest

from judgebayes.aggregators import MajorityVote
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.experiments.distribution_calibrated import vote_twins as simulate
from judgebayes.experiments.distribution_calibrated.vote_twins import (
    FAMILIES,
    Target,
    Twin,
    draw_votes,
    fit_twins,
    states,
)
from judgebayes.measures.decide import absolute_loss, bayes_action

FAIR = {
    "dirichlet": (0.15, 0.2, 0.3, 0.4, 0.2),
    "margin": (1.5, 1.2, 0.9, 0.5),
    "softmax": (1.5, 1.2, 0.9, 0.3, 0.6),
}


@pytest.mark.parametrize("family", list(FAMILIES))
@in_float64
def test_state_probabilities_match_drawn_votes(family: str) -> None:
    twin = Twin(FAMILIES[family], FAIR[family], "middle", 0.0)
    exact = np.asarray(twin.family.state_probs(jnp.asarray(FAIR[family]), states(3)))
    np.testing.assert_allclose(exact.sum(1), 1, atol=1e-6)
    labels = np.repeat([2, 1, 0], 20_000)
    counts = np.asarray(draw_votes(twin, labels, 3, seed=0).pooled_counts())
    for row, (label, mirror) in enumerate([(2, 1), (1, 1)]):
        label_counts = counts[labels == label]
        share = [(label_counts == s[::mirror]).all(1).mean() for s in states(3)]
        np.testing.assert_allclose(exact[row], share, atol=0.012)
    swapped = [(counts[labels == 0] == s[::-1]).all(1).mean() for s in states(3)]
    np.testing.assert_allclose(exact[0], swapped, atol=0.012)


@pytest.mark.parametrize("tie", ["middle", "outer", "first"])
def test_majority_decisions_match_the_rule(tie: str) -> None:
    """On votes in random order, the rule's decisions have the stated probabilities."""
    counts = states(4)
    rng = np.random.default_rng(0)
    repeats = 300
    index = np.repeat([np.repeat([0, 1, 2], c) for c in counts], repeats, axis=0)
    votes = simulate.Votes(
        jnp.asarray(rng.permuted(index, axis=1)[:, None, :], jnp.int8), None, None, None, 3
    )
    fit = MajorityVote(tie).fit(votes, np.full(votes.n_items, -1))
    decisions = np.asarray(bayes_action(fit(votes), absolute_loss(3))).reshape(-1, repeats)
    share = np.stack([(decisions == k).mean(1) for k in range(3)], 1)
    np.testing.assert_allclose(share, simulate.majority_decision(4, tie), atol=0.12)


@pytest.mark.slow
def test_a_twin_has_the_published_results() -> None:
    target = Target((234.0, 533.0, 233.0), {4: (0.445, 0.57), 12: (0.455, 0.56)})
    twins = fit_twins({"x": target}, families=("margin",), ties=("middle",), starts=3)["x"]
    assert len(twins) == 1
    assert twins[0].misfit < 0.005
    labels = np.repeat([0, 1, 2], [8000, 18000, 8000])
    votes = draw_votes(twins[0], labels, 12, seed=1)
    for n, (mae, accuracy) in target.results.items():
        fit = MajorityVote().fit(votes, labels)
        decisions = np.asarray(bayes_action(fit(votes.first(n)), absolute_loss(3)))
        assert np.abs(decisions - labels).mean() == pytest.approx(mae, abs=0.015)
        assert (decisions == labels).mean() == pytest.approx(accuracy, abs=0.015)


def test_parameters_are_recovered_from_votes() -> None:
    twin = Twin(FAMILIES["margin"], FAIR["margin"], "middle", 0.0)
    labels = np.repeat([2, 1], [6000, 6000])
    counts = np.asarray(draw_votes(twin, labels, 8, seed=2).pooled_counts())
    row_of = {tuple(s): i for i, s in enumerate(states(8))}
    observed = np.zeros((2, len(row_of)))
    for row, label in zip(counts, labels, strict=True):
        observed[int(label == 1), row_of[tuple(row)]] += 1
    parameters = simulate.most_likely(FAMILIES["margin"], observed, 8)
    np.testing.assert_allclose(parameters, FAIR["margin"], atol=0.08)


def test_the_same_seed_draws_the_same_votes() -> None:
    twin = Twin(FAMILIES["softmax"], FAIR["softmax"], "middle", 0.0)
    labels = np.array([0, 1, 2] * 5)
    one, same, other = (draw_votes(twin, labels, 6, seed=s).index for s in (3, 3, 4))
    np.testing.assert_array_equal(one, same)
    assert (np.asarray(one) != np.asarray(other)).any()


def test_targets_with_different_numbers_of_votes_are_refused() -> None:
    targets = {
        "a": Target((1.0, 1.0, 1.0), {4: (0.5, 0.5)}),
        "b": Target((1.0, 1.0, 1.0), {8: (0.5, 0.5)}),
    }
    with pytest.raises(JudgeBayesError, match="'b' is not published at"):
        fit_twins(targets)
