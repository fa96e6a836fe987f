r"""Ranks of true parameters among posterior draws, and tests that they are uniform.

Draw parameters from a model's prior, data from the model given them, and the posterior of the
parameters given the data. Over many such simulations the rank of the true value of any quantity
among L independent posterior draws is uniform on 0 .. L, for any prior and amount of data, if and
only if prior, likelihood and sampler agree (Cook, Gelman & Rubin 2006; Talts et al. 2018). If the
posterior is too narrow, ranks concentrate at both ends; if it is too wide, in the middle.

The likelihood is ranked as well, because ranks of parameters alone cannot detect every error: draws
from the prior, which ignore the data, pass (Modrák et al. 2023).

All simulations run in one compiled program, in batches.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax import lax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray
from numpyro.diagnostics import effective_sample_size

from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.problem import Chains, Sites, numpyro_lock
from judgebayes.inference.sampled import drawn_from_prior, filled, log_likelihoods
from judgebayes.models.base import Model

LIKELIHOOD = "log_likelihood"
LEAST_KEPT = 7
MOST_KEPT = 127
LOW_ESS = 0.05
"""Draws are thinned to at most this quantile of the effective sample sizes."""
EXPECTED_PER_BIN = 10
COVERAGE = 0.95
NULL_SETS = 10_000


@dataclass(frozen=True)
class Subject:
    """A model whose sampler is checked; `of_program` makes one from a model program."""

    title: str
    generate: Callable[[PRNGKeyArray], tuple[Sites, Any]]
    """Parameters from the prior, and data from the model given them."""
    fit: Callable[[Any, PRNGKeyArray], Chains]
    """Draws from the posterior of the same parameters, given the data: the code under test."""
    log_likelihood: Callable[[Sites, Any], Float[Array, ""]]
    """Log-likelihood of the data under one draw."""


@dataclass(frozen=True)
class Simulations:
    """True values and posterior draws of every scalar quantity in every simulation."""

    names: tuple[str, ...]
    truth: Float[np.ndarray, "simulation quantity"]
    draws: Float[np.ndarray, "simulation quantity chain draw"]
    diverged: Bool[np.ndarray, " simulation"]


@dataclass(frozen=True)
class Ranks:
    """Ranks from 0 to `n_draws`, the number of draws left after thinning."""

    names: tuple[str, ...]
    ranks: Int[np.ndarray, "simulation quantity"]
    n_draws: int
    ess: Float[np.ndarray, "simulation quantity"]
    diverged: Bool[np.ndarray, " simulation"]


@dataclass(frozen=True)
class Band:
    """Simultaneous band of the number of N uniform ranks that are at most r, for r = 0 .. L - 1."""

    low: Int[np.ndarray, " rank"]
    high: Int[np.ndarray, " rank"]
    table: Float[np.ndarray, "rank count"]
    """Two-sided binomial p-value of each count at each rank."""
    smallest: Float[np.ndarray, " set"]
    """The smallest p-value over all ranks, in simulated sets of uniform ranks, ascending."""

    def p_value(self, ranks: Int[np.ndarray, " simulation"]) -> float:
        """Return the p-value: the probability that N uniform ranks deviate as much as these."""
        at_most = np.bincount(ranks, minlength=len(self.low) + 1).cumsum()[:-1]
        worst = self.table[np.arange(len(at_most)), at_most].min()
        as_far = np.searchsorted(self.smallest, worst * (1 + 1e-9), side="right")
        return float((1 + as_far) / (1 + len(self.smallest)))


def of_program(
    title: str,
    model: Model,
    blank: Any,
    fit: Callable[[Any, PRNGKeyArray], Chains],
    *,
    hide: Callable[[Any], Any] | None = None,
    more: Callable[[Sites], Sites] | None = None,
) -> Subject:
    """Return the subject of a model program and its sampler.

    Parameters
    ----------
    title
        Title of the figure.
    model
        The program, which draws parameters and data.
    blank
        Data with the shape to draw: which votes are cast, how many items there are.
    fit
        The sampler: `fit(data, key)` returns chains whose draws have the names of the parameters.
    hide
        Hides labels before the sampler gets the data.
    more
        Further quantities of a draw that are ranked.
    """

    @numpyro_lock
    def generate(key: PRNGKeyArray) -> tuple[Sites, Any]:
        sites, data = drawn_from_prior(model, blank, key)
        whole = filled(blank, data)
        return with_more(sites), whole if hide is None else hide(whole)

    def with_more(sites: Sites) -> Sites:
        return {**sites, **({} if more is None else more(sites))}

    def ranked(data: Any, key: PRNGKeyArray) -> Chains:
        chains = fit(data, key)
        return replace(chains, draws=jax.vmap(jax.vmap(with_more))(chains.draws))

    @numpyro_lock
    def log_likelihood(sites: Sites, data: Any) -> Float[Array, ""]:
        each = log_likelihoods(model, data, sites)
        return jnp.stack([x.sum() for x in each.values()]).sum()

    return Subject(title, generate, ranked, log_likelihood)


@in_float64
def simulate(subject: Subject, simulations: int, *, seed: int = 0, batch: int = 10) -> Simulations:
    """Return the true values and posterior draws of many simulations of a subject.

    Parameters
    ----------
    subject
        The model and its sampler.
    simulations
        Number of simulations.
    seed
        Seed of all random numbers.
    batch
        Number of simulations that run at once. A step costs hardly more for several than for one,
        but waits for the longest trajectory among them: ten was fastest on one core.
    """

    def one(key: PRNGKeyArray) -> tuple[Sites, Sites, Array]:
        of_data, of_fit = jax.random.split(key)
        truth, data = subject.generate(of_data)
        chains = subject.fit(data, of_fit)

        def log_likelihood(sites: Sites) -> Float[Array, ""]:
            return subject.log_likelihood(sites, data)

        likely = jax.vmap(jax.vmap(log_likelihood))(chains.draws)
        return (
            {**truth, LIKELIHOOD: log_likelihood(truth)},
            {**chains.draws, LIKELIHOOD: likely},
            chains.diverging.any(),
        )

    keys = jax.random.split(jax.random.PRNGKey(seed), simulations)
    truth, draws, diverged = jax.jit(lambda keys: lax.map(one, keys, batch_size=batch))(keys)
    sites = [*(name for name in truth if name != LIKELIHOOD), LIKELIHOOD]
    names: list[str] = []
    for name in sites:
        values = truth[name]
        shape = values.shape[1:]
        places = [",".join(map(str, place)) for place in np.ndindex(shape)]
        names += [name] if values[0].size == 1 else [f"{name}[{place}]" for place in places]
    shape = (simulations, *draws[LIKELIHOOD].shape[1:])
    by_quantity = [np.asarray(draws[name]).reshape(*shape, -1) for name in sites]
    return Simulations(
        tuple(names),
        np.concatenate([np.asarray(truth[name]).reshape(simulations, -1) for name in sites], 1),
        np.moveaxis(np.concatenate(by_quantity, -1), -1, 1),
        np.asarray(diverged),
    )


def rank(simulations: Simulations, *, seed: int = 0) -> Ranks:
    """Return the rank of every true value among its thinned draws; equal values in random order.

    L = 2^k - 1 evenly spaced draws are used. L is at most the 5 % quantile of the effective sample
    sizes over simulations and quantities, so that the thinned draws are nearly independent.
    """
    n_simulations, n_quantities, _, _ = simulations.draws.shape
    with np.errstate(invalid="ignore"):
        ess = effective_sample_size(np.moveaxis(simulations.draws, (2, 3), (0, 1)))
    ess = np.nan_to_num(ess, nan=0.0)  # of chains that never moved
    pooled = simulations.draws.reshape(n_simulations, n_quantities, -1)
    enough = min(float(np.quantile(ess, LOW_ESS)), pooled.shape[-1], MOST_KEPT + 1)
    n_draws = 2 ** int(math.log2(enough + 1)) - 1
    if n_draws < LEAST_KEPT:
        raise JudgeBayesError(
            f"The effective sample size is below {enough + 1:.0f} in one simulation of twenty: "
            f"ranks need at least {LEAST_KEPT} independent draws; use more or longer chains."
        )
    step = pooled.shape[-1] // (n_draws + 1)
    thinned = pooled[..., step::step][..., :n_draws]
    below = (thinned < simulations.truth[..., None]).sum(-1)
    equal = (thinned == simulations.truth[..., None]).sum(-1)
    ranks = below + np.random.default_rng(seed).integers(0, equal + 1)
    return Ranks(simulations.names, ranks, n_draws, ess, simulations.diverged)


def bins(n_draws: int, simulations: int) -> int:
    """Return the number of bins for L + 1 ranks: a divisor of L + 1, at least ten ranks per bin."""
    possible = [b for b in range(2, n_draws + 2) if (n_draws + 1) % b == 0]
    return max([b for b in possible if simulations / b >= EXPECTED_PER_BIN], default=2)


@in_float64
def chi_square(ranks: Int[np.ndarray, " simulation"], n_draws: int) -> float:
    """Return the p-value of the chi-square test that ranks from 0 to `n_draws` are uniform."""
    n_bins = bins(n_draws, len(ranks))
    counts = np.bincount(ranks * n_bins // (n_draws + 1), minlength=n_bins)
    expected = len(ranks) / n_bins
    statistic = ((counts - expected) ** 2 / expected).sum()
    return float(jax.scipy.stats.chi2.sf(statistic, n_bins - 1))


def ecdf_band(n_draws: int, simulations: int, *, seed: int = 0) -> Band:
    """Return the simultaneous 95 % band of the empirical distribution of uniform ranks.

    Säilynoja, Bürkner & Vehtari (2022), by simulation: at rank r the number of ranks at most r is
    Binomial(N, (r + 1) / (L + 1)); the pointwise level is lowered until 95 % of sets of N uniform
    ranks are inside at every r.
    """
    count = np.arange(simulations + 1)
    log_factorial = np.concatenate([[0.0], np.log(np.arange(1, simulations + 1)).cumsum()])
    ways = log_factorial[-1] - log_factorial - log_factorial[::-1]
    share = ((np.arange(n_draws) + 1) / (n_draws + 1))[:, None]
    pmf = np.exp(ways + count * np.log(share) + count[::-1] * np.log1p(-share))
    lower, upper = pmf.cumsum(1), pmf[:, ::-1].cumsum(1)[:, ::-1]
    table = np.minimum(1.0, 2 * np.minimum(lower, upper))
    sets = np.random.default_rng(seed).multinomial(
        simulations, np.full(n_draws + 1, 1 / (n_draws + 1)), NULL_SETS
    )
    at_most = sets.cumsum(1)[:, :-1]
    smallest = np.sort(table[np.arange(n_draws), at_most].min(1))
    inside = table >= np.quantile(smallest, 1 - COVERAGE)
    return Band(
        low=inside.argmax(1),
        high=simulations - inside[:, ::-1].argmax(1),
        table=table,
        smallest=smallest,
    )


def assess(ranks: Ranks) -> pd.DataFrame:
    """Return a row per quantity: p-values of both tests, sample sizes and divergences."""
    n = len(ranks.ranks)
    band = ecdf_band(ranks.n_draws, n)
    return pd.DataFrame(
        {
            "quantity": name,
            "simulations": n,
            "draws_kept": ranks.n_draws,
            "ess_5_percent": float(np.quantile(ranks.ess[:, place], LOW_ESS)),
            "chi_square_p": chi_square(ranks.ranks[:, place], ranks.n_draws),
            "ecdf_p": band.p_value(ranks.ranks[:, place]),
            "diverged_simulations": int(ranks.diverged.sum()),
        }
        for place, name in enumerate(ranks.names)
    )
