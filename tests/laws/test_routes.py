"""Fast implementations agree with the model programs, on random data.

Three kinds of law, one line per implementation. *Log-density*: its objective is the program's
log-density up to a constant, with its gradient. *Score*: loss, gradient and Hessian are those of the
program's `predict`. *Exact posterior*: moments are those of the program, by quadrature.

Data have missing votes, weights (some of them 0), and labels that are partly unknown and partly wrong.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import optax
import pytest
from jax.flatten_util import ravel_pytree
from numpyro.distributions.transforms import StickBreakingTransform
from numpyro.infer.util import log_density

from judgebayes import DawidSkene, OneCoin, priors
from judgebayes.aggregators.davidson import columns
from judgebayes.aggregators.dawid_skene import EM
from judgebayes.compiled.float64 import in_float64
from judgebayes.experiments.betaconform.pooled_beta_binomial import (
    PooledBetaBinomialModel,
    PooledData,
    set_parameters,
)
from judgebayes.inference.fast import dawid_skene_em, pooled_dawid_skene
from judgebayes.inference.laplace import (
    _likelihood,
    _SoftmaxProblem,
    n_parameters,
    predictors,
    split,
)
from judgebayes.inference.problem import Design, Problem, score_derivatives
from judgebayes.inference.sampled import drawn_from_prior
from judgebayes.item_response import ItemResponse, evidence
from judgebayes.majority.distribution import log_likelihood
from judgebayes.measures.scores import Score, drps, labelled_weight, nll
from judgebayes.models import davidson, irt, stacking
from judgebayes.models.base import Model, PanelData, noise_matrix
from judgebayes.models.beta_binomial import BetaBinomialModel, CountData, parameters
from judgebayes.models.davidson import DavidsonData, DavidsonModel
from judgebayes.models.dawid_skene import DawidSkeneModel, DawidSkenePrior
from judgebayes.models.irt import ItemResponseModel
from judgebayes.models.one_coin import OneCoinModel
from judgebayes.models.pooled_dawid_skene import (
    PooledDawidSkeneModel,
    PooledPrior,
    in_matrix,
    mean_rows,
)
from judgebayes.models.stacking import Form, StackingData, StackingModel
from judgebayes.votes import Votes

ITEMS, JUDGES = 30, 4
SLOW = pytest.mark.slow
CLASSES = (2, pytest.param(3, marks=SLOW), 4, pytest.param(5, marks=SLOW))
NOISE = (0.0, 0.15)
Function = Callable[[Any], jax.Array]


def panel(classes: int, samples: int, seed: int) -> PanelData:
    """Return random votes of judges that are mostly right."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, ITEMS)
    shape = (ITEMS, JUDGES, samples)
    right = rng.random(shape) < 0.7
    votes = np.where(right, truth[:, None, None], rng.integers(0, classes, shape))
    votes = np.where(rng.random(shape) < 0.25, -1, votes)
    labels = np.where(rng.random(ITEMS) < 0.3, -1, truth)
    weight = rng.choice([0.0, 0.5, 1.0, 2.0], ITEMS)
    return PanelData(*map(jnp.asarray, (votes, labels, weight)))


def tally(data: PanelData, axes: int | tuple[int, ...], classes: int) -> np.ndarray:
    """Return the number of votes for each class, along a new last axis."""
    votes = np.asarray(data.votes)
    return np.stack([(votes == k).sum(axes) for k in range(classes)], axis=-1)


@dataclass(frozen=True)
class Pair:
    """A fast implementation and the program, as functions of the same free parameters."""

    route: Function
    program: Function
    points: list[Any]


def em(classes: int, noise: float) -> Pair:
    """Dawid and Skene's objective from counts, as in EM, on the unconstrained scale."""
    data = panel(classes, 2, seed=1)
    prior = DawidSkenePrior(1.5, 0.7, 1.2)
    count = dawid_skene_em.counts(data.votes, classes)
    model = DawidSkeneModel(classes, prior, noise)

    def sites(x: dict[str, jax.Array]) -> dict[str, jax.Array]:
        return {name: StickBreakingTransform()(value) for name, value in x.items()}

    def route(x: dict[str, jax.Array]) -> jax.Array:
        logs = {name: jnp.log(value) for name, value in sites(x).items()}
        both = logs["pi"], logs["confusion"]
        likely = dawid_skene_em.log_likelihood(*both, count, data.labels, data.weight, noise)
        return likely + dawid_skene_em.log_prior(*both, prior)

    def program(x: dict[str, jax.Array]) -> jax.Array:
        return log_density(model, (data,), {}, sites(x))[0]

    rng = np.random.default_rng(2)
    shape = (JUDGES, classes, classes - 1)
    return Pair(
        route,
        program,
        [
            {
                "pi": jnp.asarray(rng.normal(size=classes - 1)),
                "confusion": jnp.asarray(rng.normal(size=shape)),
            }
            for _ in range(3)
        ],
    )


