"""Point estimates and draws of Davidson's model, against SciPy, grids and long runs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from judgebayes import Davidson
from judgebayes.compiled.float64 import in_float64
from judgebayes.experiments.distribution_calibrated.minimum_loss import MinimumLoss
from judgebayes.inference import DRPS, MAP, NUTS, MinimumScore, Status, posterior
from judgebayes.inference.fit import Fit
from judgebayes.inference.nuts import split_rhat
from judgebayes.inference.point import spread
from judgebayes.measures import scores
from judgebayes.models import davidson
from judgebayes.models.davidson import BOX, DavidsonPrior
from judgebayes.votes import Votes

BOUNDS = [BOX["beta"], BOX["eta0"], BOX["gamma"]]


def theta(fit: Fit) -> np.ndarray:
    return np.array([np.asarray(fit.draws[k]).ravel()[0] for k in ("beta", "eta0", "gamma")])


def parameters(x: jax.Array) -> davidson.Parameters:
    return davidson.Parameters(x[0], x[1:2], x[2:3], jnp.zeros(()))


@in_float64
def scipy_best(
    votes: Votes,
    labels: np.ndarray,
    score: scores.Score,
    starts: int = 5,
    noise: float = 0.0,
) -> tuple:
    """The paper's optimiser: L-BFGS-B with an exact gradient, the best of a few starts.

    With noise, a share of the labels is another class.
    """
    used = labels >= 0
    confusion = (1 - 1.5 * noise) * np.eye(3) + noise / 2
    evidence = davidson.features(votes.take(np.flatnonzero(used)).pooled_counts())
    y = jnp.asarray(labels[used])

    @jax.jit
    @jax.value_and_grad
    def objective(x: jax.Array) -> jax.Array:
        p = jnp.exp(davidson.link(parameters(x), evidence, n_classes=3)) @ confusion
        return scores.mean_score(score, jnp.log(p), y)

    def value_and_gradient(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = objective(jnp.asarray(x))
        return float(value), np.asarray(gradient)

    low, high = np.array(BOUNDS).T
    rng = np.random.default_rng(0)
    begin = [np.array([1.0, 0.0, 1.0]), *rng.uniform([0.1, -2, -1], [3, 4, 3], (starts - 1, 3))]
    solutions = [
        optimize.minimize(
            value_and_gradient,
            np.clip(x, low, high),
            jac=True,
            bounds=BOUNDS,
            options={"ftol": 1e-16, "gtol": 1e-11, "maxiter": 2000},
        )
        for x in begin
    ]
    best = min(solutions, key=lambda r: r.fun)
    return best.fun, best.x


@pytest.mark.parametrize("score", [scores.drps, scores.nll, scores.brier])
def test_a_minimum_score_is_at_most_scipys_best_of_five(
    votes: Votes, labels: np.ndarray, score: scores.Score
) -> None:
    fit = Davidson(MinimumScore(score)).fit(votes, labels)
    value, x = scipy_best(votes, labels, score)
    assert float(fit.details["objective"]) <= value + 1e-9
    assert int(fit.status) == Status.CONVERGED
    assert float(fit.details["projected_gradient"]) < 1e-8
    np.testing.assert_allclose(theta(fit), x, atol=2e-3)


@pytest.mark.parametrize("inference", [DRPS(), MAP()], ids=["drps", "map"])
def test_known_label_noise_is_part_of_the_objective(
    votes: Votes, labels: np.ndarray, inference: MinimumScore | MAP
) -> None:
    fit = Davidson(inference, label_noise=0.2).fit(votes, labels)
    assert int(fit.status) == Status.CONVERGED
    if isinstance(inference, MinimumScore):
        value, x = scipy_best(votes, labels, scores.drps, noise=0.2)
        assert float(fit.details["objective"]) <= value + 1e-9
        np.testing.assert_allclose(theta(fit), x, atol=2e-3)
    # A model of label noise has more confident predictions than one that ignores it.
    ignorant = Davidson(inference).fit(votes, labels)
    with_noise, plain = (np.exp(np.asarray(f(votes))).max(1).mean() for f in (fit, ignorant))
    assert with_noise > plain + 0.02


def test_bounds_are_hit_exactly(votes: Votes) -> None:
    # Labels that contradict the margin push beta, and ties everywhere push eta0, onto a bound.
    counts = np.asarray(votes.pooled_counts())
    labels = np.where(counts[:, 2] > counts[:, 0], 0, 2)
    fit = Davidson(DRPS()).fit(votes, labels)
    assert float(fit.draws["beta"][0]) == BOX["beta"][0]
    assert int(fit.status) == Status.CONVERGED
    assert any("lower bound" in line for line in fit.words())
    assert any("no signal" in line for line in fit.words())


def test_map_is_the_highest_point_of_a_grid(votes: Votes, labels: np.ndarray) -> None:
    fit = Davidson(MAP()).fit(votes, labels)
    grid, log_posterior = posterior_grid(votes, labels, 41)
    best = grid[np.argmax(log_posterior)]
    steps = [(high - low) / 40 for low, high in GRID]
    assert (np.abs(theta(fit) - best) <= steps).all()
    assert int(fit.status) == Status.CONVERGED


GRID = [(0.05, 5.0), (-3.0, 6.9), (-2.5, 5.0)]


@in_float64
def posterior_grid(votes: Votes, labels: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The log posterior (up to a constant) on a grid that contains nearly all of its mass."""
    used = labels >= 0
    evidence = davidson.features(votes.take(np.flatnonzero(used)).pooled_counts())
    y = jnp.asarray(labels[used])
    axes = [np.linspace(low, high, size) for low, high in GRID]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)
    prior = DavidsonPrior()

    def density(x: jax.Array) -> jax.Array:
        log_probs = davidson.link(parameters(x), evidence, n_classes=3)
        likelihood = jnp.take_along_axis(log_probs, y[:, None], 1).sum()
        settings = (prior.beta, prior.eta0, prior.gamma)
        return likelihood - 0.5 * sum(
            ((x[i] - loc) / scale) ** 2 for i, (loc, scale) in enumerate(settings)
        )

    return grid, np.asarray(jax.jit(jax.vmap(density))(jnp.asarray(grid)))


