"""The pool: a naive twin of its weights, and that it follows the better method."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from aggregators.test_shared_difficulty import panel
from scipy.optimize import minimize
from scipy.special import log_softmax

from judgebayes import MAP, Davidson, Pool, SharedDifficulty, Stacking
from judgebayes.aggregators.davidson import fit_with_held_out as davidson_fit
from judgebayes.aggregators.shared_difficulty import fit_with_held_out as difficulty_fit
from judgebayes.aggregators.stacking import fit_with_held_out as stacking_fit
from judgebayes.compiled.float64 import in_float64
from judgebayes.inference.fit import Training
from judgebayes.models.stacking import StackingPrior


def held_out(fit: Callable[..., Any], method: Any, *data: Any) -> tuple[Any, np.ndarray]:
    """Return a member's fit, and its answers without an item's own label, by one compiled program."""
    fitted, answers = jax.jit(fit)(method, Training(*data, jax.random.key(0)))
    return fitted, np.asarray(answers)


@pytest.mark.parametrize(
    ("classes", "symmetric"), [pytest.param(2, True, marks=pytest.mark.slow), (3, False)]
)
@in_float64
def test_the_weights_are_scipys_mode(classes: int, symmetric: bool) -> None:
    votes, labels = panel(items=80, judges=6, classes=classes)
    fit = Pool(symmetric=symmetric).fit(votes, labels)
    y, ones = jnp.asarray(labels), jnp.ones(len(labels))
    stacked = Stacking(symmetric=symmetric, prior=StackingPrior(kappa=0.0))
    members = [
        held_out(difficulty_fit, SharedDifficulty(symmetric=symmetric), votes, y, ones)[1],
        held_out(stacking_fit, stacked, votes, y, ones)[1],
    ]
    parts = [fit.parts["shared-difficulty"], fit.parts["stacking"]]
    if "davidson" in fit.parts:
        davidson = Davidson(MAP(starts=1), symmetric=symmetric)
        members.append(held_out(davidson_fit, davidson, votes, y, ones)[1])
        parts.append(fit.parts["davidson"])
    log_probs = np.stack(members)
    n, mean = len(parts), 1 / len(parts)
    assert n == (2 if (classes, symmetric) == (2, True) else 3)

    def objective(at: np.ndarray) -> float:
        logits = np.einsum("m,mik->ik", at[:n], log_probs)
        intercept = np.zeros(classes) if symmetric else np.append(0.0, at[n:])
        own = log_softmax(logits + intercept, axis=1)[np.arange(len(labels)), labels]
        penalty = ((at[:n] - mean) ** 2).sum() / (0.7 * mean) ** 2
        return float(-own.sum() + penalty / 2 + (at[n:] ** 2).sum() / 0.5)

    start = np.append(np.full(n, mean), np.zeros(0 if symmetric else classes - 1))
    best = minimize(objective, start, method="BFGS", options={"gtol": 1e-8})
    np.testing.assert_allclose(np.asarray(fit.first["weight"]), best.x[:n], atol=1e-5)
    answers = np.asarray(fit(votes))
    each = np.stack([np.asarray(part(votes)) for part in parts])
    intercept = np.zeros(classes) if symmetric else np.append(0.0, best.x[n:])
    wanted = log_softmax(np.einsum("m,mik->ik", best.x[:n], each) + intercept, axis=1)
    np.testing.assert_allclose(answers, wanted, atol=1e-4)


@pytest.mark.parametrize(
    ("noise", "labelled", "most"),
    # 0.06: without the item's own part of the Hessian, the error is a tenth of the change. A surprising
    # label moves the mode far: one is among the eight only where all are labelled.
    [pytest.param(0.0, 60, 0.2, marks=pytest.mark.slow), (0.1, 40, 0.06)],
)
@in_float64
def test_davidsons_answers_without_an_items_label_are_those_of_refits(
    noise: float, labelled: int, most: float
) -> None:
    votes, labels = panel(items=60, judges=4, classes=3, cast=1.0)
    shown = jnp.asarray(np.where(np.arange(60) < labelled, labels, -1))
    method, ones = Davidson(MAP(starts=1), symmetric=False, label_noise=noise), np.ones(60)
    fit, answers = held_out(davidson_fit, method, votes, shown, jnp.asarray(ones))
    refits = [method.fit(votes, shown, weight=ones - (np.arange(60) == i)) for i in range(8)]
    refit = np.stack([np.asarray(each(votes))[i] for i, each in enumerate(refits)])
    change, error = (np.abs(each[:8] - refit).mean() for each in (np.asarray(fit(votes)), answers))
    assert error < most * change
    # An item without a label is answered by the fit itself.
    np.testing.assert_allclose(answers[labelled:], np.asarray(fit(votes))[labelled:])


@in_float64
def test_stackings_answers_without_an_items_label_are_close_to_refits() -> None:
    votes, labels = panel(items=60, judges=4, cast=1.0)
    method, ones = Stacking(prior=StackingPrior(kappa=0.0)), np.ones(60)
    fit, answers = held_out(stacking_fit, method, votes, jnp.asarray(labels), jnp.asarray(ones))
    refit = np.stack(
        [
            np.asarray(method.fit(votes, labels, weight=ones - (np.arange(60) == i))(votes))[i]
            for i in range(8)
        ]
    )
    # The spread of the weights is learnt again without the item: a small difference remains.
    error = np.abs(answers[:8] - refit).mean()
    assert error < 0.5 * np.abs(np.asarray(fit(votes))[:8] - refit).mean()
