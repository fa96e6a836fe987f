"""Dawid and Skene's aggregator: confusion matrices from labels, or from the judges' agreement only.

Items with the same votes and label merged into one weighted item, for samplers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from judgebayes.aggregators.base import Cost
from judgebayes.arrays import ItemCodes, ItemValues, Key, Labels, LogProbs, Weights
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.fast import dawid_skene_em
from judgebayes.inference.fast.dawid_skene_em import (
    Counts,
    by_counts,
    maximise,
    responsibilities,
    switched,
)
from judgebayes.inference.fast.pooled_dawid_skene import maximise_pooled
from judgebayes.inference.fit import Fit, JaxMethod, Training, checked
from judgebayes.inference.nuts import NUTS
from judgebayes.inference.point import EM
from judgebayes.inference.problem import Problem, Sites
from judgebayes.inference.registry import aggregator
from judgebayes.inference.status import worst
from judgebayes.measures.significance import Interval
from judgebayes.models.base import PanelData
from judgebayes.models.dawid_skene import DawidSkeneModel, DawidSkenePrior
from judgebayes.models.pooled_dawid_skene import PooledDawidSkeneModel, PooledPrior
from judgebayes.votes.array import MISSING, AnyVotes, SparseVotes, Votes, from_dense

SIZES_TO_DOUBLE = 4
"""Sizes between one power of two and the next, so that similar panels share a compilation."""


def unique_items(data: Training) -> Training:
    r"""Return one item for every distinct combination of votes and label, with the summed weight.

    A likelihood that is a product over items, with the same factor for the same votes, is unchanged,
    but costs only as much as the distinct items:

    .. math:: \prod_i p(v_i, y_i)^{w_i} = \prod_{(v, y)} p(v, y)^{\sum_{i: v_i = v, y_i = y} w_i}

    The order of a judge's samples does not matter; scores, orders and tasks are dropped. Items with
    weight 0 and without votes pad the result to one of a few sizes. Inside compiled code, where the
    number of distinct items is unknown, the data are returned unchanged.
    """
    votes, labels, weight, key = data
    if any(isinstance(x, jax.core.Tracer) for x in (votes.index, labels, weight)):
        return data
    index, used = np.sort(np.asarray(votes.index), axis=2), np.asarray(weight) > 0
    rows = np.column_stack([index.reshape(len(index), -1), np.asarray(labels)])[used]
    distinct, position = np.unique(rows, axis=0, return_inverse=True)
    extra = _rounded(len(distinct)) - len(distinct)
    if len(distinct) + extra >= votes.n_items:
        return data
    fill = ((0, extra), (0, 0))
    distinct = np.pad(distinct, fill, constant_values=MISSING)
    summed = np.bincount(position.ravel(), np.asarray(weight)[used], len(distinct))
    return Training(
        replace(
            votes,
            index=jnp.asarray(distinct[:, :-1].reshape(-1, *index.shape[1:]), votes.index.dtype),
            score=None,
            order=None,
            task=None,
        ),
        jnp.asarray(distinct[:, -1], labels.dtype),
        jnp.asarray(summed),
        key,
    )


def _rounded(size: int) -> int:
    """Return the next of the sizes, at most a quarter more."""
    step = max(2 ** (max(size, 1).bit_length() - 1) // SIZES_TO_DOUBLE, 1)
    return -(-size // step) * step


DEPARTS = 0.05
"""The share of items from which a departure is named."""
STEPS = 100
"""The usual number of EM steps."""
LEAST_CELLS = 200_000
"""Smaller matrices of vote counts are fast anyway."""
GAIN = 16
"""Votes are a list if their matrix has more than this many cells for every vote."""


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
class DawidSkene(JaxMethod):
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
        Pseudo-counts, a `DawidSkenePrior`; all of them 0 are maximum likelihood. Or a `PooledPrior`:
        each judge then has an ability around which the rows of its confusion matrix vary, where the
        distribution of abilities and the extent of variation are learnt from the votes
        (`judgebayes.models.pooled_dawid_skene`): for crowds of workers with few votes. None: judges are
        pooled if no item has a label (not in compiled code).
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
    prior: DawidSkenePrior | PooledPrior | None = None
    label_noise: float = 0.0
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "pi": ("class",),
        "shift": ("class",),
        "log_concentration": ("class",),
        "errors": ("class", "other"),
        "skill": ("judge",),
        "confusion": ("judge", "class", "vote"),
        "accuracy": ("judge",),
        "votes_by_class": ("judge", "class"),
    }

    @in_float64
    def fit(
        self,
        given: AnyVotes,
        labels: Labels,
        *,
        weight: Weights | None = None,
        key: Key | None = None,
    ) -> Fit:
        """Return the confusion matrices estimated from all items, labelled or not.

        A list of votes takes memory linear in the votes, as does a large table that is mostly empty.

        Raises
        ------
        JudgeBayesError
            If lengths differ, a weight is negative, or sparse votes are used with NUTS.
        """
        if not isinstance(given, SparseVotes):
            return super().fit(given, labels, weight=weight, key=key)
        if not isinstance(self.inference, EM):
            raise JudgeBayesError(
                "A list of votes is fitted by EM; NUTS needs the array of encode."
            )
        labels, weight = checked(labels, weight, given.n_items, given.n_classes)
        own = replace(self, prior=_prior(self, labels))
        return _fit(own, given, labels, weight, jax.random.key(0), given)

    def _fitted(self, data: Training) -> Fit:
        if isinstance(self.inference, NUTS):  # thousands of passes over the items
            data = unique_items(data)
        own = replace(self, prior=_prior(self, data.labels))
        return _fit(own, *data, _counted(data.given))

    def cost(self, items: int, votes: Votes) -> Cost:
        """Return the cost of a fit: EM on a matrix of vote counts, from two starts."""
        cells = float(items * votes.n_judges * votes.n_classes)
        per_item = 20.0 * items * votes.n_classes
        confusion = 20.0 * votes.n_judges * votes.n_classes**2
        return Cost(cells + per_item + confusion, STEPS * 8 * cells * votes.n_classes)

    def problem(self, votes: Votes, labels: Labels, weight: ItemValues | None = None) -> Problem:
        """Return the problem for NUTS: the program with these data."""
        prior = _prior(self, labels)
        return Problem(
            PooledDawidSkeneModel(votes.n_classes, prior, self.label_noise)
            if isinstance(prior, PooledPrior)
            else DawidSkeneModel(votes.n_classes, prior, self.label_noise),
            PanelData(
                jnp.maximum(jnp.asarray(votes.index, int), MISSING), jnp.asarray(labels), weight
            ),
        )

    def prepared(self, given: AnyVotes) -> Counts:
        """Return the counts of the votes."""
        return _counted(given)

    def predict(self, values: Sites, given: Counts) -> LogProbs:
        """Return the items' log-probabilities given only their votes."""
        unknown = jnp.full(given.shape[0], MISSING)
        logs = jnp.log(values["pi"]), jnp.log(values["confusion"])
        joint = dawid_skene_em.log_joint(*logs, given, unknown, 0.0)
        classes = [joint[:, k] for k in range(joint.shape[1])]
        total, _ = responsibilities(classes)
        return jnp.stack([x - total for x in classes], axis=1)

    def words(self, fit: Fit) -> list[str]:
        """Return sentences where the fit departs from the majority vote, or depends on its start."""
        lines = []
        against, other = (
            float(fit.details.get(n, 0.0)) for n in ("off_majority", "off_other_start")
        )
        if against >= DEPARTS:
            lines.append(
                f"Dawid-Skene decides {against:.0%} of the items against the majority "
                "of their votes. It trusts some judges far more than others: check some of these items."
            )
        if other >= DEPARTS:
            lines.append(
                f"Another start of Dawid-Skene ends with other decisions on "
                f"{other:.0%} of the items: the votes alone do not determine the "
                "answer. Label some items, or use the majority vote."
            )
        return lines

    def reliability(self, fit: Fit, level: float) -> Interval:
        """Return each judge's accuracy averaged over classes: posterior mean and interval.

        With draws, these are posterior quantiles. At a mode, the rows of the confusion matrix have Beta
        posteriors given the items' classes, whose uncertainty is ignored; their average is approximated
        by a Beta. Both are valid under the model only: if judges make common errors, as on most real
        panels, unlabelled items are treated as if their classes were known, and the intervals are far
        too narrow. `judgebayes.panel.judges.judge_table` uses labelled items only and stays valid.
        """
        confusion = np.asarray(fit.draws["confusion"])
        if "votes_by_class" not in fit.details:
            each = np.diagonal(confusion, axis1=-2, axis2=-1).mean(-1)
            return Interval.of_draws(each, level=level)
        n_classes = confusion.shape[-1]
        at_mode = np.diagonal(confusion[..., 0, :, :, :], axis1=-2, axis2=-1)
        votes = np.asarray(fit.details["votes_by_class"])
        pseudo = np.asarray(fit.details["pseudo_votes"])
        pooled = pseudo.ndim == votes.ndim - 1  # by class
        pseudo = pseudo[..., None, :] if pooled else pseudo[..., None, None]
        flat = 0 if pooled else 1  # the pooled estimate is the mean of the posterior
        alpha = at_mode * (votes + pseudo) + flat
        beta = (1 - at_mode) * (votes + pseudo) + flat * (n_classes - 1)
        rows = alpha / (alpha + beta)
        mean = rows.mean(-1)
        variance = (rows * (1 - rows) / (alpha + beta + 1)).mean(-1) / n_classes
        total = mean * (1 - mean) / variance - 1
        return Interval.of_beta(mean * total, (1 - mean) * total, level=level)


