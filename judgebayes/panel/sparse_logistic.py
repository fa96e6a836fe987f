"""Panels of the judges that a sparse logistic regression keeps."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from judgebayes.aggregators.base import Aggregator, Training
from judgebayes.arrays import Scalar
from judgebayes.errors import JudgeBayesError
from judgebayes.measures.scores import labelled_weight
from judgebayes.panel.curators import largest, posterior_accuracy

__all__ = ["L1Logistic"]

L1_STEPS = 2000
L1_TOLERANCE = 1e-7


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class L1Logistic:
    r"""The judges with a weight other than 0 in a sparse logistic regression on the votes (H.4).

    .. math:: \min_{w, c} \; \tfrac1n \sum_i \log(1 + e^{-y_i (x_i^T w + c)}) + \lambda \|w\|_1

    with x = +1 for the higher class, -1 for the lower, 0 where missing. If no judge is left, the
    most accurate one is taken.

    Parameters
    ----------
    penalty
        lambda; scikit-learn's C is 1 / (n lambda).
    label_noise
        The known share e of the labels that are wrong: the likelihood is that of the seen label,
        :math:`e + (1 - 2 e) / (1 + e^{-y_i (x_i^T w + c)})`. Weights are then those of the true
        label, larger by about 1 / (1 - 2 e), so that the same lambda weighs more.
    """

    penalty: float = 0.01
    label_noise: float = 0.0

    def choose(self, aggregator: Aggregator, data: Training) -> Bool[Array, " judge"]:  # noqa: ARG002
        """Return the panel.

        Raises
        ------
        JudgeBayesError
            If there are more than two classes.
        """
        if data.votes.n_classes != 2:
            raise JudgeBayesError(
                f"L1Logistic is for two classes; the votes have {data.votes.n_classes}."
            )
        weights = sparse_weights(data, self.penalty, self.label_noise)[0]
        alone = largest(posterior_accuracy(data), 1)
        return jnp.where((weights != 0).any(), weights != 0, alone)


class _Descent(NamedTuple):
    place: Float[Array, " parameter"]
    ahead: Float[Array, " parameter"]
    momentum: Float[Array, ""]
    step: Int[Array, ""]
    gap: Float[Array, ""]


def sparse_weights(
    data: Training, penalty: Scalar, noise: Scalar = 0.0
) -> tuple[Float[Array, " judge"], Float[Array, ""]]:
    """Return weights and offset of the L1-penalised logistic regression, by FISTA with restarts.

    With label noise the objective is not convex, but no more curved: the step stays safe, and the
    answer is the minimum reached from zero weights.
    """
    counts = data.votes.counts().astype(float)
    x = (counts[..., 1] - counts[..., 0]) / jnp.maximum(counts.sum(-1), 1)
    weight = labelled_weight(data.labels, data.weight)
    weight = weight / jnp.maximum(weight.sum(), 1e-300)
    sign = jnp.where(data.labels == 1, 1.0, -1.0)
    wide = jnp.concatenate([x, jnp.ones((len(x), 1))], 1)
    steepest = 0.25 * jnp.linalg.eigvalsh(wide.T @ (wide * weight[:, None]))[-1]
    shrink = jnp.full(wide.shape[1], penalty / steepest).at[-1].set(0.0)

    # Log-odds of a label that is seen since it is true, against one that is wrong by chance.
    by_chance = jnp.log(jnp.asarray(noise)) - jnp.log1p(-2 * jnp.asarray(noise))

    def advance(at: _Descent) -> _Descent:
        margin = sign * (wide @ at.ahead)
        meant = jax.nn.sigmoid(jax.nn.log_sigmoid(margin) - by_chance)
        slope = wide.T @ (-sign * weight * jax.nn.sigmoid(-margin) * meant)
        moved = at.ahead - slope / steepest
        there = jnp.sign(moved) * jnp.maximum(jnp.abs(moved) - shrink, 0.0)
        # Restart where the momentum points uphill (O'Donoghue & Candes 2015).
        uphill = (at.ahead - there) @ (there - at.place) > 0
        faster = jnp.where(uphill, 1.0, (1 + jnp.sqrt(1 + 4 * at.momentum**2)) / 2)
        carried = jnp.where(uphill, 0.0, (at.momentum - 1) / faster)
        gap = jnp.abs(there - at.ahead).max()
        return _Descent(there, there + carried * (there - at.place), faster, at.step + 1, gap)

    def unfinished(at: _Descent) -> Bool[Array, ""]:
        return (at.step < L1_STEPS) & (at.gap > L1_TOLERANCE)

    zero = jnp.zeros(wide.shape[1])
    begin = _Descent(zero, zero, jnp.asarray(1.0), jnp.asarray(0), jnp.asarray(jnp.inf))
    found = jax.lax.while_loop(unfinished, advance, begin).place
    return found[:-1], found[-1]
