"""Shared difficulty: a naive twin of the fit, its stationary point, and held-out answers."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.infer.util import log_density
from scipy.special import logsumexp

from judgebayes import EM, SharedDifficulty
from judgebayes.aggregators.shared_difficulty import fit_with_held_out
from judgebayes.compiled.float64 import in_float64
from judgebayes.inference.fast.shared_difficulty_grid import judges_mode
from judgebayes.inference.fit import Training
from judgebayes.models.shared_difficulty import EASE, LOG_EASE, SharedDifficultyPrior, distances
from judgebayes.votes import Votes

EXACT = EM(tolerance=1e-9, max_steps=5000)


def panel(
    items: int = 60, judges: int = 5, classes: int = 2, cast: float = 0.7, seed: int = 0
) -> tuple[Votes, np.ndarray]:
    """Return votes with a common effect of the item, and labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, items)
    strength = 1.5 + rng.normal(0, 0.7, judges) + rng.normal(0, 1, items)[:, None]
    logits = -strength[:, :, None] * distances(classes).T[labels][:, None, :]
    votes = (logits + rng.gumbel(size=logits.shape)).argmax(-1)
    index = np.where(rng.random(votes.shape) < cast, votes, -1)[..., None]
    return Votes(jnp.asarray(index, jnp.int8), None, None, None, classes), labels


def naive_answer(fit: Any, votes: Votes, item: int) -> np.ndarray:
    """Return an item's probabilities by loops over draws, classes, nodes and judges."""
    index = np.asarray(votes.index)[item, :, 0]
    k = votes.n_classes
    answer, log_class, apart = np.zeros(k), np.asarray(fit.details["log_class"]), distances(k)
    draws = {name: np.asarray(x) for name, x in fit.draws.items()}
    for d, log_mass in enumerate(draws["log_mass"]):
        joint = np.zeros((k, len(EASE)))
        for y in range(k):
            for q, h in enumerate(EASE):
                joint[y, q] = LOG_EASE[q] + log_class[y]
                for j, v in enumerate(index):
                    if v < 0:
                        continue
                    bias = np.concatenate([[0.0], draws["bias"][d, j]])
                    of = np.arange(k)
                    of = np.minimum(of, k - 1 - of) if fit.method.symmetric else of
                    logit = -(draws["reliability"][d, j] + draws["ease"][d] * h) * apart[:, y]
                    logit = logit + bias[of]
                    joint[y, q] += logit[v] - logsumexp(logit)
        each = logsumexp(joint, axis=1)
        answer += np.exp(log_mass + each - logsumexp(each))
    return answer


@pytest.mark.parametrize(("classes", "symmetric"), [(2, True), (3, True), (3, False)])
def test_answers_are_those_of_loops(classes: int, symmetric: bool) -> None:
    votes, labels = panel(items=25, judges=3, classes=classes)
    fit = SharedDifficulty(symmetric=symmetric).fit(votes, labels)
    answers = np.exp(np.asarray(fit(votes)))
    for item in (0, 7):
        np.testing.assert_allclose(answers[item], naive_answer(fit, votes, item), atol=1e-10)


@pytest.mark.parametrize(("classes", "symmetric", "noise"), [(2, True, 0.0), (3, False, 0.1)])
@in_float64
def test_the_end_is_stationary_in_the_programs_density(
    classes: int, symmetric: bool, noise: float
) -> None:
    """Given the variances, the gradient of the program's log-density is zero."""
    votes, labels = panel(classes=classes)
    method = SharedDifficulty(EXACT, symmetric=symmetric, label_noise=noise)
    problem = method.problem(votes, labels)
    uniform = jnp.full(classes, -jnp.log(classes))
    end = partial(
        judges_mode,
        symmetric=symmetric,
        tolerance=EXACT.tolerance,
        max_steps=EXACT.max_steps,
    )
    count, weight = votes.counts().astype(float), jnp.ones(len(labels))
    solution = jax.jit(end)(
        count, jnp.asarray(labels), weight, uniform, noise, SharedDifficultyPrior()
    )
    assert int(solution.status) == 0
    mode = solution.at
    deviation = jnp.sqrt(mode.variance)
    standard = (mode.parameters - mode.location) / deviation

    def density(parameters: jax.Array, ease: jax.Array) -> jax.Array:
        z = (parameters - mode.location) / deviation
        sites = {
            "mean": mode.location[0],
            "variance": mode.variance[0],
            "ease": ease,
            "reliability": z[:, 0],
        }
        if z.shape[1] > 1:
            sites |= {
                "level": mode.location[1:],
                "level_variance": mode.variance[1],
                "bias": z[:, 1:],
            }
        return log_density(problem.model, (problem.data,), {}, sites)[0]

    slope = jax.jit(jax.grad(density, (0, 1)))
    of_judges, of_ease = slope(mode.parameters, mode.ease)
    np.testing.assert_allclose(of_judges, 0, atol=1e-5)
    assert abs(float(of_ease)) < 1e-5 * len(labels)
    moved, _ = slope(mode.parameters + 0.1, mode.ease)
    assert np.abs(np.asarray(moved)).max() > 0.1
    # The common means are at the mode of their normal posteriors, given the parameters.
    pull = standard[:, 0].sum() / deviation[0] - (mode.location[0] - 1.0)
    assert abs(float(pull)) < 1e-5


@in_float64
def test_held_out_answers_are_close_to_refits_without_the_item() -> None:
    """First-order answers without an item's label agree with fits without it, unlike those with it."""
    votes, labels = panel(items=40, judges=6, cast=0.8, seed=3)
    method, ones = SharedDifficulty(EXACT), np.ones(len(labels))
    fit = method.fit(votes, labels)
    data = Training(votes, jnp.asarray(labels), jnp.asarray(ones), jax.random.key(0))
    _, held_out = jax.jit(fit_with_held_out)(method, data)
    refit = np.stack(
        [
            np.asarray(method.fit(votes, labels, weight=ones - (np.arange(40) == i))(votes))[i]
            for i in range(12)
        ]
    )
    logit = lambda x: x[:12, 1] - x[:12, 0]  # noqa: E731
    exact = refit[:, 1] - refit[:, 0]
    error = np.abs(logit(np.asarray(held_out)) - exact)
    naive = np.abs(logit(np.asarray(fit(votes))) - exact)
    # A refit also learns the common means, the variances and the scale again.
    assert error.mean() < 0.5 * naive.mean()
