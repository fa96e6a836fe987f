r"""Items in groups: how much less they say than independent items, and how generators share them.

Items of a group (the outputs for one program, the answers to one question) tend to be valid together.
With :math:`r_n` the standardised residual of item n's label, the intraclass correlation is the mean
product of residuals of two items of the same generator and group c,

.. math:: \rho = \frac{\sum_c \sum_{n < m \in c} r_n r_m}{\sum_c |c| (|c| - 1) / 2}

and a sum over items has the variance of independent items times Kish's design effect,

.. math:: \mathrm{deff} = 1 + \rho \left(\frac{\sum_c |c|^2}{\sum_c |c|} - 1\right)

Judges whose votes on labelled items are alike beyond what label and generator explain.
"""

from dataclasses import dataclass
from itertools import combinations

import jax
import numpy as np
from jaxtyping import Bool, Float
from scipy.special import expit, ndtri

from judgebayes.arrays import ItemFloats, ItemInts, Key
from judgebayes.measures.significance import clustered_mean
from judgebayes.panel.judges import residual_correlation, tally_of
from judgebayes.votes import Votes

COPIES = 0.75
"""Two judges are called copies above this residual correlation."""
LEAST_ITEMS = 40
LEAST_ERRORS = 3
"""Fewer labelled items with votes of both judges, or errors of either of them, tell nothing."""
CHANCE = 0.01
"""How probable it may be, by chance, that a pair exceeds the median of the others as far."""


def copies_among(
    votes: Votes, labels: ItemInts, generator: ItemInts
) -> list[tuple[int, int, float]]:
    r"""Return the pairs of judges that may be copies of one another, and their correlation.

    Their residual correlation (`judgebayes.panel.judges`), within items of one generator and label, is
    above `COPIES`, and its Fisher transform exceeds the median of all
    other pairs by the normal quantile of 1 - `CHANCE` / pairs, times :math:`1 / \sqrt{n - 3}` for n
    items with votes of both: hard items, on which all judges err, raise the correlation of every pair.
    In simulated panels of 2 to 8 judges without copies at most 4 % have such a pair (with 40 or more
    labelled items and difficulties of a standard deviation of up to 1.5 on the logit scale; 21 % where
    it is 3, so that difficulty decides nearly all votes); of panels with copies that differ on 3 % of
    the items, 90 to 100 %.
    """
    if votes.n_judges < 2 or (labels >= 0).sum() < LEAST_ITEMS:
        return []
    tally = tally_of(votes, labels)
    cells = np.stack([generator[labels >= 0], tally.label])
    cell = np.unique(cells, axis=1, return_inverse=True)[1].ravel()
    of_cells = tally._replace(label=cell, n_classes=int(cell.max()) + 1)
    rho = np.nan_to_num(residual_correlation(of_cells, common=1))
    voted = tally.voted.astype(int)
    common = voted.T @ voted
    errors = (tally.voted & (tally.right < 1)).astype(int).T @ voted
    pairs = list(combinations(range(votes.n_judges), 2))
    z = np.arctanh(np.clip([rho[pair] for pair in pairs], -0.9999, 0.9999))
    quantile = ndtri(1 - CHANCE / len(pairs))
    copies = []
    for place, (a, b) in enumerate(pairs):
        n = common[a, b]
        others = np.delete(z, place)
        if rho[a, b] <= COPIES or n < LEAST_ITEMS or min(errors[a, b], errors[b, a]) < LEAST_ERRORS:
            continue
        if len(others) == 0 or z[place] - np.median(others) > quantile / np.sqrt(n - 3):
            copies.append((a, b, float(rho[a, b])))
    return copies


OFFSETS = np.linspace(-8.0, 8.0, 801)
"""The logit offsets of a generator at which probabilities of its items are computed."""


