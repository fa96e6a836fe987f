"""A table with a row per judge, what it counts of their votes, and the choice of a panel of them.

`judge_table` has coverage, accuracy and position bias. Votes beside labels are the input of a panel's
diagnostics, with the dependence between judges: correlated errors, and the effective number of judges.

**Curation**: select a panel of judges, then run the same aggregator on its votes (P2, H.4). A panel is
a mask over the judges. The votes of judges outside it become missing, so shapes do not change between
panels. The same aggregator is refitted for every candidate panel, with its calibration map if it has
one (`Calibrated`). `Curated` does this inside `fit`, on the labelled items only, and is itself an
aggregator.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Array, Bool, Float, Int
from scipy.special import ndtri

from judgebayes.arrays import AnyArray, ItemInts, Labels, LogProbs
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.fast.one_coin_counts import agreement
from judgebayes.inference.fit import Fit, JaxMethod, Method, Training, status_of
from judgebayes.inference.problem import one_draw
from judgebayes.inference.registry import in_files
from judgebayes.measures.significance import independent_trials, share_interval
from judgebayes.votes.array import MISSING, UNDECIDED, Votes
from judgebayes.votes.coding import Coding


class Tally(NamedTuple):
    """Votes beside labels, as NumPy arrays, for the labelled items only."""

    names: list[str]
    """The judges."""
    right: Float[np.ndarray, "item judge"]
    """Share of the judge's votes on the item that equal its label; 0 without votes."""
    voted: Bool[np.ndarray, "item judge"]
    asked: Bool[np.ndarray, "item judge"]
    """Where the judge was asked, whether or not it voted."""
    label: ItemInts
    n_classes: int
    undecided: Float[np.ndarray, "item judge"]
    """Share of the judge's votes on the item that are for no class; 0 without votes."""

    @property
    def hits(self) -> Float[np.ndarray, " judge"]:
        """Number of items on which each judge was right; repeated votes count as a share."""
        return self.right.sum(0)

    @property
    def trials(self) -> Float[np.ndarray, " judge"]:
        """Number of labelled items on which each judge voted."""
        return self.voted.sum(0).astype(float)

    def of_judges(self, judges: Int[np.ndarray, " kept"]) -> "Tally":
        """Return the tally of some of the judges, by index."""
        kept = {
            name: getattr(self, name)[:, judges]
            for name in ("right", "voted", "asked", "undecided")
        }
        return self._replace(names=[self.names[judge] for judge in judges], **kept)


def tally_of(votes: Votes, labels: Labels, judges: Coding | Sequence[str] | None = None) -> Tally:
    """Return the votes on labelled items beside their labels.

    Only the coding of the votes shows where a judge was not asked; without it all count as asked.
    Judges without names are numbered.

    Raises
    ------
    JudgeBayesError
        If there are not as many labels as items, or names as judges.
    """
    index, all_labels = np.asarray(votes.index), np.asarray(labels)
    n_judges = votes.n_judges
    source = range(n_judges) if judges is None else judges
    names = [str(j) for j in (source.judges if isinstance(source, Coding) else source)]
    if len(names) != n_judges:
        raise JudgeBayesError(f"{len(names)} names were given for {n_judges} judges.")
    votes.check_per_item("labels", all_labels)
    labelled = np.flatnonzero(all_labels >= 0)
    index, label = index[labelled], all_labels[labelled]
    cast = (index >= 0).sum(2)
    right = (index == label[:, None, None]).sum(2) / np.maximum(cast, 1)
    none = (index == UNDECIDED).sum(2)
    undecided = none / np.maximum(cast + none, 1)
    asked = np.ones_like(cast, bool)
    if isinstance(judges, Coding) and judges.asked is not None:
        asked = judges.asked[labelled] > 0
    return Tally(names, right, cast > 0, asked, label, votes.n_classes, undecided)


def part_of(part: Float[np.ndarray, "*judge"], whole: Float[np.ndarray, "*judge"]) -> np.ndarray:
    """Return part / whole, NaN where whole is 0."""
    return np.divide(part, whole, out=np.full(np.shape(part), np.nan), where=whole > 0)


