from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.infer.util import log_density
from scipy import integrate, stats
from scipy.special import expit

from judgebayes.compiled.float64 import in_float64
from judgebayes.models import generator_validator as gv

G, J = 3, 2
Point = dict[str, np.ndarray]


@pytest.fixture(scope="module")
def counted() -> gv.Counted:
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
    return gv.Counted(*(np.asarray(a, float) for a in rows))


def binomials(
    data: gv.Counted, g: np.ndarray, tpr: np.ndarray, fpr: np.ndarray, p: np.ndarray
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
    data: gv.Counted | gv.ItemData,
    twin: Callable[[Point], float],
    points: list[Point],
) -> None:
    """Compare log-densities up to a constant."""

    @in_float64
    def ours(at: Point) -> float:
        given = {name: jnp.asarray(value) for name, value in at.items()}
        return float(log_density(model, (jax.tree.map(jnp.asarray, data),), {}, given)[0])

    first, *rest = points
    for at in rest:
        assert ours(at) - ours(first) == pytest.approx(twin(at) - twin(first), rel=1e-9, abs=1e-7)


def test_the_flat_density_is_that_of_the_story(counted: gv.Counted) -> None:
    def twin(at: Point) -> float:
        wide = np.zeros((G, 1))
        g, tpr, fpr = at["g"], wide + at["tpr"], wide + at["fpr"]
        p = g[:, None] * tpr + (1 - g[:, None]) * fpr
        prior = stats.beta.logpdf(at["tpr"], 2, 1).sum()
        return binomials(counted, g, tpr, fpr, p) + float(prior)

    rng = np.random.default_rng(0)
    points = [{"g": rng.random(G), "tpr": rng.random(J), "fpr": rng.random(J)} for _ in range(3)]
    assert_the_same_density(gv.FlatModel(), counted, twin, points)
    assert_the_same_density(gv.FlatModel(whole=False), counted, twin, points)


def test_the_hierarchical_density_is_that_of_the_story(counted: gv.Counted) -> None:
    def twin(at: Point) -> float:
        sd, su, sc = np.exp(at["log_sigma"])
        eta = at["centre"][2] + 1.5 * at["eta"]
        tpr, fpr, p = (np.zeros((G, J)) for _ in range(3))
        for i in range(G):
            for j in range(J):
                k = expit(at["centre"][1] + 0.7 * at["kappa"][j] + su * at["u"][i])
                q = expit(
                    at["centre"][0] + 0.7 * at["a"][j] + at["slope"] * eta[i] + sd * at["d"][i]
                )
                t, f, g = k + (1 - k) * q, (1 - k) * q, expit(eta[i])
                for rate, value in ((tpr, t), (fpr, f), (p, g * t + (1 - g) * f)):
                    rate[i, j] = expit(np.log(value / (1 - value)) + sc * at["e"][i, j])
        prior = stats.norm.logpdf(at["slope"], 0.9, 0.3)
        prior += stats.norm.logpdf(at["centre"], [0, -0.5, 1.5], [1, 1.5, 1.5]).sum()
        prior += stats.norm.logpdf(at["log_sigma"], np.log([0.28, 0.4, 0.15]), 0.5).sum()
        prior += sum(
            stats.norm.logpdf(at[name]).sum() for name in ("a", "kappa", "eta", "d", "u", "e")
        )
        return binomials(counted, expit(eta), tpr, fpr, p) + float(prior)

    rng = np.random.default_rng(0)
    shapes = {"slope": (), "centre": 3, "log_sigma": 3, "a": J, "kappa": J, "eta": G, "d": G}
    shapes |= {"u": G, "e": (G, J)}
    points = [{n: 0.7 * rng.normal(size=s) for n, s in shapes.items()} for _ in range(3)]
    assert_the_same_density(gv.HierarchicalModel(), counted, twin, points)
    assert_the_same_density(gv.HierarchicalModel(whole=False), counted, twin, points)


@in_float64
def test_judges_who_know_everything_or_nothing() -> None:
    know, accept = jnp.array([[1.0, 0.0]]), jnp.array([[0.3, 0.8]])
    tpr, fpr = gv.rates(know, accept)
    np.testing.assert_allclose(tpr, [[1.0, 0.8]])
    np.testing.assert_allclose(fpr, [[0.0, 0.8]])
    np.testing.assert_allclose(gv.link(jnp.array([0.7]), tpr, fpr), [[0.7, 0.8]])


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
        gv.ItemModel(2, points=81),
        gv.ItemData(VOTES[..., None], LABELS, GENERATOR, weight),
        lambda at: item_twin(at, weight),
        item_points,
    )


def log_joint(at: gv.ItemSites, points: int = gv.POINTS) -> np.ndarray:
    """Return log P(label, votes) of every item; invalid first."""
    data = gv.ItemData(*map(jnp.asarray, (VOTES[..., None], LABELS, GENERATOR)))
    program = gv.ItemModel(2, points)
    log_class = program._log_class(at, data)
    votes = program._votes(log_class, at, data)
    return np.asarray(log_class + votes.log_prob_by_class(data.votes))


@in_float64
def test_few_nodes_suffice(item_points: list[Point]) -> None:
    at = gv.item_sites(jax.tree.map(jnp.asarray, item_points[0]), gv.ItemPrior())
    few, many = (log_joint(at, n) for n in (gv.POINTS, 61))
    np.testing.assert_allclose(few, many, atol=2e-3)


@in_float64
def test_an_item_without_votes_has_its_generators_share(item_points: list[Point]) -> None:
    at = gv.item_sites(jax.tree.map(jnp.asarray, item_points[0]), gv.ItemPrior())
    joint = log_joint(at)
    np.testing.assert_allclose(np.exp(joint[2]).sum(), 1)
    np.testing.assert_allclose(np.exp(joint[2, 1]), expit(np.asarray(at.eta)[1]))
