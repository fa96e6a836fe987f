import jax
import numpy as np
import pytest
from scipy import optimize

from judgebayes.compiled.float64 import in_float64
from judgebayes.experiments.beyond_consensus import regression as module
from judgebayes.experiments.beyond_consensus import true_minimum as exact
from judgebayes.experiments.beyond_consensus.regression import as_published, starts, targets
from judgebayes.experiments.beyond_consensus.true_minimum import true_minimum
from judgebayes.generators import PrecisionCounts

SHOWN = np.array([True, True, False, False, False])


def naive_loss(g: np.ndarray, t: np.ndarray, n: np.ndarray, aim: module.Targets) -> float:
    """The loss of eqs 2 and 3, cell by cell."""
    matrix = np.asarray(aim.matrix)
    total = 0.0
    for i in range(len(g)):
        for j in range(len(t)):
            p = g[i] * t[j] + (1 - g[i]) * (1 - n[j])
            total -= matrix[i, j] * np.log(p) + (1 - matrix[i, j]) * np.log(1 - p)
    labelled = np.asarray(aim.labelled)
    return (
        total / matrix.size
        + 2 * np.sqrt(np.mean((g - np.asarray(aim.precision))[labelled] ** 2))
        + 1 * np.sqrt(np.mean((t - np.asarray(aim.tpr)) ** 2))
        + 10 * np.sqrt(np.mean((n - np.asarray(aim.tnr)) ** 2))
    )


@in_float64
def test_the_loss_is_eqs_2_and_3(tallied: PrecisionCounts) -> None:
    aim = targets(tallied.reveal(SHOWN))
    rng = np.random.default_rng(0)
    x = [rng.uniform(0.2, 0.9, size) for size in (5, 6, 6)]
    ours = float(exact.loss(module.Parameters(*map(jax.numpy.asarray, x)), aim))
    assert ours == pytest.approx(naive_loss(*x, aim), abs=1e-12)
    host = module._HostLoss(aim, module.WEIGHTS)
    flat = np.concatenate([x[1], x[2], x[0]])
    assert float(host.value(flat)) == pytest.approx(ours, abs=1e-12)
    numeric = optimize.approx_fprime(flat, host.value, 1e-7)
    np.testing.assert_allclose(host.gradient(flat), numeric, atol=1e-5)
    np.testing.assert_allclose(host.differences(flat), numeric, atol=1e-5)


@in_float64
def test_every_start_ends_at_the_same_certified_minimum(tallied: PrecisionCounts) -> None:
    aim = targets(tallied.reveal(SHOWN))
    fit = true_minimum(aim, starts(aim.matrix, 4) + starts(aim.matrix, 2, rate=0.9))
    assert (np.asarray(fit.status) == 0).all()
    assert float(fit.certificate.max()) <= exact.TOLERANCE
    np.testing.assert_allclose(fit.loss, fit.loss[0], atol=1e-10)
    # At the kink the labelled precisions and all rates equal their targets.
    np.testing.assert_allclose(fit.tnr[0], aim.tnr, atol=1e-9)
    best = np.concatenate([np.asarray(a[0]) for a in (fit.precision, fit.tpr, fit.tnr)])
    rng = np.random.default_rng(1)
    for scale in (1e-3, 1e-2, 1e-1):
        for _ in range(50):
            near = np.clip(best + scale * rng.normal(size=len(best)), 1e-6, 1 - 1e-6)
            assert naive_loss(*np.split(near, [5, 11]), aim) > float(fit.loss[0])
    published = as_published(aim, restarts=2)
    assert float(published.loss) >= float(fit.loss.min()) - 1e-9


@in_float64
def test_the_minimum_along_each_free_precision_matches_brents_method(
    tallied: PrecisionCounts,
) -> None:
    aim = targets(tallied.reveal(SHOWN))
    fit = jax.tree.map(lambda a: np.asarray(a[0]), true_minimum(aim, starts(aim.matrix, 1)))
    for i in np.flatnonzero(~SHOWN):

        def along(g: float, i: int = i) -> float:
            moved = fit.precision.copy()
            moved[i] = g
            return naive_loss(moved, fit.tpr, fit.tnr, aim)

        brent = optimize.minimize_scalar(along, bounds=(1e-6, 1 - 1e-6), method="bounded")
        assert fit.loss <= brent.fun + 1e-10