def residual_correlation(tally: Tally, common: int = 20) -> Float[np.ndarray, "judge judge"]:
    r"""Return the correlation of the judges' errors given the label.

    The correlation of being right, within items of one label and pooled over labels, on the items
    that both judges voted on: 0 if votes are independent given the label, as Dawid-Skene and the
    one-coin model assume. NaN for fewer than `common` such items, or for a judge that does not
    vary. Items differ in difficulty, so some correlation is normal. It measures how much less J votes
    are worth than J independent votes; it does not show that judges copy each other.
    """
    n_judges = tally.right.shape[1]
    cross, spread, pairs = (np.zeros((n_judges, n_judges)) for _ in range(3))
    for label in range(tally.n_classes):
        of_label = tally.label == label
        right, voted = tally.right[of_label], tally.voted[of_label].astype(float)
        both = voted.T @ voted
        # Sums of the row's judge over the items that the column's judge also voted on.
        total, square = right.T @ voted, (right**2).T @ voted
        count = np.maximum(both, 1)
        cross += right.T @ right - total * total.T / count
        spread += square - total**2 / count
        pairs += both
    scale = np.sqrt(np.maximum(spread, 0) * np.maximum(spread.T, 0))
    enough = (pairs >= common) & (scale > 1e-9)
    return np.clip(np.divide(cross, scale, out=np.full_like(cross, np.nan), where=enough), -1, 1)


def effective_judges(correlation: Float[np.ndarray, "judge judge"]) -> float:
    r"""Return the effective number of independent judges in the panel.

    .. math:: J / (1 + (J - 1) \bar\rho)

    Kish's design effect, with the mean residual correlation over pairs of judges that vary; at most J.
    NaN if no two judges voted on enough common items.

    Examples
    --------
    >>> round(effective_judges(np.array([[1.0, 0.5], [0.5, 1.0]])), 3)
    1.333
    """
    varies = np.isfinite(np.diag(correlation))
    submatrix = correlation[np.ix_(varies, varies)]
    n = len(submatrix)
    if n < 2:
        return float(n)
    pairs = submatrix[~np.eye(n, dtype=bool)]
    if np.isnan(pairs).all():
        return float("nan")
    mean = float(np.nanmean(pairs))
    return n / (1 + (n - 1) * min(max(mean, 0.0), 1.0))


def judge_table(
    votes: Votes,
    labels: Labels,
    judges: Coding | Sequence[str] | None = None,
    *,
    groups: Labels | None = None,
    level: float = 0.9,
) -> pd.DataFrame:
    """Return a row per judge: its votes, accuracy and biases.

    Columns: `judge`; `votes`; `missing`, the share of the requested votes that are missing
    (`readable_share`); `undecided`, if there are such votes, the share of its votes that are for no
    class (neither among `votes` nor in the accuracies); `not_asked`, if the coding records it, the
    share of the items that it was never asked on; `labelled`, the labelled items that it voted on;
    `accuracy` with its equal-tailed Beta(1 + right, 1 + wrong) interval (`accuracy_low`,
    `accuracy_high`; NaN without such items); with two classes `tpr` and `tnr`, its accuracy on items
    of the higher and of the lower label, with intervals; `weight`, the log-odds
    log((K - 1) alpha / beta) that P2's one-coin model gives its votes (eq 1 for K classes: negative
    means flipped, near zero means ignored); if presentation orders are known, `position_bias` with
    its interval.

    Parameters
    ----------
    votes, labels
        The votes, and class indices of the labels, -1 where unknown.
    judges
        The coding of the votes, or the judges' names; numbers if not given.
    groups
        What items share, such as a source or a question. Intervals of accuracies then use an effective
        number of independent items (Korn & Graubard 1998), and those of the position bias are
        cluster-robust. Without groups, the intervals for related items are too narrow: 90 % intervals
        from 15 programs of 16 items covered 69 %.
    level
        Probability of the intervals.

    Raises
    ------
    JudgeBayesError
        If there are not as many labels as items, or names as judges.
    """
    tally = tally_of(votes, labels, judges)
    labelled_groups = None if groups is None else np.asarray(groups)[np.asarray(labels) >= 0]
    n_votes = (np.asarray(votes.index) >= 0).sum((0, 2))
    none = (np.asarray(votes.index) == UNDECIDED).sum((0, 2)).astype(float)
    columns = {
        "judge": tally.names,
        "votes": n_votes,
        "missing": 1 - readable_share(votes, judges),
        **({"undecided": part_of(none, none + n_votes)} if none.any() else {}),
        **(
            {"not_asked": (judges.asked == 0).mean(0)}
            if isinstance(judges, Coding) and judges.asked is not None
            else {}
        ),
        "labelled": tally.trials.astype(int),
    }
    columns |= _with_interval("accuracy", tally.right, tally.voted, labelled_groups, level)
    if votes.n_classes == 2:
        for name, label in (("tpr", 1), ("tnr", 0)):
            of_label = (tally.label == label)[:, None]
            voted = tally.voted & of_label
            columns |= _with_interval(name, tally.right * of_label, voted, labelled_groups, level)
    alpha, beta = 1 + tally.hits, 1 + tally.trials - tally.hits
    columns["weight"] = np.log((votes.n_classes - 1) * alpha / beta)
    if votes.order is not None:
        bias, error = position_bias(votes, groups)
        half = ndtri((1 + level) / 2) * error
        columns |= {
            "position_bias": bias,
            "position_bias_low": bias - half,
            "position_bias_high": bias + half,
        }
    return pd.DataFrame(columns)


