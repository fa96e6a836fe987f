r"""Items in groups: how much less they say than independent items, and how generators share them.

Items of a group (the outputs for one program, the answers to one question) tend to be valid together.
With :math:`r_n` the standardised residual of item n's label, the intraclass correlation is the mean
product of residuals of two items of the same generator and group c,

.. math:: \rho = \frac{\sum_c \sum_{n < m \in c} r_n r_m}{\sum_c |c| (|c| - 1) / 2}

and a sum over items has the variance of independent items times Kish's design effect,

.. math:: \mathrm{deff} = 1 + \rho \left(\frac{\sum_c |c|^2}{\sum_c |c|} - 1\right)
"""

from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Bool, Float
from scipy.special import expit

from judgebayes.arrays import ItemFloats, ItemInts, Key
from judgebayes.measures.significance import clustered_mean

OFFSETS = np.linspace(-8.0, 8.0, 801)
"""The logit offsets of a generator at which probabilities of its items are computed."""


@dataclass(frozen=True)
class Clusters:
    """The groups of a generator's items, and their intraclass correlation."""

    of_item: ItemInts
    correlation: float

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


def normal_draws(
    covariance: Float[np.ndarray, "generator generator"], n_draws: int, key: Key
) -> Float[np.ndarray, "draw generator"]:
    """Return normal draws with mean 0 and this covariance, which may be of a low rank."""
    free = np.asarray(jax.random.normal(key, (n_draws, len(covariance))), float)
    value, vector = np.linalg.eigh(covariance)
    return free @ (vector * np.sqrt(np.maximum(value, 0.0))).T
