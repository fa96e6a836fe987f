"""Dawid and Skene's aggregator: confusion matrices from labels, or from the judges' agreement only."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from judgebayes.aggregators.base import Reliability, by_slab, checked, summarised, training
from judgebayes.aggregators.costs import Cost, Size
from judgebayes.aggregators.unique_items import unique_items
from judgebayes.arrays import AnyArray, Scalar
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.fast import dawid_skene, pooled_dawid_skene
from judgebayes.inference.fast.dawid_skene import (
    SAME_MODE,
    Counts,
    Mode,
    from_columns,
    in_columns,
    responsibilities,
    switched,
    updated,
)
from judgebayes.inference.fast.log_softmax import log_mean_exp, log_softmax
from judgebayes.inference.fast.packed_counts import MANY_ITEMS, pack
from judgebayes.inference.fast.pooled_dawid_skene import Pooled
from judgebayes.inference.fast.sparse_counts import SparseCounts, listed
from judgebayes.inference.fast.sparse_dawid_skene import Limits, sparse_mode
from judgebayes.inference.nuts import NUTS
from judgebayes.inference.problem import Chains, Problem, Sites
from judgebayes.inference.registry import aggregator, in_files
from judgebayes.inference.sampled import Sampled, with_source
from judgebayes.inference.status import Status, worst
from judgebayes.models.base import PanelData
from judgebayes.models.dawid_skene import DawidSkeneModel, Prior
from judgebayes.models.pooled_dawid_skene import PooledDawidSkeneModel, PooledPrior
from judgebayes.votes.array import MISSING, Votes
from judgebayes.votes.sparse import AnyVotes, SparseVotes

DEPARTS = 0.05
"""The share of items from which a departure is told."""
STEPS = 100
"""The usual number of EM steps."""

__all__ = ["EM", "DawidSkene", "FittedDawidSkene", "fit_sparse"]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class EM:
    """Expectation maximisation from two starts; the higher mode is chosen.

    One start has accuracy 0.75, updated by the labelled votes; the other is the majority vote.

    With pooled judges it is variational EM (`judgebayes.inference.fast.pooled_dawid_skene`), and "log
    posterior" the lower bound that it maximises.

    It ends when a step raises the log posterior by less than `tolerance` per item, or after
    `max_steps` with the status MAX_STEPS.
    """

    tolerance: float = 1e-12
    max_steps: int = field(default=2000, metadata={"static": True})


@aggregator(
    "dawid-skene",
    knows_judges=True,
    needs_map=True,
    learns_from_unlabelled=True,
    compared="panel",
    independent=True,
    inferences=("nuts",),
    place=30,
)
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class DawidSkene:
    r"""Estimate a confusion matrix for each judge from labelled and unlabelled items together.

    .. math:: p(y_i = k \mid \text{votes}) \propto \pi_k \prod_j \prod_l \theta_{jkl}^{c_{ijl}}

    (`judgebayes.models.dawid_skene`.) Known labels fix y; without labels, the estimates rest on the
    judges' agreement only. The model assumes that judges err independently given the label.

    The likelihood does not change when classes are permuted. The starts (accuracy 0.75 and the
    majority vote, with the labelled items) and a prior above chance on average identify the classes;
    single judges may still be adversarial. If most judges end below chance although the labelled items
    do not show this, the status is SWITCHED.

    Parameters
    ----------
    inference
        `EM()`, or `NUTS()` for the posterior, started at EM's mode.
    prior
        Pseudo-counts; `Prior(0.0, 0.0, 0.0)` is maximum likelihood.
    pooled
        Whether the rows of the judges' confusion matrices vary around mean rows, which are learnt from
        the votes, as is how far judges differ (`judgebayes.models.pooled_dawid_skene`): for crowds of
        workers with few votes. The prior is then a `PooledPrior`. None: if no item has a label and
        no prior is given (not in compiled code), or the prior is a `PooledPrior`.
    label_noise
        The known share of the labels that are wrong, any other class alike.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import judgebayes as jb
    >>> panel = {"ann": [1, 1, 0, 0, 1, 0], "ben": [1, 1, 0, 1, 1, 0], "cy": [0, 1, 1, 0, 0, 1]}
    >>> votes, _ = jb.encode_wide(pd.DataFrame(panel).rename_axis("item"))
    >>> labels = np.array([1, 1, 0, 0, -1, -1])
    >>> fit = jb.DawidSkene().fit(votes, labels)
    >>> print(fit.reliability().mean.round(2))
    [0.76 0.69 0.47]
    >>> print(np.exp(fit(votes))[:, 1].round(2))
    [0.96 0.94 0.02 0.29 0.96 0.02]
    """

    inference: EM | NUTS = field(default_factory=EM)
    prior: Prior | PooledPrior = field(default_factory=Prior)
    label_noise: float = 0.0
    pooled: bool | None = field(default=None, metadata={"static": True})

    @in_float64
    def fit(
        self,
        votes: AnyVotes,
        labels: Int[AnyArray, " item"],
        *,
        weight: Float[AnyArray, " item"] | None = None,
        key: PRNGKeyArray | None = None,
    ) -> "FittedDawidSkene":
        """Return the confusion matrices estimated from all items, labelled or not.

        Sparse votes are fitted with memory linear in votes, on all devices.

        Raises
        ------
        JudgeBayesError
            If lengths differ, a weight is negative, sparse votes are used with NUTS, or the prior is
            not one for pooled judges.
        """
        pooled = _pooled_prior(self, labels)
        method = replace(self, pooled=pooled is not None, prior=pooled or self.prior)
        if isinstance(votes, Votes):
            data = training(votes, labels, weight, key, labelled_only=False)
            if isinstance(self.inference, NUTS):  # thousands of passes over the items
                data = unique_items(data)
            fit = _fit(method, *data, _counted(data.votes))
            return with_source(fit, method, votes, labels, weight)
        if method.pooled:
            return _fit_pooled_list(method, votes, labels, weight)
        return fit_sparse(method, votes, labels, weight=weight)

    def cost(self, size: Size) -> Cost:
        """Return the cost of a fit: EM on a matrix of vote counts, from two starts."""
        cells = float(size.items * size.judges * size.classes)
        per_item = 20.0 * size.items * size.classes
        confusion = 20.0 * size.judges * size.classes**2
        return Cost(cells + per_item + confusion, STEPS * 8 * cells * size.classes)

    def problem(
        self,
        votes: Votes,
        labels: Int[AnyArray, " item"],
        weight: Float[Array, " item"] | None = None,
    ) -> Problem:
        """Return the problem for NUTS: the program with these data."""
        pooled = _pooled_prior(self, labels)
        return Problem(
            DawidSkeneModel(votes.n_classes, _own_prior(self), self.label_noise)
            if pooled is None
            else PooledDawidSkeneModel(votes.n_classes, pooled, self.label_noise),
            PanelData(
                jnp.maximum(jnp.asarray(votes.index, int), MISSING), jnp.asarray(labels), weight
            ),
        )


def _pooled_prior(method: DawidSkene, labels: Int[AnyArray, " item"]) -> PooledPrior | None:
    """Return the prior of a fit with pooled judges, None if they are not pooled."""
    pooled, prior = method.pooled, method.prior
    if isinstance(prior, PooledPrior):
        return None if pooled is False else prior
    default = all(isinstance(x, jax.core.Tracer) for x in prior) or tuple(prior) == tuple(Prior())
    if pooled and not default:
        raise JudgeBayesError(
            "The prior is that of judges who are not pooled: with pooled=True, pass a "
            "judgebayes.priors.PooledDawidSkene."
        )
    if pooled is None:
        traced = isinstance(labels, jax.core.Tracer)
        pooled = default and not traced and not bool((np.asarray(labels) >= 0).any())
    return PooledPrior() if pooled else None


def _own_prior(method: DawidSkene) -> Prior:
    return Prior(*method.prior[:3])


def _unknown() -> Array:
    return jnp.asarray(-1.0)


@in_files
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FittedDawidSkene(Sampled):
    """Class shares and confusion matrices: one draw for a mode, or many of a posterior."""

    draws: Sites
    """`pi` (draw, class) and `confusion` (draw, judge, class, vote); with pooled judges also `mean_row`
    (draw, class, vote) and `log_concentration` (draw, class)."""
    votes_by_class: Float[Array, "*batch judge class"]
    """The expected number of votes of each judge on items of each class."""
    status: Int[Array, "*batch"]
    log_posterior: Float[Array, "*batch"]
    """The log posterior at the mode, up to the constants of the priors; NaN if sampled."""
    steps: Int[Array, "*batch"]
    chains: Chains | None
    pseudo_votes: Float[Array, "..."]
    """The number of votes on each class that the prior is worth; with pooled judges, by class."""
    off_majority: Float[Array, "*batch"] = field(default_factory=_unknown)
    """The share of the items whose decision is not the class with the most votes, where there is one;
    -1 if sampled, or fitted to a long list."""
    off_other_start: Float[Array, "*batch"] = field(default_factory=_unknown)
    """The share of the items that EM's other start would decide otherwise; -1 as above."""
    pooled: bool = field(default=False, metadata={"static": True})

    @in_float64
    def __call__(self, votes: AnyVotes) -> Float[Array, "item class"]:
        """Return the items' log-probabilities given only their votes."""
        if isinstance(votes, SparseVotes):
            return by_slab(partial(_predict_slab, self.draws), votes)
        unknown = jnp.full(votes.n_items, MISSING)
        return _pooled(self, _counted(votes), unknown)

    @in_float64
    def by_draw(self, votes: Votes) -> Float[Array, "draw item class"]:
        """Return the items' log-probabilities under every draw."""
        unknown = jnp.full(votes.n_items, MISSING)
        return _by_draw(self, _counted(votes), unknown)

    def __repr__(self) -> str:
        """Return a short summary."""
        return summarised(self)

    def words(self) -> list[str]:
        """Return sentences where the fit departs from the majority vote, or depends on its start."""
        lines = []
        if float(self.off_majority) >= DEPARTS:
            lines.append(
                f"Dawid-Skene decides {float(self.off_majority):.0%} of the items against the majority "
                "of their votes. It trusts some judges far more than others: check some of these items."
            )
        if float(self.off_other_start) >= DEPARTS:
            lines.append(
                f"Another start of Dawid-Skene ends with other decisions on "
                f"{float(self.off_other_start):.0%} of the items: the votes alone do not determine the "
                "answer. Label some items, or use the majority vote."
            )
        return lines

    def reliability(self, level: float = 0.9) -> Reliability:
        """Return each judge's accuracy averaged over classes: posterior mean and interval.

        With draws, these are posterior quantiles. At a mode, the rows of the confusion matrix have Beta
        posteriors given the items' classes, whose uncertainty is ignored; their average is approximated
        by a Beta. Both are valid under the model only: if judges make common errors, as on most real
        panels, unlabelled items are treated as if their classes were known, and the intervals are far
        too narrow. `judgebayes.panel.judges.judge_table` uses labelled items only and stays valid.
        """
        tails = (1 - level) / 2, (1 + level) / 2
        confusion = np.asarray(self.draws["confusion"])
        if self.chains is not None:
            each = np.diagonal(confusion, axis1=-2, axis2=-1).mean(-1)
            low, high = np.quantile(each, tails, axis=0)
            return Reliability(each.mean(0), low, high)
        from scipy.special import betaincinv

        n_classes = confusion.shape[-1]
        at_mode = np.diagonal(confusion[..., 0, :, :, :], axis1=-2, axis2=-1)
        votes = np.asarray(self.votes_by_class)
        pseudo = np.asarray(self.pseudo_votes)
        pseudo = pseudo[..., None, :] if self.pooled else pseudo[..., None, None]
        flat = 0 if self.pooled else 1  # the pooled estimate is the mean of the posterior
        alpha = at_mode * (votes + pseudo) + flat
        beta = (1 - at_mode) * (votes + pseudo) + flat * (n_classes - 1)
        rows = alpha / (alpha + beta)
        mean = rows.mean(-1)
        variance = (rows * (1 - rows) / (alpha + beta + 1)).mean(-1) / n_classes
        total = mean * (1 - mean) / variance - 1
        low, high = (betaincinv(mean * total, (1 - mean) * total, q) for q in tails)
        return Reliability(mean, low, high)


