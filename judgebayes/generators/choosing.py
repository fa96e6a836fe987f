r"""Which outputs to label next: the greedy c-optimal design of `judgebayes.generators.labelling`.

What the labels are for is a set of contrasts of the generators' shares: each generator's own share, or
the difference of two, which decides which of them is better. To first order the variance of a contrast
is :math:`c^T \Sigma c`, with c its gradient in the cells' logits. One more label in cell k, whose
information is :math:`q = p (1 - p)`, lowers it by

.. math:: \frac{q\,(c^T \Sigma_{\cdot k})^2}{1 + q \Sigma_{kk}} + \frac{q\, w_g^2}{N_g^2},

the information about all cells, and the uncertainty of the output itself, with w_g the contrast's weight
of the output's generator. Among more items like these, the second term is 0, and c does not decrease as
outputs are labelled.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from judgebayes.arrays import ItemCodes, ItemInts


class Design(NamedTuple):
    """A posterior of the cells' logits, a mixture of normals, and what the labels are for."""

    weight: Float[Array, " point"]
    mean: Float[Array, "point cell"]
    covariance: Float[Array, "point cell cell"]
    remaining: Float[Array, " cell"]
    """Unlabelled outputs."""
    size: Float[Array, " cell"]
    """All outputs."""
    member: Float[Array, "generator cell"]
    """1 for the cells of a generator."""
    contrasts: Float[Array, "contrast generator"]
    more: bool | Bool[Array, ""]
    """Whether the contrasts are of more items like these."""


def _gains(design: Design) -> Float[Array, " cell"]:
    """Return the decrease of the contrasts' variances by one label in each cell."""
    total = jnp.maximum(design.member @ design.size, 1.0)[:, None]
    counted = jnp.where(design.more, design.size, design.remaining)
    own = jnp.where(design.more, 0.0, (design.contrasts**2).sum(0)) @ (design.member / total**2)

    def gain(mean: Array, covariance: Array) -> Float[Array, " cell"]:
        p = jax.nn.sigmoid(mean)
        q = p * (1 - p)
        gradient = design.contrasts @ (design.member * counted * q / total)
        reach = gradient @ covariance
        return (reach**2).sum(0) * q / (1 + q * jnp.diag(covariance)) + own * q

    return design.weight @ jax.vmap(gain)(design.mean, design.covariance)


def _labelled(design: Design, cell: Int[Array, ""]) -> Design:
    """Return the design with one more label in a cell."""
    p = jax.nn.sigmoid(design.mean[:, cell])
    q, column = p * (1 - p), design.covariance[:, :, cell]
    scale = q / (1 + q * column[:, cell])
    spread = design.covariance - scale[:, None, None] * column[:, :, None] * column[:, None, :]
    return design._replace(covariance=spread, remaining=design.remaining.at[cell].add(-1.0))


@jax.jit
def labels_by_cell(design: Design, n: Int[Array, ""]) -> Float[Array, " cell"]:
    """Return the number of the next n labels that each cell should get."""

    def add(_: Int[Array, ""] | int, design: Design) -> Design:
        gain = jnp.where(design.remaining > 0, _gains(design), -1.0)
        return _labelled(design, jnp.argmax(gain))

    n_labels = jnp.minimum(n, design.remaining.sum().astype(n.dtype))
    design = design._replace(more=jnp.asarray(design.more))
    return design.remaining - jax.lax.fori_loop(0, n_labels, add, design).remaining


@jax.jit
def _label_all(design: Design, cells: ItemCodes) -> tuple[Design, Float[Array, " cell"]]:
    """Return the design with labels in these cells (-1 is padding), and the gains of the next."""
    design = design._replace(more=jnp.asarray(design.more))

    def add(design: Design, cell: Int[Array, ""]) -> tuple[Design, None]:
        new = _labelled(design, cell)
        return jax.tree.map(lambda a, b: jnp.where(cell >= 0, a, b), new, design), None

    design = jax.lax.scan(add, design, cells)[0]
    return design, _gains(design)


def whole_groups(
    design: Design, cell: ItemInts, group: ItemInts, n: int
) -> Int[np.ndarray, " chosen"]:
    """Return the unlabelled items of whole groups, chosen one after the other until n are reached.

    The next group is that with the largest mean gain of its items.

    Parameters
    ----------
    design
        The posterior, and what the labels are for.
    cell
        The cell of each unlabelled item.
    group
        The group of each unlabelled item.
    n
        The number of items; the last group may exceed it.
    """
    names, which = np.unique(group, return_inverse=True)
    size = np.bincount(which)
    longest, open_groups = int(size.max(initial=1)), np.ones(len(names), bool)
    gains = _label_all(design, jnp.full(longest, -1))[1]
    chosen: list[np.ndarray] = []
    while open_groups.any() and sum(map(len, chosen)) < n:
        mean = np.bincount(which, weights=np.asarray(gains)[cell]) / size
        best = int(np.argmax(np.where(open_groups, mean, -1.0)))
        items = np.flatnonzero(which == best)
        padded = np.append(cell[items], np.full(longest - len(items), -1))
        design, gains = _label_all(design, jnp.asarray(padded))
        open_groups[best] = False
        chosen.append(items)
    return np.concatenate(chosen) if chosen else np.array([], int)
