"""Dawid-Skene by NUTS: effective draws per second, compared with NumPyro's example and nutpie."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pandas as pd
from jaxtyping import Float, Int
from numpyro import distributions as dist
from numpyro import infer

from judgebayes import DawidSkene
from judgebayes.compiled.float64 import in_float64
from judgebayes.experiments.speed.measure import load
from judgebayes.experiments.speed.panels import dense_panel
from judgebayes.inference import NUTS, Status, posterior
from judgebayes.inference.problem import Chains, Sites
from judgebayes.models.dawid_skene import DawidSkenePrior
from judgebayes.votes import Votes

ITEMS, JUDGES, CHAINS, DRAWS, WARMUP = 1000, 10, 4, 1000, 1000
SHORT_WARMUP = 400
FLAT = DawidSkenePrior(0.0, 0.0, 0.0)
START = {"pi": np.full(2, 0.5), "confusion": np.tile([[0.75, 0.25], [0.25, 0.75]], (JUDGES, 1, 1))}
"""Start of the peers' chains, so that none starts with permuted class labels."""
Sampler = Callable[[int], Sites]
"""A function of a seed that returns draws by site, each of shape (chain, draw, ...)."""


@dataclass
class SamplerResult:
    """One sampler: its cold time, its warm times, and the summary of its draws."""

    cold: float
    seconds: list[float]
    table: pd.DataFrame
    """ArviZ's summary of the first run."""

    @property
    def least_ess(self) -> float:
        """The smallest bulk or tail effective sample size of any parameter."""
        return float(self.table[["ess_bulk", "ess_tail"]].min(axis=None))


def against_samplers(rounds: int, smoke: bool = False) -> str:
    """Return a table of effective draws per second; goals: 8 times NumPyro's example, above nutpie.

    All sample the same posterior, with flat priors and the same number of draws.
    """
    votes, _ = dense_panel(200 if smoke else ITEMS, JUDGES, missing=0.0)
    draws = 100 if smoke else DRAWS
    samplers: dict[str, Sampler] = {"ours": ours(votes, draws)}
    skipped = []
    for name, bar, make in (
        ("NumPyro's example, chains in turns", " (bar: 8)", partial(example, "sequential")),
        ("NumPyro's example, vectorised chains", " (bar: 8)", partial(example, "vectorized")),
        ("nutpie on PyMC, the same marginal model", " (bar: 1)", by_nutpie),
    ):
        try:
            samplers[name + bar] = make(votes, draws)
        except ImportError as missing:
            skipped.append(f"{name}: no row, there is no {missing.name} here.")
    by_sampler = time_samplers(samplers, rounds)
    mine = by_sampler["ours"]
    lines = [
        "| sampler | cold, s | warm, s | least ESS | ESS a second | ours over it | means apart |"
    ]
    lines += ["|" + "---|" * 7]
    for name, one in by_sampler.items():
        rate = one.least_ess / np.median(one.seconds)
        each = mine.least_ess / one.least_ess * np.array(one.seconds) / np.array(mine.seconds)
        ratio = f"{np.median(each):.3g} ({each.min():.3g} to {each.max():.3g})"
        error = np.hypot(one.table["mcse_mean"], mine.table["mcse_mean"])
        apart = (np.abs(one.table["mean"] - mine.table["mean"]) / error).max()
        lines.append(
            f"| {name} | {one.cold:.1f} | {np.median(one.seconds):.2f} | {one.least_ess:.0f} | "
            f"{rate:.0f} | {ratio} | {apart:.1f} |"
        )
    size = f"Dawid-Skene, {len(votes):,} x {JUDGES}, {CHAINS} chains of {draws} draws"
    lines += [
        "",
        f"{size}; means apart in Monte Carlo errors, the largest of 42. {load()}",
        *skipped,
    ]
    return "\n".join(lines)


def time_samplers(samplers: dict[str, Sampler], rounds: int) -> dict[str, SamplerResult]:
    """Run every sampler once cold, then in turns, always with the same seed."""
    by_sampler = {}
    for name, sampler in samplers.items():
        started = time.perf_counter()
        draws = sampler(0)
        cold = time.perf_counter() - started
        by_sampler[name] = SamplerResult(cold, [], summary(draws))
    for _ in range(rounds):
        for name, sampler in samplers.items():
            started = time.perf_counter()
            sampler(0)
            by_sampler[name].seconds.append(time.perf_counter() - started)
    return by_sampler


def summary(draws: Sites) -> pd.DataFrame:
    """Return ArviZ's summary of draws, without the sampler's statistics."""
    nothing = jnp.zeros(next(iter(draws.values())).shape[:2])
    sites = {name: draws[name] for name in START}
    return posterior.summary(posterior.to_arviz(Chains(sites, nothing, nothing, nothing, nothing)))


def votes_of(votes: Int[np.ndarray, "item judge"]) -> Votes:
    """Return an array of votes as `Votes`."""
    with jax.enable_x64(True):
        return Votes(jnp.asarray(votes[..., None]), None, None, None, 2)