class _State(NamedTuple):
    """The state of EM, for each start."""

    log_pi: Float[Array, "start class"]
    log_confusion: Float[Array, "start judge class vote"]
    value: Float[Array, " start"]
    gain: Float[Array, " start"]
    step: Int[Array, " start"]


def _maximise(
    em: EM,
    count: Counts,
    labels: Int[Array, " item"],
    weight: Float[Array, " item"],
    prior: Prior,
    noise: Scalar,
    n_classes: int,
) -> tuple[Mode, "_Departures"]:
    """Run EM from both starts and return the higher mode; every step raises the log posterior.

    Both starts are columns of the same products, so that the votes are read once.
    """
    total, classes = jnp.maximum(weight.sum(), 1.0), range(n_classes)
    clamped = dawid_skene.clamp(labels, noise, n_classes)

    def expect(
        log_pi: Float[Array, "start class"], log_confusion: Float[Array, "start judge class vote"]
    ) -> tuple[Float[Array, " start"], Float[Array, "column item"]]:
        evidence = count @ in_columns(log_confusion)
        values, expected = [], []
        for start, prior_share in enumerate(log_pi):
            first = start * n_classes
            joint = [prior_share[k] + clamped[:, k] + evidence[:, first + k] for k in classes]
            each, own = responsibilities(joint)
            values.append(jnp.where(weight > 0, weight * each, 0.0).sum())
            expected += [weight * x for x in own]
        log_prior = jax.vmap(dawid_skene.log_prior, (0, 0, None))(log_pi, log_confusion, prior)
        return jnp.stack(values) + log_prior, jnp.stack(expected)

    def tally(expected: Float[Array, "column item"]) -> Float[Array, "start judge class vote"]:
        return from_columns((expected @ count).T, len(expected) // n_classes, n_classes)

    def running(state: _State) -> Bool[Array, " start"]:
        return (state.step < em.max_steps) & (state.gain > em.tolerance * total)

    def advance(state: _State) -> _State:
        value, expected = expect(state.log_pi, state.log_confusion)
        next_state = _State(
            *jax.vmap(updated, (0, 0, None))(
                expected.sum(1).reshape(-1, n_classes), tally(expected), prior
            ),
            value,
            jnp.where(state.step < 1, jnp.inf, value - state.value),
            state.step + 1,
        )
        active = running(state)
        return jax.tree.map(
            lambda new, old: jnp.where(active.reshape(-1, *[1] * (new.ndim - 1)), new, old),
            next_state,
            state,
        )

    starts = [
        begin(count, labels, weight, n_classes)
        for begin in (dawid_skene.start, dawid_skene.majority_start)
    ]
    log_pi, log_confusion = (jnp.stack(x) for x in zip(*starts, strict=True))
    unknown = jnp.full(len(starts), -jnp.inf)
    initial = _State(log_pi, log_confusion, unknown, -unknown, jnp.zeros(len(starts), int))
    end = jax.lax.while_loop(lambda state: running(state).any(), advance, initial)
    value, expected = expect(end.log_pi, end.log_confusion)
    status = jnp.select(
        [~jnp.isfinite(value), end.gain <= em.tolerance * total],
        [int(Status.NONFINITE), int(Status.CONVERGED)],
        int(Status.MAX_STEPS),
    )
    best = _higher(value)
    modes = Mode(end.log_pi, end.log_confusion, tally(expected).sum(-1), value, end.step, status)
    return jax.tree.map(lambda x: x[best], modes), _departures(expected, best, count, weight)


class _PooledState(NamedTuple):
    """The state of variational EM, for each start."""

    at: Pooled
    value: Float[Array, " start"]
    gain: Float[Array, " start"]
    step: Int[Array, " start"]


def _maximise_pooled(
    em: EM,
    count: Counts,
    labels: Int[Array, " item"],
    weight: Float[Array, " item"],
    prior: PooledPrior,
    noise: Scalar,
    n_classes: int,
) -> tuple[Pooled, Mode, "_Departures"]:
    """Run variational EM from both starts; every step raises the lower bound."""
    total = jnp.maximum(weight.sum(), 1.0)
    clamped = dawid_skene.clamp(labels, noise, n_classes)

    def expect(at: Pooled) -> tuple[Float[Array, " start"], Float[Array, "column item"]]:
        evidence = count @ in_columns(jax.vmap(pooled_dawid_skene.expected_log)(at))
        values, expected = [], []
        for start, prior_share in enumerate(at.log_pi):
            first = start * n_classes
            joint = [
                prior_share[k] + clamped[:, k] + evidence[:, first + k] for k in range(n_classes)
            ]
            each, own = responsibilities(joint)
            values.append(jnp.where(weight > 0, weight * each, 0.0).sum())
            expected += [weight * x for x in own]
        bound = jax.vmap(pooled_dawid_skene.bound, (0, 0, None))
        return bound(at, jnp.stack(values), prior), jnp.stack(expected)

    def tally(expected: Float[Array, "column item"]) -> Float[Array, "start judge class vote"]:
        return from_columns((expected @ count).T, len(expected) // n_classes, n_classes)

    def running(state: _PooledState) -> Bool[Array, " start"]:
        return (state.step < em.max_steps) & (state.gain > em.tolerance * total)

    def advance(state: _PooledState) -> _PooledState:
        value, expected = expect(state.at)
        first = state.step < 1
        improved = jax.vmap(
            lambda at, share, votes, first: pooled_dawid_skene.improve(
                at, share, votes, prior, first=first
            )
        )(state.at, expected.sum(1).reshape(-1, n_classes), tally(expected), first)
        # The start is not a state of the bound, so the first value does not count.
        gain = jnp.where(state.step < 2, jnp.inf, value - state.value)
        next_state = _PooledState(improved, value, gain, state.step + 1)
        active = running(state)
        return jax.tree.map(
            lambda new, old: jnp.where(active.reshape(-1, *[1] * (new.ndim - 1)), new, old),
            next_state,
            state,
        )

    starts = [
        begin(count, labels, weight, n_classes)
        for begin in (dawid_skene.start, dawid_skene.majority_start)
    ]
    log_pi, log_confusion = (jnp.stack(x) for x in zip(*starts, strict=True))
    unknown = jnp.full(len(starts), -jnp.inf)
    at = jax.vmap(pooled_dawid_skene.begin)(log_pi, jnp.exp(log_confusion))
    initial = _PooledState(at, unknown, -unknown, jnp.zeros(len(starts), int))
    end = jax.lax.while_loop(lambda state: running(state).any(), advance, initial)
    value, expected = expect(end.at)
    status = jnp.select(
        [~jnp.isfinite(value), end.gain <= em.tolerance * total],
        [int(Status.NONFINITE), int(Status.CONVERGED)],
        int(Status.MAX_STEPS),
    )
    best = _higher(value)
    rows = end.at.rows
    log_confusion = jnp.log(rows / rows.sum(-1, keepdims=True))
    modes = Mode(end.at.log_pi, log_confusion, tally(expected).sum(-1), value, end.step, status)
    chosen = jax.tree.map(lambda x: x[best], (end.at, modes))
    return *chosen, _departures(expected, best, count, weight)


def _higher(value: Float[Array, " start"]) -> Int[Array, ""]:
    """Return the start with the higher value; the first, if they are the same."""
    return jnp.where(value[1] > value[0] + SAME_MODE * jnp.abs(value[0]), 1, 0)


class _Departures(NamedTuple):
    """The share of items on which decisions differ from those of the majority and of the other start."""

    majority: Float[Array, ""]
    other_start: Float[Array, ""]


def _departures(
    expected: Float[Array, "column item"],
    best: Int[Array, ""],
    count: Counts,
    weight: Float[Array, " item"],
) -> _Departures:
    n_classes = len(expected) // 2
    by_start = expected.reshape(2, n_classes, -1).argmax(1)
    own, other = by_start[best], by_start[1 - best]
    n_judges = count.shape[1] // n_classes
    for_class = count @ jnp.tile(jnp.eye(n_classes), (n_judges, 1))
    most = for_class == for_class.max(1, keepdims=True)
    decided = (weight > 0) & (most.sum(1) == 1)

    def share(where: Array, among: Array) -> Float[Array, ""]:
        return (where & among).sum() / jnp.maximum(among.sum(), 1)

    return _Departures(share(own != most.argmax(1), decided), share(own != other, weight > 0))


def _counted(votes: Votes) -> Counts:
    """Return the vote counts: a list if few are cast, packed if there are many items.

    If the code is traced they are an array. Packing is a separate program, because inside another one
    the compiler packs again for every use.
    """
    if isinstance(votes.index, jax.core.Tracer):
        return dawid_skene.counts(votes.index, votes.n_classes)
    as_list = listed(votes)
    if as_list is not None:
        return SparseCounts(as_list)
    return _count(votes.index, votes.n_classes, votes.n_items >= MANY_ITEMS)


@partial(jax.jit, static_argnames=("n_classes", "packed"))
def _count(index: Int[Array, "item judge sample"], n_classes: int, packed: bool) -> Counts:
    return (pack if packed else dawid_skene.counts)(index, n_classes)


def _switched(
    log_confusion: Float[Array, "judge class vote"],
    count: Counts,
    labels: Int[Array, " item"],
    weight: Float[Array, " item"],
) -> Int[Array, ""]:
    n_judges, n_classes, _ = log_confusion.shape
    labelled = dawid_skene.labelled_responsibilities(labels, weight, n_classes)
    cast = (weight[None] @ count).reshape(n_judges, n_classes).sum(-1)
    return switched(log_confusion, dawid_skene.tally(labelled, count), cast)


@jax.jit
def _fit(
    method: DawidSkene,
    votes: AnyVotes,
    labels: Int[Array, " item"],
    weight: Float[Array, " item"],
    key: PRNGKeyArray,
    count: Counts,
) -> FittedDawidSkene:
    n_classes = votes.n_classes
    em = method.inference if isinstance(method.inference, EM) else EM()
    data = (em, count, labels, weight)
    pooled = _pooled_prior(method, labels)
    if pooled is not None:
        at, mode, departures = _maximise_pooled(*data, pooled, method.label_noise, n_classes)
        pseudo = jnp.exp(at.log_concentration)
        extra = {"mean_row": at.mean_row, "log_concentration": at.log_concentration}
    else:
        prior = _own_prior(method)
        mode, departures = _maximise(*data, prior, method.label_noise, n_classes)
        pseudo, extra = jnp.asarray(prior.right + prior.wrong), {}
    if isinstance(method.inference, EM):
        status = worst(mode.status, _switched(mode.log_confusion, count, labels, weight))
        fit = _at_mode(mode._replace(status=status), pseudo)
        return replace(
            fit,
            draws=fit.draws | {name: x[None] for name, x in extra.items()},
            off_majority=departures.majority,
            off_other_start=departures.other_start,
            pooled=bool(extra),
        )

    assert isinstance(votes, Votes)
    interior = {
        "pi": 0.99 * jnp.exp(mode.log_pi) + 0.01 / n_classes,
        "confusion": 0.99 * jnp.exp(mode.log_confusion) + 0.01 / n_classes,
    } | extra
    problem = method.problem(votes, labels, weight)
    assert isinstance(problem.model, DawidSkeneModel | PooledDawidSkeneModel)
    with_counts = dawid_skene.problem(problem.model, problem.data, interior, count)
    result = method.inference.solve(with_counts, key)
    mean = jnp.log(result.draws["confusion"].mean(0))
    return FittedDawidSkene(
        draws=result.draws,
        votes_by_class=mode.votes_by_class,
        status=worst(result.status, _switched(mean, count, labels, weight)),
        log_posterior=jnp.asarray(jnp.nan),
        steps=mode.steps,
        chains=result.chains,
        pseudo_votes=pseudo,
        pooled=bool(extra),
    )


def _fit_pooled_list(
    method: DawidSkene,
    votes: SparseVotes,
    labels: Int[AnyArray, " item"],
    weight: Float[AnyArray, " item"] | None,
) -> FittedDawidSkene:
    """Return the fit with pooled judges to a list of votes, which must fit into memory."""
    if not isinstance(method.inference, EM):
        raise JudgeBayesError(
            "Sparse votes are fitted by EM; for NUTS, convert them to an array with SparseVotes.dense()."
        )
    truth, used = checked(votes, labels, weight)
    in_memory = jax.tree.map(jnp.asarray, votes)
    return _fit(method, in_memory, truth, used, jax.random.key(0), SparseCounts(in_memory))


def _at_mode(mode: Mode, pseudo_votes: Float[Array, "..."]) -> FittedDawidSkene:
    return FittedDawidSkene(
        draws={"pi": jnp.exp(mode.log_pi)[None], "confusion": jnp.exp(mode.log_confusion)[None]},
        votes_by_class=mode.votes_by_class,
        status=mode.status,
        log_posterior=mode.value,
        steps=mode.steps,
        chains=None,
        pseudo_votes=pseudo_votes,
    )


@in_float64
def fit_sparse(
    method: DawidSkene,
    votes: SparseVotes,
    labels: Int[AnyArray, " item"],
    *,
    weight: Float[AnyArray, " item"] | None = None,
    devices: Sequence[jax.Device] | None = None,
    rows: int | None = None,
) -> FittedDawidSkene:
    """Return the same fit as `DawidSkene.fit` for the votes as an array.

    Parameters
    ----------
    method
        Priors, label noise and stopping rule; `inference` must be `EM`. Judges are not pooled: for a
        list of votes with pooled judges, use `DawidSkene.fit`.
    votes, labels, weight
        As in `DawidSkene.fit`. In a program of several processes (`jax.distributed`), each process
        passes its own items; judges and classes have the same indices in all of them, and all get the
        same result.
    devices
        The devices to use; by default all, of every process.
    rows
        The approximate number of votes in a slab.

    Raises
    ------
    JudgeBayesError
        If lengths differ, a weight is negative, or the inference is NUTS.
    """
    em = method.inference
    if not isinstance(em, EM):
        raise JudgeBayesError(
            "Sparse votes are fitted by EM; for NUTS, convert them to an array with SparseVotes.dense()."
        )
    prior = _own_prior(method)
    truth, used = (np.asarray(x) for x in checked(votes, labels, weight))
    limits = Limits(em.tolerance, em.max_steps)
    mode = sparse_mode(
        votes, truth, used, prior, method.label_noise, limits, devices=devices, rows=rows
    )
    return _at_mode(mode, jnp.asarray(prior.right + prior.wrong))


def _posterior(
    sites: Sites, count: Counts, labels: Int[Array, " item"]
) -> Float[Array, "item class"]:
    log_confusion = jnp.log(sites["confusion"])
    joint = dawid_skene.log_joint(jnp.log(sites["pi"]), log_confusion, count, labels, 0.0)
    classes = [joint[:, k] for k in range(joint.shape[1])]
    total, _ = responsibilities(classes)
    return jnp.stack([x - total for x in classes], axis=1)


@jax.jit
def _predict_slab(draws: Sites, votes: SparseVotes) -> Float[Array, "item class"]:
    def one(sites: Sites) -> Float[Array, "item class"]:
        flat = jnp.swapaxes(jnp.log(sites["confusion"]), 1, 2).reshape(-1, votes.n_classes)
        return log_softmax(jnp.log(sites["pi"]) + votes.item_sums(flat))

    return log_mean_exp(jax.lax.map(one, draws))


@jax.jit
def _by_draw(
    fitted: FittedDawidSkene, count: Counts, labels: Int[Array, " item"]
) -> Float[Array, "draw item class"]:
    return jax.vmap(lambda sites: _posterior(sites, count, labels))(fitted.draws)


@jax.jit
def _pooled(
    fitted: FittedDawidSkene, count: Counts, labels: Int[Array, " item"]
) -> Float[Array, "item class"]:
    if len(fitted.draws["pi"]) == 1:
        return _posterior({name: x[0] for name, x in fitted.draws.items()}, count, labels)
    return log_mean_exp(_by_draw(fitted, count, labels))