def two_parameters(classes: int, noise: float) -> Pair:
    """The 2PL's objective from its table of votes, as in Newton's method, with analytic gradient."""
    data = panel(classes, 2, seed=3)
    counts = jnp.asarray(tally(data, 2, classes))
    vote_evidence = evidence(counts, data.labels, data.weight, noise)
    prior = irt.ItemResponsePrior()
    model = ItemResponseModel(classes, prior, noise)

    def written(p: irt.Parameters) -> tuple[jax.Array, irt.Parameters]:
        at = vote_evidence.visit(p, prior)
        return -at.value, jax.tree.map(jnp.negative, at.gradient)

    @jax.custom_vjp
    def route(p: irt.Parameters) -> jax.Array:
        return written(p)[0]

    route.defvjp(written, lambda slope, g: (jax.tree.map(lambda x: g * x, slope),))

    def program(p: irt.Parameters) -> jax.Array:
        return log_density(model, (data,), {}, p._asdict())[0]

    rng = np.random.default_rng(4)
    draw = lambda n: jnp.asarray(rng.normal(size=n))  # noqa: E731
    points = [irt.Parameters(draw(JUDGES), draw(ITEMS), 0.4 * draw(ITEMS)) for _ in range(3)]
    return Pair(route, program, points)


def linear(classes: int, noise: float, symmetric: bool) -> Pair:
    """Stacking's likelihood of a linear design, as in its Laplace approximation."""
    votes = panel(classes, 2, seed=5)
    form = Form(JUDGES, classes, symmetric)
    data = StackingData(votes.votes, jnp.zeros(JUDGES), votes.labels, votes.weight)
    problem = _SoftmaxProblem(
        predictors(votes.votes, form),
        jnp.asarray(stacking.read_out(form)),
        noise_matrix(noise, classes),
        data.labels,
        labelled_weight(data.labels, votes.weight),
    )
    model = StackingModel(form, priors.Stacking(kappa=0.0), noise)

    @jax.custom_vjp
    def route(x: jax.Array) -> jax.Array:
        return _likelihood(problem, x)[0]

    route.defvjp(lambda x: _likelihood(problem, x)[:2], lambda slope, g: (g * slope,))

    def program(x: jax.Array) -> jax.Array:
        named = split(x, form)
        z = {f"z_{n}": v for n, v in named.items() if n not in ("offset", "level")}
        sites = named | z | {"tau": jnp.ones(()), "common": jnp.zeros(())}
        sites["eta0"] = named.get("level", jnp.zeros(0))
        own = Problem(model, data)
        joint, prior = (
            log_density(m, (), {}, {n: sites[n] for n in own.latent})[0]
            for m in (own.joint, own.prior)
        )
        return joint - prior

    rng = np.random.default_rng(6)
    return Pair(
        route, program, [jnp.asarray(rng.normal(size=n_parameters(form))) for _ in range(3)]
    )


LOG_DENSITIES: dict[str, Callable[[int, float], Pair]] = {
    "dawid-skene, counts": em,
    "2PL, table": two_parameters,
    "stacking, symmetric": lambda k, e: linear(k, e, symmetric=True),
    "stacking, free": lambda k, e: linear(k, e, symmetric=False),
}


def agree(pair: Pair) -> bool:
    """Return whether values differ by one constant, and gradients are equal."""
    both = [jax.jit(jax.value_and_grad(f)) for f in (pair.route, pair.program)]
    values = [[f(x) for x in pair.points] for f in both]
    apart = np.array([float(a[0]) - float(b[0]) for a, b in zip(*values, strict=True)])
    scale = max(abs(float(b[0])) for b in values[1])
    gradient_lists = [[np.asarray(ravel_pytree(each[1])[0]) for each in own] for own in values]
    gradients = all(
        np.allclose(a, b, rtol=1e-8, atol=1e-8 * max(1.0, np.abs(b).max()))
        for a, b in zip(*gradient_lists, strict=True)
    )
    return bool(np.ptp(apart) < 1e-11 * max(scale, 1.0)) and gradients