@pytest.fixture(scope="module")
def sampled(votes: Votes, labels: np.ndarray) -> Fit:
    return Davidson(NUTS(draws=1000, warmup=500)).fit(votes, labels)


def test_nuts_agrees_with_quadrature(sampled: Fit, votes: Votes, labels: np.ndarray) -> None:
    grid, log_posterior = posterior_grid(votes, labels, 41)
    weight = np.exp(log_posterior - log_posterior.max())
    # The trapezoid rule: beta's bound cuts the posterior, where whole weights are too much.
    weight *= np.where((grid == grid.min(0)) | (grid == grid.max(0)), 0.5, 1.0).prod(1)
    weight /= weight.sum()
    mean = weight @ grid
    deviation = np.sqrt(weight @ (grid - mean) ** 2)
    table = posterior.summary(posterior.to_arviz(sampled.chains))
    # 3 Monte Carlo standard errors, plus the error of the grid itself (its step squared).
    allowed = 3 * table["mcse_mean"].to_numpy() + 0.01 * deviation
    assert (np.abs(table["mean"] - mean) < allowed).all()
    n = table["ess_bulk"].to_numpy()
    np.testing.assert_allclose(table["sd"], deviation, rtol=3 * (1 / np.sqrt(2 * n)).max() + 0.02)


def test_nuts_mixes_and_says_so(sampled: Fit) -> None:
    assert int(sampled.status) == Status.CONVERGED
    findings = posterior.diagnose(posterior.to_arviz(sampled.chains))
    assert [f.severity for f in findings] == ["good"]
    assert "4 chains of 1000 draws agree" in findings[0].sentence


def test_averaging_over_draws_is_the_mean_probability(sampled: Fit, votes: Votes) -> None:
    by_draw = []
    for i in range(0, 4000, 400):
        one = {k: v[i : i + 1] for k, v in sampled.draws.items()}
        by_draw.append(np.exp(_with(sampled, one)(votes)))
    few = {k: v[::400] for k, v in sampled.draws.items()}
    np.testing.assert_allclose(np.exp(_with(sampled, few)(votes)), np.mean(by_draw, 0), rtol=1e-10)
    mean = {k: np.asarray(v).mean(0, keepdims=True) for k, v in sampled.draws.items()}
    assert not np.allclose(_with(sampled, mean)(votes), sampled(votes))


