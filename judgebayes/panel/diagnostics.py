"""What is wrong with a panel of judges, or with the labels, before anything is calibrated on them.

P2 (section 4.5, H.8) keeps every judge that is readable, not redundant and calibratable, and checks
three things on the calibration set: parseability (P1), saturation (P2) and whether the aggregator
fits the votes (P3). Three more are added here because each can turn a calibrated result into
nonsense: labels that are constant, a judge that leaks the label, and judges that repeat each other.

Repeated votes of a judge on an item count as one trial, right in the share of votes that equal the
label: intervals do not narrow by asking the same question again. Labels are taken as true; where
people disagree about them, accuracies are agreement with the label, and their ceiling is below 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from judgebayes.arrays import AnyArray
from judgebayes.errors import JudgeBayesError
from judgebayes.finding import Finding
from judgebayes.measures.significance import independent_trials, share_interval
from judgebayes.votes.array import Votes
from judgebayes.votes.coding import Coding

__all__ = [
    "Thresholds",
    "diagnose",
    "effective_judges",
    "judge_table",
    "panel_curve",
    "position_bias",
    "residual_correlation",
]

NORMAL_90 = 1.6448536269514722
STEPS = 60
LONGEST_STEP = 1.0
WEAK_PRIOR = 1e-4


@dataclass(frozen=True)
class Thresholds:
    """Where a diagnostic speaks up. H.8's own numbers are blank in the text; these are choices.

    Parameters
    ----------
    readable, unreadable
        Review a judge below the first share of readable votes, leave it out below the second. The
        text does not complain of judges with 92 to 95 % and calls one with 54 % a failure.
    below_chance
        Probability with which a judge's accuracy must lie below chance, 1 / classes, under its
        Beta(1 + right, 1 + wrong) posterior, divided by the number of judges. H.8 asks for
        "reliably below chance".
    constant
        Share of the commonest label from which the labels count as nearly constant: at 98 % the
        base rate alone has an NLL of 0.10, which panels on balanced labels rarely reach.
    leak_labels
        How many labels without a single error (or without a single hit) make a leak. The posterior
        of a perfect judge after n labels puts its accuracy above 0.9 with probability
        1 - 0.9^(n + 1): 50 labels make it 99.5 %.
    asymmetry, significance
        The one-coin model is called violated where recall differs between labels by at least the
        first, and the test of equal recalls says so at the second level, Bonferroni-corrected over
        judges. A small difference in a large sample does no harm.
    duplicate
        Residual correlation of two judges' errors, given the label, from which the second adds
        next to nothing: at 0.9 it carries 1 - 0.81 = 19 % of a judge's variance of its own.
    common
        Fewest labelled items that two judges must share for their correlation to be looked at, and
        fewest of a label for a recall to be tested.
    redundant
        The effective number of judges, as a share of the panel, below which it is called redundant.
    saturated
        How many nats of calibrated NLL the second half of the panel must save: 0.005 is a third of
        the standard error of an NLL over a thousand items (about 0.5 / sqrt(1000)).
    floor
        A calibrated NLL below this is too good: it says that the label is given the probability
        0.98 on average, which labels of people do not allow. Look for a leak or a constant label.
    bias
        Position bias, (first - second) / (first + second), that is worth a note when its 90 %
        interval excludes zero.
    """

    readable: float = 0.9
    unreadable: float = 0.6
    below_chance: float = 0.95
    constant: float = 0.98
    leak_labels: int = 50
    asymmetry: float = 0.1
    significance: float = 0.05
    duplicate: float = 0.9
    common: int = 20
    redundant: float = 0.25
    saturated: float = 0.005
    floor: float = 0.02
    bias: float = 0.1


class _Tally(NamedTuple):
    """Votes beside labels, as NumPy arrays; only labelled items."""

    right: Float[np.ndarray, "item judge"]
    """Share of the judge's votes on the item that equal its label; 0 where it gave none."""
    seen: Bool[np.ndarray, "item judge"]
    asked: Bool[np.ndarray, "item judge"]
    """Where the judge was asked, whether or not it voted."""
    label: Int[np.ndarray, " item"]
    n_classes: int

    @property
    def hits(self) -> Float[np.ndarray, " judge"]:
        return self.right.sum(0)

    @property
    def trials(self) -> Float[np.ndarray, " judge"]:
        return self.seen.sum(0).astype(float)

    def of_judges(self, judges: Int[np.ndarray, " kept"]) -> "_Tally":
        return self._replace(
            right=self.right[:, judges], seen=self.seen[:, judges], asked=self.asked[:, judges]
        )