@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("name", LOG_DENSITIES)
@in_float64
def test_the_objective_is_the_programs_log_density(name: str, classes: int, noise: float) -> None:
    assert agree(LOG_DENSITIES[name](classes, noise))


@in_float64
def test_a_route_that_forgot_the_noise_would_be_noticed() -> None:
    right, wrong = em(3, 0.15), em(3, 0.0)
    assert not agree(Pair(wrong.route, right.program, right.points))


@in_float64
def test_the_bound_of_pooled_judges_is_the_marginal_density_where_labels_are_known() -> None:
    """By p(data | skill) = p(data, rows | skill) / p(rows | data, skill), at any rows."""
    panel_data = panel(3, 2, seed=8)
    labels = jnp.asarray(np.random.default_rng(9).integers(0, 3, ITEMS))
    data = PanelData(panel_data.votes[:, :1], labels, panel_data.weight)
    prior = PooledPrior((1.0, 0.5), (-0.2, 0.4), 0.3, (1.0, 0.5), 1.5, 1.2)
    model = PooledDawidSkeneModel(3, prior)
    count = dawid_skene_em.counts(data.votes, 3)
    responsibility = dawid_skene_em.labelled_responsibilities(labels, data.weight, 3)
    votes = dawid_skene_em.tally(responsibility, count)
    rng, apart = np.random.default_rng(10), []
    edge = pooled_dawid_skene.FARTHEST
    grid = jnp.linspace(-edge, edge, pooled_dawid_skene.LEVELS)
    fine = jnp.linspace(-8, 8, 400)
    theta = dist.Dirichlet(jnp.ones((1, 3, 3))).sample(jax.random.key(1))

    @jax.jit
    def compared(crowd: pooled_dawid_skene._Crowd) -> tuple[jax.Array, jax.Array]:
        judges = pooled_dawid_skene.given_votes(crowd, votes)
        logs = crowd.log_pi, judges.expected_log
        likely = dawid_skene_em.log_likelihood(*logs, count, labels, data.weight, 0.0)
        sites = {"pi": jnp.exp(crowd.log_pi), "confusion": theta}
        sites |= pooled_dawid_skene.crowd_sites(crowd)

        def marginal(skill: jax.Array) -> jax.Array:
            joint = log_density(model, (data,), {}, sites | {"skill": skill[None]})[0]
            logit = crowd.mean_ability + jnp.exp(crowd.log_spread) * skill + crowd.shift
            rows = mean_rows(jax.nn.sigmoid(logit), crowd.errors)
            rows = jnp.exp(crowd.log_concentration)[:, None] * rows + votes
            return joint - dist.Dirichlet(rows).log_prob(theta).sum()

        by_grid, by_fine = (
            jax.nn.logsumexp(jax.vmap(marginal)(x)) + jnp.log(x[1] - x[0]) for x in (grid, fine)
        )
        bound = pooled_dawid_skene.bound(crowd, judges, likely, prior)
        return by_grid - bound, by_fine - by_grid

    for _ in range(3):
        errors = jnp.asarray(rng.dirichlet(np.ones(2), 3))
        log_pi = jnp.log(jnp.asarray(rng.dirichlet(np.ones(3))))
        normal = map(jnp.asarray, (rng.normal(), rng.normal(-0.5, 0.3), rng.normal(0, 0.5, 3)))
        log_c = jnp.asarray(rng.normal(1.0, 0.5, 3))
        crowd = pooled_dawid_skene._Crowd(log_pi, *normal, log_c, in_matrix(errors))
        above, finer = compared(crowd)
        apart.append(float(above))
        assert float(finer) == pytest.approx(0.0, abs=0.01)
    np.testing.assert_allclose(apart, apart[0], atol=1e-8)


