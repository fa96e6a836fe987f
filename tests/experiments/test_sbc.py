"""The engine of the calibration checks: uniform ranks pass, and wrong posteriors are caught."""

from collections.abc import Collection
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
from typer.testing import CliRunner

import judgebayes.experiments.sbc
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.experiments.core import experiments
from judgebayes.experiments.sbc import engine, report
from judgebayes.experiments.sbc.subjects import GIVEN, MOST, SUBJECTS
from judgebayes.inference import PriorImportance
from judgebayes.inference.problem import Chains
from judgebayes.majority import BetaBinomial, Counts
from judgebayes.models.base import Traits, drawn

SIMULATIONS = 400
KEPT = Path(judgebayes.experiments.sbc.__file__).parent


class Measured(NamedTuple):
    seen: Array


class Measurement:
    traits = Traits(("seen",), "all cells")
    dims: ClassVar[dict[str, tuple[str, ...]]] = {}

    def __call__(self, data: Measured, *, observed: Collection[str] | None = None) -> None:
        mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
        given = None if drawn("seen", observed) else data.seen
        numpyro.sample("seen", dist.Normal(mean, 1.0), obs=given)


def conjugate(counted: float) -> engine.Subject:
    """A mean with its exact posterior given one measurement, the likelihood counted so often."""

    def fit(data: Measured, key: Array) -> Chains:
        seen = data.seen
        precision = 1 + counted
        noise = jax.random.normal(key, (2, 64))
        nothing = jnp.zeros((2, 64))
        drawn = {"mean": counted * seen / precision + noise / precision**0.5}
        return Chains(drawn, nothing > 0, nothing, nothing, nothing)

    return engine.of_program("Normal", Measurement(), Measured(jnp.zeros(())), fit)


def table(subject: engine.Subject, seed: int = 0) -> pd.DataFrame:
    found = engine.rank(engine.simulate(subject, SIMULATIONS, batch=SIMULATIONS, seed=seed))
    return engine.assess(found).set_index("quantity")


def test_an_exact_posterior_passes() -> None:
    found = table(conjugate(1.0))
    assert list(found.index) == ["mean", "log_likelihood"]
    assert (found[["chi_square_p", "ecdf_p"]] > 0.01).all(axis=None)
    assert report.verdict(found) == "uniform"


def test_a_likelihood_counted_twice_is_caught() -> None:
    found = table(conjugate(2.0))
    assert found.loc["mean", "chi_square_p"] < 1e-4
    assert found.loc["mean", "ecdf_p"] < 1e-3
    assert report.verdict(found) == "not uniform"


def test_draws_from_the_prior_are_caught_by_the_likelihood_only() -> None:
    found = table(conjugate(0.0))
    assert found.loc["mean", "chi_square_p"] > 0.01
    assert found.loc["log_likelihood", "chi_square_p"] < 1e-4


def test_the_truth_and_the_draws_are_named_alike_and_kept_apart() -> None:
    found = engine.simulate(conjugate(1.0), 6, batch=4)
    assert found.draws.shape == (6, 2, 2, 64)
    assert len(np.unique(found.truth[:, 0])) == 6
    again = engine.simulate(conjugate(1.0), 6, batch=2)
    np.testing.assert_allclose(found.truth, again.truth)
    np.testing.assert_allclose(found.draws, again.draws)


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
    found = engine.rank(simulations(0.0, walk))
    assert np.median(found.ess) == pytest.approx(2048 / 19, rel=0.2)
    assert found.kept in (31, 63)
    assert found.kept <= np.quantile(found.ess, 0.05)
    with pytest.raises(JudgeBayesError, match="take more or longer chains"):
        engine.rank(simulations(0.0, np.zeros((40, 256))))


@pytest.mark.parametrize("kept", [15, 63])
def test_the_chi_square_is_scipys(kept: int) -> None:
    ranks = np.random.default_rng(kept).integers(0, kept + 1, 320)
    n_bins = engine.bins(kept, 320)
    counts = np.histogram(ranks, np.linspace(-0.5, kept + 0.5, n_bins + 1))[0]
    assert counts.mean() >= 10
    assert engine.chi_square(ranks, kept) == pytest.approx(stats.chisquare(counts).pvalue)


