r"""Agreement beyond chance, of judges with one another and of each judge with the labels.

The shares :math:`s_{ijk}` of a judge's votes on item i that are for class k count as one rating, so that
repeated votes do not agree with themselves. For two raters with the table :math:`T = \sum_i s_i s_i'^T`
of their n common items, :math:`p_o = \operatorname{tr} T / n`, marginal shares r and c, and
:math:`\pi = (r + c) / 2`:

.. math:: \kappa = \frac{p_o - r \cdot c}{1 - r \cdot c}, \qquad
          AC_1 = \frac{p_o - p_e}{1 - p_e}, \quad p_e = \frac{\sum_k \pi_k (1 - \pi_k)}{K - 1}, \qquad
          \alpha = 1 - (N - 1) \frac{\sum_{kl} o_{kl} \delta^2_{kl}}{\sum_{kl} n_k n_l \delta^2_{kl}}

with the coincidences :math:`o = T + T^T`, their sums :math:`n_k` and N in all. :math:`\delta_{kl}` is 1
for different classes; for the ordinal alpha it is the number of ratings from k to l, without half of
those at both ends. Among several judges, kappa is the mean over pairs, :math:`AC_1` and alpha those of
all ratings of an item. Kappa is low where nearly all items have one class, even if judges agree;
:math:`AC_1` is not.

Sources: Cohen 1960; Light 1971; Gwet 2008, "Computing inter-rater reliability and its variance in the
presence of high agreement", eq 6 and 7; Krippendorff 2011, "Computing Krippendorff's alpha-reliability".
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.stats import t

from judgebayes.arrays import ItemInts
from judgebayes.votes.array import Votes

BLOCKS = 50
"""The interval is that of a jackknife which leaves out one of so many parts of the items."""
PANEL = "between judges"
Matrix = Float[np.ndarray, "class class"]


def reliability_table(
    votes: Votes,
    labels: ItemInts,
    names: Sequence[str],
    *,
    ordered: bool,
    groups: ItemInts | None = None,
    level: float = 0.9,
) -> pd.DataFrame:
    """Return a row for the judges with one another, and one for each judge with the labels.

    Columns: `raters`; `items` that two or more of them rated; and `agreement`, `kappa`, `ac1`, `alpha`
    and, of three or more `ordered` classes, `alpha_ordinal`, each with the ends of its interval, `_low`
    and `_high`. The intervals are about more items (more groups) like these. NaN where a coefficient is
    not defined, as kappa is if all ratings are of one class, and for ends where no part of the items
    changes a value, as where all ratings are equal: they do not say how rare others are.
    """
    k = votes.n_classes
    index = np.asarray(votes.index)
    counts = np.stack([(index == c).sum(2) for c in range(k)], axis=2).astype(float)
    share = counts / np.maximum(counts.sum(2, keepdims=True), 1)
    gold = (labels[:, None] == np.arange(k)).astype(float)[:, None, :]
    ordinal = ordered and k > 2
    unit = np.arange(len(labels)) if groups is None else np.unique(groups, return_inverse=True)[1]
    order = np.random.default_rng(0).permutation(unit.max() + 1)
    n_blocks = min(BLOCKS, len(order))
    block = order[unit] % n_blocks
    total = _sums(share, gold)
    value = _coefficients(total, ordinal=ordinal)
    without = np.empty((n_blocks, *value.shape))
    for b in range(n_blocks):
        part = _sums(share[block == b], gold[block == b])
        rest = [whole - own for whole, own in zip(total, part, strict=True)]
        without[b] = _coefficients(rest, ordinal=ordinal)
    spread = np.sqrt((n_blocks - 1) * without.var(axis=0))
    # In logarithms of the disagreement, 1 - value, because its mean is skewed where it is small.
    apart = 1 - value
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        ratio = np.exp(t.ppf((1 + level) / 2, max(n_blocks - 1, 1)) * spread / apart)
    ratio[spread == 0] = np.nan
    columns = ["agreement", "kappa", "ac1", "alpha", *(["alpha_ordinal"] if ordinal else [])]
    table: dict[str, object] = {"raters": [PANEL, *(f"{name} with labels" for name in names)]}
    table["items"] = [int(total[3]), *np.rint(total[0].sum((1, 2))).astype(int)]
    for place, name in enumerate(columns):
        table[name] = value[:, place]
        table[f"{name}_low"] = np.maximum(1 - apart[:, place] * ratio[:, place], -1.0)
        table[f"{name}_high"] = 1 - apart[:, place] / ratio[:, place]
    frame = pd.DataFrame(table)
    return frame[frame["items"] > 0].reset_index(drop=True)


def _sums(
    share: Float[np.ndarray, "item judge class"], gold: Float[np.ndarray, "item 1 class"]
) -> list[Any]:
    """Return sums over items: tables with the labels, tables of pairs, and those of all ratings.

    The last are the number of items with two ratings, their agreement, their coincidences, the number of
    items with any, and the shares of classes.
    """
    n, j, k = share.shape
    flat = share.reshape(n, j * k)
    with_labels = (flat.T @ gold[:, 0]).reshape(j, k, k)
    pairs = (flat.T @ flat).reshape(j, k, j, k)
    voted = share.sum(2) > 0
    size, whole = voted.sum(1), share.sum(1)
    several, some = size > 1, size > 0
    own = np.einsum("ijk,ijl->ikl", share, share)
    apart = (whole[:, :, None] * whole[:, None, :] - own)[several]
    size2 = size[several].astype(float)
    equal = np.einsum("ikk->i", apart) / (size2 * (size2 - 1))
    shares = (whole[some] / size[some, None]).sum(0)
    coincidences = (apart / (size2 - 1)[:, None, None]).sum(0)
    n_several, n_some = float(several.sum()), float(some.sum())
    return [with_labels, pairs, equal.sum(), n_several, coincidences, n_some, shares]


def _coefficients(sums: list[Any], *, ordinal: bool) -> Float[np.ndarray, "row coefficient"]:
    with_labels, pairs, equal, several, coincidences, some, shares = sums
    with np.errstate(invalid="ignore", divide="ignore"):
        kappas = _kappa(pairs.swapaxes(1, 2))[np.triu_indices(len(pairs), 1)]
        known = kappas[np.isfinite(kappas)]
        agreement = float(equal / several)
        panel = [agreement, known.mean() if len(known) else np.nan, _ac1(agreement, shares / some)]
        panel += _alphas(coincidences, ordinal=ordinal)
        return np.array([panel, *(_of_pair(table, ordinal=ordinal) for table in with_labels)])


def _of_pair(table: Matrix, *, ordinal: bool) -> list[float]:
    """Return the coefficients of two raters."""
    shares = table / table.sum()
    agreement = float(np.trace(shares))
    ac1 = _ac1(agreement, (shares.sum(1) + shares.sum(0)) / 2)
    return [agreement, float(_kappa(table)), ac1, *_alphas(table + table.T, ordinal=ordinal)]


def _kappa(tables: Float[np.ndarray, "*pair class class"]) -> Float[np.ndarray, "*pair"]:
    shares = tables / tables.sum((-2, -1), keepdims=True)
    agreement = np.trace(shares, axis1=-2, axis2=-1)
    chance = (shares.sum(-1) * shares.sum(-2)).sum(-1)
    return np.asarray((agreement - chance) / (1 - chance))


def _ac1(agreement: float, shares: Float[np.ndarray, " class"]) -> float:
    chance = float((shares * (1 - shares)).sum() / (len(shares) - 1))
    return (agreement - chance) / (1 - chance)


def _alphas(coincidences: Matrix, *, ordinal: bool) -> list[float]:
    """Return the nominal alpha and, if asked for, the ordinal one."""
    n = coincidences.sum(1)
    between = np.abs(np.subtract.outer(np.cumsum(n) - n / 2, np.cumsum(n) - n / 2))
    distances = [1.0 - np.eye(len(n)), *([between**2] if ordinal else [])]
    expected = [float((np.outer(n, n) * each).sum()) for each in distances]
    return [
        float(1 - (n.sum() - 1) * (coincidences * each).sum() / e) if e > 0 else np.nan
        for each, e in zip(distances, expected, strict=True)
    ]
