"""Panels of the judges that a sparse logistic regression keeps."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from judgebayes.arrays import Scalar
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.fit import Method, Training
from judgebayes.measures.scores import labelled_weight
from judgebayes.panel.judges import largest, posterior_accuracy

L1_STEPS = 2000
L1_TOLERANCE = 1e-7


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class L1Logistic:
    r"""The judges with nonzero weights in a sparse logistic regression on the votes (H.4).

    .. math:: \min_{w, c} \; \tfrac1n \sum_i \log(1 + e^{-y_i (x_i^T w + c)}) + \lambda \|w\|_1

    with x = +1 for the higher class, -1 for the lower, 0 where missing. If all
    weights are 0, the most accurate judge is selected.

    Parameters
    ----------
    penalty
        lambda; scikit-learn's C is 1 / (n lambda).
    label_noise
        The known share e of wrong labels: the likelihood is that of the observed label,
        :math:`e + (1 - 2 e) / (1 + e^{-y_i (x_i^T w + c)})`. The weights are then those for the
        true label, larger by about 1 / (1 - 2 e), so the same lambda penalises more.
    """

    penalty: float = 0.01
    label_noise: float = 0.0

    def choose(self, aggregator: Method, data: Training) -> Bool[Array, " judge"]:  # noqa: ARG002
        """Return the panel.

        Raises
        ------
        JudgeBayesError
            If there are more than two classes.
        """
        if data.given.n_classes != 2:
            raise JudgeBayesError(
                f"L1Logistic is for two classes; the votes have {data.given.n_classes}."
            )
        weights = sparse_weights(data, self.penalty, self.label_noise)[0]
        most_accurate = largest(posterior_accuracy(data), 1)
        return jnp.where((weights != 0).any(), weights != 0, most_accurate)


class _FistaState(NamedTuple):
    point: Float[Array, " parameter"]
    extrapolated: Float[Array, " parameter"]
    momentum: Float[Array, ""]
    step: Int[Array, ""]
    gap: Float[Array, ""]


def sparse_weights(
    data: Training, penalty: Scalar, noise: Scalar = 0.0
) -> tuple[Float[Array, " judge"], Float[Array, ""]]:
    """Return weights and offset of the L1-penalised logistic regression, by FISTA with restarts.

    With label noise the objective is not convex, but its curvature bound is unchanged, so the step size
    stays valid. The result is the minimum reached from zero weights.
    """
    counts = data.given.counts().astype(float)
    x = (counts[..., 1] - counts[..., 0]) / jnp.maximum(counts.sum(-1), 1)
    weight = labelled_weight(data.labels, data.weight)
    weight = weight / jnp.maximum(weight.sum(), 1e-300)
    sign = jnp.where(data.labels == 1, 1.0, -1.0)
    design = jnp.concatenate([x, jnp.ones((len(x), 1))], 1)
    lipschitz = 0.25 * jnp.linalg.eigvalsh(design.T @ (design * weight[:, None]))[-1]
    threshold = jnp.full(design.shape[1], penalty / lipschitz).at[-1].set(0.0)

    # Log-odds that an observed label is wrong by chance rather than true.
    noise_log_odds = jnp.log(jnp.asarray(noise)) - jnp.log1p(-2 * jnp.asarray(noise))

    def advance(at: _FistaState) -> _FistaState:
        margin = sign * (design @ at.extrapolated)
        true_share = jax.nn.sigmoid(jax.nn.log_sigmoid(margin) - noise_log_odds)
        gradient = design.T @ (-sign * weight * jax.nn.sigmoid(-margin) * true_share)
        stepped = at.extrapolated - gradient / lipschitz
        shrunk = jnp.sign(stepped) * jnp.maximum(jnp.abs(stepped) - threshold, 0.0)
        # Restart where the momentum points uphill (O'Donoghue & Candes 2015).
        uphill = (at.extrapolated - shrunk) @ (shrunk - at.point) > 0
        new_momentum = jnp.where(uphill, 1.0, (1 + jnp.sqrt(1 + 4 * at.momentum**2)) / 2)
        inertia = jnp.where(uphill, 0.0, (at.momentum - 1) / new_momentum)
        gap = jnp.abs(shrunk - at.extrapolated).max()
        return _FistaState(
            shrunk, shrunk + inertia * (shrunk - at.point), new_momentum, at.step + 1, gap
        )

    def not_converged(at: _FistaState) -> Bool[Array, ""]:
        return (at.step < L1_STEPS) & (at.gap > L1_TOLERANCE)

    zero = jnp.zeros(design.shape[1])
    initial = _FistaState(zero, zero, jnp.asarray(1.0), jnp.asarray(0), jnp.asarray(jnp.inf))
    solution = jax.lax.while_loop(not_converged, advance, initial).point
    return solution[:-1], solution[-1]
