"""Saturation: calibrated NLL against the size of a panel."""

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from judgebayes.arrays import ItemInts, Labels
from judgebayes.errors import JudgeBayesError
from judgebayes.panel.tally import Tally, tally_of
from judgebayes.votes.array import Votes

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
    return curve_of(np.asarray(votes.index), np.asarray(labels), tally, orders, seed)


def curve_of(
    index: Int[np.ndarray, "item judge sample"],
    labels: ItemInts,
    tally: Tally,
    orders: int,
    seed: int,
) -> pd.DataFrame:
    """Return the curve of `panel_curve` from a tally.

    `index` and `labels` are of all items, with or without a label.
    """
    n_judges = index.shape[1]
    sizes = sorted({min(2**k, n_judges) for k in range(n_judges.bit_length() + 1)})
    sizes = sorted({*(s for s in sizes if 2 * s <= n_judges), max(n_judges // 2, 1), n_judges})
    rng = np.random.default_rng(seed)
    rank = np.stack([rng.permutation(n_judges) for _ in range(orders)])
    masks = [(rank < size).astype(float) for size in sizes[:-1]] + [np.ones((1, n_judges))]
    score = _leave_one_out_scores(index[labels >= 0], tally) @ np.concatenate(masks).T
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