@pytest.mark.parametrize("noise", NOISE)
@in_float64
def test_em_ends_where_the_programs_density_is_stationary(noise: float) -> None:
    data = panel(3, 1, seed=7)
    votes = Votes(data.votes.astype(jnp.int8), None, None, None, 3)
    prior = DawidSkenePrior(1.5, 0.7, 1.2)
    method = DawidSkene(EM(tolerance=1e-14, max_steps=20_000), prior, noise)
    fit = method.fit(votes, data.labels, weight=data.weight)
    model = DawidSkeneModel(3, prior, noise)
    sites = {name: x[0] for name, x in fit.draws.items()}
    free = {name: jnp.log(x) for name, x in sites.items()}

    @jax.jit
    def density(x: dict[str, jax.Array]) -> jax.Array:
        at = {name: jax.nn.softmax(value, axis=-1) for name, value in x.items()}
        return log_density(model, (data,), {}, at)[0]

    top, gradient = jax.jit(jax.value_and_grad(density))(free)
    assert max(float(jnp.abs(x).max()) for x in gradient.values()) < 1e-4
    # Not worse than a generic optimiser from the same point.
    solver = optax.lbfgs()
    loss = lambda x: -density(x)  # noqa: E731
    both = optax.value_and_grad_from_state(loss)

    @jax.jit
    def step(x: Any, state: Any) -> tuple[Any, Any]:
        value, grad = both(x, state=state)
        updates, state = solver.update(grad, state, x, value=value, grad=grad, value_fn=loss)
        return optax.apply_updates(x, updates), state

    x, state = free, solver.init(free)
    for _ in range(100):
        x, state = step(x, state)
    assert float(density(x)) - float(top) < 1e-6


