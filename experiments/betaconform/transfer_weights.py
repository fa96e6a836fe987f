"""P3's transfer of a fitted distribution from other data sets (its section 6)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Num

from judgebayes.arrays import AnyArray
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.majority.distribution import FittedDistribution
from judgebayes.models.beta_binomial import Parameters


@dataclass(frozen=True)
class TransferWeights:
    r"""The weight of each data set (P3 eq 14).

    .. math:: \lambda_i = \log(r_i)\,\sigma(a (\operatorname{CosSim}(\bar E_0, \bar E_i) - b))

    The target is data set 0, with similarity 1 to itself and its own number of labels. The fields are
    the ablations of Table 5, and a and b (the paper's alpha and beta), whose values it does not state.

    Parameters
    ----------
    slope, threshold
        a and b.
    size
        `"log"`, or `"count"` for r_i instead of log(r_i).
    similarity
        `"cosine"`, or `"reciprocal-distance"` for ``1 / |E_0 - E_i|``. The target's distance to itself
        is 0, so it gets the similarity of the nearest source.
    sigmoid
        Whether to apply the sigmoid to the similarity.
    """

    slope: float = 10.0
    threshold: float = 0.5
    size: Literal["log", "count"] = "log"
    similarity: Literal["cosine", "reciprocal-distance"] = "cosine"
    sigmoid: bool = True

    def __call__(
        self, embeddings: Float[np.ndarray, "set feature"], labels: Num[np.ndarray, " set"]
    ) -> Float[np.ndarray, " set"]:
        """Return the weights from mean embeddings and numbers of labels; the target comes first.

        Raises
        ------
        JudgeBayesError
            If there is no source, or a data set has fewer than two labels (its weight would be 0).
        """
        e, r = np.asarray(embeddings, float), np.asarray(labels, float)
        if len(e) < 2 or len(e) != len(r) or (r < 2).any():
            raise JudgeBayesError(
                f"There are {len(e)} embeddings and the numbers of labels {r.tolist()}; pass "
                "a target and at least one source, with two labels or more each."
            )
        if self.similarity == "cosine":
            norm = np.maximum(np.linalg.norm(e, axis=1), 1e-300)
            similarities = e @ e[0] / (norm * norm[0])
            similarities[0] = 1.0
        else:
            distance = np.linalg.norm(e - e[0], axis=1)
            distance[0] = distance[1:].min()
            similarities = 1 / np.maximum(distance, 1e-12)
        if self.sigmoid:
            similarities = 1 / (1 + np.exp(-self.slope * (similarities - self.threshold)))
        return (np.log(r) if self.size == "log" else r) * similarities


@in_float64
def transfer(
    fits: Sequence[FittedDistribution], weights: Float[AnyArray, " set"]
) -> FittedDistribution:
    r"""Return the weighted mean of the fits' parameters (P3 eq 15), the target's fit first.

    .. math:: w = \frac{\sum_i \lambda_i w_i}{\sum_i \lambda_i}, \quad
              \alpha_j = \frac{\sum_i \lambda_i \alpha_{i,j}}{\sum_i \lambda_i}, \quad
              \beta_j = \frac{\sum_i \lambda_i \beta_{i,j}}{\sum_i \lambda_i}

    This is the paper's method, and not recommended. The result depends on the order of the components of
    each fit (`swapped_components`), which is arbitrary in a mixture; and a fit with large alpha + beta,
    from many items or little spread, dominates whatever its lambda. Use `PooledBetaBinomial` instead.

    Raises
    ------
    JudgeBayesError
        If fits and weights differ in number, or a fit is not a mixture with one draw.
    """
    if len(fits) != len(weights) or any(f.theta.mean.shape[-2:] != (1, 2) for f in fits):
        raise JudgeBayesError(
            f"There are {len(fits)} fits and {len(weights)} weights; pass one weight per fit, and "
            "point estimates of mixtures of two."
        )
    share = jnp.asarray(weights) / jnp.sum(jnp.asarray(weights))

    def weighted_mean(values: Iterable[Array]) -> Array:
        return sum((x * s for x, s in zip(values, share, strict=True)), jnp.zeros(()))

    thetas = [f.theta for f in fits]
    w = weighted_mean(t.share for t in thetas)
    alpha = weighted_mean(t.mean / t.dispersion for t in thetas)
    beta = weighted_mean((1 - t.mean) / t.dispersion for t in thetas)
    theta = Parameters(w, alpha / (alpha + beta), 1 / (alpha + beta))
    return replace(fits[0], draws=theta._asdict(), most=max(f.most for f in fits))


@in_float64
def swapped_components(fit: FittedDistribution) -> FittedDistribution:
    """Return the same distribution with its components in the other order."""
    return replace(fit, draws={name: x[..., ::-1] for name, x in fit.draws.items()})
