"""From a model with data to draws in ArviZ's container, with everything that checks need."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from jaxtyping import Array, Key, PRNGKeyArray

from judgebayes.float64 import in_float64
from judgebayes.generative.story import Statistics, Story
from judgebayes.inference import posterior
from judgebayes.inference.alone import alone
from judgebayes.inference.nuts import NUTS
from judgebayes.inference.problem import Chains, Sites

__all__ = ["STATISTIC", "STATISTICS", "sample"]

REPLICATIONS = 500
"""Sets of data drawn anew, from the prior and from the posterior each."""
LEAST = 100
CELLS = 2e7
"""Numbers that replications may have together, beyond `LEAST` of them."""
SLAB = 50
"""Draws looked at together."""
STATISTIC, STATISTICS = "statistic", "statistics"
"""The axis and the variable of what a set of data looks like, in the predictive groups."""


@in_float64
def sample(
    story: Story,
    nuts: NUTS,
    seed: int,
    *,
    told: Callable[[int], object] = bool,
    attributes: Mapping[str, str | int] | None = None,
) -> Any:
    """Return the posterior as ArviZ's container.

    Its groups: posterior (named as the story tells it), sample_stats, log_likelihood (of every
    item, by target), prior, observed_data, and prior_predictive and posterior_predictive with the
    replicated data and, under ``statistic``, what the story's statistics make of them.

    Parameters
    ----------
    story
        The model with its data.
    nuts
        How to sample.
    seed
        Of everything that is drawn.
    told
        Called with the number of steps that the chains have made.
    attributes
        What the container should know of itself.
    """
    walk, names, first, fresh, replicate = jax.random.split(jax.random.key(seed), 5)
    chains = nuts.draw(story.problem, walk, told)
    n_chains, n_draws = chains.diverging.shape
    flat = {name: x.reshape(-1, *x.shape[2:]) for name, x in chains.draws.items()}
    keys = jax.random.split(names, n_chains * n_draws)
    own, log_likelihood = _looked(story, flat, keys)

    def by_chain(tree: Mapping[str, Any], of: int = n_chains) -> dict[str, np.ndarray]:
        return {k: np.asarray(v).reshape(of, -1, *v.shape[1:]) for k, v in tree.items()}

    kept = _kept(story, n_chains, n_draws)
    thin = {name: x[:, kept].reshape(-1, *x.shape[2:]) for name, x in chains.draws.items()}
    n = len(kept) * n_chains
    prior, replicated = _replicated(
        story,
        jax.random.split(first, n),
        jax.random.split(fresh, n),
        jax.random.split(replicate, 2 * n),
        thin,
    )
    halves = [
        {name: np.asarray(x)[part] for name, x in replicated.items()}
        for part in (slice(None, n), slice(n, None))
    ]
    observed = story.statistics(story.observed)
    statistics = list(observed)
    for half in halves:
        half[STATISTICS] = _statistics(story.statistics, half, statistics)
    return posterior.to_arviz(
        Chains(
            {name: jnp.asarray(x) for name, x in by_chain(own).items()},
            chains.diverging,
            chains.energy,
            chains.tree_depth,
            chains.acceptance,
        ),
        log_likelihood=by_chain(log_likelihood),
        prior=by_chain(prior, 1),
        prior_predictive=by_chain(halves[0], 1),
        posterior_predictive=by_chain(halves[1]),
        observed=story.observed | {STATISTICS: np.array(list(observed.values()))},
        coords=story.coords | {STATISTIC: statistics},
        dims=story.axes | {STATISTICS: (STATISTIC,)},
        attributes={"meanings": json.dumps(story.meanings), **(attributes or {})},
    )


def _looked(story: Story, flat: Sites, keys: Key[Array, " draw"]) -> tuple[Sites, Sites]:
    """Return every draw as the story tells it, and its pointwise log-likelihoods."""

    @jax.jit
    @alone
    def look(flat: Sites, keys: Key[Array, " draw"]) -> tuple[Sites, Sites]:
        return jax.lax.map(
            lambda at: (story.constrained(*at), story.pointwise(at[0])),
            (flat, keys),
            batch_size=SLAB,
        )

    return look(flat, keys)


def _replicated(
    story: Story,
    first: Key[Array, " draw"],
    names: Key[Array, " draw"],
    keys: Key[Array, " twice"],
    thin: Sites,
) -> tuple[Sites, Sites]:
    """Return draws of the prior, and data of the prior's and the posterior's draws."""

    @alone
    def drawn(key: PRNGKeyArray) -> Sites:
        trace = numpyro.handlers.trace(numpyro.handlers.seed(story.problem.prior, key)).get_trace()
        return {name: trace[name]["value"] for name in thin}

    @jax.jit
    @alone
    def replicate(
        first: Key[Array, " draw"],
        names: Key[Array, " draw"],
        keys: Key[Array, " twice"],
        thin: Sites,
    ) -> tuple[Sites, Sites]:
        prior = jax.lax.map(drawn, first)
        both = jax.tree.map(lambda *x: jnp.concatenate(x), prior, thin)
        told = jax.lax.map(lambda at: story.constrained(*at), (prior, names))
        return told, jax.lax.map(lambda at: story.replicate(*at), (keys, both))

    return replicate(first, names, keys, thin)


def _kept(story: Story, n_chains: int, n_draws: int) -> np.ndarray:
    """Return which draws of every chain data are replicated from, evenly spread."""
    cells = sum(x.size for x in story.observed.values())
    wanted = int(np.clip(CELLS / max(cells, 1), LEAST, REPLICATIONS))
    each = min(-(-wanted // n_chains), n_draws)
    return np.linspace(0, n_draws - 1, each).round().astype(int)


def _statistics(
    of: Statistics, replicated: Mapping[str, np.ndarray], names: list[str]
) -> np.ndarray:
    """Return the statistics of each replicated set of data, replication x statistic."""
    n = len(next(iter(replicated.values())))
    rows = [of({name: x[i] for name, x in replicated.items()}) for i in range(n)]
    return np.array([[row[name] for name in names] for row in rows])
