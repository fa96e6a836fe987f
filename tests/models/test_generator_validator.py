from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from numpyro.infer.util import log_density
from scipy import integrate, stats
from scipy.special import expit, logit

from judgebayes.compiled.float64 import in_float64
from judgebayes.experiments.beyond_consensus import flat_program
from judgebayes.experiments.beyond_consensus import hierarchical_program as gv
from judgebayes.experiments.beyond_consensus.cell_votes import student_deviations
from judgebayes.experiments.beyond_consensus.generator_counts import Counted
from judgebayes.experiments.beyond_consensus.robust_program import RobustModel, RobustPrior
from judgebayes.inference.sampled import drawn_from_prior
from judgebayes.models import item_validator
from judgebayes.models.base import PanelData

G, J = 3, 2
Point = dict[str, np.ndarray]


@pytest.fixture(scope="module")
def counted() -> Counted:
    """The first generator is fully labelled, the second not at all, the third partly."""
    judged = np.array([[0, 0], [40, 0], [20, 21]])
    valid, labelled = np.array([25, 0, 6]), np.array([30, 0, 10])
    rows = (
        np.array([[0, 0], [35, 0], [15, 20]]),
        judged,
        np.array([[24, 20], [0, 0], [5, 6]]),
        np.array([[25, 22], [0, 0], [6, 6]]),
        np.array([[3, 2], [0, 0], [2, 4]]),
        np.array([[5, 5], [0, 0], [4, 4]]),
        valid,
        labelled,
    )
    return Counted(*(np.asarray(a, float) for a in rows))


def binomials(
    data: Counted, g: np.ndarray, tpr: np.ndarray, fpr: np.ndarray, p: np.ndarray
) -> float:
    """Return the log-likelihood of the story, cell by cell; tpr, fpr and p by cell."""
    total = 0.0
    for i in range(G):
        total += stats.binom.logpmf(data.valid[i], data.labelled[i], g[i])
        for j in range(J):
            for count, n, rate in (
                (data.accepted, data.judged, p),
                (data.true_accepted, data.valid_judged, tpr),
                (data.false_accepted, data.invalid_judged, fpr),
            ):
                total += stats.binom.logpmf(count[i, j], n[i, j], rate[i, j])
    return float(total)


def assert_the_same_density(
    model: Callable[..., None],
    data: Counted | PanelData,
    twin: Callable[[Point], float],
    points: list[Point],
    tolerance: float = 1e-7,
) -> None:
    """Compare log-densities up to a constant."""

    compiled = jax.jit(lambda data, at: log_density(model, (data,), {}, at)[0])

    @in_float64
    def ours(at: Point) -> float:
        return float(compiled(*jax.tree.map(jnp.asarray, (data, at))))

    first, *rest = points
    for at in rest:
        wanted = twin(at) - twin(first)
        assert ours(at) - ours(first) == pytest.approx(wanted, rel=1e-9, abs=tolerance)


def test_the_flat_density_is_that_of_the_story(counted: Counted) -> None:
    def twin(at: Point) -> float:
        wide = np.zeros((G, 1))
        g, tpr, fpr = at["g"], wide + at["tpr"], wide + at["fpr"]
        p = g[:, None] * tpr + (1 - g[:, None]) * fpr
        prior = stats.beta.logpdf(at["tpr"], 2, 1).sum()
        return binomials(counted, g, tpr, fpr, p) + float(prior)

    rng = np.random.default_rng(0)
    points = [{"g": rng.random(G), "tpr": rng.random(J), "fpr": rng.random(J)} for _ in range(3)]
    assert_the_same_density(flat_program.FlatModel(), counted, twin, points)
    part = jax.tree.map(jnp.asarray, counted._replace(labelled=counted.labelled / 4))
    with pytest.raises(ValueError, match="fractions of items, not whole numbers"):
        drawn_from_prior(flat_program.FlatModel(), part, jax.random.key(0))


def logits_by_label(at: Point, spreads: np.ndarray, a: np.ndarray, kappa: np.ndarray) -> np.ndarray:
    """Return the logits of the three rates of every cell, as the story says them."""
    logits = np.zeros((G, J, 3))
    for i, j in np.ndindex(G, J):
        k = expit(kappa[j] + spreads[1] * at["u"][i])
        q = expit(a[j] + at["impression"][i])
        g = expit(at["eta"][i])
        logits[i, j] = logit([k + (1 - k) * q, (1 - k) * q, k * g + (1 - k) * q])
    return logits


def cell(
    count: np.ndarray, n: np.ndarray, b: np.ndarray, density: Callable[[float], float]
) -> float:
    """Return the likelihood of a cell, its deviation integrated adaptively."""

    def integrand(e: float) -> float:
        return float(np.prod(stats.binom.pmf(count, n, expit(b + e))) * density(e))

    return float(
        integrate.quad(
            integrand, -60, 60, points=[-4, -1, 0, 1, 4], limit=300, epsabs=0, epsrel=1e-10
        )[0]
    )