def _tally(
    votes: Votes, labels: Int[AnyArray, " item"], judges: Coding | Sequence[str] | None = None
) -> _Tally:
    given = np.asarray(labels)
    if given.shape != (votes.n_items,):
        raise JudgeBayesError(
            f"The labels have the shape {given.shape}; the votes have {votes.n_items} items, so "
            f"right would be ({votes.n_items},)."
        )
    known = np.flatnonzero(given >= 0)
    index, label = np.asarray(votes.index)[known], given[known]
    cast = (index >= 0).sum(2)
    right = (index == label[:, None, None]).sum(2) / np.maximum(cast, 1)
    asked = np.ones_like(cast, bool)
    if isinstance(judges, Coding) and judges.asked is not None:
        asked = judges.asked[known] > 0
    return _Tally(right, cast > 0, asked, label, votes.n_classes)


def _names(votes: Votes, judges: Coding | Sequence[str] | None) -> list[str]:
    given = range(votes.n_judges) if judges is None else judges
    names = [str(j) for j in (given.judges if isinstance(given, Coding) else given)]
    if len(names) != votes.n_judges:
        raise JudgeBayesError(f"{len(names)} names were given for {votes.n_judges} judges.")
    return names


def _share(part: Float[np.ndarray, "*judge"], whole: Float[np.ndarray, "*judge"]) -> np.ndarray:
    """Return part / whole, NaN where there is nothing."""
    return np.divide(part, whole, out=np.full(np.shape(part), np.nan), where=whole > 0)


def judge_table(
    votes: Votes,
    labels: Int[AnyArray, " item"],
    judges: Coding | Sequence[str] | None = None,
    *,
    groups: Int[AnyArray, " item"] | None = None,
    level: float = 0.9,
) -> pd.DataFrame:
    """Return a row per judge: what it voted, how often it was right, how it is biased.

    Columns: `judge`; `votes`; `missing`, the share of the votes it was asked for that are not
    there (`readable_share`); `not_asked`, where the coding tells, the share of the items that it
    was never asked on; `labelled`, the labelled items that it voted on; `accuracy` with its
    equal-tailed Beta(1 + right, 1 + wrong) interval (`accuracy_low`, `accuracy_high`); with two
    classes `tpr` and `tnr`, its accuracy on items of the higher and of the lower label, with
    intervals; `weight`, the log-odds log(alpha / beta) that P2's one-coin model gives its votes
    (eq 1: negative means flipped, near zero means ignored); where presentation orders are known,
    `position_bias` with its interval.

    Parameters
    ----------
    votes, labels
        The votes, and class indices of the labels, -1 where unknown.
    judges
        The coding of the votes, or the judges' names; numbers if not given.
    groups
        What items share: a source, a question. Intervals of accuracies then count as many
        independent items as would tell as much (Korn & Graubard 1998), and those of the position
        bias are cluster-robust. Without groups, items that share something know less than the
        intervals say: 90 % intervals from 15 programs of 16 items covered 69 %.
    level
        Probability that the intervals hold.

    Raises
    ------
    JudgeBayesError
        If there are not as many labels as items, or names as judges.
    """
    tally = _tally(votes, labels, judges)
    shared = None if groups is None else np.asarray(groups)[np.asarray(labels) >= 0]
    cast = (np.asarray(votes.index) >= 0).sum((0, 2))
    columns = {
        "judge": _names(votes, judges),
        "votes": cast,
        "missing": 1 - readable_share(votes, judges),
        **(
            {"not_asked": (judges.asked == 0).mean(0)}
            if isinstance(judges, Coding) and judges.asked is not None
            else {}
        ),
        "labelled": tally.trials.astype(int),
    }
    columns |= _with_interval("accuracy", tally.right, tally.seen, shared, level)
    if votes.n_classes == 2:
        for name, label in (("tpr", 1), ("tnr", 0)):
            of_label = (tally.label == label)[:, None]
            seen = tally.seen & of_label
            columns |= _with_interval(name, tally.right * of_label, seen, shared, level)
    columns["weight"] = np.log((1 + tally.hits) / (1 + tally.trials - tally.hits))
    if votes.order is not None:
        bias, error = position_bias(votes, groups)
        columns |= {
            "position_bias": bias,
            "position_bias_low": bias - _normal(level) * error,
            "position_bias_high": bias + _normal(level) * error,
        }
    return pd.DataFrame(columns)


