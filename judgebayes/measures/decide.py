"""Decisions: the Bayes action from probabilities and a loss matrix."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from judgebayes.arrays import AnyArray, AnyProbs, ItemCodes, ItemValues
from judgebayes.compiled.float64 import in_float64, inside
from judgebayes.compiled.jit_inline import jit_inline

TIE_TOLERANCE = 1e-9
"""Risks closer than this are tied, so that rounding does not decide."""

Loss = Float[AnyArray, "action class"]


def absolute_loss(n_classes: int) -> Float[np.ndarray, "action class"]:
    """Return the loss ``|a - y|`` in class steps, whose Bayes action is the median (P1 eq 6).

    Examples
    --------
    >>> absolute_loss(3).tolist()
    [[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]
    """
    k = np.arange(n_classes)
    return np.abs(k[:, None] - k[None, :]).astype(float)


def zero_one_loss(n_classes: int) -> Float[np.ndarray, "action class"]:
    """Return the loss 1{a != y}, whose Bayes action is the mode.

    Examples
    --------
    >>> zero_one_loss(2).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    return 1.0 - np.eye(n_classes)


@in_float64
@jit_inline()
def risk(log_probs: Float[AnyArray, "*item class"], loss: Loss) -> Float[Array, "*item action"]:
    r"""Return the expected loss :math:`R(a) = \sum_y L(a, y) p(y)` of every action (P1 eq 6).

    Examples
    --------
    >>> import numpy as np
    >>> print(risk(np.log([[0.2, 0.5, 0.3]]), absolute_loss(3)).round(2))
    [[1.1 0.5 0.9]]
    """
    return jnp.exp(jnp.asarray(log_probs)) @ jnp.asarray(loss).T


@in_float64
@jit_inline()
def bayes_action(log_probs: Float[AnyArray, "*item class"], loss: Loss) -> Int[Array, "*item"]:
    """Return the action of least risk (P1 eq 7); ties go to the middle, see `middle_most`.

    Examples
    --------
    >>> import numpy as np
    >>> log_probs = np.log([[0.2, 0.3, 0.5], [0.4, 0.2, 0.4]])
    >>> bayes_action(log_probs, absolute_loss(3)).tolist()
    [1, 1]
    >>> bayes_action(log_probs, zero_one_loss(3)).tolist()
    [2, 0]
    """
    log_probs, loss = jnp.asarray(log_probs), jnp.asarray(loss)
    if loss.shape == (2, 2):
        return _second_of_two(log_probs[..., 1] - log_probs[..., 0], loss).astype(int)
    risks = inside(risk)(log_probs, loss)
    return middle_most(risks <= risks.min(-1, keepdims=True) + TIE_TOLERANCE)


@in_float64
@jit_inline()
def decide(log_probs: AnyProbs, loss: Loss) -> tuple[ItemCodes, ItemValues]:
    """Return the action of least risk on every item, as `bayes_action` does, and that risk."""
    decisions = inside(bayes_action)(log_probs, loss)
    return decisions, inside(risk)(log_probs, loss)[jnp.arange(len(log_probs)), decisions]


def _second_of_two(margin: Float[Array, "*item"], loss: Loss) -> Bool[Array, "*item"]:
    """Return whether the second of two actions has less risk; a tie goes to the first.

    The gain of the second action is a + (b - a) p with the probability p of the second class. The
    threshold of p, and so of the log-odds (`margin`), is the same for all items.
    """
    a, b = loss[0, 0] - loss[1, 0], loss[0, 1] - loss[1, 1]
    p = jnp.clip((TIE_TOLERANCE - a) / jnp.where(a == b, 1.0, b - a), 0.0, 1.0)
    limit = jnp.log(p) - jnp.log1p(-p)
    largest = np.finfo(float).max
    finite = jnp.clip(margin, -largest, largest)  # an infinite limit is passed by all, or by none
    passed = jnp.where(b > a, finite > limit, finite < limit)
    return jnp.where(a == b, a > TIE_TOLERANCE, passed)


@jit_inline()
def middle_most(tied: Bool[Array, "*item class"]) -> Int[Array, "*item"]:
    """Return which of several tied classes is chosen.

    This is the class nearest to the centre of the tied ones; of two equally near, the one nearer to
    the middle of the scale; of two equally near to both, the lower. Mirroring the classes mirrors the
    result, except in that last case (an even number of classes, tied around the middle).

    >>> middle_most(jnp.array([[True, False, True], [False, True, True]])).tolist()
    [0, 1]
    """
    n_classes = tied.shape[-1]
    k = jnp.arange(n_classes)
    lowest = jnp.argmax(tied, -1)
    highest = n_classes - 1 - jnp.argmax(tied[..., ::-1], -1)
    from_centre = jnp.abs(2 * k - (lowest + highest)[..., None])
    from_middle = jnp.abs(2 * k - (n_classes - 1))
    rank = (from_centre * n_classes + from_middle) * n_classes + k
    return jnp.argmin(jnp.where(tied, rank, n_classes**3), -1)
