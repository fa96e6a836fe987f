"""The engine of the calibration checks: uniform ranks pass, and wrong posteriors are detected."""

from pathlib import Path
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
import pytest
from jax import Array
from scipy import stats

import judgebayes.experiments.sbc
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.experiments.betaconform.importance import PriorImportance
from judgebayes.experiments.sbc import engine, report
from judgebayes.experiments.sbc.subjects import MOST, N_VOTES, SUBJECTS
from judgebayes.inference.problem import Chains
from judgebayes.majority import BetaBinomial, Counts
from judgebayes.models.base import Traits

SIMULATIONS = 400
RESULTS = Path(judgebayes.experiments.sbc.__file__).parent


class Measured(NamedTuple):
    measurement: Array


class Measurement:
    traits = Traits(("measurement",), "all cells")
    dims: ClassVar[dict[str, tuple[str, ...]]] = {}

    def __call__(self, data: Measured) -> None:
        mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
        numpyro.sample("measurement", dist.Normal(mean, 1.0), obs=data.measurement)


def conjugate(likelihood_power: float) -> engine.Subject:
    """A mean with its posterior given one measurement, and a power of the likelihood."""

    def fit(data: Measured, key: Array) -> Chains:
        observation = data.measurement
        precision = 1 + likelihood_power
        noise = jax.random.normal(key, (2, 64))
        nothing = jnp.zeros((2, 64))
        draws = {"mean": likelihood_power * observation / precision + noise / precision**0.5}
        return Chains(draws, nothing > 0, nothing, nothing, nothing)

    return engine.of_program("Normal", Measurement(), Measured(jnp.zeros(())), fit)


def table(subject: engine.Subject, seed: int = 0) -> pd.DataFrame:
    ranks = engine.rank(engine.simulate(subject, SIMULATIONS, batch=SIMULATIONS, seed=seed))
    return engine.assess(ranks).set_index("quantity")


def test_an_exact_posterior_passes() -> None:
    results = table(conjugate(1.0))
    assert list(results.index) == ["mean", "log_likelihood"]
    assert (results[["chi_square_p", "ecdf_p"]] > 0.01).all(axis=None)
    assert report.verdict(results) == "uniform"


def test_a_likelihood_counted_twice_is_caught() -> None:
    results = table(conjugate(2.0))
    assert results.loc["mean", "chi_square_p"] < 1e-4
    assert results.loc["mean", "ecdf_p"] < 1e-3
    assert report.verdict(results) == "not uniform"


def simulations(truth: float, draws: np.ndarray) -> engine.Simulations:
    n = len(draws)
    return engine.Simulations(
        ("x",), np.full((n, 1), truth), draws.reshape(n, 1, 2, -1), np.zeros(n, bool)
    )


def test_a_rank_is_the_number_of_smaller_draws_and_ties_fall_at_random() -> None:
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(300, 256))
    assert (engine.rank(simulations(9.0, draws)).ranks == 127).all()
    assert (engine.rank(simulations(-9.0, draws)).ranks == 0).all()
    coin = engine.rank(simulations(0.0, rng.integers(0, 2, (300, 256)).astype(float)))
    zeros = 127 / 2  # of them, a random share counts as smaller: uniform from none to all
    assert coin.ranks.mean() == pytest.approx(zeros / 2, abs=4)
    assert coin.ranks.max() > 0.9 * zeros


def test_draws_are_thinned_to_what_is_independent() -> None:
    rng = np.random.default_rng(1)
    noise = rng.normal(size=(40, 2, 1024))
    walk = noise.copy()
    for t in range(1, 1024):  # AR(1) at 0.9: an effective sample size of n (1 - 0.9) / (1 + 0.9)
        walk[..., t] = 0.9 * walk[..., t - 1] + np.sqrt(1 - 0.9**2) * noise[..., t]
    ranks = engine.rank(simulations(0.0, walk))
    assert np.median(ranks.ess) == pytest.approx(2048 / 19, rel=0.2)
    assert ranks.n_draws in (31, 63)
    assert ranks.n_draws <= np.quantile(ranks.ess, 0.05)
    with pytest.raises(JudgeBayesError, match="use more or longer chains"):
        engine.rank(simulations(0.0, np.zeros((40, 256))))


@pytest.mark.parametrize("n_draws", [15, 63])
def test_the_chi_square_is_scipys(n_draws: int) -> None:
    ranks = np.random.default_rng(n_draws).integers(0, n_draws + 1, 320)
    n_bins = engine.bins(n_draws, 320)
    counts = np.histogram(ranks, np.linspace(-0.5, n_draws + 0.5, n_bins + 1))[0]
    assert counts.mean() >= 10
    assert engine.chi_square(ranks, n_draws) == pytest.approx(stats.chisquare(counts).pvalue)


def test_the_band_holds_95_percent_of_uniform_sets() -> None:
    n_draws, n = 31, 200
    band = engine.ecdf_band(n_draws, n)
    z = (np.arange(n_draws) + 1) / (n_draws + 1)
    np.testing.assert_allclose(band.table[:, 0], np.minimum(1, 2 * stats.binom.cdf(0, n, z)))
    rng = np.random.default_rng(9)
    sets = rng.integers(0, n_draws + 1, (2000, n))
    at_most = (sets[:, :, None] <= np.arange(n_draws)).sum(1)
    inside = ((at_most >= band.low) & (at_most <= band.high)).all(1)
    assert inside.mean() == pytest.approx(0.95, abs=0.02)
    p_values = np.array([band.p_value(ranks) for ranks in sets])
    assert (p_values < 0.05).mean() == pytest.approx(1 - inside.mean(), abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "simulations", "least"), [(1, 500, 1e-4), (7, 3000, 1e-2)])
@in_float64
def test_the_mixture_without_a_sampler(seed: int, simulations: int, least: float) -> None:
    """The same simulations, with posteriors from importance-weighted draws of the prior.

    With seed 1 the ranks of the error deviate as much as the sampler's, so the deviation is due to
    these 500 simulations, not to the sampler. Three thousand others are uniform.
    """
    subject = SUBJECTS["beta-binomial-mixture"]()
    pairs = np.array([(given, s) for given in (4, MOST) for s in range(given + 1)])
    cells = Counts(jnp.asarray(pairs[:, 1]), jnp.asarray(pairs[:, 0]), MOST)
    method = BetaBinomial(2, PriorImportance(2**16, kept=1000))

    def one(key: Array) -> Array:
        truth, data = subject.generate(jax.random.split(key)[0])
        same = (data.correct == cells.correct[:, None]) & (
            jnp.asarray(N_VOTES) == cells.given[:, None]
        )
        errors = method.fit(cells, weight=same.sum(1).astype(float)).errors((MOST,))[:, 0]
        return (errors < truth["error"]).mean()

    keys = jax.random.split(jax.random.PRNGKey(seed), simulations)
    ranks_in_unit_interval = jax.jit(lambda keys: jax.lax.map(one, keys, batch_size=100))(keys)
    ranks = np.minimum((np.asarray(ranks_in_unit_interval) * 128).astype(int), 127)
    p_value = engine.ecdf_band(127, simulations).p_value(ranks)
    assert p_value > least
    if seed == 1:
        assert p_value < 0.01


def test_every_subject_has_its_results() -> None:
    tables = sorted(RESULTS.glob("*.csv"))
    assert {path.stem for path in tables} == set(SUBJECTS)
    assert all(path.with_suffix(".png").exists() for path in tables)