def _with_interval(
    name: str,
    right: Float[np.ndarray, "item judge"],
    seen: Bool[np.ndarray, "item judge"],
    groups: Int[np.ndarray, " item"] | None,
    level: float,
) -> dict[str, np.ndarray]:
    trials = seen.sum(0).astype(float)
    share = _share(right.sum(0), trials)
    count = trials if groups is None else independent_trials(right, seen, groups, level=level)
    low, high = share_interval(np.nan_to_num(share) * count, count, level=level)
    return {name: share, f"{name}_low": low, f"{name}_high": high}


def _normal(level: float) -> float:
    from scipy.special import ndtri

    return float(ndtri((1 + level) / 2))


def readable_share(
    votes: Votes, judges: Coding | Sequence[str] | None = None
) -> Float[np.ndarray, " judge"]:
    """Return the share of each judge's votes that are there (P2's parseability, P1 of section 4.5).

    The coding of the votes knows which were asked for: of these, those that can be read. Arrays
    alone do not tell; a judge that votes on an item up to n times then owes n votes on every item.
    """
    if isinstance(judges, Coding) and len(judges.recorded):
        return 1 - judges.missing.to_numpy() / np.maximum(judges.recorded.to_numpy(), 1)
    cast = (np.asarray(votes.index) >= 0).sum(2)
    return cast.sum(0) / np.maximum(votes.n_items * cast.max(0), 1)


def position_bias(
    votes: Votes, groups: Int[AnyArray, " item"] | None = None
) -> tuple[Float[np.ndarray, " judge"], Float[np.ndarray, " judge"]]:
    r"""Return each judge's position bias and its standard error over items (P1 Table 1).

    .. math:: (F - S) / (F + S)

    with F votes for the response shown first and S for the one shown second; votes between the two
    count for neither. It is fair where both orders are used equally: a judge that saw one order
    only shows the balance of the labels instead, and its bias is NaN. The error is cluster-robust
    over groups of items, if they are given.

    Raises
    ------
    JudgeBayesError
        If the votes carry no presentation order.
    """
    if votes.order is None:
        raise JudgeBayesError("These votes carry no presentation order: encode(order=...).")
    index, order = np.asarray(votes.index), np.asarray(votes.order)
    top = votes.n_classes - 1
    last, least = index == top, index == 0
    first = ((order == 0) & last) | ((order == 1) & least)
    second = ((order == 0) & least) | ((order == 1) & last)
    apart = first.sum(2) - second.sum(2).astype(float)
    total = (first | second).sum(2).astype(float)
    both = ((order == 0) & (index >= 0)).any((0, 2)) & ((order == 1) & (index >= 0)).any((0, 2))
    bias = np.where(both, _share(apart.sum(0), total.sum(0)), np.nan)
    off = apart - bias * total
    if groups is not None:
        where = np.unique(np.asarray(groups), return_inverse=True)[1]
        each, off = off, np.zeros((int(where.max(initial=0)) + 1, off.shape[1]))
        np.add.at(off, where, each)
    error = np.sqrt((off**2).sum(0)) / np.maximum(total.sum(0), 1)
    return bias, error


def residual_correlation(
    votes: Votes, labels: Int[AnyArray, " item"], *, common: int = 20
) -> Float[np.ndarray, "judge judge"]:
    r"""Return how the judges' errors go together once the label is known.

    The correlation of being right, within items of one label and pooled over labels, on the items
    that both judges voted on: 0 if votes are independent given the label, as Dawid-Skene and the
    one-coin model assume. NaN for fewer than `common` such items, or for a judge that does not
    vary. Items differ in difficulty, so some correlation is normal: it says how much less than J
    votes J votes are worth, not who copied whom.
    """
    return _correlation(_tally(votes, labels), common)