def _with(fit: Fit, draws: dict[str, jax.Array]) -> Fit:
    from dataclasses import replace

    return replace(fit, draws=draws, chains=None)


@pytest.mark.slow
def test_nuts_of_a_score_is_the_generalised_posterior(votes: Votes, labels: np.ndarray) -> None:
    """With the NLL at temperature 1 it is the ordinary posterior; hotter is wider."""
    few = {"draws": 250, "warmup": 250, "chains": 2}
    ordinary = Davidson(NUTS(**few)).fit(votes, labels)
    gibbs = Davidson(NUTS(score=scores.nll, **few)).fit(votes, labels)
    hot = Davidson(NUTS(score=scores.nll, temperature=8.0, **few)).fit(votes, labels)
    for name in ("beta", "gamma"):
        one, other, wide = (np.asarray(f.draws[name]).ravel() for f in (ordinary, gibbs, hot))
        assert abs(one.mean() - other.mean()) < 0.25 * one.std()
        assert wide.std() > 1.1 * one.std()


def test_map_of_a_score_minimises_score_plus_prior(votes: Votes, labels: np.ndarray) -> None:
    cold = Davidson(MAP(temperature=1e-4, score=scores.drps)).fit(votes, labels)
    plain = Davidson(DRPS()).fit(votes, labels)
    np.testing.assert_allclose(theta(cold), theta(plain), atol=0.05)
    hot = Davidson(MAP(temperature=1e4, score=scores.drps)).fit(votes, labels)
    prior = DavidsonPrior()
    modes = [prior.beta[0], prior.eta0[0], prior.gamma[0]]
    np.testing.assert_allclose(theta(hot), modes, atol=0.02)


def test_the_direct_fit_has_the_least_calibration_error(votes: Votes, labels: np.ndarray) -> None:
    from judgebayes.measures.scores import absolute_loss, bayes_action

    def error(fit: Fit) -> float:
        return float(scores.mae(bayes_action(fit(votes), absolute_loss(3)), labels))

    direct = Davidson(MinimumLoss(candidates=1024)).fit(votes, labels)
    assert float(direct.details["objective"]) == pytest.approx(error(direct))
    for other in (DRPS(), MinimumScore(scores.nll), MAP()):
        assert error(direct) <= error(Davidson(other).fit(votes, labels)) + 1e-12


def test_constant_or_too_few_labels_are_degenerate(votes: Votes, labels: np.ndarray) -> None:
    constant = np.where(labels >= 0, 1, -1)
    assert int(Davidson().fit(votes, constant).status) == Status.DEGENERATE
    two = np.where(np.cumsum(labels >= 0) <= 2, labels, -1)
    assert int(Davidson().fit(votes, two).status) == Status.DEGENERATE


def test_starts_fill_the_cube_and_begin_at_its_centre() -> None:
    points = spread(200, 3)
    np.testing.assert_allclose(points[0], 0, atol=1e-12)
    assert np.abs(points).max() <= 1
    hit = np.histogramdd(points, bins=2, range=[(-1, 1)] * 3)[0]
    assert hit.min() > 15


def test_split_rhat_equals_numpyros() -> None:
    from numpyro.diagnostics import split_gelman_rubin

    x = np.random.default_rng(0).normal(size=(4, 50, 2)) + np.arange(4)[:, None, None] * 0.3
    np.testing.assert_allclose(split_rhat(jnp.asarray(x)), split_gelman_rubin(x), rtol=1e-4)


def test_replicated_labels_are_drawn_by_the_answers(
    sampled: Fit, votes: Votes, labels: np.ndarray
) -> None:
    data = sampled.to_arviz()
    predicted = np.asarray(data["posterior_predictive"]["label"])
    expected = np.exp(np.asarray(sampled(votes)))[labels >= 0]
    for k in range(3):
        np.testing.assert_allclose((predicted == k).mean((0, 1)), expected[:, k], atol=0.1)


def test_the_repr_summarises(sampled: Fit) -> None:
    assert "4000 draws, converged" in repr(sampled)
    assert repr(sampled).startswith("Davidson fit(beta")
