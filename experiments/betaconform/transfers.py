"""Shared code of Table 2, Table 5 and Fig 5: ten labels on a target, other data sets as sources."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from judgebayes.compiled.float64 import in_float64
from judgebayes.experiments.betaconform.common import (
    COUNTS,
    PAPER,
    POINTS,
    DataSet,
    all_data_sets,
    estimates,
    histograms,
    orders,
    simulated_sets,
    subsets,
)
from judgebayes.experiments.betaconform.embeddings import mean_embeddings, tfidf_embeddings
from judgebayes.experiments.betaconform.paper_em import Distribution, PaperEM
from judgebayes.experiments.betaconform.pooling import REACH, PooledBetaBinomial, share_of_pool
from judgebayes.experiments.betaconform.transfer_weights import (
    TransferWeights,
    swapped_components,
    transfer,
)
from judgebayes.experiments.core import Run
from judgebayes.inference import MAP
from judgebayes.majority import BetaBinomial, Counts, FittedDistribution, Thinning, counts_of

POOLING = MAP(starts=12, max_steps=60)
"""The default starts; the best of them converges long before the largest number of steps."""
REACHES = (0.05, 0.1, REACH, 0.5, 1.0)
"""Limits on the change by pooling, in posterior standard deviations given the ten labels."""

FEW_LABELS = 10
LEAST_ITEMS = 40
"""Smaller subsets are sources only: their own error is too imprecise for a target."""


def limit(reach: float) -> str:
    """Return the name of pooling with this reach."""
    return f"pooled, limit {reach:g}"


LIMITED = limit(REACH)
ABLATIONS: dict[str, TransferWeights] = {
    "transfer": TransferWeights(),
    "r_i for log r_i": TransferWeights(size="count"),
    "1 / distance": TransferWeights(similarity="reciprocal-distance"),
    "no sigmoid": TransferWeights(sigmoid=False),
}


@dataclass(frozen=True)
class Target:
    """A data set to estimate from ten labels, and its sources: the others of its domain."""

    data_set: DataSet
    domain: str
    sources: list[DataSet]
    embeddings: Float[np.ndarray, "set feature"] | None
    """Mean TF-IDF vectors, the target's first; None where there is no text."""


def targets(run: Run) -> list[Target]:
    """Return every target: LLMBar and RewardBench with text, RewardBench 2 without."""
    if not all(run.has(name) for name in (COUNTS, "llmbar_evaluators", "rewardbench_rm149")):
        return simulated_targets()
    return run.remember("transfer targets", lambda: _targets(run))


def _targets(run: Run) -> list[Target]:
    all_targets = []
    families: dict[tuple[str, str, str], list[tuple[DataSet, list[str] | None]]] = {}
    for data_set, domain, texts in subsets(run):
        families.setdefault((data_set.dataset, domain, data_set.judge), []).append(
            (data_set, texts)
        )
    for data_set in all_data_sets(replace(run, smoke=False)):
        if data_set.dataset == "rb2":
            families.setdefault(("rb2", "rb2", data_set.judge), []).append((data_set, None))
    vectors: dict[str, list[Float[np.ndarray, "item feature"]]] = {}
    for (_, domain, _), members in run.few(list(families.items()), 1):
        own = [t for _, t in members if t is not None]
        if own and domain not in vectors:
            vectors[domain] = tfidf_embeddings(own)
        mean = mean_embeddings(vectors[domain]) if own else None
        for place, (data_set, _) in enumerate(members):
            if len(data_set.correct) < LEAST_ITEMS:
                continue
            rest = [i for i in range(len(members)) if i != place]
            all_targets.append(
                Target(
                    data_set,
                    domain,
                    [members[i][0] for i in rest],
                    None if mean is None else mean[[place, *rest]],
                )
            )
    return run.few(all_targets, 2)


def simulated_targets() -> list[Target]:
    """Return simulated targets that differ in difficulty, with identical text."""
    sets = simulated_sets()
    rng = np.random.default_rng(1)
    embeddings = rng.normal(1.0, 0.3, (len(sets), 8))
    all_targets = []
    for place in range(2):
        rest = [i for i in range(len(sets)) if i != place]
        all_targets.append(
            Target(sets[place], "twin", [sets[i] for i in rest], embeddings[[place, *rest]])
        )
    return all_targets


def margins(run: Run, target: Target) -> dict[str, Float[np.ndarray, " split"]]:
    """Return the error margin of each method in each run, in points, computed once per run.

    `em`, `mixture-map` and `thinning` use only the target's ten labels. `transfer` and its ablations
    average EM's parameters with the sources' (`-map`: those of the MAP mixture). `transfer, swapped`
    swaps the labels of the sources' components. `pooled` is the hierarchical model, and
    `pooled, limit c` moves `mixture-map` towards it by at most c standard deviations.
    """
    counts = [(data_set.correct, data_set.votes) for data_set in (target.data_set, *target.sources)]
    return run.keep(
        (PAPER, "transfer", target.data_set.name, target.domain),
        (counts, target.embeddings),
        lambda: _margins(run, target),
    )