def _correlation(tally: _Tally, common: int) -> Float[np.ndarray, "judge judge"]:
    n_judges = tally.right.shape[1]
    cross, spread, pairs = (np.zeros((n_judges, n_judges)) for _ in range(3))
    for label in range(tally.n_classes):
        here = tally.label == label
        right, seen = tally.right[here], tally.seen[here].astype(float)
        both = seen.T @ seen
        # Sums of the row's judge, over the items that the column's judge voted on too.
        total, square = right.T @ seen, (right**2).T @ seen
        fair = np.maximum(both, 1)
        cross += right.T @ right - total * total.T / fair
        spread += square - total**2 / fair
        pairs += both
    scale = np.sqrt(np.maximum(spread, 0) * np.maximum(spread.T, 0))
    enough = (pairs >= common) & (scale > 1e-9)
    return np.clip(np.divide(cross, scale, out=np.full_like(cross, np.nan), where=enough), -1, 1)


def effective_judges(correlation: Float[np.ndarray, "judge judge"]) -> float:
    r"""Return how many independent judges the panel is worth.

    .. math:: J / (1 + (J - 1) \bar\rho)

    Kish's design effect, with the mean residual correlation over pairs of judges that vary; never
    more than J. NaN where no two judges voted on enough items in common to tell.

    Examples
    --------
    >>> round(effective_judges(np.array([[1.0, 0.5], [0.5, 1.0]])), 3)
    1.333
    """
    varies = np.isfinite(np.diag(correlation))
    kept = correlation[np.ix_(varies, varies)]
    n = len(kept)
    if n < 2:
        return float(n)
    pairs = kept[~np.eye(n, dtype=bool)]
    if np.isnan(pairs).all():
        return float("nan")
    mean = float(np.nanmean(pairs))
    return n / (1 + (n - 1) * min(max(mean, 0.0), 1.0))


def panel_curve(
    votes: Votes, labels: Int[AnyArray, " item"], *, orders: int = 20, seed: int = 0
) -> pd.DataFrame:
    """Return calibrated NLL against the size of a random panel (P2's saturation, Figs 6 and 7).

    Panels are the first 1, 2, 4, ..., J/2, J judges of `orders` random orders. Each is aggregated
    by the integrated one-coin model and Platt-scaled. An item's score leaves the item's own label
    out of the judges' counts, which has a closed form, so that only the two parameters of the
    Platt map see it.

    Columns: `judges`, `nll` (mean over orders), `saved` (nats that the full panel saves against
    panels of this size, a mean over items) and `saved_error` (its standard error over items).

    Raises
    ------
    JudgeBayesError
        If the votes have more than two classes, or no label of one of them is known.
    """
    tally = _tally(votes, labels)
    if tally.n_classes != 2 or len(np.unique(tally.label)) < 2:
        raise JudgeBayesError(
            "The curve of calibrated NLL over panels needs two classes and labels of both."
        )
    return _curve(np.asarray(votes.index), np.asarray(labels), tally, orders, seed)


