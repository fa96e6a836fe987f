"""All diagnostics of a panel and its labels, the most serious finding first.

Saturation: calibrated NLL against the size of a panel.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from judgebayes.arrays import ItemInts, Labels
from judgebayes.errors import JudgeBayesError
from judgebayes.finding import Finding
from judgebayes.panel.agreement import check_agreement, check_constant
from judgebayes.panel.checks import (
    Thresholds,
    check_below_chance,
    check_few_labels,
    check_label_balance,
    check_leaks,
    check_missingness,
    check_one_coin,
    check_parseability,
    check_position,
    check_redundancy,
    check_saturation,
    check_undecided,
)
from judgebayes.panel.judges import Tally, readable_share, tally_of
from judgebayes.votes.array import Votes
from judgebayes.votes.coding import Coding

STEPS = 60
MAX_STEP = 1.0
WEAK_PRIOR = 1e-4


def panel_curve(votes: Votes, labels: Labels, *, orders: int = 20, seed: int = 0) -> pd.DataFrame:
    """Return calibrated NLL against the size of a random panel (P2's saturation, Figs 6 and 7).

    Panels are the first 1, 2, 4, ..., J/2, J judges of `orders` random orders. Each is aggregated
    by the integrated one-coin model and Platt-scaled. An item's score excludes the item's label
    from the judges' counts (in closed form), so only the two parameters of the Platt map depend
    on it.

    Columns: `judges`, `nll` (mean over orders), `saved` (the NLL of this size minus that of the
    full panel, in nats, a mean over items) and `saved_error` (its standard error over items).

    Raises
    ------
    JudgeBayesError
        If the votes have more than two classes, or a class has no label.
    """
    tally = tally_of(votes, labels)
    if tally.n_classes != 2 or len(np.unique(tally.label)) < 2:
        raise JudgeBayesError(
            "The curve of calibrated NLL over panels needs two classes and labels of both."
        )
    n_judges = votes.n_judges
    sizes = sorted({min(2**k, n_judges) for k in range(n_judges.bit_length() + 1)})
    sizes = sorted({*(s for s in sizes if 2 * s <= n_judges), max(n_judges // 2, 1), n_judges})
    rng = np.random.default_rng(seed)
    rank = np.stack([rng.permutation(n_judges) for _ in range(orders)])
    masks = [(rank < size).astype(float) for size in sizes[:-1]] + [np.ones((1, n_judges))]
    index = np.asarray(votes.index)[np.asarray(labels) >= 0]
    score = _leave_one_out_scores(index, tally) @ np.concatenate(masks).T
    nll_of_item = _platt_nll(score, tally.label)
    ends = np.cumsum([len(m) for m in masks])[:-1]
    by_size = [part.mean(1) for part in np.split(nll_of_item, ends, axis=1)]
    saved = [values - by_size[-1] for values in by_size]
    return pd.DataFrame(
        {
            "judges": sizes,
            "nll": [values.mean() for values in by_size],
            "saved": [values.mean() for values in saved],
            "saved_error": [values.std() / np.sqrt(len(values)) for values in saved],
        }
    )


def _leave_one_out_scores(
    index: Int[np.ndarray, "item judge sample"], tally: Tally
) -> Float[np.ndarray, "item judge"]:
    """Return each judge's log-odds contribution (P2 eq 1), leaving out the item itself."""
    side = ((index == 1).sum(2) - (index == 0).sum(2)) / np.maximum((index >= 0).sum(2), 1)
    voted = tally.voted.astype(float)
    alpha = 1 + tally.hits - tally.right
    beta = 1 + tally.trials - tally.hits - (voted - tally.right)
    return np.where(tally.voted, side * np.log(alpha / beta), 0.0)


def _platt_nll(
    score: Float[np.ndarray, "item panel"], label: ItemInts
) -> Float[np.ndarray, "item panel"]:
    """Return each item's NLL under the Platt map of each panel's score: damped Newton, batched."""
    sign = np.where(label == 1, 1.0, -1.0)[:, None]
    x = score / np.maximum(score.std(0), 1e-12)
    base = label.mean()
    slope, offset = np.zeros(x.shape[1]), np.full(x.shape[1], np.log(base / (1 - base)))
    for _ in range(STEPS):
        p = 1 / (1 + np.exp(-np.clip(slope * x + offset, -700, 700)))
        error, curvature = p - (sign > 0), p * (1 - p) + WEAK_PRIOR
        g = np.stack([(error * x).mean(0) + WEAK_PRIOR * slope, error.mean(0)])
        h11, h12, h22 = (
            (curvature * x * x).mean(0) + WEAK_PRIOR,
            (curvature * x).mean(0),
            curvature.mean(0),
        )
        det = h11 * h22 - h12**2
        step = np.stack([h22 * g[0] - h12 * g[1], h11 * g[1] - h12 * g[0]]) / det
        step *= np.minimum(1, MAX_STEP / np.maximum(np.abs(step).max(0), 1e-12))
        slope, offset = slope - step[0], offset - step[1]
        if np.abs(step).max() < 1e-9:
            break
    return np.logaddexp(0, -sign * (slope * x + offset))


def diagnose(
    votes: Votes,
    labels: Labels,
    judges: Coding | Sequence[str] | None = None,
    *,
    thresholds: Thresholds | None = None,
    seed: int = 0,
) -> list[Finding]:
    """Return findings on the labels and the judges, the most serious first.

    Topics: `labels` (none, few, constant, nearly constant), `constant` (votes), `leak`, `parseability`
    (P1), `saturation` (P2), `one-coin`, `missingness` (P3), `undecided`, `below-chance`, `redundancy`,
    `position-bias`; without labels `agreement`, of the judges with one another.

    Parameters
    ----------
    votes, labels
        The votes, and class indices of the labels, -1 where unknown.
    judges
        The coding of the votes, or the judges' names; numbers if not given.
    thresholds
        The thresholds of the checks; by default `Thresholds()`.
    seed
        Seed of the random panels in the check of saturation.

    Raises
    ------
    JudgeBayesError
        If there are not as many labels as items, or names as judges.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import judgebayes as jb
    >>> from judgebayes.panel.diagnostics import diagnose
    >>> panel = {"ann": [1, 1, 0, 0, 1, 0], "ben": [1, 1, 0, 1, 1, 0], "cy": [0, 1, 1, 0, 0, 1]}
    >>> votes, _ = jb.encode_wide(pd.DataFrame(panel).rename_axis("item"))
    >>> labels = np.array([1, 1, 0, 0, -1, -1])
    >>> for finding in diagnose(votes, np.ones(6, int)):  # few, and all the same
    ...     print(finding.severity, finding.topic)
    bad labels
    bad labels
    """
    limits = Thresholds() if thresholds is None else thresholds
    tally = tally_of(votes, labels, judges)
    names = tally.names
    n_judges = len(names)
    findings = check_parseability(readable_share(votes, judges), names, limits)
    if votes.order is not None:
        findings += check_position(votes, names, limits)
    classes = judges.classes.names if isinstance(judges, Coding) else range(votes.n_classes)
    findings += check_constant(votes, np.asarray(labels), names, classes)
    if len(tally.label) == 0:
        findings.append(
            Finding("note", "No item has a label, so nothing is known about accuracy.", "labels")
        )
        findings += check_agreement(votes, names)
    else:
        leaks = check_leaks(tally, limits)
        findings += check_few_labels(tally, limits)
        findings += check_label_balance(tally, classes, limits) + leaks
        findings += check_missingness(tally, limits) + check_undecided(tally, limits)
        # A leak would dominate the other checks, which therefore exclude it.
        leaking = {name for finding in leaks for name in finding.judges}
        not_leaking = np.array([j for j, name in enumerate(names) if name not in leaking], int)
        tally = tally.of_judges(not_leaking)
        names = tally.names
        findings += check_below_chance(tally, limits) + check_one_coin(tally, limits)
        findings += check_redundancy(tally, limits)
        both_classes = tally.n_classes == 2 and len(np.unique(tally.label)) == 2
        # A panel may be right on all of a few labels.
        if both_classes and len(names) > 1 and len(tally.label) >= limits.common:
            panel = votes.of_judges(not_leaking.tolist())
            findings += check_saturation(panel_curve(panel, labels, seed=seed), limits)
    if len(tally.label) and not any(finding.severity == "bad" for finding in findings):
        findings.append(
            Finding(
                "good",
                f"{n_judges} judge(s) and {len(tally.label)} labels: no problem prevents "
                "calibration" + ("; consider the notes above." if findings else "."),
            )
        )
    return sorted(findings, key=lambda f: ("bad", "note", "good").index(f.severity))