def _margins(run: Run, target: Target) -> dict[str, Float[np.ndarray, " split"]]:
    own = target.data_set
    few = histograms(own, [order[:FEW_LABELS] for order in orders(run, own)])
    by_method = {
        "em": estimates(PaperEM(), own, few),
        "mixture-map": estimates(BetaBinomial(2, MAP(starts=3)), own, few),
        "thinning": estimates(Thinning(), own, few),
        "pooled": pooled(target, few),
    }
    own_estimate, pooled_estimate = by_method["mixture-map"], by_method["pooled"]
    spread = deviations(own, few)
    for reach in REACHES:
        share = share_of_pool(own_estimate, pooled_estimate, spread, reach)[:, None]
        by_method[limit(reach)] = (1 - share) * own_estimate + share * pooled_estimate
    if target.embeddings is not None:
        fitters: dict[str, Distribution] = {"": PaperEM(), "-map": BetaBinomial(2, MAP(starts=3))}
        for suffix, method in fitters.items():
            fits = [_fits(method, own.votes, few), *(_fit(method, s) for s in target.sources)]
            for name, weights in ABLATIONS.items():
                by_method[name + suffix] = _transferred(target, fits, weights)
            swapped_fits = [fits[0], *(swapped_components(f) for f in fits[1:])]
            by_method[f"transfer{suffix}, swapped"] = _transferred(
                target, swapped_fits, TransferWeights()
            )
    return {name: np.abs(e - own.truth).mean(1) * POINTS for name, e in by_method.items()}


def deviations(
    data_set: DataSet, few: Float[np.ndarray, "split count"]
) -> Float[np.ndarray, "split size"]:
    """Return the standard deviation of the error at each size given the labels of each run."""
    every = counts_of(np.arange(data_set.votes + 1), data_set.votes)
    fits = [Thinning().fit(every, weight=weight) for weight in few]
    return np.sqrt([fit.posterior(data_set.sizes).variance for fit in fits])


def _fit(method: Distribution, data_set: DataSet) -> FittedDistribution:
    return method.fit(counts_of(data_set.correct, data_set.votes))


@in_float64
def _fits(
    method: Distribution, votes: int, weights: Float[np.ndarray, "split count"]
) -> FittedDistribution:
    return _many(method, votes, jnp.asarray(weights))


@partial(jax.jit, static_argnames="votes")
def _many(
    method: Distribution, votes: int, weights: Float[Array, "split count"]
) -> FittedDistribution:
    counts = Counts(jnp.arange(votes + 1), jnp.full(votes + 1, votes), votes)
    return jax.vmap(lambda w: method.fit(counts, weight=w))(weights)


def _transferred(
    target: Target, fits: Sequence[FittedDistribution], weights: TransferWeights
) -> Float[np.ndarray, "split size"]:
    assert target.embeddings is not None
    labels = np.array([FEW_LABELS, *(len(s.correct) for s in target.sources)])
    fit = transfer(fits, weights(target.embeddings, labels))
    by_run = {name: x[:, 0] for name, x in fit.draws.items()}  # the draw axis holds runs
    return np.asarray(replace(fit, draws=by_run).errors(target.data_set.sizes))


@in_float64
def pooled(
    target: Target, few: Float[np.ndarray, "split count"]
) -> Float[np.ndarray, "split size"]:
    """Return the pooled model's estimates in each run."""
    votes = target.data_set.votes
    full = np.stack([histograms(s, [np.arange(len(s.correct))])[0] for s in target.sources])
    return np.asarray(
        _pooled(
            PooledBetaBinomial(POOLING),
            votes,
            jnp.asarray(few),
            jnp.asarray(full),
            target.data_set.sizes,
        )
    )


@partial(jax.jit, static_argnames=("votes", "sizes"))
def _pooled(
    method: PooledBetaBinomial,
    votes: int,
    few: Float[Array, "split count"],
    full: Float[Array, "source count"],
    sizes: tuple[int, ...],
) -> Float[Array, "split size"]:
    counts = Counts(jnp.arange(votes + 1), jnp.full(votes + 1, votes), votes)
    sets = [counts] * (1 + full.shape[0])

    def one(weight: Float[Array, " count"]) -> Float[Array, " size"]:
        fit: Any = method.fit(sets, weight=[weight, *full])
        return fit.of(0).estimate(sizes)

    return jax.vmap(one)(few)
