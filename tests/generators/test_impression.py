import jax
import jax.numpy as jnp
import numpy as np
import pytest

from judgebayes.experiments.beyond_consensus.generator_validator import GeneratorValidator
from judgebayes.experiments.beyond_consensus.hierarchical_program import HierarchicalModel
from judgebayes.experiments.beyond_consensus.impression import Impression
from judgebayes.experiments.beyond_consensus.logit_shift import logit_shift
from judgebayes.generators import PrecisionCounts
from judgebayes.inference import NUTS

LABELLED = np.array([True, True, True, False, False])


@pytest.fixture(scope="module")
def partly_labelled(tallied: PrecisionCounts) -> PrecisionCounts:
    return tallied.reveal(LABELLED)


def answer(counts: PrecisionCounts) -> np.ndarray:
    fit = Impression().fit(counts)
    return np.stack([np.asarray(a) for a in (fit.estimate(), *fit.interval())])


def test_labelled_generators_are_exact_and_others_estimated(
    partly_labelled: PrecisionCounts, tallied: PrecisionCounts
) -> None:
    truth = np.asarray(tallied.labelled_precision)
    middle, low, high = answer(partly_labelled)
    np.testing.assert_allclose(middle[LABELLED], truth[LABELLED])
    np.testing.assert_allclose((high - low)[LABELLED], 0, atol=1e-12)
    assert (np.abs(middle - truth) < 0.08).all()
    assert ((low <= truth + 1e-12) & (truth <= high + 1e-12)).all()


def test_a_sparse_matrix_works(partly_labelled: PrecisionCounts) -> None:
    on = jnp.asarray((np.add.outer(np.arange(5), np.arange(6)) % 3) > 0)
    sparse = jax.tree.map(lambda a: jnp.where(on, a, 0.0) if a.ndim == 2 else a, partly_labelled)
    np.testing.assert_allclose(answer(sparse)[0], answer(partly_labelled)[0], atol=0.05)


def test_useless_judges_give_a_logit_shift() -> None:
    """Judges without knowledge, whose impressions follow quality: P = sigmoid(a_j + eta_i)."""
    truth = np.array([0.9, 0.8, 0.95, 0.86, 0.93])
    share = 1 / (
        1
        + np.exp(-(np.log(truth / (1 - truth))[:, None] + np.array([0.2, 0.5, 0.9, 0.3, 0.4, 0.8])))
    )
    valid, invalid = 4000 * truth, 4000 * (1 - truth)
    full = PrecisionCounts(
        *(jnp.asarray(a) for a in (0 * share, 0 * share, share * valid[:, None])),
        *(jnp.asarray(a) for a in (0 * share + valid[:, None], share * invalid[:, None])),
        *(jnp.asarray(a) for a in (0 * share + invalid[:, None], valid, invalid, np.zeros(5))),
    )
    hidden = full.reveal(LABELLED)
    np.testing.assert_allclose(logit_shift(hidden), truth, atol=0.003)
    middle, low, high = answer(hidden)
    np.testing.assert_allclose(middle, truth, atol=0.01)
    assert ((low <= truth + 1e-9) & (truth <= high + 1e-9)).all()


def test_strong_judges_give_rogan_gladens_estimate() -> None:
    """Judges with the same high rates on all generators."""
    truth, tpr, fpr = np.array([0.9, 0.75, 0.6, 0.85, 0.65]), 0.95, 0.15
    n, judges = 4000.0, 6
    wide = np.ones((5, judges))
    valid, invalid = n * truth, n * (1 - truth)
    full = PrecisionCounts(
        *(jnp.asarray(a) for a in (0 * wide, 0 * wide, wide * (tpr * valid)[:, None])),
        *(jnp.asarray(a) for a in (wide * valid[:, None], wide * (fpr * invalid)[:, None])),
        *(jnp.asarray(a) for a in (wide * invalid[:, None], valid, invalid, np.zeros(5))),
    )
    middle, low, high = answer(full.reveal(LABELLED))
    np.testing.assert_allclose(middle, truth, atol=0.02)
    assert ((low <= truth) & (truth <= high)).all()


@pytest.mark.slow
def test_nuts_on_the_binomial_model_agrees(partly_labelled: PrecisionCounts) -> None:
    nuts = GeneratorValidator(HierarchicalModel(), NUTS(draws=1000, warmup=1000, chains=4)).fit(
        partly_labelled
    )
    assert int(nuts.status) == 0
    middle, low, high = answer(partly_labelled)
    np.testing.assert_allclose(np.asarray(nuts.estimate()), middle, atol=0.01)
    theirs = nuts.interval()
    ratio = (np.asarray(theirs[1]) - np.asarray(theirs[0]))[3:] / (high - low)[3:]
    assert ((ratio > 0.75) & (ratio < 1.25)).all()