@dataclass(frozen=True)
class Clusters:
    """The groups of a generator's items, and their intraclass correlation."""

    of_item: ItemInts
    correlation: float

    def take(self, items: Bool[np.ndarray, " item"]) -> "Clusters":
        """Return the groups of some items."""
        return Clusters(self.of_item[items], self.correlation)

    def design_effect(self, use: Bool[np.ndarray, " item"]) -> float:
        """Return the design effect of some of the items, at least 1."""
        size = np.unique(self.of_item[use], return_counts=True)[1].astype(float)
        if not len(size):
            return 1.0
        return 1.0 + self.correlation * (float((size**2).sum() / size.sum()) - 1.0)

    def error_of_mean(self, values: ItemFloats) -> float:
        """Return the standard error of a mean over items, by `clustered_mean`.

        With a single group, which shows no variation, items count as groups; one item has the error 0.
        """
        if len(values) < 2:
            return 0.0
        one_group = (self.of_item == self.of_item[0]).all()
        return clustered_mean(values, None if one_group else self.of_item)[1]


def residuals(
    scores: ItemFloats, labels: ItemInts, generator: ItemInts, n_generators: int
) -> ItemFloats:
    """Return the labels' standardised residuals, 0 without a label.

    An item is valid with the probability sigmoid(score + offset), with the offset of its generator at
    which the residuals before standardising sum to 0.
    """
    residual = np.zeros(len(labels))
    for place in range(n_generators):
        own = (generator == place) & (labels >= 0)
        if own.any():
            mean = np.array([expit(scores[own] + offset).mean() for offset in OFFSETS])
            p = expit(scores[own] + np.interp(labels[own].mean(), mean, OFFSETS))
            residual[own] = (labels[own] - p) / np.sqrt(p * (1 - p))
    return residual


def correlation_within(
    residual: ItemFloats, labels: ItemInts, generator: ItemInts, groups: ItemInts
) -> float:
    """Return the intraclass correlation of the labelled items, between 0 and 1.

    It is 0 if no two labelled items are of the same generator and group.
    """
    known = labels >= 0
    pairs = np.stack([generator[known], groups[known]])
    cell = np.unique(pairs, axis=1, return_inverse=True)[1].ravel()
    size, total, square = (
        np.bincount(cell, weights=w)
        for w in (np.ones(len(cell)), residual[known], residual[known] ** 2)
    )
    n_pairs = (size * (size - 1)).sum()
    return float(np.clip((total**2 - square).sum() / n_pairs, 0.0, 1.0)) if n_pairs else 0.0


def correlation_between(
    residual: ItemFloats, groups: ItemInts, generator: ItemInts, n_generators: int
) -> Float[np.ndarray, "generator generator"]:
    """Return the correlation between generators of their groups' sums of residuals."""
    names, group = np.unique(groups, return_inverse=True)
    sums = np.zeros((len(names), n_generators))
    np.add.at(sums, (group, generator), residual)
    scale = np.sqrt((sums**2).sum(0))
    sums /= np.where(scale > 0, scale, 1.0)
    return sums.T @ sums + np.diag(np.where(scale > 0, 0.0, 1.0))


def clustered(
    residual: ItemFloats,
    labels: ItemInts,
    generator: ItemInts,
    n_generators: int,
    groups: ItemInts | None,
) -> tuple[Clusters, Float[np.ndarray, "generator generator"]]:
    """Return the items' groups, each item its own by default, and the correlation of generators."""
    if groups is None:
        return Clusters(np.arange(len(labels)), 0.0), np.eye(n_generators)
    return (
        Clusters(groups, correlation_within(residual, labels, generator, groups)),
        correlation_between(residual, groups, generator, n_generators),
    )


def normal_draws(
    covariance: Float[np.ndarray, "generator generator"], n_draws: int, key: Key
) -> Float[np.ndarray, "draw generator"]:
    """Return normal draws with mean 0 and this covariance, which may be of a low rank."""
    free = np.asarray(jax.random.normal(key, (n_draws, len(covariance))), float)
    value, vector = np.linalg.eigh(covariance)
    return free @ (vector * np.sqrt(np.maximum(value, 0.0))).T
