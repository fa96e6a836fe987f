"""Dawid and Skene's aggregator: confusion matrices learnt from labels, or from agreement alone."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from judgebayes.aggregators.base import Reliability, by_slab, checked, summarised, training
from judgebayes.aggregators.unique_items import unique_items
from judgebayes.arrays import AnyArray, Scalar
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.fast import dawid_skene
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
from judgebayes.inference.fast.sparse_dawid_skene import Limits, sparse_mode
from judgebayes.inference.nuts import NUTS
from judgebayes.inference.problem import Chains, Problem, Sites
from judgebayes.inference.registry import aggregator, in_files
from judgebayes.inference.sampled import Sampled, with_source
from judgebayes.inference.status import Status, worst
from judgebayes.models.base import PanelData
from judgebayes.models.dawid_skene import DawidSkeneModel, Prior
from judgebayes.votes.array import MISSING, Votes
from judgebayes.votes.sparse import AnyVotes, SparseVotes

__all__ = ["EM", "DawidSkene", "FittedDawidSkene", "fit_sparse"]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class EM:
    """Expectation maximisation: the higher of the modes that two starts lead to.

    The starts are accuracy 0.75 beside the labelled votes, and the majority vote.

    It ends when a step raises the log posterior by less than `tolerance` per item, or with the
    status MAX_STEPS.
    """

    tolerance: float = 1e-12
    max_steps: int = field(default=2000, metadata={"static": True})


@aggregator(
    "dawid-skene",
    knows_judges=True,
    needs_map=True,
    learns_from_unlabelled=True,
    compared="panel",
    inferences=("nuts",),
    place=30,
)
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class DawidSkene:
    r"""Learn a confusion matrix for each judge from labelled and unlabelled items together.

    .. math:: p(y_i = k \mid \text{votes}) \propto \pi_k \prod_j \prod_l \theta_{jkl}^{c_{ijl}}

    (`judgebayes.models.dawid_skene`.) Known labels clamp y; with none at all the judges'
    agreement is all there is. Given the label judges are taken to err independently.

    The classes could change names without changing the likelihood. The starts (accuracy 0.75 and
    the majority vote, with the labelled items) and a prior that is above chance on the average
    choose the names, and no judge is barred from being adversarial; where most judges end below
    chance although the labelled items do not say so, the status is SWITCHED.

    Parameters
    ----------
    inference
        `EM()`, or `NUTS()` for the posterior, started at the mode that EM finds.
    prior
        Pseudo-counts; `Prior(0.0, 0.0, 0.0)` is maximum likelihood.
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
    prior: Prior = field(default_factory=Prior)
    label_noise: float = 0.0

    @in_float64
    def fit(
        self,
        votes: AnyVotes,
        labels: Int[AnyArray, " item"],
        *,
        weight: Float[AnyArray, " item"] | None = None,
        key: PRNGKeyArray | None = None,
    ) -> "FittedDawidSkene":
        """Return the confusion matrices learnt from all items, labelled or not.

        Sparse votes are fitted with memory linear in votes, on every device there is.

        Raises
        ------
        JudgeBayesError
            If lengths differ, or a weight is negative, or sparse votes should be sampled.
        """
        if isinstance(votes, Votes):
            data = training(votes, labels, weight, key, labelled_only=False)
            if isinstance(self.inference, NUTS):  # thousands of passes over the items
                data = unique_items(data)
            fit = _fit(self, *data, _counted(data.votes))
            return with_source(fit, self, votes, labels, weight)
        return fit_sparse(self, votes, labels, weight=weight)

    def problem(
        self,
        votes: Votes,
        labels: Int[AnyArray, " item"],
        weight: Float[Array, " item"] | None = None,
    ) -> Problem:
        """Return the program with these data, what NUTS samples."""
        return Problem(
            DawidSkeneModel(votes.n_classes, self.prior, self.label_noise),
            PanelData(jnp.asarray(votes.index, int), jnp.asarray(labels), weight),
        )


