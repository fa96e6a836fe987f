"""Conformal prediction sets: they contain the label with a stated probability, for any calibration."""

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from judgebayes.arrays import (
    AnyArray,
    AnyProbs,
    ItemCodes,
    ItemValues,
    Labels,
    LogProbs,
    Scalar,
    Weights,
)
from judgebayes.compiled.float64 import in_float64
from judgebayes.compiled.jit_inline import jit_inline
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.fit import training
from judgebayes.inference.problem import require
from judgebayes.inference.status import Status, summary, when
from judgebayes.measures.scores import average, labelled_weight
from judgebayes.measures.significance import Interval

ROUNDING = 1e-9
"""Tolerance for rounding: (n + 1) (1 - alpha) counts as whole within it, and a score within it of the
threshold conforms (1 - 0.7 is not 0.3 to the last bit)."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SplitConformal:
    r"""Split conformal classification (P2 section 2.4, eqs 5, 6).

    .. math:: C(x) = \{k : 1 - p_k(x) \le \hat q\}, \qquad
              \hat q = s_{(\lceil (n + 1)(1 - \alpha) \rceil)}

    with the nonconformity :math:`s_i = 1 - p_{y_i}` of n labelled items that were not used to fit p.
    The set contains the label with probability at least 1 - alpha, and at most 1/(n + 1) more if no
    scores tie. If n is too small for the level, the set contains every class.

    Parameters
    ----------
    level
        1 - alpha, the requested coverage.
    no_empty
        What to do if no class conforms: return the empty set (False; a warning sign, as in MAPIE), or
        the most probable class, all of them if they tie (True; coverage can only rise).
    n_groups
        The number of groups of Mondrian conformal prediction: every group (task, difficulty) has its
        own threshold and guarantee, computed from its own items. One group by default.

    Examples
    --------
    >>> import numpy as np
    >>> import judgebayes as jb
    >>> p = np.array([0.05, 0.1, 0.2, 0.3, 0.6, 0.7, 0.9, 0.95])
    >>> labels = np.array([0, 0, 1, 0, 1, 0, 1, 1])
    >>> log_probs = np.log(np.stack([1 - p, p], axis=1))
    >>> fit = jb.SplitConformal(level=0.75).fit(log_probs, labels)
    >>> fit(log_probs)[2:4].tolist()
    [[True, False], [True, True]]
    """

    level: float = 0.9
    no_empty: bool = field(default=False, metadata={"static": True})
    n_groups: int = field(default=1, metadata={"static": True})

    @in_float64
    def fit(
        self,
        log_probs: AnyProbs,
        labels: Labels,
        *,
        weight: Weights | None = None,
        groups: Labels | None = None,
    ) -> "FittedConformal":
        """Return the thresholds from a set of items, disjoint from those that p was fitted to.

        Parameters
        ----------
        log_probs
            The calibrated log-probabilities of these items.
        labels
            Class indices, -1 where unknown.
        weight
            The weight of each item; 0 equals a dropped item.
        groups
            The group of each item, from 0; required if there is more than one.

        Raises
        ------
        JudgeBayesError
            If the level is not between 0 and 1, groups are missing, or lengths differ.
        """
        within = (self.level > 0) & (self.level < 1)
        require("level", self.level, within, "between 0 and 1")
        data = training(log_probs, labels, weight)
        group = _groups(groups, len(data.labels), self.n_groups)
        own = jnp.take_along_axis(data.given, jnp.maximum(data.labels, 0)[:, None], 1)[:, 0]
        thresholds = _thresholds(own, data.weight, group, self.level, self.n_groups)
        status = when(jnp.isinf(thresholds).any(), Status.DEGENERATE)
        return FittedConformal(thresholds, status, self.no_empty)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FittedConformal:
    """Thresholds of the nonconformity, one per group; infinite where a group has too few items.

    `status` is DEGENERATE if any threshold is infinite: its sets are valid but contain every class.
    """

    threshold: Float[Array, "*batch group"]
    status: Int[Array, "*batch"]
    no_empty: bool = field(metadata={"static": True})

    __repr__ = summary

    @in_float64
    def __call__(
        self, log_probs: AnyProbs, *, groups: Labels | None = None
    ) -> Bool[Array, "item class"]:
        """Return which classes are in each item's set.

        Raises
        ------
        JudgeBayesError
            If groups are missing.
        """
        log_probs = jnp.asarray(log_probs, dtype=float)
        group = _groups(groups, len(log_probs), self.threshold.shape[-1])
        return _sets(log_probs, self.threshold[group], self.no_empty)


@jit_inline("n_groups")
def _thresholds(
    own: ItemValues, weight: ItemValues, group: ItemCodes, level: Scalar, n_groups: int
) -> Float[Array, " group"]:
    """Return each group's threshold, from the log-probabilities of the items' labels."""
    order = jnp.argsort(_nonconformity(own))
    sorted_scores = _nonconformity(own)[order]

    def threshold(which: Int[Array, ""]) -> Float[Array, ""]:
        mass = jnp.where(group == which, weight, 0.0)[order].cumsum()
        needed = (mass[-1] + 1) * level - ROUNDING
        position = jnp.searchsorted(mass, needed)
        return jnp.where(mass[-1] >= needed, sorted_scores.at[position].get(mode="clip"), jnp.inf)

    return jax.vmap(threshold)(jnp.arange(n_groups))


@jit_inline("no_empty")
def _sets(log_probs: LogProbs, threshold: ItemValues, no_empty: bool) -> Bool[Array, "item class"]:
    """Return which classes are in each item's set, given the items' thresholds."""
    inside = _nonconformity(log_probs) <= threshold[:, None] + ROUNDING
    if not no_empty:
        return inside
    empty = ~inside.any(1, keepdims=True)
    return inside | (empty & (log_probs >= log_probs.max(1, keepdims=True) - ROUNDING))


def _nonconformity(log_probs: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    return -jnp.expm1(log_probs)


def _groups(groups: Labels | None, n_items: int, n_groups: int) -> ItemCodes:
    if groups is None:
        if n_groups > 1:
            raise JudgeBayesError(
                f"There are thresholds for {n_groups} groups; pass the group of each item as groups=."
            )
        return jnp.zeros(n_items, int)
    return jnp.asarray(groups)


@in_float64
def coverage(
    sets: Bool[AnyArray, "item class"], labels: Labels, weight: Weights | None = None
) -> Float[Array, ""]:
    """Return the share of items whose set contains the label (P2 section 4.1).

    Examples
    --------
    >>> import numpy as np
    >>> sets = np.array([[True, False], [True, True], [False, True]])
    >>> float(coverage(sets, np.array([0, 1, 0])))
    0.667
    """
    own = jnp.take_along_axis(
        jnp.asarray(sets), jnp.maximum(jnp.asarray(labels), 0)[:, None], axis=1
    )
    return average(own[:, 0].astype(float), labelled_weight(labels, weight))


def coverage_law(
    n: int, level: float, items: int, interval: float = 0.95, *, covered: int | None = None
) -> Interval:
    r"""Return mean and central interval of the coverage on `items` new items, given n calibration items.

    .. math:: m \cdot \mathrm{coverage} \sim \mathrm{BetaBinomial}(m, k, n + 1 - k),
              \qquad k = \lceil (n + 1)(1 - \alpha) \rceil

    Exact if the n + m items are exchangeable and their scores do not tie, also for a random split of a
    finite pool. Vovk (2012). Coverages of several splits of one pool share items: each follows this
    distribution, but their mean does not.

    Ties, from few distinct votes or from probabilities of 1, raise the coverage by an amount that does
    not follow from n and the level. Then `covered` of the n calibration items, c > k, lie in their own
    sets, and the upper end is that of :math:`\mathrm{BetaBinomial}(m, c + 1, n - c)`; the interval is
    then conservative.

    Raises
    ------
    JudgeBayesError
        If the level or the interval is not between 0 and 1, or there are no items.

    Examples
    --------
    >>> law = coverage_law(n=100, level=0.9, items=1000)
    >>> print(f"{law.mean:.3f}, from {law.low:.3f} to {law.high:.3f}")
    0.901, from 0.833 to 0.953
    """
    from scipy.stats import betabinom

    for name, value in (("level", level), ("interval", interval)):
        require(name, value, 0 < value < 1, "between 0 and 1")
    if items < 1 or n < 0:
        raise JudgeBayesError(
            f"n={n} and items={items}; n must be at least 0 and items at least 1."
        )
    k = int(np.ceil((n + 1) * level - ROUNDING))
    if k > n:  # every set contains every class
        return Interval(1.0, 1.0, 1.0)
    law = betabinom(items, k, n + 1 - k)
    low, high = (float(law.ppf(q)) / items for q in ((1 - interval) / 2, (1 + interval) / 2))
    if covered is not None and covered > k:
        # With ties, the threshold's quantile lies between two order statistics.
        tied_law = betabinom(items, covered + 1, n - covered) if covered < n else None
        high = 1.0 if tied_law is None else float(tied_law.ppf((1 + interval) / 2)) / items
    return Interval(float(law.mean()) / items, low, high)