def ours(votes: Int[np.ndarray, "item judge"], draws: int) -> Sampler:
    """Return our sampler, as a user calls it; it starts at the mode and so needs less warm-up.

    It has as many warm-up steps as nutpie, and the target acceptance that both peers have by default.
    """
    sampler = NUTS(draws=draws, warmup=SHORT_WARMUP, chains=CHAINS, target_accept=0.8)
    method = DawidSkene(sampler, prior=FLAT)
    unknown, panel = np.full(len(votes), -1), votes_of(votes)

    def run(seed: int) -> Sites:
        chains = method.fit(panel, unknown, key=jax.random.PRNGKey(seed)).chains
        assert chains is not None
        return jax.block_until_ready(chains.draws)

    return run


def example(chain_method: str, votes: Int[np.ndarray, "item judge"], draws: int) -> Sampler:
    """Return NumPyro's sampler on its example's model: labels summed out by enumeration.

    The model follows NumPyro's documentation (Bayesian models of annotation, Dawid and Skene's), and
    is compiled once, like ours. Settings are NumPyro's defaults, in float64 like ours.
    """
    import funsor  # noqa: F401  (enumeration needs it)
    from numpyro.ops.indexing import Vindex

    n_items, n_judges = votes.shape

    def model() -> None:
        with numpyro.plate("judge", n_judges, dim=-2), numpyro.plate("class", 2):
            confusion = numpyro.sample("confusion", dist.Dirichlet(jnp.ones(2)))
        pi = numpyro.sample("pi", dist.Dirichlet(jnp.ones(2)))
        with numpyro.plate("item", n_items, dim=-2):
            label = numpyro.sample("label", dist.Categorical(pi), infer={"enumerate": "parallel"})
            with numpyro.plate("position", n_judges):
                chance = Vindex(confusion)[np.arange(n_judges), label, :]
                numpyro.sample("vote", dist.Categorical(chance), obs=votes.astype(np.int32))

    @jax.jit
    def sampled(key: jax.Array) -> Sites:
        start = infer.init_to_value(values={k: jnp.asarray(v) for k, v in START.items()})
        mcmc = infer.MCMC(
            infer.NUTS(model, init_strategy=start),
            num_warmup=WARMUP,
            num_samples=draws,
            num_chains=CHAINS,
            chain_method=chain_method,
            progress_bar=False,
        )
        mcmc.run(key)
        return mcmc.get_samples(group_by_chain=True)

    return in_float64(lambda seed: jax.block_until_ready(sampled(jax.random.PRNGKey(seed))))


def by_nutpie(votes: Int[np.ndarray, "item judge"], draws: int) -> Sampler:
    """Return nutpie's sampler, with its default warm-up, on our marginal likelihood in PyMC (numba)."""
    import nutpie
    import pymc
    from pytensor import tensor

    def count() -> Float[np.ndarray, "item seen"]:
        return np.stack([votes == k for k in range(2)], -1).reshape(len(votes), -1).astype(float)

    def built() -> object:
        with pymc.Model() as model:
            pi = pymc.Dirichlet("pi", np.ones(2), initval=START["pi"])
            shape = START["confusion"].shape
            confusion = pymc.Dirichlet(
                "confusion", np.ones(shape), shape=shape, initval=START["confusion"]
            )
            table = tensor.log(confusion).swapaxes(1, 2).reshape((-1, 2))
            joint = tensor.log(pi) + tensor.dot(count(), table)
            pymc.Potential("votes", tensor.logsumexp(joint, axis=1).sum())
        return nutpie.compile_pymc_model(model)

    compiled: list[object] = []

    def run(seed: int) -> Sites:
        if not compiled:
            compiled.append(built())
        trace = nutpie.sample(
            compiled[0], draws=draws, chains=CHAINS, seed=seed, progress_bar=False
        )
        return {name: trace.posterior[name].to_numpy() for name in START}

    return run


def switched_runs(runs: int) -> str:
    """Return a sentence about label switching in many seeded runs, with new data and chains each.

    A draw has switched labels if most judges are below chance in it, which they never are in truth.
    """
    switched, unmixed, changed = 0, 0, 0
    for seed in range(runs):
        votes, _ = dense_panel(ITEMS, JUDGES, missing=0.0, seed=seed)
        method = DawidSkene(NUTS(draws=DRAWS // 2, warmup=WARMUP // 2, chains=CHAINS))
        fit = method.fit(votes_of(votes), np.full(ITEMS, -1), key=jax.random.PRNGKey(seed))
        switched += int(fit.status) == Status.SWITCHED
        unmixed += int(fit.status) == Status.UNMIXED
        confusion = np.asarray(fit.draws["confusion"])
        accuracy = np.diagonal(confusion, axis1=-2, axis2=-1).mean(-1)
        changed += bool(((accuracy < 0.5).sum(1) * 2 > JUDGES).any())
    return (
        f"{runs} seeded runs of {ITEMS:,} x {JUDGES} (new votes and new chains each, {CHAINS} x "
        f"{DRAWS // 2} draws): {switched} with the status SWITCHED, {unmixed} with R-hat above 1.01 "
        f"or a divergence, {changed} with a draw in which most judges are below chance."
    )
