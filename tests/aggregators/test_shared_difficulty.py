"""Shared difficulty: a naive twin of the fit, its stationary point, and held-out answers."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.infer.util import log_density
from scipy.special import expit, logsumexp

from judgebayes.aggregators import EmpiricalBayes, SharedDifficulty
from judgebayes.aggregators.base import Training
from judgebayes.aggregators.shared_difficulty import fit_with_held_out
from judgebayes.compiled.float64 import in_float64
from judgebayes.inference.fast.shared_difficulty import Judges, judges_mode, vote_counts
from judgebayes.inference.status import Status
from judgebayes.models.shared_difficulty import EASE, LOG_EASE, Prior, distances
from judgebayes.votes import Votes

EXACT = EmpiricalBayes(tolerance=1e-9, max_steps=5000)


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
    answer, log_class, apart = np.zeros(k), np.asarray(fit.log_class), distances(k)
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
                    of = np.minimum(of, k - 1 - of) if fit.symmetric else of
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
    count, weight = vote_counts(votes.index, classes), jnp.ones(len(labels))
    mode = jax.jit(end)(count, jnp.asarray(labels), weight, uniform, noise, Prior())
    assert int(mode.status) == 0
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


def test_two_classes_without_bias_are_the_papers_sigmoid() -> None:
    """A judge's vote is right with probability sigmoid(l + s h): checked at s = 0."""
    votes, labels = panel(judges=1, cast=1.0)
    fit = SharedDifficulty(EmpiricalBayes(scaled=False)).fit(votes, labels)
    draws = {name: np.asarray(x)[0] for name, x in fit.draws.items()}
    chance = np.exp(LOG_EASE) @ expit(draws["reliability"][0] + draws["ease"] * EASE)
    index = np.asarray(votes.index)[:, 0, 0]
    wanted = np.where(index == 1, chance, 1 - chance)
    np.testing.assert_allclose(np.exp(np.asarray(fit(votes)))[:, 1], wanted, atol=1e-9)


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


def test_a_judge_without_labels_is_like_the_others() -> None:
    votes, labels = panel(judges=4)
    index = np.asarray(votes.index).copy()
    index[:50, 3] = -1
    hidden = np.where(np.arange(60) < 50, labels, -1)
    fit = SharedDifficulty().fit(Votes(jnp.asarray(index), None, None, None, 2), hidden)
    judge = np.asarray(fit.judge)
    assert judge[:3].min() - 0.5 < judge[3] < judge[:3].max() + 0.5
    assert judge[3] > 0.3


def test_on_hard_items_together_wrong_many_votes_are_less_evidence() -> None:
    """Where judges share an item's difficulty, independent judges would be too sure."""
    votes, labels = panel(items=400, judges=15, cast=1.0, seed=1)
    fit = SharedDifficulty().fit(votes, np.where(np.arange(400) < 200, labels, -1))
    from judgebayes.aggregators import OneCoin

    coin = OneCoin().fit(votes, np.where(np.arange(400) < 200, labels, -1))

    def nll(answers: Any) -> float:
        return float(-np.asarray(answers(votes))[np.arange(200, 400), labels[200:]].mean())

    assert nll(fit) < nll(coin) - 0.02


@pytest.mark.slow
def test_nuts_agrees_with_the_mode() -> None:
    from judgebayes.inference import NUTS

    votes, labels = panel(items=150, judges=5, cast=1.0, seed=2)
    mode = SharedDifficulty(EmpiricalBayes(scaled=False)).fit(votes, labels)
    sampled = SharedDifficulty(NUTS(draws=2000)).fit(votes, labels, key=jax.random.key(0))
    assert int(sampled.status) == 0
    difference = np.asarray(sampled.judge) - np.asarray(mode.judge)
    assert np.abs(difference).max() < 0.6 * np.asarray(sampled.deviation).max()


@in_float64
def test_few_steps_end_where_expectation_maximisation_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judges who err independently: the ease matters little, and zero is a second mode of it."""
    rng = np.random.default_rng(12)
    labels = rng.integers(0, 2, 200)
    right = rng.random((200, 12)) < np.linspace(0.55, 0.9, 12)
    votes = jnp.asarray(np.where(right, labels[:, None], 1 - labels[:, None])[..., None])

    even = jnp.log(jnp.full(2, 0.5))
    data = vote_counts(votes, 2), jnp.asarray(labels), jnp.ones(200), even, 0.0, Prior()

    def of_tolerance() -> Callable[[float, int], Judges]:
        return jax.jit(
            lambda tolerance, max_steps: judges_mode(
                *data, symmetric=True, tolerance=tolerance, max_steps=max_steps
            ),
            static_argnums=1,
        )

    fast = of_tolerance()(1e-7, 60)
    # If the ease of every item were known: the curvature of expectation maximisation.
    monkeypatch.setattr("judgebayes.inference.fast.shared_difficulty.LEAST_SHARE", 1.0)
    run = of_tolerance()
    slow = run(1e-7, 2000)
    assert fast.status == slow.status == Status.CONVERGED
    assert slow.steps > 3 * fast.steps
    assert fast.ease > 0.05
    np.testing.assert_allclose(fast.ease, slow.ease, atol=1e-4)
    np.testing.assert_allclose(fast.parameters, slow.parameters, atol=1e-5)
    # There the ease is slower than the judges' parameters, and the last one to satisfy the tolerance.
    end = run(5e-5, 2000)
    before = run(0.0, int(end.steps) - 1)
    assert abs(end.ease**2 - before.ease**2) <= 5e-5
