"""Analytic derivatives, against automatic differentiation of the same score."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from judgebayes.compiled.float64 import in_float64
from judgebayes.inference.optimise import Derivatives, differentiated
from judgebayes.inference.problem import Column, Design, score_derivatives
from judgebayes.measures.scores import Score, brier, drps, nll
from judgebayes.models.base import with_label_noise

ITEMS = 30


def design_of(n_classes: int, rng: np.random.Generator) -> tuple[Design, np.ndarray]:
    """Return a design with gaps, of three parameters, and the same as a full array."""
    full = rng.normal(size=(ITEMS, n_classes, 3))
    full[:, 0, 0] = full[:, -1, 1] = full[:, 1:, 2] = 0.0
    columns = [
        {k: jnp.asarray(full[:, k, a]) for k in range(n_classes) if full[:, k, a].any()}
        for a in range(3)
    ]
    return Design(columns, n_classes), full


ANALYTIC = [(k, score) for k in (2, 3, 5, 7) for score in (drps, nll)]
AUTOMATIC = [(3, brier)]


@pytest.mark.parametrize(("n_classes", "score"), ANALYTIC + AUTOMATIC)
@in_float64
def test_derivatives_are_the_automatic_ones(n_classes: int, score: Score) -> None:
    rng = np.random.default_rng(n_classes)
    design, full = design_of(n_classes, rng)
    labels = jnp.asarray(rng.integers(-1, n_classes, ITEMS))
    weight = jnp.asarray(rng.choice([0.0, 0.5, 2.0], ITEMS))

    def total(theta: jax.Array, noise: jax.Array) -> jax.Array:
        logits = jnp.asarray(full) @ theta
        observed = with_label_noise(jax.nn.log_softmax(logits), noise)
        each = jax.vmap(score)(observed, jnp.maximum(labels, 0))
        return jnp.sum(jnp.where(labels >= 0, each * weight, 0.0))

    @jax.jit
    def both(theta: jax.Array, noise: jax.Array) -> tuple[Derivatives, Derivatives]:
        ours = score_derivatives(score, design, labels, weight, noise)
        return ours(theta), differentiated(lambda x: total(x, noise))(theta)

    theta = jnp.asarray(rng.normal(size=3))
    for noise in (0.0, 0.1):
        for ours, reference in zip(*both(theta, jnp.asarray(noise)), strict=True):
            np.testing.assert_allclose(ours, reference, rtol=1e-10, atol=1e-12)


@in_float64
def test_ignored_items_may_hold_nan() -> None:
    rng = np.random.default_rng(0)
    design, _ = design_of(3, rng)
    labels = jnp.asarray(rng.integers(0, 3, ITEMS)).at[1].set(-1)
    weight = jnp.ones(ITEMS).at[0].set(0.0)
    broken = jax.tree.map(lambda x: x.at[:2].set(jnp.nan), design.columns)
    theta = jnp.asarray(rng.normal(size=3))

    @jax.jit
    def each(columns: Sequence[Column]) -> list[Derivatives]:
        return [
            score_derivatives(score, Design(columns, 3), labels, weight, 0.0)(theta)
            for score in (drps, nll, brier)
        ]

    jax.tree.map(np.testing.assert_array_equal, each(broken), each(design.columns))


@in_float64
def test_certain_and_wrong_is_finite() -> None:
    # exp(-2000) is 0 in any float; its logarithm is not.
    design = Design([{1: jnp.ones(1)}], 2)
    function = score_derivatives(nll, design, jnp.array([1]), jnp.ones(1), 0.0)
    value, gradient, hessian = function(jnp.array([-2000.0]))
    assert float(value) == pytest.approx(2000.0)
    np.testing.assert_allclose(gradient, [-1.0])
    np.testing.assert_allclose(hessian, [[0.0]], atol=1e-12)


@in_float64
def test_the_scores_of_many_classes() -> None:
    design, _ = design_of(7, np.random.default_rng(0))
    for score in (drps, nll):
        labels, weight = jnp.zeros(ITEMS, int), jnp.ones(ITEMS)
        function = score_derivatives(score, design, labels, weight, 0.0)
        value, _, _ = function(jnp.zeros(len(design.columns)))
        # Seven equal probabilities, and label 0.
        expected = np.sum((np.arange(1, 7) / 7 - 1) ** 2) if score is drps else np.log(7)
        assert float(value) == pytest.approx(ITEMS * expected)


@in_float64
def test_a_multiple_has_multiples_for_derivatives() -> None:
    design = Design([{1: jnp.ones(3)}, {0: jnp.arange(3.0)}], 3)
    data = (drps, design, jnp.array([0, 1, 2]), jnp.ones(3), 0.0)
    once, twice = (score_derivatives(*data, factor=f)(jnp.ones(2)) for f in (1.0, 2.0))
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a, 2 * b), twice, once)