def _prior(method: DawidSkene, labels: Labels) -> DawidSkenePrior | PooledPrior:
    """Return the prior: without one, that of pooled judges if it is known that no item has a label."""
    if method.prior is not None:
        return method.prior
    known = not isinstance(labels, jax.core.Tracer)
    return PooledPrior() if known and not (np.asarray(labels) >= 0).any() else DawidSkenePrior()


def _counted(votes: AnyVotes) -> Counts:
    """Return the vote counts: a list if the table is mostly empty; if the code is traced, an array."""
    if isinstance(votes, SparseVotes):
        return votes
    if isinstance(votes.index, jax.core.Tracer):
        return dawid_skene_em.counts(votes.index, votes.n_classes)
    if _mostly_empty(votes):
        return from_dense(votes)
    return _count(votes.index, votes.n_classes)


def _mostly_empty(votes: Votes) -> bool:
    """Return whether products of a list are faster than those of a matrix."""
    cells, cast = votes.index.size * votes.n_classes, int((np.asarray(votes.index) >= 0).sum())
    return cast > 0 and cells >= max(LEAST_CELLS, GAIN * cast)


_count = jax.jit(dawid_skene_em.counts, static_argnames="n_classes")


@jax.jit
def _fit(
    method: DawidSkene,
    votes: AnyVotes,
    labels: ItemCodes,
    weight: ItemValues,
    key: Key,
    count: Counts,
) -> Fit:
    n_classes = votes.n_classes
    em = method.inference if isinstance(method.inference, EM) else EM()
    data = em, count, labels, weight
    prior, noise = _prior(method, labels), method.label_noise
    if isinstance(prior, PooledPrior):
        mode = maximise_pooled(*data, prior, noise, n_classes)
    else:
        mode = maximise(*data, prior, noise, n_classes)
    if isinstance(method.inference, EM):
        log_confusion = jnp.log(mode.draws["confusion"][0])
        status = worst(mode.status, switched(log_confusion, count, labels, weight))
        return Fit(method, mode.draws, status, mode.details)

    assert isinstance(votes, Votes)
    at_mode = {name: x[0] for name, x in mode.draws.items()}
    if isinstance(prior, PooledPrior):
        at_mode["skill"] = jnp.zeros(votes.n_judges)
    problem = by_counts(method.problem(votes, labels, weight), at_mode, count)
    result = method.inference.solve(problem, key)
    mean = jnp.log(result.draws["confusion"].mean(0))
    status = worst(result.status, switched(mean, count, labels, weight))
    return Fit(method, result.draws, status, chains=result.chains)
