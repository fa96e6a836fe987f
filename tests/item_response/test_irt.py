"""The 2PL model against SciPy, against its own NumPyro density, and on simulated truth."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.infer.util import log_density
from scipy import optimize

from judgebayes.compiled.float64 import in_float64
from judgebayes.experiments.calibrate_dont_curate.item_response import (
    empirical_bayes_mode,
    variance_shares,
)
from judgebayes.inference import Status
from judgebayes.item_response import ItemResponse, evidence, joint_mode
from judgebayes.models import irt
from judgebayes.models.base import PanelData
from judgebayes.models.irt import ItemResponseModel, ItemResponsePrior, Parameters
from judgebayes.votes import Votes

ITEMS, JUDGES = 60, 8
USUAL = ItemResponsePrior()


def simulated(
    items: int, judges: int, seed: int, missing: float = 0.05, n_classes: int = 2
) -> tuple[Votes, np.ndarray, Parameters]:
    rng = np.random.default_rng(seed)
    truth = Parameters(rng.normal(size=judges), rng.normal(size=items), rng.normal(0, 0.5, items))
    labels = rng.integers(0, n_classes, items).astype(np.int32)
    with jax.enable_x64(True):
        p = np.asarray(jax.nn.sigmoid(irt.link(Parameters(*map(jnp.asarray, truth)))))
        right = rng.random((items, judges)) < p
        other = 1 if n_classes == 2 else rng.integers(1, n_classes, right.shape)
        cast = np.where(right, labels[:, None], (labels[:, None] + other) % n_classes)
        cast = np.where(rng.random(cast.shape) < missing, -1, cast).astype(np.int32)
        return Votes(jnp.asarray(cast[..., None]), None, None, None, n_classes), labels, truth


def loss(
    x: np.ndarray,
    votes: Votes,
    labels: np.ndarray,
    noise: float = 0.0,
    prior: ItemResponsePrior = USUAL,
) -> float:
    """The negative log-posterior, item by item, class by class, judge by judge."""
    index = np.asarray(votes.index)[..., 0]
    n_items, n_judges = index.shape
    others = votes.n_classes - 1
    theta, b, slope = np.split(x, [n_judges, n_judges + n_items])
    total = (theta**2).sum() / 2
    for values, (location, scale) in zip((b, slope), prior, strict=True):
        total += ((values - location) ** 2).sum() / (2 * scale**2)
    for i in range(n_items):
        if labels[i] < 0:
            continue
        likelihood = 0.0
        for true in range(votes.n_classes):
            product = 1 - noise if true == labels[i] else noise / others
            for j in range(n_judges):
                right = 1 / (1 + np.exp(-np.exp(slope[i]) * (theta[j] - b[i])))
                if index[i, j] >= 0:
                    product *= right if index[i, j] == true else (1 - right) / others
            likelihood += product
        total -= np.log(likelihood)
    return float(total)


@pytest.mark.parametrize(("n_classes", "noise"), [(2, 0.0), (2, 0.2), (3, 0.2)])
def test_the_mode_is_scipys(n_classes: int, noise: float) -> None:
    votes, labels, _ = simulated(12, 4, 1, n_classes=n_classes)

    @in_float64
    def solve() -> tuple[Parameters, jax.Array]:
        given = evidence(votes.counts(), jnp.asarray(labels), jnp.ones(12), noise)
        return jax.jit(joint_mode, static_argnums=1)(given, ItemResponsePrior())

    mode, status = solve()
    assert int(status) == Status.CONVERGED
    mine = np.concatenate([np.asarray(x) for x in mode])
    starts = [np.zeros(28), *np.random.default_rng(0).normal(size=(2, 28)), mine]
    best = min(
        (optimize.minimize(loss, x, args=(votes, labels, noise), tol=1e-10) for x in starts),
        key=lambda r: r.fun,
    )
    assert loss(mine, votes, labels, noise) == pytest.approx(best.fun, abs=1e-7)
    np.testing.assert_allclose(mine, best.x, atol=2e-4)


@pytest.mark.parametrize(("n_classes", "noise"), [(2, 0.0), (2, 0.2), (3, 0.2)])
@in_float64
def test_the_numpyro_density_is_the_same(n_classes: int, noise: float) -> None:
    votes, labels, _ = simulated(6, 3, 1, n_classes=n_classes)
    labels[2] = -1
    program = ItemResponseModel(n_classes, noise=noise)
    data = PanelData(votes.index, jnp.asarray(labels), jnp.ones(6))
    rng = np.random.default_rng(4)

    def at(x: np.ndarray) -> float:
        theta, b, slope = np.split(x, [3, 9])
        sites = {"ability": theta, "difficulty": b, "log_discrimination": slope}
        sites = {k: jnp.asarray(v) for k, v in sites.items()}
        return float(log_density(program, (data,), {}, sites)[0])

    one, two = rng.normal(size=(2, 15))
    # Normalising constants of the priors and the labels' probabilities, 1 / K each, cancel.
    expected = loss(two, votes, labels, noise) - loss(one, votes, labels, noise)
    assert at(one) - at(two) == pytest.approx(expected)


def test_abilities_and_difficulties_are_recovered_from_noisy_labels() -> None:
    votes, labels, truth = simulated(2000, 30, 0, n_classes=4)
    rng = np.random.default_rng(9)
    wrong = (labels + rng.integers(1, 4, 2000)) % 4
    noisy_labels = np.where(rng.random(2000) < 0.15, wrong, labels).astype(np.int32)
    ability, difficulty = {}, {}
    for name, given, noise in (
        ("clean", labels, 0.0),
        ("noise known", noisy_labels, 0.15),
        ("not", noisy_labels, 0.0),
    ):
        fit = ItemResponse(label_noise=noise).fit(votes, given)
        assert int(fit.status) == Status.CONVERGED
        ability[name] = np.sqrt(np.mean((fit.mean("ability") - truth.ability) ** 2))
        difficulty[name] = np.corrcoef(fit.mean("difficulty"), truth.difficulty)[0, 1]
    assert ability["noise known"] < ability["clean"] + 0.05
    assert ability["not"] > ability["clean"] + 0.1
    assert difficulty["noise known"] > difficulty["clean"] - 0.06
    assert difficulty["not"] < difficulty["clean"] - 0.2


@in_float64
def test_estimated_priors_are_the_true_ones() -> None:
    rng = np.random.default_rng(6)
    items, judges = 1500, 60
    truth = Parameters(
        rng.normal(size=judges), rng.normal(0.6, 0.7, items), rng.normal(0, 0.3, items)
    )
    p = jax.nn.sigmoid(irt.link(Parameters(*map(jnp.asarray, truth))))
    right = jnp.asarray(rng.random(p.shape) < p, int)
    used = jnp.arange(items) < items - 100
    labels = jnp.where(used, 1, -1)
    given = evidence(jnp.stack([1 - right, right], 2), labels, jnp.ones(items))
    mode, prior, status = jax.jit(empirical_bayes_mode)(given, used)
    assert int(status) == Status.CONVERGED
    (location, scale), (unit, width) = prior
    # Up to a shift and scale of the abilities, which the votes do not determine.
    stretch, shift = np.polyfit(np.asarray(mode.ability), truth.ability, 1)
    assert stretch == pytest.approx(1.0, abs=0.1)
    assert shift + stretch * float(location) == pytest.approx(0.6, abs=0.05)
    assert stretch * float(scale) == pytest.approx(0.7, abs=0.05)
    assert float(width) == pytest.approx(0.3, abs=0.07)
    assert float(unit) == 0.0
    expected_mode, _ = jax.jit(joint_mode)(given, prior)
    for estimate, expected in zip(mode, expected_mode, strict=True):
        np.testing.assert_allclose(estimate, expected, atol=2e-3)

    def error(parameters: Parameters) -> float:
        estimate, true = np.asarray(parameters.difficulty)[used], truth.difficulty[used]
        slope, start = np.polyfit(estimate, true, 1)
        return float(np.sqrt(np.mean((start + slope * estimate - true) ** 2)))

    assert error(mode) < error(jax.jit(joint_mode)(given, ItemResponsePrior())[0])


@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_estimated_priors_and_mode_satisfy_their_equations(noise: float) -> None:
    items, judges = 12, 4
    votes, labels, _ = simulated(items, judges, 1)
    labels[3] = -1
    index = np.asarray(votes.index)[..., 0]

    @in_float64
    def solve() -> tuple[Parameters, ItemResponsePrior, jax.Array]:
        given = evidence(votes.counts(), jnp.asarray(labels), jnp.ones(items), noise)
        return jax.jit(empirical_bayes_mode)(given, jnp.asarray(labels >= 0))

    mode, prior, status = solve()
    assert int(status) == Status.CONVERGED
    mode, prior = jax.tree.map(np.asarray, (mode, prior))
    mine = np.concatenate(mode)
    # The mode is SciPy's under the prior,
    best = optimize.minimize(loss, mine, args=(votes, labels, noise, prior), tol=1e-9)
    np.testing.assert_allclose(mine, best.x, atol=2e-3)
    # and the prior is that of the mode and of the items' posteriors about it.
    least = np.diag([1 / prior.difficulty[1] ** 2, 1 / prior.log_discrimination[1] ** 2])
    labelled = np.flatnonzero(labels >= 0)
    variances = []
    for i in labelled:
        a, logits = np.exp(mode[2][i]), np.exp(mode[2][i]) * (mode[0] - mode[1][i])
        information = least.copy()
        for j in np.flatnonzero(index[i] >= 0):
            right = 1 / (1 + np.exp(-logits[j]))
            by_item = np.array([-a, logits[j]])
            information += right * (1 - right) * np.outer(by_item, by_item)
        variances.append(np.diag(np.linalg.inv(information)))
    for k, ((location, scale), (unit, usual)) in enumerate(
        zip(prior, ItemResponsePrior(), strict=True)
    ):
        values = mode[1 + k][labelled]
        if k == 0:
            assert location == pytest.approx(values.mean(), abs=1e-9)
        else:
            assert location == unit
        square = ((values - values.mean()) ** 2 + np.array(variances)[:, k]).sum()
        expected = np.sqrt((usual**2 + square) / (len(labelled) + 1))
        assert scale == pytest.approx(expected, abs=2e-4)
    assert abs(prior.difficulty[1] - 2.0) > 0.1  # it was estimated


def test_variance_shares_are_of_what_varies() -> None:
    """Equal items leave all to the judges, and equal judges all to the items (P2 eq 7)."""
    same, apart, unit = np.zeros(6), np.linspace(-1, 1, 6), np.zeros(6)
    assert variance_shares(apart, same, unit)["judge"] == pytest.approx(1)
    assert variance_shares(same, apart, unit)["item"] == pytest.approx(1)
    both = variance_shares(apart, 2 * apart, unit)
    assert both["judge_of_two"] == pytest.approx(1 / 5)
    assert both["judge"] + both["item"] + both["interaction"] == pytest.approx(1)