def _with_interval(
    name: str,
    right: Float[np.ndarray, "item judge"],
    voted: Bool[np.ndarray, "item judge"],
    groups: ItemInts | None,
    level: float,
) -> dict[str, np.ndarray]:
    trials = voted.sum(0).astype(float)
    share = part_of(right.sum(0), trials)
    count = trials if groups is None else independent_trials(right, voted, groups, level=level)
    ends = share_interval(np.nan_to_num(share) * count, count, level=level)
    low, high = (np.where(trials > 0, end, np.nan) for end in ends)
    return {name: share, f"{name}_low": low, f"{name}_high": high}


def readable_share(
    votes: Votes, judges: Coding | Sequence[str] | None = None
) -> Float[np.ndarray, " judge"]:
    """Return the readable share of each judge's requested votes (P2's parseability, P1 of section 4.5).

    The coding of the votes records which votes were requested. Without it, a judge with at most n votes
    on an item counts as asked for n votes on every item.
    """
    if isinstance(judges, Coding) and judges.asked is not None:
        return 1 - judges.missing.to_numpy() / np.maximum(judges.asked.sum(0, dtype=int), 1)
    cast = (np.asarray(votes.index) != MISSING).sum(2)
    return cast.sum(0) / np.maximum(votes.n_items * cast.max(0), 1)


def position_bias(
    votes: Votes, groups: Labels | None = None
) -> tuple[Float[np.ndarray, " judge"], Float[np.ndarray, " judge"]]:
    r"""Return each judge's position bias and its standard error over items (P1 Table 1).

    .. math:: (F - S) / (F + S)

    with F votes for the response shown first and S for the one shown second; votes between the two
    count for neither. Both orders should be equally frequent. For a judge that saw only one order, the
    ratio would measure the balance of the labels, so its bias is NaN. The error is cluster-robust over
    groups of items, if given.

    Raises
    ------
    JudgeBayesError
        If the votes have no presentation order.
    """
    if votes.order is None:
        raise JudgeBayesError("These votes have no presentation order; pass encode(order=...).")
    index, order = np.asarray(votes.index), np.asarray(votes.order)
    top = votes.n_classes - 1
    highest, lowest = index == top, index == 0
    first = ((order == 0) & highest) | ((order == 1) & lowest)
    second = ((order == 0) & lowest) | ((order == 1) & highest)
    excess = first.sum(2) - second.sum(2).astype(float)
    total = (first | second).sum(2).astype(float)
    both = ((order == 0) & (index >= 0)).any((0, 2)) & ((order == 1) & (index >= 0)).any((0, 2))
    bias = np.where(both, part_of(excess.sum(0), total.sum(0)), np.nan)
    residual = excess - bias * total
    if groups is not None:
        residual = pd.DataFrame(residual).groupby(np.asarray(groups)).sum(min_count=1).to_numpy()
    error = np.sqrt((residual**2).sum(0)) / np.maximum(total.sum(0), 1)
    return bias, error