@in_files
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FittedDawidSkene(Sampled):
    """Class shares and confusion matrices: one draw of a mode, or many of a posterior."""

    draws: Sites
    """`pi` (draw, class) and `confusion` (draw, judge, class, vote)."""
    votes_by_class: Float[Array, "*batch judge class"]
    """How many votes of each judge fell, in expectation, on items of each class."""
    status: Int[Array, "*batch"]
    log_posterior: Float[Array, "*batch"]
    """At the mode, up to the constants of the priors; NaN if sampled."""
    steps: Int[Array, "*batch"]
    chains: Chains | None
    pseudo_votes: Float[Array, "*batch"]
    """How many votes on each class the prior counts for."""

    @in_float64
    def __call__(self, votes: AnyVotes) -> Float[Array, "item class"]:
        """Return the items' log-probabilities given their votes alone."""
        if isinstance(votes, SparseVotes):
            return by_slab(partial(_answer_slab, self.draws), votes)
        unknown = jnp.full(votes.n_items, MISSING)
        return _pooled(self, _counted(votes), unknown)

    @in_float64
    def by_draw(self, votes: Votes) -> Float[Array, "draw item class"]:
        """Return the items' log-probabilities under every draw."""
        unknown = jnp.full(votes.n_items, MISSING)
        return _by_draw(self, _counted(votes), unknown)

    def __repr__(self) -> str:
        """Summarise."""
        return summarised(self)

    def reliability(self, level: float = 0.9) -> Reliability:
        """Return each judge's accuracy averaged over classes: posterior mean and interval.

        Draws give it as it is. At a mode the rows of the confusion matrix have Beta posteriors
        given the items' classes, whose uncertainty is left out; their average is matched by a Beta.
        Both hold under the model only: where judges err together, as on most real panels, unlabelled
        items count as if their classes were known, and intervals are far too narrow.
        `judgebayes.panel.judges.judge_table` counts labelled items alone, and holds.
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
        pseudo = np.asarray(self.pseudo_votes)[..., None, None]
        alpha = at_mode * (votes + pseudo) + 1
        beta = (1 - at_mode) * (votes + pseudo) + n_classes - 1
        rows = alpha / (alpha + beta)
        mean = rows.mean(-1)
        variance = (rows * (1 - rows) / (alpha + beta + 1)).mean(-1) / n_classes
        total = mean * (1 - mean) / variance - 1
        low, high = (betaincinv(mean * total, (1 - mean) * total, q) for q in tails)
        return Reliability(mean, low, high)


class _State(NamedTuple):
    """Where EM is, from each start."""

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
) -> Mode:
    """Run EM from both starts and return the higher mode; every step raises the log posterior.

    The starts are columns of the same products, so that the votes are read once for both.
    """
    total, classes = jnp.maximum(weight.sum(), 1.0), range(n_classes)
    clamped = dawid_skene.clamp(labels, noise, n_classes)

    def expect(
        log_pi: Float[Array, "start class"], log_confusion: Float[Array, "start judge class vote"]
    ) -> tuple[Float[Array, " start"], Float[Array, "column item"]]:
        evidence = count @ in_columns(log_confusion)
        values, belief = [], []
        for start, prior_share in enumerate(log_pi):
            first = start * n_classes
            joint = [prior_share[k] + clamped[:, k] + evidence[:, first + k] for k in classes]
            each, own = responsibilities(joint)
            values.append(jnp.where(weight > 0, weight * each, 0.0).sum())
            belief += [weight * x for x in own]
        surprise = jax.vmap(dawid_skene.log_prior, (0, 0, None))(log_pi, log_confusion, prior)
        return jnp.stack(values) + surprise, jnp.stack(belief)

    def tally(belief: Float[Array, "column item"]) -> Float[Array, "start judge class vote"]:
        return from_columns((belief @ count).T, len(belief) // n_classes, n_classes)

    def unfinished(state: _State) -> Bool[Array, " start"]:
        return (state.step < em.max_steps) & (state.gain > em.tolerance * total)

    def advance(state: _State) -> _State:
        value, belief = expect(state.log_pi, state.log_confusion)
        there = _State(
            *jax.vmap(updated, (0, 0, None))(
                belief.sum(1).reshape(-1, n_classes), tally(belief), prior
            ),
            value,
            jnp.where(state.step < 1, jnp.inf, value - state.value),
            state.step + 1,
        )
        going = unfinished(state)
        return jax.tree.map(
            lambda new, old: jnp.where(going.reshape(-1, *[1] * (new.ndim - 1)), new, old),
            there,
            state,
        )

    starts = [
        begin(count, labels, weight, n_classes)
        for begin in (dawid_skene.start, dawid_skene.majority_start)
    ]
    log_pi, log_confusion = (jnp.stack(x) for x in zip(*starts, strict=True))
    unknown = jnp.full(len(starts), -jnp.inf)
    begun = _State(log_pi, log_confusion, unknown, -unknown, jnp.zeros(len(starts), int))
    end = jax.lax.while_loop(lambda state: unfinished(state).any(), advance, begun)
    value, belief = expect(end.log_pi, end.log_confusion)
    status = jnp.select(
        [~jnp.isfinite(value), end.gain <= em.tolerance * total],
        [int(Status.NONFINITE), int(Status.CONVERGED)],
        int(Status.MAX_STEPS),
    )
    higher = value[1] > value[0] + SAME_MODE * jnp.abs(value[0])
    modes = Mode(end.log_pi, end.log_confusion, tally(belief).sum(-1), value, end.step, status)
    return jax.tree.map(lambda x: x[jnp.where(higher, 1, 0)], modes)


def _counted(votes: Votes) -> Counts:
    """Return the counts, packed where there are many items and this is not one of many fits.

    A program of its own: inside another one the compiler packs again for every use.
    """
    if isinstance(votes.index, jax.core.Tracer):
        return dawid_skene.counts(votes.index, votes.n_classes)
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
    belief = dawid_skene.labelled_responsibilities(labels, weight, n_classes)
    cast = (weight[None] @ count).reshape(n_judges, n_classes).sum(-1)
    return switched(log_confusion, dawid_skene.tally(belief, count), cast)


@jax.jit
def _fit(
    method: DawidSkene,
    votes: Votes,
    labels: Int[Array, " item"],
    weight: Float[Array, " item"],
    key: PRNGKeyArray,
    count: Counts,
) -> FittedDawidSkene:
    n_classes = votes.n_classes
    em = method.inference if isinstance(method.inference, EM) else EM()
    mode = _maximise(em, count, labels, weight, method.prior, method.label_noise, n_classes)
    if isinstance(method.inference, EM):
        ended = worst(mode.status, _switched(mode.log_confusion, count, labels, weight))
        return _at_mode(mode._replace(status=ended), method.prior)

    inside = {
        "pi": 0.99 * jnp.exp(mode.log_pi) + 0.01 / n_classes,
        "confusion": 0.99 * jnp.exp(mode.log_confusion) + 0.01 / n_classes,
    }
    whole = method.problem(votes, labels, weight)
    assert isinstance(whole.model, DawidSkeneModel)
    by_counts = dawid_skene.problem(whole.model, whole.data, inside, count)
    found = method.inference.solve(by_counts, key)
    mean = jnp.log(found.draws["confusion"].mean(0))
    return FittedDawidSkene(
        draws=found.draws,
        votes_by_class=mode.votes_by_class,
        status=worst(found.status, _switched(mean, count, labels, weight)),
        log_posterior=jnp.asarray(jnp.nan),
        steps=mode.steps,
        chains=found.chains,
        pseudo_votes=jnp.asarray(method.prior.right + method.prior.wrong),
    )


def _at_mode(mode: Mode, prior: Prior) -> FittedDawidSkene:
    return FittedDawidSkene(
        draws={"pi": jnp.exp(mode.log_pi)[None], "confusion": jnp.exp(mode.log_confusion)[None]},
        votes_by_class=mode.votes_by_class,
        status=mode.status,
        log_posterior=mode.value,
        steps=mode.steps,
        chains=None,
        pseudo_votes=jnp.asarray(prior.right + prior.wrong),
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
    """Return the fit that `DawidSkene.fit` gives the same votes as an array.

    Parameters
    ----------
    method
        Priors, label noise and when to stop; `inference` must be `EM`.
    votes, labels, weight
        As in `DawidSkene.fit`. In a program of several processes (`jax.distributed`), each one's
        own items; judges and classes are numbered alike in all of them, and so is the answer.
    devices
        Those to work on; all by default, of every process.
    rows
        About how many votes a slab holds.

    Raises
    ------
    JudgeBayesError
        If lengths differ, or a weight is negative, or NUTS is asked for.
    """
    em = method.inference
    if not isinstance(em, EM):
        raise JudgeBayesError(
            "Sparse votes are fitted by EM; for NUTS make an array of them: SparseVotes.dense()."
        )
    truth, used = (np.asarray(x) for x in checked(votes, labels, weight))
    limits = Limits(em.tolerance, em.max_steps)
    mode = sparse_mode(
        votes, truth, used, method.prior, method.label_noise, limits, devices=devices, rows=rows
    )
    return _at_mode(mode, method.prior)


def _posterior(
    sites: Sites, count: Counts, labels: Int[Array, " item"]
) -> Float[Array, "item class"]:
    log_confusion = jnp.log(sites["confusion"])
    joint = dawid_skene.log_joint(jnp.log(sites["pi"]), log_confusion, count, labels, 0.0)
    classes = [joint[:, k] for k in range(joint.shape[1])]
    total, _ = responsibilities(classes)
    return jnp.stack([x - total for x in classes], axis=1)


@jax.jit
def _answer_slab(draws: Sites, votes: SparseVotes) -> Float[Array, "item class"]:
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
