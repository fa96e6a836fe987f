"""`Panel` beside draws from the program that it approximates, where one judge accepts everything."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit, logit

from judgebayes.experiments.beyond_consensus.generator_validator import GeneratorValidator
from judgebayes.generators import Panel, PrecisionCounts
from judgebayes.inference import NUTS

GENERATORS, JUDGES, ITEMS, LABELLED = 5, 6, 300, 2


def counts_of_weak_judges(seed: int) -> tuple[PrecisionCounts, np.ndarray]:
    """Return counts of judges who know little, the first saturated, and the true precisions."""
    rng = np.random.default_rng(seed)
    shape = GENERATORS, JUDGES
    eta = rng.normal(2.0, 0.6, GENERATORS)
    of_judge, of_generator = rng.normal(-1.5, 0.6, JUDGES), rng.normal(0, 0.2, GENERATORS)
    know = expit(of_judge + of_generator[:, None])
    lean, shift = rng.normal(0.3, 0.5, JUDGES), rng.normal(0, 0.2, GENERATORS)
    accept = expit(lean + (eta + shift)[:, None])
    valid = rng.binomial(ITEMS, expit(eta))

    def deviating(rate: np.ndarray) -> np.ndarray:
        deviated = expit(logit(rate) + 0.1 * rng.standard_t(4, shape))
        deviated[:, 0] = 0.999
        return deviated

    tpr, fpr = deviating(know + (1 - know) * accept), deviating((1 - know) * accept)
    n_valid, n_invalid = (np.repeat(n[:, None], JUDGES, 1) for n in (valid, ITEMS - valid))
    tp, fp = rng.binomial(n_valid, tpr), rng.binomial(n_invalid, fpr)
    shown = np.arange(GENERATORS) < LABELLED
    none = np.zeros(shape)
    arrays = (none, none, tp, n_valid, fp, n_invalid, valid, ITEMS - valid, np.zeros(GENERATORS))
    counts = PrecisionCounts(*(jnp.asarray(x, float) for x in arrays))
    return counts.reveal(shown), valid / ITEMS


@pytest.mark.slow
def test_panel_is_near_the_program() -> None:
    counts, _ = counts_of_weak_judges(0)
    nuts = GeneratorValidator(inference=NUTS(draws=1000, warmup=400, target_accept=0.97)).fit(
        counts
    )
    panel = Panel().fit(counts)
    hidden = slice(LABELLED, None)
    medians = [np.asarray(fit.estimate())[hidden] for fit in (nuts, panel)]
    np.testing.assert_allclose(*medians, atol=0.02)
    widths = [np.subtract(*map(np.asarray, fit.interval()[::-1]))[hidden] for fit in (nuts, panel)]
    ratio = widths[1] / widths[0]
    assert ((ratio > 0.7) & (ratio < 1.3)).all()