def masked(votes: Votes, panel: Bool[AnyArray, " judge"]) -> Votes:
    """Return the votes with those of judges outside the panel set to missing; shapes do not change."""
    inside = jnp.asarray(panel)[:, None]
    return replace(
        votes,
        index=jnp.where(inside, votes.index, MISSING),
        score=None if votes.score is None else jnp.where(inside, votes.score, jnp.nan),
    )


@runtime_checkable
class Curator(Protocol):
    """A rule that selects a panel from labelled items; works inside compiled code."""

    def choose(self, aggregator: Method, data: Training) -> Bool[Array, " judge"]:
        """Return the mask of the panel over the judges."""


def check_size(k: int, n_judges: int) -> None:
    """Check that a panel of k judges can be selected from `n_judges`.

    Raises
    ------
    JudgeBayesError
        If k is below 1 or above the number of judges.
    """
    if not 0 < k <= n_judges:
        raise JudgeBayesError(
            f"A panel of {k} judges was requested, but there are only {n_judges} judges."
        )


def largest(values: Float[Array, " judge"], k: int) -> Bool[Array, " judge"]:
    """Return the mask of the k largest values; ties go to the first."""
    best = jnp.argsort(-values, stable=True)[:k]
    return jnp.zeros(values.shape, bool).at[best].set(True)


def posterior_accuracy(data: Training) -> Float[Array, " judge"]:
    """Return each judge's posterior mean accuracy under Beta(1 + right, 1 + wrong) (P2, section 2.1)."""
    right, wrong = agreement(data.given, data.labels, data.weight)
    return (1 + right) / (2 + right + wrong)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class TopAccuracy:
    """The k judges with the highest posterior mean accuracy on the labelled items (P2, section 2.1)."""

    k: int = field(metadata={"static": True})

    def size(self, n_judges: int) -> int:
        """Return the size of the panel."""
        check_size(self.k, n_judges)
        return self.k

    def choose(self, aggregator: Method, data: Training) -> Bool[Array, " judge"]:  # noqa: ARG002
        """Return the panel."""
        return largest(posterior_accuracy(data), self.size(data.given.n_judges))


@in_files
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Curated(JaxMethod):
    """Select a panel on the labelled items, then fit the aggregator to its votes only.

    `Curated(Calibrated(OneCoin(), Beta()), TopAccuracy(5))` is P2's top-5 arm: it selects on all
    labelled items. `Calibrated(Curated(OneCoin(), TopAccuracy(5)), Beta())` selects on the
    aggregator's share of them.
    """

    aggregator: Method
    curator: Curator
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {"panel": ("judge",)}

    @jax.jit
    def _fitted(self, data: Training) -> Fit:
        votes, labels, weight, key = data
        curator_key, fit_key = jax.random.split(key)
        panel = self.curator.choose(self.aggregator, Training(votes, labels, weight, curator_key))
        fitted = self.aggregator.fit(masked(votes, panel), labels, weight=weight, key=fit_key)
        parts = {"aggregator": fitted}
        return Fit(self, one_draw({"panel": panel}), status_of(fitted), parts=parts)

    def answer(self, fit: Fit, given: Votes) -> LogProbs:
        """Return the log-probabilities of the items, from the panel's votes only."""
        log_probs: LogProbs = fit.parts["aggregator"](masked(given, fit.first["panel"]))
        return log_probs


def top_k(aggregator: Method, k: int) -> Curated:
    """Return the aggregator on the k most accurate judges on the labelled items (P2's top-k).

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import judgebayes as jb
    >>> panel = {"ann": [1, 1, 0, 0, 1, 0], "ben": [1, 1, 0, 1, 1, 0], "cy": [0, 1, 1, 0, 0, 1]}
    >>> votes, _ = jb.encode_wide(pd.DataFrame(panel).rename_axis("item"))
    >>> labels = np.array([1, 1, 0, 0, -1, -1])
    >>> fit = jb.top_k(jb.OneCoin(), 2).fit(votes, labels)
    >>> fit.first["panel"].tolist()
    [True, True, False]
    """
    return Curated(aggregator, TopAccuracy(k))
