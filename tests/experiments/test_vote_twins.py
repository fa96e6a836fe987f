import jax.numpy as jnp
import numpy as np
import pytest

from judgebayes.compiled.float64 import in_float64
from judgebayes.experiments.distribution_calibrated import vote_twins as simulate
from judgebayes.experiments.distribution_calibrated.vote_twins import (
    FAMILIES,
    Twin,
    draw_votes,
    states,
)

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