def of_judges_and_generators(at: Point, prior: gv.HierarchicalPrior | RobustPrior) -> float:
    """Return the prior's log-density of the sites that both programs have."""
    total = stats.norm.logpdf(at["centre"], [0, -0.5, 1.5], [1, 1.5, 1.5]).sum()
    total += stats.norm.logpdf(at["a"], at["centre"][0], prior.judge_spread).sum()
    total += stats.norm.logpdf(at["kappa"], at["centre"][1], prior.judge_spread).sum()
    total += stats.norm.logpdf(at["eta"], at["centre"][2], prior.quality_spread).sum()
    d = at["impression"] - at["slope"] * at["eta"]
    total += stats.norm.logpdf(d, 0, np.exp(at["log_sigma"][0])).sum()
    return float(total + stats.norm.logpdf(at["u"]).sum())


SHAPES = {"slope": (), "centre": 3, "a": J, "kappa": J, "eta": G, "impression": G, "u": G}


def points_of(shapes: dict[str, Any]) -> list[Point]:
    rng = np.random.default_rng(0)
    return [{n: 0.7 * rng.normal(size=s) for n, s in shapes.items()} for _ in range(3)]


def labels_and_cells(
    data: Counted, at: Point, each: Callable[[int, int, np.ndarray], float]
) -> float:
    """Return the log-likelihood of the labels and of all cells."""
    total = stats.binom.logpmf(data.valid, data.labelled, expit(at["eta"])).sum()
    n = np.stack([data.valid_judged, data.invalid_judged, data.judged], axis=-1)
    for i, j in np.ndindex(G, J):
        total += np.log(each(i, j, n[i, j]))
    return float(total)


def test_the_hierarchical_density_is_that_of_the_story(counted: Counted) -> None:
    count = np.asarray(counted.accepted_by_label)

    def twin(at: Point) -> float:
        spreads = np.exp(at["log_sigma"])
        b = logits_by_label(at, spreads, at["a"], at["kappa"])
        normal = stats.norm(0, spreads[2]).pdf
        total = labels_and_cells(counted, at, lambda i, j, n: cell(count[i, j], n, b[i, j], normal))
        total += stats.norm.logpdf(at["slope"], 0.9, 0.3)
        total += stats.norm.logpdf(at["log_sigma"], np.log([0.28, 0.4, 0.15]), 0.5).sum()
        return float(total + of_judges_and_generators(at, gv.HierarchicalPrior()))

    points = points_of(SHAPES | {"log_sigma": 3})
    for at in points:
        at["log_sigma"] = at["log_sigma"] - 1.5  # as the prior has it
    assert_the_same_density(gv.HierarchicalModel(), counted, twin, points, 1e-6)
    assert_the_same_density(gv.HierarchicalModel(), counted, twin, points, 1e-6)


def test_the_robust_density_is_that_of_the_story(counted: Counted) -> None:
    count = np.asarray(counted.accepted_by_label)
    scale, weight, *_ = map(np.asarray, student_deviations(4.0))

    def twin(at: Point) -> float:
        spreads, sigma = np.exp(at["log_sigma"]), np.exp(at["log_sigma_cell"])
        b = logits_by_label(at, spreads, at["a"], at["kappa"])
        share = expit(-7 + 3 * at["log_odds"])

        def heavy(e: float) -> float:
            return float(stats.norm.pdf(e, 0, sigma * scale) @ weight)

        def of_cell(i: int, j: int, n: np.ndarray) -> float:
            numbers = zip(count[i, j], n, b[i, j], strict=True)
            ordinary = np.prod([cell(c, m, logits, heavy) for c, m, logits in numbers])
            odd = np.prod(stats.betabinom.pmf(count[i, j], n.astype(int), 0.1, 0.1))
            return float((1 - share[j]) * ordinary + share[j] * odd)

        total = labels_and_cells(counted, at, of_cell)
        follow = 1 / (1 + (expit(at["kappa"]).mean() / 0.42) ** 6)
        total += np.log(
            follow * stats.norm.pdf(at["slope"], 1, 0.2)
            + (1 - follow) * stats.norm.pdf(at["slope"], 0, 0.2)
        )
        total += stats.norm.logpdf(at["log_sigma_cell"], np.log(0.15), 0.5)
        free = stats.norm.pdf(at["log_sigma"], np.log([0.28, 0.4]), 0.5).prod()
        near = stats.norm.pdf(at["log_sigma"], np.log([1.5, 2]) + at["log_sigma_cell"], 0.5)
        total += np.log(0.8 * free + 0.2 * near.prod()) + stats.norm.logpdf(at["log_odds"]).sum()
        return float(total + of_judges_and_generators(at, RobustPrior()))

    points = points_of(SHAPES | {"log_sigma": 2, "log_sigma_cell": (), "log_odds": J})
    for at in points:
        at["log_odds"] = at["log_odds"] + 2  # so that odd cells count
    assert_the_same_density(RobustModel(), counted, twin, points, 1e-3)


