"""Extreme but valid inputs, derivatives against finite differences, and precision."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from laws.data import JUDGES, base
from laws.families import votes_of
from laws.registry import CASES
from numpyro import handlers
from numpyro.distributions import biject_to
from numpyro.infer.util import log_density

from judgebayes import (
    DRPS,
    MAP,
    Beta,
    Davidson,
    DawidSkene,
    Isotonic,
    MinimumScore,
    OneCoin,
    Platt,
    Stacking,
    Status,
    Temperature,
    VoteShare,
)
from judgebayes.aggregators.dawid_skene import EM
from judgebayes.calibrators.maps import _penalised
from judgebayes.compiled.float64 import in_float64
from judgebayes.experiments.betaconform.binomial import Binomial
from judgebayes.experiments.betaconform.paper_em import PaperEM
from judgebayes.experiments.betaconform.pooled_beta_binomial import (
    PooledBetaBinomialModel,
    PooledData,
)
from judgebayes.experiments.beyond_consensus import regression
from judgebayes.experiments.beyond_consensus.flat_program import FlatModel
from judgebayes.experiments.beyond_consensus.generator_counts import Counted
from judgebayes.experiments.beyond_consensus.hierarchical_program import HierarchicalModel
from judgebayes.experiments.beyond_consensus.robust_program import RobustModel
from judgebayes.experiments.beyond_consensus.true_minimum import prediction_loss
from judgebayes.experiments.calibrate_dont_curate.weighted import AccuracyWeighted, LogOddsWeighted
from judgebayes.generators import PrecisionCounts
from judgebayes.inference.fast import dawid_skene_em, one_coin_counts
from judgebayes.inference.fit import Method
from judgebayes.inference.problem import Design, score_derivatives
from judgebayes.item_response import evidence
from judgebayes.majority import BetaBinomial, Thinning, counts_of
from judgebayes.measures.scores import brier, drps, nll
from judgebayes.models import base as noise
from judgebayes.models import beta_binomial, davidson, irt, stacking
from judgebayes.models.base import Model, PanelData
from judgebayes.models.beta_binomial import BetaBinomialModel, CountData
from judgebayes.models.davidson import DavidsonData, DavidsonModel
from judgebayes.models.dawid_skene import DawidSkeneModel, DawidSkenePrior
from judgebayes.models.hierarchical_davidson import HierarchicalDavidsonModel
from judgebayes.models.irt import ItemResponseModel
from judgebayes.models.item_validator import ItemModel
from judgebayes.models.one_coin import OneCoinModel
from judgebayes.models.stacking import StackingData, StackingModel
from judgebayes.votes import Votes, from_counts

# --- derivatives against central differences ----------------------------------------------------

STEP = 1e-5
Function = Callable[[np.ndarray], Any]


def along(function: Function, at: np.ndarray, way: np.ndarray) -> np.ndarray:
    """Return the directional derivative by central differences."""
    forward, backward = (np.asarray(function(at + s * STEP * way), float) for s in (1, -1))
    return (forward - backward) / (2 * STEP)


def assert_differentiated(
    value: Function, gradient: Function, at: np.ndarray, hessian: Function | None = None
) -> None:
    """Compare a gradient and a Hessian with differences along three random directions."""
    ways = np.random.default_rng(0).normal(size=(3, len(at)))
    gradient_at = np.asarray(gradient(at))
    assert np.abs(gradient_at).max() > 1e-3  # so that the comparison is meaningful
    scale = np.abs(gradient_at).max()
    for way in ways:
        np.testing.assert_allclose(
            gradient_at @ way, along(value, at, way), rtol=1e-6, atol=1e-7 * scale
        )
        if hessian is not None:
            hessian_along = np.asarray(hessian(at)) @ way
            np.testing.assert_allclose(
                hessian_along,
                along(gradient, at, way),
                rtol=1e-6,
                atol=1e-7 * np.abs(hessian_along).max(),
            )


def panel(n_classes: int) -> tuple[Votes, np.ndarray, np.ndarray]:
    """Return votes, labels and weights; some labels are unknown, some weights 0."""
    data = base(n_classes).fit
    return votes_of(data), data.labels, data.weight * (1 + np.arange(len(data.weight)) % 3)


def models() -> dict[str, Callable[[], tuple[Model, Any]]]:
    """Return every program with its test data."""

    def of_panel(n_classes: int = 3) -> tuple[Votes, PanelData]:
        votes, labels, weight = panel(n_classes)
        return votes, PanelData(*map(jnp.asarray, (votes.index, labels, weight)))

    def of_davidson() -> Any:
        votes, data = of_panel()
        evidence = davidson.features(votes.pooled_counts(), symmetric=False)
        program = DavidsonModel(3, symmetric=False, noise=0.1)
        return program, DavidsonData(evidence, data.labels, data.weight)

    def of_tasks() -> Any:
        votes, data = of_panel()
        evidence = davidson.features(votes.pooled_counts(), symmetric=False)
        task = jnp.asarray(votes.task)
        program = HierarchicalDavidsonModel(votes.n_tasks, 3, symmetric=False)
        return program, DavidsonData(evidence, data.labels, data.weight, task)

    def of_stacking() -> Any:
        _, data = of_panel()
        form = stacking.Form(JUDGES, 3, False)
        direction = stacking.centre(data.votes, data.labels, data.weight, form)
        program = StackingModel(form, noise=0.1)
        return program, StackingData(data.votes, direction, data.labels, data.weight)

    def of_beta_binomial() -> Any:
        data = CountData(jnp.asarray([7, 0, 3, -1, 2]), jnp.asarray([7, 7, 5, 7, 3]))
        return BetaBinomialModel(7), data

    def of_pool() -> Any:
        one = of_beta_binomial()[1]
        data = PooledData(one.correct, one.given, jnp.asarray([0, 0, 1, 1, 1]), jnp.ones(5))
        return PooledBetaBinomialModel(2, 7), data

    def of_counts(program: Model) -> Any:
        rng = np.random.default_rng(3)
        n = rng.integers(5, 40, (4, 3, 2)).astype(float)
        share = rng.uniform(0.2, 0.9, n.shape)
        cells = [x for a, b in zip(n[:3] * share[:3], n[:3], strict=True) for x in (a, b)]
        own = np.array([20.0, 0.0, 12.0])
        return program, Counted(*map(jnp.asarray, (*cells, 0.7 * own, own)))

    def of_items() -> Any:
        votes, data = of_panel(2)
        program = ItemModel(votes.n_tasks)
        generator = jnp.asarray(votes.task)
        return program, data._replace(votes=data.votes[..., :1], generator=generator)

    return {
        "davidson": of_davidson,
        "hierarchical davidson": of_tasks,
        "one-coin": lambda: (OneCoinModel(3, noise=0.1), of_panel()[1]),
        "dawid-skene": lambda: (DawidSkeneModel(3, noise=0.1), of_panel()[1]),
        "stacking": of_stacking,
        "beta-binomial": of_beta_binomial,
        "pooled beta-binomial": of_pool,
        "2PL": lambda: (ItemResponseModel(3, noise=0.1), of_panel()[1]),
        "generator-validator": lambda: of_counts(FlatModel()),
        "impressions": lambda: of_counts(HierarchicalModel()),
        "robust impressions": lambda: of_counts(RobustModel()),
        "items": of_items,
    }


@pytest.mark.parametrize("name", list(models()))
@in_float64
def test_the_gradient_of_a_models_density_is_its_slope(name: str) -> None:
    """Test at a draw of the prior, as a function of unconstrained parameters."""
    model, data = models()[name]()

    def drawn() -> dict[str, tuple[Any, jax.Array]]:
        """Return the map from free parameters, and the value, by site."""
        trace = handlers.trace(handlers.seed(model, 1)).get_trace(data)
        sites = {k: v for k, v in trace.items() if v["type"] == "sample" and not v["is_observed"]}
        return {k: (biject_to(v["fn"].support), v["value"]) for k, v in sites.items()}

    start = jax.jit(lambda: {k: free.inv(value) for k, (free, value) in drawn().items()})()
    at, unravel = ravel_pytree(start)

    @jax.jit
    @jax.value_and_grad
    def both(x: jax.Array) -> jax.Array:
        free = {k: one for k, (one, _) in drawn().items()}
        return log_density(model, (data,), {}, {k: free[k](u) for k, u in unravel(x).items()})[0]

    assert_differentiated(lambda x: both(x)[0], lambda x: both(x)[1], np.asarray(at))


@pytest.mark.parametrize("score", [drps, nll, brier])
@pytest.mark.parametrize("noise", [0.0, 0.2])
@in_float64
def test_derivatives_of_a_score_are_its_slopes(score: Any, noise: float) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(30, 3, 4))
    columns = [{k: jnp.asarray(x[:, k, a]) for k in range(3)} for a in range(4)]
    design = Design(columns, 3)
    labels, weight = rng.integers(-1, 3, 30), rng.choice([0.0, 0.5, 2.0], 30)
    at = jax.jit(score_derivatives(score, design, jnp.asarray(labels), jnp.asarray(weight), noise))
    start = rng.normal(size=4)
    assert_differentiated(lambda z: at(z)[0], lambda z: at(z)[1], start, lambda z: at(z)[2])
    split = jax.jit(_penalised(at, jnp.array([1.0, 1.0, 0.0, 0.0]), 0.3, 0.2))
    parts = rng.uniform(0.1, 1, 8)
    assert_differentiated(
        lambda z: split(z)[0], lambda z: split(z)[1], parts, lambda z: split(z)[2]
    )


@in_float64
def test_the_arrow_of_the_2pl_is_its_hessian() -> None:
    """Test without label noise; with it the curvature is that of the votes given the classes."""
    votes, labels, weight = panel(2)
    prior = irt.ItemResponsePrior((0.3, 1.2), (0.1, 0.4))
    table = evidence(votes.counts(), jnp.asarray(labels), jnp.asarray(weight))
    sizes = np.cumsum([JUDGES, len(labels)])

    def parted(x: np.ndarray) -> irt.Parameters:
        return irt.Parameters(*jnp.split(jnp.asarray(x), sizes))

    @jax.jit
    def at(x: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        p = parted(x)
        there = table.visit(p, prior)
        diagonal, cross, block = table.curvature(p, prior, 1.0)
        n, j = len(labels), JUDGES
        whole = jnp.zeros((len(x), len(x))).at[jnp.arange(j), jnp.arange(j)].set(diagonal)
        for a in range(2):
            rows = j + a * n + jnp.arange(n)
            whole = whole.at[rows[:, None], jnp.arange(j)].set(cross[:, a])
            whole = whole.at[jnp.arange(j)[:, None], rows].set(cross[:, a].T)
            for b in range(2):
                whole = whole.at[rows, j + b * n + jnp.arange(n)].set(block[:, a, b])
        return there.value, jnp.concatenate(there.gradient), whole

    start = 0.5 * np.random.default_rng(3).normal(size=JUDGES + 2 * len(labels))
    assert_differentiated(lambda x: at(x)[0], lambda x: at(x)[1], start, lambda x: at(x)[2])


def generators() -> PrecisionCounts:
    """Return counts of three generators, the last without labels."""
    case = CASES["impression"]
    return jax.tree.map(jnp.asarray, case.family.takes(base(2).fit))


@in_float64
def test_slopes_of_p4s_loss() -> None:
    aim = regression.targets(generators())
    host = regression._HostLoss(aim, regression.WEIGHTS)
    at = np.random.default_rng(4).uniform(0.2, 0.9, 2 * JUDGES + 3)
    assert_differentiated(host.value, host.gradient, at)
    smooth = jax.jit(jax.value_and_grad(prediction_loss))

    def parted(x: np.ndarray) -> regression.Parameters:
        return regression.Parameters(x[:3], x[3 : 3 + JUDGES], x[3 + JUDGES :])

    assert_differentiated(
        lambda x: smooth(parted(x), aim.matrix)[0],
        lambda x: np.concatenate(smooth(parted(x), aim.matrix)[1]),
        at,
    )


@in_float64
def test_slopes_of_the_impressions_least_squares() -> None:
    from judgebayes.experiments.beyond_consensus.impression import (
        ImpressionPrior,
        _Spreads,
        _System,
    )

    system = _System(generators(), ImpressionPrior())
    spreads = _Spreads(jnp.asarray(0.3), jnp.asarray(0.4), jnp.asarray(0.15))
    at = jax.jit(lambda x: system.evaluate(x, spreads))
    start = np.asarray(system.start())
    start = start + 0.1 * np.random.default_rng(5).normal(size=start.shape)
    assert_differentiated(lambda x: at(x)[0], lambda x: -2 * at(x)[1], start)


@in_float64
def test_em_ends_where_the_log_posterior_is_level() -> None:
    """EM uses no gradient: at its end no direction inside the simplexes increases the density."""
    votes, labels, weight = panel(3)
    fit = DawidSkene(EM(tolerance=1e-15), label_noise=0.1).fit(votes, labels, weight=weight)
    count = dawid_skene_em.counts(jnp.asarray(votes.index), 3)
    pi, confusion = (jnp.log(fit.draws[k][0]) for k in ("pi", "confusion"))
    start, unravel = ravel_pytree((pi, confusion))

    @jax.jit
    def value(x: jax.Array) -> jax.Array:
        log_pi, log_confusion = jax.tree.map(jax.nn.log_softmax, unravel(x))
        joint = dawid_skene_em.log_joint(log_pi, log_confusion, count, jnp.asarray(labels), 0.1)
        each = jax.nn.logsumexp(joint, axis=1)
        fits = jnp.where(weight > 0, weight * each, 0.0).sum()
        return fits + dawid_skene_em.log_prior(log_pi, log_confusion, DawidSkenePrior())

    assert float(value(start)) == pytest.approx(float(fit.details["log_posterior"]), abs=1e-9)
    for way in np.random.default_rng(6).normal(size=(5, len(start))):
        assert abs(along(value, np.asarray(start), way)) < 1e-4
        assert float(value(start + 0.05 * way)) < float(value(start))


# --- extreme, and valid -------------------------------------------------------------------------

MANY = 1_000_000


def assert_sound(fit: Any, log_probs: Any, *statuses: Status) -> np.ndarray:
    """Assert that answers are probabilities and that the status is one of these; return them."""
    probabilities = np.exp(np.asarray(log_probs))
    assert np.isfinite(probabilities).all()
    np.testing.assert_allclose(probabilities.sum(1), 1, atol=1e-9)
    assert Status(int(fit.status)) in statuses, Status(int(fit.status)).name
    return probabilities


FINE = (Status.CONVERGED,)
SEPARABLE = (Status.CONVERGED, Status.STALLED)


@pytest.mark.parametrize(
    "method",
    [Davidson(DRPS(starts=1)), VoteShare(), OneCoin(), LogOddsWeighted(), DawidSkene()],
    ids=lambda m: type(m).__name__,
)
def test_a_million_votes_of_one_class_on_an_item(method: Any) -> None:
    """Test a million votes of one judge on one item, and a few on the others."""
    counts = np.array([[0, MANY], [3, 1], [1, 2], [2, 0], [0, 0], [1, 1]])
    labels = np.array([1, 0, 1, 0, -1, 1])
    votes = from_counts(counts)
    probabilities = assert_sound(fit := method.fit(votes, labels), fit(votes), *FINE)
    assert probabilities[0, 1] > 0.9
    assert probabilities[0, 1] == probabilities[:, 1].max()


@pytest.mark.parametrize("correct", [0, MANY])
@pytest.mark.parametrize(
    "method",
    [Binomial(), BetaBinomial(1, MAP(starts=1)), BetaBinomial(2, MAP(starts=1)), PaperEM()],
    ids=["binomial", "one component", "two components", "em"],
)
def test_a_million_items_all_right_or_all_wrong(method: Any, correct: int) -> None:
    counts = counts_of(np.full(3, 11 if correct else 0), 11)
    fit = method.fit(counts, weight=np.array([1e6, 1.0, 0.0]))
    error = np.asarray(fit.estimate((1, 3, 11)))
    assert np.isfinite(error).all()
    assert (error < 0.01).all() if correct else (error > 0.99).all()
    assert Status(int(fit.status)) in SEPARABLE
    thin = np.asarray(Thinning().fit(counts, weight=np.array([1e6, 1.0, 0.0])).estimate((1, 11)))
    np.testing.assert_array_equal(thin, 0.0 if correct else 1.0)


def certain_panel(items: int = 40) -> tuple[Votes, np.ndarray]:
    """Return a judge that is always right, one always wrong, and one that guesses."""
    rng = np.random.default_rng(7)
    labels = np.arange(items) % 2
    index = np.stack([labels, 1 - labels, rng.integers(0, 2, items)], 1)
    return Votes(jnp.asarray(index[..., None], jnp.int8), None, None, None, 2), labels


@pytest.mark.parametrize(
    ("method", "statuses"),
    [
        (OneCoin(), FINE),
        (OneCoin(label_noise=0.05), FINE),
        (AccuracyWeighted(smoothing=0.0, pseudo_count=0.0), FINE),
        (LogOddsWeighted(), FINE),
        (DawidSkene(), FINE),
        (DawidSkene(prior=dawid_skene_em.DawidSkenePrior(0.0, 0.0, 0.0)), FINE),
        (DawidSkene(label_noise=0.05), FINE),
        (Stacking(), FINE),
        (Stacking(symmetric=False), FINE),
    ],
    ids=lambda x: type(x).__name__,
)
def test_accuracies_of_0_and_1(method: Any, statuses: tuple[Status, ...]) -> None:
    votes, labels = certain_panel()
    probabilities = assert_sound(fit := method.fit(votes, labels), fit(votes), *statuses)
    if not isinstance(method, AccuracyWeighted):  # its votes never count against a class
        assert (probabilities.argmax(1) == labels).all()
    # New votes on which the two judges contradict their behaviour so far.
    odd = Votes(1 - votes.index.at[:, 0].set(1 - votes.index[:, 0]), None, None, None, 2)
    assert_sound(fit, fit(odd), *statuses)


def rare(items: int = 1000) -> tuple[np.ndarray, np.ndarray]:
    """Return votes and labels; one label in a thousand is of the other class."""
    rng = np.random.default_rng(8)
    labels = np.zeros(items, int)
    labels[17] = 1
    right = rng.random((items, 3, 1)) < 0.8
    return np.where(right, labels[:, None, None], 1 - labels[:, None, None]), labels


@pytest.mark.parametrize(
    ("method", "statuses"),
    [
        (Davidson(MinimumScore(nll, starts=1), symmetric=False), FINE),
        (OneCoin(class_prior="labels"), FINE),
        (Stacking(symmetric=False), FINE),
        (DawidSkene(), FINE),
    ],
    ids=lambda x: type(x).__name__,
)
def test_labels_of_which_999_in_1000_are_of_one_class(
    method: Any, statuses: tuple[Status, ...]
) -> None:
    index, labels = rare()
    votes = Votes(jnp.asarray(index, jnp.int8), None, None, None, 2)
    probabilities = assert_sound(fit := method.fit(votes, labels), fit(votes), *statuses)
    assert 0 < probabilities[:, 1].mean() < 0.1


MAPS = [Temperature(), Platt(), Platt(symmetric=True), Isotonic(), Beta(), Beta(penalty=None)]


@pytest.mark.parametrize("calibrator", MAPS, ids=lambda m: type(m).__name__)
def test_maps_of_certain_answers_and_rare_labels(calibrator: Method) -> None:
    """Test scores of 0 and 1, some of them wrong, with 999 of 1,000 labels in one class."""
    index, labels = rare()
    share = index[:, :, 0].mean(1)  # 0, 1/3, 2/3, 1: single judges and all judges
    with np.errstate(divide="ignore"):
        log_probs = np.log(np.stack([1 - share, share], 1))
    assert np.isneginf(log_probs).any()
    fit = calibrator.fit(log_probs, labels)
    probabilities = assert_sound(fit, fit(log_probs), *FINE)
    if not getattr(calibrator, "symmetric", False) and not isinstance(calibrator, Temperature):
        assert probabilities[:, 1].mean() == pytest.approx(
            0.001, abs=3e-3
        )  # Beta's penalty shrinks it


# --- one precision --------------------------------------------------------------------------------

SINGLE = {
    "drps": (lambda x: jax.vmap(drps)(x, jnp.zeros(len(x), int)), 1e-6),
    "nll": (lambda x: jax.vmap(nll)(x, jnp.zeros(len(x), int)), 1e-6),
    "brier": (lambda x: jax.vmap(brier)(x, jnp.zeros(len(x), int)), 1e-6),
    "seen labels": (lambda x: noise.with_label_noise(x, 0.1), 1e-6),
    "davidson": (
        lambda x: davidson.link(
            davidson.Parameters(x[0, 0] + 2, x[0, :1], x[1, :1], x[2, 0]),
            davidson.features(jnp.round(10 * jnp.exp(x))),
            n_classes=3,
        ),
        2e-5,
    ),
    "one-coin": (
        lambda x: jnp.stack(
            one_coin_counts.log_likelihood_by_class(
                jnp.argsort(x, axis=1)[..., None].repeat(2, 2),
                5 * jnp.exp(x[0]),
                5 * jnp.exp(x[1]),
                n_classes=3,
            )
        ),
        2e-5,
    ),
    "dawid-skene": (
        lambda x: dawid_skene_em.log_joint(
            jax.nn.log_softmax(x[0]),
            jax.nn.log_softmax(jnp.stack([x[:3], x[3:6]])),
            dawid_skene_em.counts(jnp.argsort(x, axis=1)[:, :2, None], 3).astype(x.dtype),
            jnp.full(len(x), -1),
            0.0,
        ),
        2e-5,
    ),
    "beta-binomial": (
        lambda x: beta_binomial.log_pmf(
            beta_binomial.Parameters(*(jnp.exp(v) for v in (x[0, :2], x[1, :2], x[2, :2]))), 21
        ),
        1e-4,
    ),
    "2PL": (
        lambda x: irt.link(irt.Parameters(x[:, 0], x[:, 1], x[:, 2])),
        2e-5,
    ),
}
"""Models and scores in single precision, which callers may request, and the largest allowed difference
from double precision, relative to the size of the answer (at least 1)."""


@pytest.mark.parametrize("name", list(SINGLE))
def test_single_precision_is_as_near_as_stated(name: str) -> None:
    written, tolerance = SINGLE[name]
    function = jax.jit(written)
    rng = np.random.default_rng(9)
    logits = rng.normal(size=(40, 3)).astype(np.float32)
    log_probs = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    single = function(jnp.asarray(log_probs, jnp.float32))
    assert single.dtype == jnp.float32
    with jax.enable_x64(True):
        double = np.asarray(function(jnp.asarray(log_probs, jnp.float64)))
        assert double.dtype == np.float64
    np.testing.assert_allclose(single, double, atol=tolerance * max(1, np.abs(double).max()))