def _curve(
    index: Int[np.ndarray, "item judge sample"],
    labels: Int[np.ndarray, " item"],
    tally: _Tally,
    orders: int,
    seed: int,
) -> pd.DataFrame:
    n_judges = index.shape[1]
    sizes = sorted({min(2**k, n_judges) for k in range(n_judges.bit_length() + 1)})
    sizes = sorted({*(s for s in sizes if 2 * s <= n_judges), max(n_judges // 2, 1), n_judges})
    rng = np.random.default_rng(seed)
    rank = np.stack([rng.permutation(n_judges) for _ in range(orders)])
    masks = [(rank < size).astype(float) for size in sizes[:-1]] + [np.ones((1, n_judges))]
    score = _left_out(index[labels >= 0], tally) @ np.concatenate(masks).T
    each = _platt_nll(score, tally.label)
    ends = np.cumsum([len(m) for m in masks])[:-1]
    by_size = [part.mean(1) for part in np.split(each, ends, axis=1)]
    saved = [values - by_size[-1] for values in by_size]
    return pd.DataFrame(
        {
            "judges": sizes,
            "nll": [values.mean() for values in by_size],
            "saved": [values.mean() for values in saved],
            "saved_error": [values.std() / np.sqrt(len(values)) for values in saved],
        }
    )


def _left_out(
    index: Int[np.ndarray, "item judge sample"], tally: _Tally
) -> Float[np.ndarray, "item judge"]:
    """Return each judge's log-odds contribution (P2 eq 1), the item itself left out."""
    side = ((index == 1).sum(2) - (index == 0).sum(2)) / np.maximum((index >= 0).sum(2), 1)
    seen = tally.seen.astype(float)
    alpha = 1 + tally.hits - tally.right
    beta = 1 + tally.trials - tally.hits - (seen - tally.right)
    return np.where(tally.seen, side * np.log(alpha / beta), 0.0)


def _platt_nll(
    score: Float[np.ndarray, "item panel"], label: Int[np.ndarray, " item"]
) -> Float[np.ndarray, "item panel"]:
    """Return each item's NLL under the Platt map of each panel's score: damped Newton, batched."""
    sign = np.where(label == 1, 1.0, -1.0)[:, None]
    x = score / np.maximum(score.std(0), 1e-12)
    base = label.mean()
    slope, offset = np.zeros(x.shape[1]), np.full(x.shape[1], np.log(base / (1 - base)))
    for _ in range(STEPS):
        p = 1 / (1 + np.exp(-np.clip(slope * x + offset, -700, 700)))
        error, curve = p - (sign > 0), p * (1 - p) + WEAK_PRIOR
        g = np.stack([(error * x).mean(0) + WEAK_PRIOR * slope, error.mean(0)])
        h11, h12, h22 = (curve * x * x).mean(0) + WEAK_PRIOR, (curve * x).mean(0), curve.mean(0)
        det = h11 * h22 - h12**2
        step = np.stack([h22 * g[0] - h12 * g[1], h11 * g[1] - h12 * g[0]]) / det
        step *= np.minimum(1, LONGEST_STEP / np.maximum(np.abs(step).max(0), 1e-12))
        slope, offset = slope - step[0], offset - step[1]
        if np.abs(step).max() < 1e-9:
            break
    return np.logaddexp(0, -sign * (slope * x + offset))


def diagnose(
    votes: Votes,
    labels: Int[AnyArray, " item"],
    judges: Coding | Sequence[str] | None = None,
    *,
    thresholds: Thresholds | None = None,
    seed: int = 0,
) -> list[Finding]:
    """Return what is wrong with the labels and the judges, in words, the gravest first.

    Topics: `labels` (none, constant, nearly constant), `leak`, `parseability` (P1), `saturation`
    (P2), `one-coin`, `missingness` (P3), `below-chance`, `redundancy`, `position-bias`.

    Parameters
    ----------
    votes, labels
        The votes, and class indices of the labels, -1 where unknown.
    judges
        The coding of the votes, or the judges' names; numbers if not given.
    thresholds
        Where to speak up; `Thresholds()` if not given.
    seed
        Of the random panels by which saturation is judged.

    Raises
    ------
    JudgeBayesError
        If there are not as many labels as items, or names as judges.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import judgebayes as jb
    >>> panel = {"ann": [1, 1, 0, 0, 1, 0], "ben": [1, 1, 0, 1, 1, 0], "cy": [0, 1, 1, 0, 0, 1]}
    >>> votes, _ = jb.encode_wide(pd.DataFrame(panel).rename_axis("item"))
    >>> labels = np.array([1, 1, 0, 0, -1, -1])
    >>> for finding in jb.diagnose(votes, np.ones(6, int)):
    ...     print(finding.severity, finding.topic)
    bad labels
    """
    limits = Thresholds() if thresholds is None else thresholds
    names, tally = _names(votes, judges), _tally(votes, labels, judges)
    found = _parseability(readable_share(votes, judges), names, limits)
    if votes.order is not None:
        found += _position(votes, names, limits)
    if len(tally.label) == 0:
        found.append(
            Finding("note", "No item has a label: nothing is known of accuracy.", "labels")
        )
    else:
        leaks = _leaks(tally, names, limits)
        classes = judges.classes.names if isinstance(judges, Coding) else range(votes.n_classes)
        found += _label_balance(tally, classes, limits) + leaks
        found += _missingness(tally, names, limits)
        # A leak drowns everything else: the rest is said of the panel without it.
        leaking = {name for finding in leaks for name in finding.judges}
        kept = np.array([j for j, name in enumerate(names) if name not in leaking], int)
        names, tally = [names[j] for j in kept], tally.of_judges(kept)
        found += _below_chance(tally, names, limits) + _one_coin(tally, names, limits)
        found += _redundancy(tally, names, limits)
        both = tally.n_classes == 2 and len(np.unique(tally.label)) == 2
        # Of a few labels a panel may well know all.
        if both and len(names) > 1 and len(tally.label) >= limits.common:
            rest = np.asarray(votes.index)[:, kept]
            found += _saturation(_curve(rest, np.asarray(labels), tally, 20, seed), limits)
    if len(tally.label) and not any(finding.severity == "bad" for finding in found):
        found.append(
            Finding(
                "good",
                f"{votes.n_judges} judge(s) and {len(tally.label)} labels: no reason not to "
                "calibrate on them" + (", with the notes above in mind." if found else "."),
            )
        )
    return sorted(found, key=lambda f: ("bad", "note", "good").index(f.severity))


def _listed(names: Sequence[str], details: Sequence[str] | None = None, most: int = 5) -> str:
    shown = [
        name if details is None else f"{name} ({detail})"
        for name, detail in zip(names, details or names, strict=True)
    ]
    rest = len(shown) - most
    return ", ".join(shown[:most]) + (f" and {rest} more" if rest > 0 else "")


def _parseability(
    share: Float[np.ndarray, " judge"], names: list[str], limits: Thresholds
) -> list[Finding]:
    found = []
    for severity, where, advice in (
        ("bad", share < limits.unreadable, "Repair the parser or leave them out"),
        (
            "note",
            (share >= limits.unreadable) & (share < limits.readable),
            "Look at what they answer where no vote was read",
        ),
    ):
        which = np.flatnonzero(where)[np.argsort(share[where], kind="stable")]
        if len(which):
            who = tuple(names[j] for j in which)
            found.append(
                Finding(
                    severity,  # type: ignore[arg-type]
                    f"{len(who)} judge(s) gave a readable vote less often than "
                    f"{limits.unreadable if severity == 'bad' else limits.readable:.0%}: "
                    f"{_listed(who, [f'{share[j]:.0%}' for j in which])}. {advice}.",
                    "parseability",
                    who,
                )
            )
    return found


def _position(votes: Votes, names: list[str], limits: Thresholds) -> list[Finding]:
    bias, error = position_bias(votes)
    sure = np.abs(bias) > NORMAL_90 * error
    which = np.flatnonzero(sure & (np.abs(bias) >= limits.bias))
    if len(which) == 0:
        return []
    which = which[np.argsort(-np.abs(bias[which]), kind="stable")]
    who = tuple(names[j] for j in which)
    return [
        Finding(
            "note",
            f"{len(who)} judge(s) favour a position: {_listed(who, [f'{bias[j]:+.0%}' for j in which])} "
            "(+ for the response shown first). Ask in both orders and use both votes.",
            "position-bias",
            who,
        )
    ]


def _label_balance(tally: _Tally, classes: Sequence[object], limits: Thresholds) -> list[Finding]:
    share = np.bincount(tally.label, minlength=tally.n_classes) / len(tally.label)
    most = int(share.argmax())
    if share[most] == 1:
        return [
            Finding(
                "bad",
                f"All {len(tally.label)} labels are class {classes[most]}. A calibrator learns that "
                "constant and looks perfect, whatever the judges say: its accuracy will be 100 % "
                "and its NLL will measure nothing but its regularisation. If votes are recorded as "
                "right or wrong, give every item an orientation (which response came first) and "
                "record for which side the judge voted.",
                "labels",
            )
        ]
    if share[most] >= limits.constant:
        base = -float((share[share > 0] * np.log(share[share > 0])).sum())
        return [
            Finding(
                "bad",
                f"{share[most]:.1%} of the labels are class {classes[most]}. The constant answer "
                f"is right as often and has an NLL of {base:.3f}: compare everything with it.",
                "labels",
            )
        ]
    return []


def _leaks(tally: _Tally, names: list[str], limits: Thresholds) -> list[Finding]:
    found = []
    enough = tally.trials >= limits.leak_labels
    for what, where in (
        ("right", tally.hits == tally.trials),
        ("wrong", tally.hits == 0),
    ):
        which = np.flatnonzero(where & enough)
        if len(which):
            who = tuple(names[j] for j in which)
            counts = sorted({int(n) for n in tally.trials[which]})
            of = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
            found.append(
                Finding(
                    "bad",
                    f"{_listed(who)}: {what} on all of {of} labelled items. No judge is: it "
                    "repeats the label"
                    + (" or made it" if what == "right" else " turned round, or is broken")
                    + ", and a method that learns weights will follow it alone. Leave it out.",
                    "leak",
                    who,
                )
            )
    return found


def _below_chance(tally: _Tally, names: list[str], limits: Thresholds) -> list[Finding]:
    from scipy.special import betainc

    above = betainc(1 + tally.trials - tally.hits, 1 + tally.hits, 1 - 1 / tally.n_classes)
    which = np.flatnonzero(above < (1 - limits.below_chance) / max(len(names), 1))
    if len(which) == 0:
        return []
    rate = _share(tally.hits, tally.trials)
    which = which[np.argsort(rate[which], kind="stable")]
    who = tuple(names[j] for j in which)
    return [
        Finding(
            "note",
            f"{len(who)} judge(s) are right less often than chance ({1 / tally.n_classes:.0%}): "
            f"{_listed(who, [f'{rate[j]:.0%}' for j in which])}. A method with learnt weights turns "
            "their votes round; a majority vote is hurt by them.",
            "below-chance",
            who,
        )
    ]


def _homogeneity(
    hits: Float[np.ndarray, "label judge"], trials: Float[np.ndarray, "label judge"], least: int
) -> Float[np.ndarray, " judge"]:
    """Return the p-value of the chi-square test that a share is the same for all labels."""
    from scipy.special import gammaincc

    used = trials >= least
    hits, trials = np.where(used, hits, 0.0), np.where(used, trials, 0.0)
    pooled = _share(hits.sum(0), trials.sum(0))
    spread = pooled * (1 - pooled)
    apart = np.where(used, (hits - trials * pooled) ** 2, 0.0) / np.maximum(trials, 1)
    freedom = used.sum(0) - 1
    fair = (freedom > 0) & (spread > 0)
    chi2 = apart.sum(0) / np.where(fair, spread, 1.0)
    return np.where(fair, gammaincc(np.maximum(freedom, 1) / 2, chi2 / 2), np.nan)


def _by_label(values: np.ndarray, tally: _Tally) -> Float[np.ndarray, "label judge"]:
    member = (tally.label == np.arange(tally.n_classes)[:, None]).astype(float)
    return member @ values


def _one_coin(tally: _Tally, names: list[str], limits: Thresholds) -> list[Finding]:
    hits, trials = _by_label(tally.right, tally), _by_label(tally.seen.astype(float), tally)
    p = _homogeneity(hits, trials, limits.common)
    recall = _share(hits, np.where(trials >= limits.common, trials, 0.0))
    tested = np.isfinite(recall).sum(0) > 1
    apart = np.where(
        tested,
        np.nanmax(np.where(tested, recall, 0.0), 0) - np.nanmin(np.where(tested, recall, 0.0), 0),
        0.0,
    )
    unlike = (p * len(names) < limits.significance) & (apart >= limits.asymmetry)
    found = []
    which = np.flatnonzero(unlike)
    if len(which):
        which = which[np.argsort(-apart[which], kind="stable")]
        who = tuple(names[j] for j in which)
        details = [
            " against ".join(f"{r:.0%}" for r in recall[::-1, j] if np.isfinite(r)) for j in which
        ]
        found.append(
            Finding(
                "note",
                f"{len(who)} of {len(names)} judge(s) are right more often on items of one label "
                f"than of another: {_listed(who, details)} (highest label first). One accuracy per "
                "judge, as in the one-coin model, does not describe them: a confusion matrix per "
                "judge (Dawid-Skene) does. On pairs, look for a preference for a position.",
                "one-coin",
                who,
            )
        )
    if tally.n_classes == 2:
        found += _wrong_sign(recall, tally, names)
    return found


def _wrong_sign(
    recall: Float[np.ndarray, "label judge"], tally: _Tally, names: list[str]
) -> list[Finding]:
    """Name judges whose one-coin weight has the opposite sign of what their votes say."""
    youden = recall.sum(0) - 1
    trials = _by_label(tally.seen.astype(float), tally)
    error = np.sqrt((recall * (1 - recall) / np.maximum(trials, 1)).sum(0))
    lean = _share(tally.hits, tally.trials) - 0.5
    clear = np.isfinite(youden) & (np.abs(youden) > NORMAL_90 * error)
    which = np.flatnonzero(clear & (youden * lean < 0))
    if len(which) == 0:
        return []
    who = tuple(names[j] for j in which)
    details = [f"accuracy {lean[j] + 0.5:.0%}, TPR + TNR - 1 = {youden[j]:+.2f}" for j in which]
    return [
        Finding(
            "bad",
            f"The one-coin model gives {len(who)} judge(s) a weight of the wrong sign, because one "
            f"label is commoner: {_listed(who, details)}. Use Dawid-Skene, or stacking.",
            "one-coin",
            who,
        )
    ]


def _missingness(tally: _Tally, names: list[str], limits: Thresholds) -> list[Finding]:
    here = _by_label(tally.seen.astype(float), tally)
    items = _by_label(tally.asked.astype(float), tally)
    p = _homogeneity(here, items, limits.common)
    which = np.flatnonzero(p * len(names) < limits.significance)
    if len(which) == 0:
        return []
    who = tuple(names[j] for j in which)
    return [
        Finding(
            "note",
            f"{len(who)} judge(s) leave out items of one label more often than of another: "
            f"{_listed(who)}. A missing vote then is news of its own, which every aggregator here "
            "passes over.",
            "missingness",
            who,
        )
    ]


def _redundancy(tally: _Tally, names: list[str], limits: Thresholds) -> list[Finding]:
    correlation = _correlation(tally, limits.common)
    found = []
    above = np.triu(correlation, 1) >= limits.duplicate  # NaN is not
    pairs = sorted(np.argwhere(above).tolist(), key=lambda ij: -correlation[ij[0], ij[1]])
    if pairs:
        who = tuple(dict.fromkeys(names[j] for pair in pairs for j in pair))
        text = [f"{names[i]} and {names[j]}" for i, j in pairs]
        details = [f"{correlation[i, j]:.2f}" for i, j in pairs]
        found.append(
            Finding(
                "note",
                f"{len(pairs)} pair(s) of judges make nearly the same errors (correlation given the "
                f"label of {limits.duplicate} or more): {_listed(text, details)}. The one-coin "
                "model and Dawid-Skene count them as separate witnesses.",
                "redundancy",
                who,
            )
        )
    varied = int(np.isfinite(np.diag(correlation)).sum())
    worth = effective_judges(correlation)
    if varied > 1 and worth < limits.redundant * varied:
        mean = (varied / worth - 1) / (varied - 1)
        found.append(
            Finding(
                "note",
                f"Given the label, the judges' errors correlate by {mean:.2f} on average: for an "
                f"average of their votes, {varied} judges are worth {worth:.1f} independent ones. "
                "Probabilities from models of independent judges are overconfident until "
                "calibrated.",
                "redundancy",
            )
        )
    return found


def _saturation(curve: pd.DataFrame, limits: Thresholds) -> list[Finding]:
    full, half = curve.iloc[-1], curve.iloc[-2]
    found = []
    if full["nll"] < limits.floor:
        found.append(
            Finding(
                "bad",
                f"The calibrated NLL of the panel is {full['nll']:.4f}, too good for labels of "
                "people: look for a judge that leaks the label.",
                "saturation",
            )
        )
    if half["saved"] + NORMAL_90 * half["saved_error"] < limits.saturated:
        found.append(
            Finding(
                "note",
                f"The panel is saturated: from {half['judges']:.0f} random judges to all "
                f"{full['judges']:.0f}, calibrated NLL changes from {half['nll']:.3f} to "
                f"{full['nll']:.3f}. More judges of this kind add nothing to the one-coin model; "
                "a model of their correlation, or other judges, may.",
                "saturation",
            )
        )
    return found