VOTES = np.array([[1, 1, 0], [0, -1, 1], [-1, -1, -1], [1, 0, 0], [1, 1, 1]])
LABELS = np.array([1, 0, -1, -1, -1])
GENERATOR = np.array([0, 0, 1, 1, 0])
ITEM_SHAPES = {
    "centre": 3,
    "log_tau": (),
    "log_sigma": 2,
    "follow": (),
    "alpha": 3,
    "gap": 3,
    "eta": 2,
    "w": (2, 2),
}


@pytest.fixture(scope="module")
def item_points() -> list[Point]:
    rng = np.random.default_rng(1)
    return [{n: 0.6 * rng.normal(size=s) for n, s in ITEM_SHAPES.items()} for _ in range(3)]


def item_twin(at: Point, weight: np.ndarray) -> float:
    """Return the log-density, with every item's leaning integrated by adaptive quadrature."""
    eta = at["centre"][2] + 1.5 * at["eta"]
    alpha, gap = (at["centre"][i] + 0.7 * at[n] for i, n in ((0, "alpha"), (1, "gap")))
    tau, sigma = np.exp(at["log_tau"]), np.exp(at["log_sigma"])

    def likelihood(i: int, label: int) -> float:
        g = GENERATOR[i]
        shift = at["follow"] * (eta[g] - at["centre"][2]) + sigma[label] * at["w"][label, g]

        def integrand(z: float) -> float:
            value = stats.norm.pdf(z)
            for j, vote in enumerate(VOTES[i]):
                logit = alpha[j] - (1 - label) * gap[j] + tau * z + shift
                value *= {1: expit(logit), 0: expit(-logit), -1: 1.0}[vote]
            return float(value)

        share = expit(eta[g]) if label == 1 else expit(-eta[g])
        return float(share * integrate.quad(integrand, -9, 9, epsabs=1e-13)[0])

    total = 0.0
    for i, label in enumerate(LABELS):
        likelihoods = [likelihood(i, y) for y in ((0, 1) if label < 0 else (label,))]
        total += weight[i] * np.log(sum(likelihoods))
    total += stats.norm.logpdf(at["centre"], [2, 1.5, 1.5], [1.5, 1, 1.5]).sum()
    total += stats.norm.logpdf(at["log_tau"], 0, 0.7) + stats.norm.logpdf(at["follow"], 0.5, 0.5)
    total += stats.norm.logpdf(at["log_sigma"], np.log(0.3), 0.5).sum()
    return float(total + sum(stats.norm.logpdf(at[n]).sum() for n in ("alpha", "gap", "eta", "w")))


@pytest.mark.parametrize("weight", [np.ones(5), np.array([1.0, 0.0, 2.0, 3.0, 0.5])])
def test_the_item_level_density_is_that_of_the_story(
    item_points: list[Point], weight: np.ndarray
) -> None:
    assert_the_same_density(
        item_validator.ItemModel(2, points=81),
        PanelData(VOTES[..., None], LABELS, weight, generator=GENERATOR),
        lambda at: item_twin(at, weight),
        item_points,
    )


@in_float64
def test_the_form_for_samplers_has_the_same_posterior(counted: Counted) -> None:
    """Its density is that of the program at the mapped point, times the map's Jacobian."""
    labelled = np.asarray(counted.labelled) > 0
    assert labelled.any()
    assert not labelled.all()
    data = jax.tree.map(jnp.asarray, counted)
    program = gv.HierarchicalModel()
    sampled, back = program.for_sampler(data)
    rng = np.random.default_rng(0)
    shapes = {**SHAPES, "log_sigma": 3}
    _, unravel = ravel_pytree({n: jnp.zeros(shape) for n, shape in shapes.items()})
    jacobian = jax.jit(jax.jacobian(lambda x: ravel_pytree(back(unravel(x)))[0]))
    densities = [
        jax.jit(lambda at, model=model: log_density(model, (data,), {}, at)[0])
        for model in (program, sampled)
    ]
    changes = []
    for _ in range(3):
        at = {n: jnp.asarray(0.5 * rng.normal(size=shape)) for n, shape in shapes.items()}
        log_volume = np.linalg.slogdet(jacobian(ravel_pytree(at)[0]))[1]
        there, here = (density(x) for density, x in zip(densities, (back(at), at), strict=True))
        changes.append(float(log_volume))
        assert float(here) == pytest.approx(float(there) + log_volume, abs=1e-8)
    assert np.ptp(changes) > 0.1