def test_the_band_holds_95_percent_of_uniform_sets() -> None:
    kept, n = 31, 200
    band = engine.ecdf_band(kept, n)
    z = (np.arange(kept) + 1) / (kept + 1)
    np.testing.assert_allclose(band.table[:, 0], np.minimum(1, 2 * stats.binom.cdf(0, n, z)))
    rng = np.random.default_rng(9)
    sets = rng.integers(0, kept + 1, (2000, n))
    at_most = (sets[:, :, None] <= np.arange(kept)).sum(1)
    inside = ((at_most >= band.low) & (at_most <= band.high)).all(1)
    assert inside.mean() == pytest.approx(0.95, abs=0.02)
    p_values = np.array([band.p_value(ranks) for ranks in sets])
    assert (p_values < 0.05).mean() == pytest.approx(1 - inside.mean(), abs=0.01)


def test_a_subject_makes_data_and_its_likelihood() -> None:
    subject = SUBJECTS["davidson"]()
    truth, data = jax.jit(subject.generate)(jax.random.PRNGKey(1))
    assert data.labels.shape == (60,)
    # A sixth of the labels is hidden.
    np.testing.assert_array_equal(data.labels < 0, np.arange(60) % 6 == 5)
    assert set(np.unique(data.labels)) <= {-1, 0, 1, 2}
    assert "label" not in truth
    assert jax.jit(subject.log_likelihood)(truth, data) < 0


QUANTITIES = {
    "davidson": {"beta", "eta0", "gamma", "log_likelihood"},
    "beta-binomial": {"centre", "log_dispersion", "error", "log_likelihood"},
    "beta-binomial-mixture": {
        *("centre", "gap", "share", "error", "log_likelihood"),
        *("log_dispersion[0]", "log_dispersion[1]"),
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("name", QUANTITIES)
def test_the_sampler_is_calibrated(name: str) -> None:
    found = engine.assess(engine.rank(engine.simulate(SUBJECTS[name](), 100, batch=100)))
    assert report.verdict(found) == "uniform"
    assert set(found["quantity"]) == QUANTITIES[name]


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "simulations", "least"), [(1, 500, 1e-4), (7, 3000, 1e-2)])
@in_float64
def test_the_mixture_without_a_sampler(seed: int, simulations: int, least: float) -> None:
    """The same simulations, their posteriors found by weighing draws from the prior.

    With seed 1 the ranks of the error stray as far as the sampler's do: it is the draw of these
    500 simulations and not the sampler. Three thousand others are uniform.
    """
    subject = SUBJECTS["beta-binomial-mixture"]()
    pairs = np.array([(given, s) for given in (4, MOST) for s in range(given + 1)])
    cells = Counts(jnp.asarray(pairs[:, 1]), jnp.asarray(pairs[:, 0]), MOST)
    method = BetaBinomial(2, PriorImportance(2**16, kept=1000))

    def one(key: Array) -> Array:
        truth, data = subject.generate(jax.random.split(key)[0])
        same = (data.correct == cells.correct[:, None]) & (
            jnp.asarray(GIVEN) == cells.given[:, None]
        )
        errors = method.fit(cells, weight=same.sum(1).astype(float)).errors((MOST,))[:, 0]
        return (errors < truth["error"]).mean()

    keys = jax.random.split(jax.random.PRNGKey(seed), simulations)
    found = jax.jit(lambda keys: jax.lax.map(one, keys, batch_size=100))(keys)
    ranks = np.minimum((np.asarray(found) * 128).astype(int), 127)
    p_value = engine.ecdf_band(127, simulations).p_value(ranks)
    assert p_value > least
    if seed == 1:
        assert p_value < 0.01


def test_the_command_writes_a_table_and_a_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import typer

    from judgebayes.experiments.sbc.__main__ import check

    app = typer.Typer()
    app.command()(check)
    monkeypatch.setitem(SUBJECTS, "coin", lambda: conjugate(1.0))
    result = CliRunner().invoke(app, ["coin", "--simulations", "40", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "| coin | `mean` | 40 |" in result.output
    assert (tmp_path / "coin.png").stat().st_size > 0
    assert len(pd.read_csv(tmp_path / "coin.csv")) == 2
    wrong = CliRunner().invoke(app, ["die", "--out", str(tmp_path)])
    assert wrong.exit_code == 2


def test_the_readme_holds_the_results_that_are_kept() -> None:
    text = (KEPT / "README.md").read_text()
    kept = sorted(KEPT.glob("*.csv"))
    assert {path.stem for path in kept} == set(SUBJECTS)
    for path in kept:
        for line in report.markdown(path.stem, pd.read_csv(path)):
            assert line in text
        assert path.with_suffix(".png").exists()


def test_the_checks_are_no_paper() -> None:
    assert not [e.name for e in experiments() if ".sbc" in e.run.__module__]