@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("score", [drps, nll])
@pytest.mark.parametrize("symmetric", [True, False])
@in_float64
def test_the_written_out_score_is_the_programs(
    symmetric: bool, score: Score, classes: int, noise: float
) -> None:
    votes = panel(classes, 3, seed=8)
    counts = jnp.asarray(tally(votes, (1, 2), classes))
    evidence = jax.jit(davidson.features, static_argnames="symmetric")(counts, symmetric=symmetric)
    shape = {"n_classes": classes, "symmetric": symmetric}
    model: Model = DavidsonModel(classes, symmetric, noise=noise)
    problem = Problem(model, DavidsonData(evidence, votes.labels, votes.weight))
    design = Design(columns(evidence, **shape), classes)
    written = score_derivatives(score, design, votes.labels, votes.weight, noise)
    blank, unravel = ravel_pytree({n: s["value"] for n, s in sorted(problem.latent.items())})

    def loss(x: jax.Array) -> jax.Array:
        return problem.loss(score, unravel(x))

    @jax.jit
    def both(x: jax.Array) -> tuple[Any, Any]:
        return written(x), (loss(x), jax.grad(loss)(x), jax.hessian(loss)(x))

    rng = np.random.default_rng(9)
    for _ in range(2):
        values, programs = both(jnp.asarray(rng.normal(size=blank.shape[0])))
        np.testing.assert_allclose(values[0], programs[0], rtol=1e-11)
        np.testing.assert_allclose(values[1], programs[1], rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(values[2], programs[2], rtol=1e-7, atol=1e-8)


@in_float64
def test_another_score_would_be_noticed() -> None:
    votes = panel(3, 3, seed=8)
    counts = jnp.asarray(tally(votes, (1, 2), 3))
    evidence = davidson.features(counts)
    problem = Problem(DavidsonModel(3), DavidsonData(evidence, votes.labels, votes.weight))
    design = Design(columns(evidence, n_classes=3), 3)
    x = jnp.array([1.0, 0.5, 0.3])
    at = {"beta": x[0], "eta0": x[1:2], "gamma": x[2:]}
    drps_loss, other = problem.loss(drps, at), problem.loss(nll, at)
    written = score_derivatives(drps, design, votes.labels, votes.weight, 0.0)(x)[0]
    assert float(written) == pytest.approx(float(drps_loss))
    assert abs(float(written) - float(other)) > 0.1


@pytest.mark.parametrize("classes", CLASSES)
@in_float64
def test_the_conjugate_posterior_is_the_programs(classes: int) -> None:
    data = panel(classes, 2, seed=10)
    votes = Votes(data.votes.astype(jnp.int8), None, None, None, classes)
    fit = OneCoin(prior=priors.OneCoin((2.0, 1.5))).fit(votes, data.labels, weight=data.weight)
    model = OneCoinModel(classes, prior=priors.OneCoin((2.0, 1.5)))
    node, mass = np.polynomial.legendre.leggauss(400)
    grid = jnp.asarray((node + 1) / 2)

    def density(r: jax.Array, judge: jax.Array) -> jax.Array:
        at = jnp.full(JUDGES, 0.5).at[judge].set(r)
        return log_density(model, (data,), {}, {"accuracy": at})[0]

    along = jax.jit(jax.vmap(density, in_axes=(0, None)))
    for judge in range(JUDGES):
        log_p = np.asarray(along(grid, jnp.asarray(judge)))
        p = mass * np.exp(log_p - log_p.max())
        p = p / p.sum()
        mean = p @ np.asarray(grid)
        variance = p @ (np.asarray(grid) - mean) ** 2
        a, b = (float(fit.first[name][judge]) for name in ("alpha", "beta"))
        assert mean == pytest.approx(a / (a + b), abs=1e-9)
        assert variance == pytest.approx(a * b / (a + b) ** 2 / (a + b + 1), abs=1e-9)


@in_float64
def test_another_prior_would_be_noticed() -> None:
    data = panel(2, 2, seed=10)
    votes = Votes(data.votes.astype(jnp.int8), None, None, None, 2)
    right, wrong = (
        OneCoin(prior=priors.OneCoin(p)).fit(votes, data.labels, weight=data.weight)
        for p in ((2.0, 1.5), (1.0, 1.0))
    )
    means = [f.reliability().mean for f in (right, wrong)]
    assert np.abs(means[0] - means[1]).min() > 1e-4


@pytest.mark.parametrize("sets", [1, 3])
@in_float64
def test_counts_times_weights_are_the_programs(sets: int) -> None:
    rng = np.random.default_rng(13)
    n_votes = rng.integers(1, 8, ITEMS)
    correct = np.where(rng.random(ITEMS) < 0.2, -1, rng.integers(0, n_votes + 1))
    member = jnp.asarray(np.arange(ITEMS) % sets)
    counts = CountData(*map(jnp.asarray, (correct, n_votes, rng.choice([0.0, 0.5, 2.0], ITEMS))))
    whole = PooledData(counts.correct, counts.given, member, counts.weight)
    model: Model = BetaBinomialModel(7) if sets == 1 else PooledBetaBinomialModel(sets, 7)
    data = counts if sets == 1 else whole
    prior = Problem(model, data).prior

    @jax.jit
    def difference(key: jax.Array) -> jax.Array:
        at, _ = drawn_from_prior(model, data, key)
        theta = jax.tree.map(lambda x: x[None], parameters(at)) if sets == 1 else set_parameters(at)
        route = log_likelihood(theta, member, counts, 7)
        return route + log_density(prior, (), {}, at)[0] - log_density(model, (data,), {}, at)[0]

    apart = [difference(jax.random.key(seed)) for seed in range(3)]
    np.testing.assert_allclose(apart, 0.0, atol=1e-9)


@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("which", ["dawid-skene", "2PL"])
@in_float64
def test_what_samplers_solve_by_counts_is_the_program(which: str, noise: float) -> None:
    data = panel(3, 2, seed=11)
    rng = np.random.default_rng(12)
    model: Model
    if which == "2PL":
        model = ItemResponseModel(3, noise=noise)
        votes = Votes(data.votes, None, None, None, 3)
        problem = ItemResponse(label_noise=noise).problem(votes, data.labels, data.weight)
        shapes = {"ability": JUDGES, "difficulty": ITEMS, "log_discrimination": ITEMS}
        draw = lambda: {n: jnp.asarray(rng.normal(size=size)) for n, size in shapes.items()}  # noqa: E731
    else:
        model = DawidSkeneModel(3, noise=noise)
        draw = lambda: {  # noqa: E731
            "pi": jnp.asarray(rng.dirichlet(np.ones(3))),
            "confusion": jnp.asarray(rng.dirichlet(np.ones(3), (JUDGES, 3))),
        }
        problem = dawid_skene_em.by_counts(Problem(model, data), draw())
    difference = jax.jit(
        lambda at: (
            log_density(problem.joint, (), {}, at)[0] - log_density(model, (data,), {}, at)[0]
        )
    )
    apart = [difference(at) for at in (draw(), draw(), draw())]
    np.testing.assert_allclose(apart, apart[0], rtol=1e-10, atol=1e-9)
